"""A server's standard error: written to a file of its own, the last lines also kept to be shown."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
import time
from collections import deque
from pathlib import Path
from typing import TextIO

from tui.config.private import private_log
from tui.providers.keys import redact

MOST_BYTES = 1_000_000  # bytes of the file; one older file is kept beside it
LINES = 200  # kept in memory
LONGEST = 2_000  # characters of a line
MOST_A_SECOND = 2_000  # lines read per second: a server that writes more is blocked, not the screen
LAST_WORDS = 1.0  # seconds to wait for the remaining output of an ended server

_CONTROLS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class ServerLog:
    """The log of one server. `path` None writes no file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lines: deque[str] = deque(maxlen=LINES)
        self._handler: logging.Handler | None = None
        self._reader: threading.Thread | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines, oldest first."""
        return tuple(self._lines)

    @property
    def last(self) -> str:
        """The last line with text, "" for none."""
        return next((line for line in reversed(self.lines) if line.strip(" -=|^~+")), "")

    def add(self, text: str) -> None:
        """Keep a line, without keys and terminal escapes."""
        line = redact(_CONTROLS.sub("", text).rstrip())[:LONGEST]
        self._lines.append(line)
        if self._handler is None and self.path is not None:
            self._handler = self._open(self.path)
        if self._handler is not None:
            self._handler.emit(logging.LogRecord("mcp", logging.INFO, "", 0, line, None, None))

    def pipe(self) -> TextIO:
        """A pipe for a starting server to write to; the caller closes this end once the server has it.

        It is read in a thread until every holder of this end has closed it.
        """
        reader, writer = os.pipe()
        self._reader = threading.Thread(target=self._read, args=(reader,), name="mcp-stderr", daemon=True)
        self._reader.start()
        return os.fdopen(writer, "w", encoding="utf-8")

    async def heard_out(self) -> None:
        """Wait until all output of an ended server has arrived, for a limited time: its own children may live on."""
        if self._reader is not None:
            await asyncio.to_thread(self._reader.join, LAST_WORDS)

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
