"""The `chatctx` command line. Imports only what the chosen command needs.

Exit codes: 0 done, 1 the request failed, 2 bad usage, 130 interrupted.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from tui.cli import streams

TYPE_CHECKING = False  # type checkers know the name: until `main` runs nothing catches ctrl+c, so little is loaded
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui.config.settings import Settings

FAILED, BAD_USAGE, INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (without the program's name). Returns the exit code; shows no traceback."""
    try:
        streams.stand()
        code = _main(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()  # here, where its failure can still be understood
        return code
    except KeyboardInterrupt:
        return streams.leave(INTERRUPTED)
    except OSError as error:
        reason = streams.unwritable(error)
        if reason is None:
            raise
        streams.give_up()
        return complain(reason) if reason else FAILED


def _main(argv: Sequence[str]) -> int:
    from tui.cli.parser import not_text, parse

    try:
        args = parse(argv)
    except SystemExit as stop:  # argparse: --help, --version, or bad usage already explained
        return stop.code if isinstance(stop.code, int) else BAD_USAGE
    if wrong := not_text(args):
        return complain(f"{wrong!a} is not UTF-8 text: write it in the terminal's own encoding", BAD_USAGE)
    return _run(args.run, args)


def _run(command: str, args: object) -> int:
    from importlib import import_module

    from tui.cli.logs import start_logging
    from tui.config.settings import ConfigError, load_settings

    module, _, function = command.partition(":")
    settings = None
    try:
        settings = load_settings(
            model=getattr(args, "model", None), gguf=getattr(args, "gguf", None), theme=getattr(args, "theme", None)
        )
        start_logging(settings.log_file)
        _say_ignored(settings)
        code: int = getattr(import_module(f"tui.cli.{module}"), function)(args, settings)
        return code
    except ConfigError as error:
        return complain(str(error), BAD_USAGE)
    except Exception as error:
        known = known_error(error)
        if known is not None:
            return complain(str(error), known)
        if streams.unwritable(error) is not None:
            raise
        if isinstance(error, FileNotFoundError) and error.filename is None:  # of os.getcwd()
            return complain("the working directory is gone: change to one that exists")
        return _unexpected(error, settings.log_file if settings else None)


def _say_ignored(settings: Settings) -> None:
    """Say which settings have no effect any more."""
    if any(table.context_management for table in settings.providers.values()):
        from tui.providers.registry import ignored_settings

        with suppress(ValueError):  # said where the providers are made
            for line in ignored_settings(settings.providers):
                complain(line)


def complain(text: str, code: int = FAILED) -> int:
    """Say one line on standard error, without keys; returns `code`."""
    from tui.providers.keys import redact

    sys.stderr.write(f"chatctx: {redact(' '.join(text.split()))}\n")
    return code


def known_error(error: Exception) -> int | None:
    """The exit code of an error whose text is meant for a person; None for a bug."""
    bad = dict.fromkeys(("UsageError", "AttachmentError", "RecordingError"), BAD_USAGE)
    codes = bad | dict.fromkeys(("StoreError", "ProviderError", "ForkError", "ToolError"), FAILED)
    return next((codes[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in codes), None)


def _unexpected(error: Exception, log_file: Path | None) -> int:
    import logging

    logger = logging.getLogger("tui")
    if logger.handlers:  # else logging itself would write a traceback to standard error
        logger.critical("unexpected error", exc_info=error)
    where = f"; details are in {log_file}" if log_file else ""
    return complain(f"an error of its own: {type(error).__name__}: {error}. Nothing stored is lost{where}")
