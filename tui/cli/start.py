"""Runs a parsed command: reads settings, starts the log, and reports errors."""

from __future__ import annotations

import atexit
import gc
import logging
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from tui.cli import BAD_USAGE, complain, streams
from tui.config.files import private_log
from tui.config.settings import Settings, load_settings
from tui.errors import ExpectedError

if TYPE_CHECKING:
    from tui.chat.workspace import Workspace
    from tui.cli.parsing import Invocation

LOG_BYTES = 2_000_000  # of each of three files
LOGGERS = ("tui", "chatctx")


def run(invocation: Invocation) -> int:
    """Run the command. Returns its exit code; shows no traceback."""
    module, _, function = invocation.runs.partition(":")
    settings = None
    try:
        settings = load_settings(None, **invocation.settings)
        start_logging(settings.log_file)
        _free_large_blocks()
        command = getattr(_loaded(f"tui.cli.{module}"), function)
        code: int = command(settings, **invocation.arguments)
        return code
    except ExpectedError as error:
        return complain(str(error), error.exit_code)
    except Exception as error:
        if streams.unwritable(error) is not None:
            raise
        if isinstance(error, FileNotFoundError) and error.filename is None:  # from os.getcwd()
            return complain("the working directory is gone: change to one that exists")
        logger = logging.getLogger("tui")
        if logger.handlers:  # otherwise logging would print tracebacks on standard error
            logger.critical("unexpected error", exc_info=error)
        from tui.text.clean import failure_line

        return complain(failure_line(error, settings and settings.log_file))


def _loaded(name: str) -> ModuleType:
    """The module, imported without the collector: what is loaded stays, and looking for garbage takes a sixth longer.

    At the end of the program nothing is looked through either, which takes another sixth of a short command.
    """
    if name in sys.modules:
        return sys.modules[name]
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.freeze()
        gc.enable()
        atexit.register(gc.freeze)


def chat(settings: Settings, *, resume: str | None) -> int:
    """Open the chat on screen. Everything but the screen is imported after the first frame.

    A terminal that can't move its cursor, or shows no lines, gets the plain chat; without a terminal it is an error.
    """
    import os

    if "TEXTUAL_DRIVER" not in os.environ:  # otherwise the screen is a browser
        if not (sys.stdin.isatty() and sys.stderr.isatty()):  # Textual draws on standard error
            why = ", also as standard error, where it draws" if sys.stdin.isatty() else ""
            return complain(
                f"the chat needs a terminal{why}; chatctx --plain works with pipes, so does chatctx ask", BAD_USAGE
            )
        if os.environ.get("TERM") == "dumb" or not streams.shows(sys.stderr, "─"):
            from tui.cli import plain

            return plain.run(settings, resume=resume)
    from tui.terminal.process import EarlyTerminal

    with EarlyTerminal() as terminal:
        sys.setswitchinterval(0.001)  # seconds: threads count, store and draw while the screen handles keys
        gc.disable()  # start-up creates thousands of permanent objects: a fifth of the time to the first frame
        from tui.app import ChatApp

        async def open_workspace() -> Workspace:
            from tui.chat.workspace import Workspace

            workspace = await Workspace.open(settings, resume=resume)
            workspace.servers.start(app.chat.answer_server)
            return workspace

        app = ChatApp(settings, open_workspace, terminal)
        app.run()
    return streams.exit_code(app.return_code or 0)


def _free_large_blocks() -> None:
    """Have glibc return blocks of 128 KB and more to the system once they are freed.

    By itself it raises that bound with every larger block that is freed (mallopt(3), M_MMAP_THRESHOLD): megabytes read
    at the start would stay. Other C libraries have no such setting.
    """
    import ctypes

    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 128 * 1024)


_M_MMAP_THRESHOLD = -3  # malloc.h


class _Cleaned(logging.Formatter):
    """A formatter that removes control characters, and everything that looks like a key."""

    def format(self, record: logging.LogRecord) -> str:
        from tui.providers.keys import redact
        from tui.text.clean import clean_text

        return redact(clean_text(super().format(record)))


def start_logging(path: Path) -> None:
    """Write the program's log to `path`. A folder without write permission costs only the log.

    What libraries log goes nowhere: without a handler it would go to the terminal.
    """
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        handler = private_log(path, most_bytes=LOG_BYTES, older=2)
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(_Cleaned("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
        logger.propagate = False
