"""The state of an MCP server in words for a person; its output, and what of that says why it ended."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO, TypeAlias

from tui.config.files import at_home, private_log
from tui.context.counting.digests import text_digest
from tui.providers.http.sse import TooLargeError
from tui.providers.keys import one_line, redact
from tui.text.clean import clean_output
from tui.text.numbers import size_text
from tui.tools.mcp.config import McpConfigError, ServerConfig
from tui.tools.mcp.oauth import SignInError
from tui.tools.mcp.offer import ResourceTemplate, ServerPrompt, ServerResource, ServerTool

State: TypeAlias = Literal["off", "starting", "ready", "reconnecting", "failed"]


class GoneError(Exception):
    """The connection has ended. `str()` is the SDK's message."""


@dataclass(slots=True)
class TransportStatus:
    """What the SDK's errors leave out: the last HTTP error status, and the limit in bytes that an answer exceeded."""

    code: int = 0
    text: str = ""
    exceeded: int = 0
    by_oauth: bool = False  # the server says where one signs in (RFC 9728, section 5.1)
    sign_in_needed: bool = False  # the stored sign-in is no longer accepted


@dataclass(frozen=True, slots=True)
class Issue:
    """A problem with something a server lists, in a line. `fault` is False if it is not the server's."""

    text: str
    fault: bool = True


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The state of a server and what it offers.

    `reason` is one line for a person where it is not ready: why, and what to do. Its `tools` then are those that
    it listed last, perhaps in its last run. `templates` are of resources that it does not list. `issues` say what of
    its lists can't be used. `instructions` are the server's own on how it is to be used. `updated` are the URIs of
    resources that have changed since they were attached.
    """

    name: str
    state: State
    reason: str = ""
    about: str = ""
    tools: tuple[ServerTool, ...] = ()
    resources: tuple[ServerResource, ...] = ()
    prompts: tuple[ServerPrompt, ...] = ()
    templates: tuple[ResourceTemplate, ...] = ()
    issues: tuple[Issue, ...] = ()
    instructions: str = ""
    updated: tuple[str, ...] = ()


def failure_reason(
    error: BaseException, config: ServerConfig, status: TransportStatus, *, ready: bool = False
) -> tuple[str, bool]:
    """Why a connection ended or failed, in one line, and whether a retry would fail the same way."""
    cause = innermost(error)
    if status.sign_in_needed or (status.by_oauth and config.oauth is not None):
        return f"it wants you to sign in: /mcp login {config.name}", True
    if isinstance(cause, SignInError) or type(cause).__name__.startswith("OAuth"):  # the SDK's, not loaded for this
        return f"signing in did not work: {error_text(cause)}", True
    where = f"{config.key} in {config.where}"
    no_server = f"there is no MCP server at {config.shown}; check url of {where}"
    if status.code in (401, 403):
        sign_in = f", or sign in: /mcp login {config.name}" if status.code == 401 and config.oauth is not None else ""
        return f"it answered {status.text}; check headers of {where}{sign_in}", True
    if status.code:
        return f"it answered {status.text}", 400 <= status.code < 500 and status.code not in (408, 425, 429)
    if match := re.search(r"Redirect (?:to |response .*location: ')(\S+?)(?:'| not followed)", str(cause), re.DOTALL):
        url = one_line(match[1])
        return f"it redirects to {url}, and redirects are not followed; if that is right, correct url of {where}", True
    match cause:
        case McpConfigError():
            return str(cause), True
        case _ if limit := status.exceeded or _exceeded(cause):
            sse = config.transport == "sse"
            more = (
                f'type = "http" in {where} has a limit that can be set'
                if sse
                else f"maxResponse of {where} allows more"
            )
            return f"it sent more than {size_text(limit)} in one answer; {more}", True
        case GoneError():
            return "it ended", False
        case TimeoutError():
            return "it gave no answer in time", False
        case OSError() if config.transport == "stdio":
            return _not_started(config, cause), True
    kinds = {kind.__name__ for kind in type(cause).__mro__}  # httpx2's, compared by name so that it need not be loaded
    if kinds & {"ConnectError", "ConnectTimeout"}:
        return f"nothing answers at {config.shown}; is it running?", False
    if "RequestError" in kinds:
        return f"the connection to {config.shown} broke", False
    if "HTTPStatusError" in kinds and str(cause).startswith("Client error"):  # 404 or 405: `status` has the others
        return no_server, True
    match error_text(cause):
        case "Connection closed":
            return "it ended" if ready else "it ended before it was ready", False
        case "Not Found" | "Session terminated":
            return no_server, True
        case text:
            return text, False


def _not_started(config: ServerConfig, error: OSError) -> str:
    """Why a program could not be started, and what to do."""
    where = f"{config.key} in {config.where}"
    folder = config.cwd
    if folder and "${" not in folder and not at_home(folder).is_dir():
        return f"there is no folder {folder}; correct cwd of {where}"
    if isinstance(error, FileNotFoundError):
        return f"there is no program {config.command}; install it, or correct command of {where}"
    return f"{config.command} can't be run ({error.strerror or one_line(str(error))}); correct command of {where}"


def _exceeded(error: BaseException) -> int:
    """The limit in bytes that an answer exceeded, 0 if the error says something else."""
    if isinstance(error, TooLargeError):
        return error.limit
    match = re.search(r"exceeded the (\d+) byte limit", str(error))
    return int(match.group(1)) if match else 0


def innermost(error: BaseException) -> BaseException:
    """The innermost error of nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def error_text(error: BaseException) -> str:
    """What went wrong, in one line. For answers refused by the SDK, the first invalid field is named."""
    if type(error).__name__ == "ValidationError" and callable(listed := getattr(error, "errors", None)):  # pydantic's
        first = listed(include_url=False)[0]
        return one_line(f"its answer is not as MCP has it ({'.'.join(map(str, first['loc']))}: {first['msg']})")
    return one_line(str(error)) or type(error).__name__


# -- its output --------------------------------------------------------------------------------------------------------

MAX_BYTES = 1_000_000  # bytes of the file; one older file is kept beside it
LINES = 200  # kept in memory
MAX_LINE = 2_000  # characters of a line
MAX_PER_SECOND = 2_000  # lines read per second: a server that writes more is blocked, not the screen
OUTPUT_WAIT = 1.0  # seconds to wait for the remaining output of an ended server

# What launchers and runtimes write around the reason: stack frames, hints, where a log is.
_AROUND = re.compile(
    r"""at .+[:)]\d*|File ".*", line \d+.*|Traceback \(most recent.*|raise .*|throw .*|Node\.js v\d.*|exit status \d+"""
    r"""|(?:npm )?(?:notice|warn|warning|info|debug)\b.*|usage:.*|(?i:note|hint|for more information)\b.*|\d{3}"""
    r"""|A complete log of this.*|(?:code|errno|syscall|path|cause)\b['"]?\s*[ :=].*"""
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
    mark = "" if clean == server else f"-{text_digest(server)[:6]}"
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
        line = redact(clean_output(text).replace("\n", " ").rstrip())[:MAX_LINE]
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
            while line := lines.readline(MAX_LINE * 4):
                self.add(line)
                count += 1
                if count == MAX_PER_SECOND:
                    time.sleep(max(0.0, began + 1 - time.monotonic()))
                    began, count = time.monotonic(), 0

    def _open(self, path: Path) -> logging.Handler:
        try:
            handler = private_log(path, most_bytes=MAX_BYTES, older=1)
        except OSError:
            return logging.NullHandler()  # the lines in memory remain
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        return handler
