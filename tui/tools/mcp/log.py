"""A server's standard error and log messages: written to a file of its own, the last lines also kept to be shown."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from tui.config.files import private_log
from tui.providers.keys import redact
from tui.text.clean import clean_output

MOST_BYTES = 1_000_000  # bytes of the file; one older file is kept beside it
LINES = 200  # kept in memory
LONGEST = 2_000  # characters of a line
MOST_A_SECOND = 2_000  # lines read per second: a server that writes more is blocked, not the screen
OUTPUT_WAIT = 1.0  # seconds to wait for the remaining output of an ended server

# What launchers and runtimes write around the reason: stack frames, hints, where a log is.
_AROUND = re.compile(
    r"""
      at\ .+[:)]\d* | File\ ".*",\ line\ \d+.* | Traceback\ \(most\ recent.* | goroutine\ \d+.*
    | Node\.js\ v\d.* | node:internal.* | (?:code|errno|syscall|path|requireStack|cause)\b['"]?\s*[:=].*
    | (?:code|errno|syscall|path)\ \S+ | (?:npm\ )?(?:notice|warn|WARN|warning|info|debug|verb)\b.*
    | A\ complete\ log\ of\ this.*
    | note:.* | Note\ that.* | hint:.* | (?:Run|Try|See)\ .*(?:help|information).* | For\ more\ information.*
    | During\ handling\ of.* | The\ above\ exception.* | usage:.* | \d{3} | tarball,\ folder,.* | throw\ .*
    | This\ is\ related\ to\ npm.* | exit\ status\ \d+ | sys\.exit\(.* | raise\ .*
    """,
    re.VERBOSE,
)
_NAMES_AN_ERROR = re.compile(r"(?:Error|Exception)(?: \[\w{1,50}\])?:\s*\S|^(?:error|fatal|panic)\b", re.IGNORECASE)
_TELLS_WHAT = re.compile(
    r"\b(?:not (?:found|set|in this registry|installed|recognized|permitted|allowed)|no such|no solution|no matching"
    r"|unsatisfiable|required|requires|missing|must|cannot|can't|could not|couldn't|unable|failed|failure|denied"
    r"|refused|invalid|unknown|unsupported|unauthorized|forbidden|expired|in use|EADDRINUSE|ENOENT|EACCES|panicked)\b",
    re.IGNORECASE,
)
_UV_CONTINUED = re.compile(r"(?<=\S)\n {6}(?=\S)")  # uv breaks its sentences, indented by the width of its arrow
_LEADING = re.compile(r"^(?:npm (?:error|ERR!)(?: (?:code(?=\s*$)|enoent|404(?=\s)))?\s*|[\s|+×╰─▶>*-]+)+")


def reason_of(lines: Sequence[str]) -> str:
    """The line that most likely says why a program ended: one that names an error, else one that tells what is wrong,
    else the last; without what npm, uv and runtimes write around it. "" where nothing says anything.

    Of several the last counts: of Python's chained exceptions that is the one that ended the program.
    """
    lines = _UV_CONTINUED.sub(" ", "\n".join(lines)).split("\n")
    candidates = [bare for line in lines if (bare := _LEADING.sub("", line).strip()) and bare.strip("-=|^~+{}[]();,. ")]
    telling = [line for line in candidates if not _AROUND.fullmatch(line)]
    for pattern in (_NAMES_AN_ERROR, _TELLS_WHAT):
        if matching := [line for line in telling if pattern.search(line)]:
            return matching[-1]
    return next(reversed(telling or candidates), "")


def log_name(server: str) -> str:
    """The name of a server's log file: not every server name is a valid file name."""
    clean = re.sub(r"[^a-zA-Z0-9_.-]", "_", server)
    mark = "" if clean == server else "-" + hashlib.sha256(server.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"mcp-{clean}{mark}.log"


class ServerLog:
    """The log of one server. `path` None writes no file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lines: deque[str] = deque(maxlen=LINES)
        self._handler: logging.Handler | None = None
        self._reader: threading.Thread | None = None
        self._since_start = 0

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines, oldest first."""
        return tuple(self._lines)

    @property
    def reason(self) -> str:
        """The line that says why the program ended, of those it wrote since its last start; "" for none."""
        lines = self.lines
        return reason_of(lines[max(0, len(lines) - self._since_start) :])

    def add(self, text: str) -> None:
        """Keep a line, without keys and terminal escapes."""
        line = redact(clean_output(text).replace("\n", " ").rstrip())[:LONGEST]
        self._lines.append(line)
        self._since_start += 1
        if self._handler is None and self.path is not None:
            self._handler = self._open(self.path)
        if self._handler is not None:
            self._handler.emit(logging.LogRecord("mcp", logging.INFO, "", 0, line, None, None))

    def pipe(self) -> TextIO:
        """A pipe for a starting server to write to; the caller closes this end once the server has it.

        It is read in a thread until every holder of this end has closed it.
        """
        self._since_start = 0
        reader, writer = os.pipe()
        self._reader = threading.Thread(target=self._read, args=(reader,), name="mcp-stderr", daemon=True)
        self._reader.start()
        return os.fdopen(writer, "w", encoding="utf-8")

    async def wait_for_output(self) -> None:
        """Wait until all output of an ended server has arrived, for a limited time: its own children may live on."""
        if self._reader is not None:
            await asyncio.to_thread(self._reader.join, OUTPUT_WAIT)

    def close(self) -> None:
        """Close the file."""
        if self._handler is not None:
            self._handler.close()

    def _read(self, reader: int) -> None:
        with os.fdopen(reader, "r", encoding="utf-8", errors="replace") as lines:
            began, count = time.monotonic(), 0
            while line := lines.readline(LONGEST * 4):
                self.add(line)
                count += 1
                if count == MOST_A_SECOND:
                    time.sleep(max(0.0, began + 1 - time.monotonic()))
                    began, count = time.monotonic(), 0

    def _open(self, path: Path) -> logging.Handler:
        try:
            handler = private_log(path, most_bytes=MOST_BYTES, older=1)
        except OSError:
            return logging.NullHandler()  # the lines in memory remain
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        return handler
