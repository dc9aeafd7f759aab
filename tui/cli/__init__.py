"""The `chatctx` command line. Imports only what the chosen command needs.

Exit codes: 0 done, 1 the request failed, 2 bad usage, 130 interrupted.
"""

from __future__ import annotations

import sys

from tui.cli import streams

TYPE_CHECKING = False  # type checkers know the name: until `main` runs nothing catches ctrl+c, so little is loaded
if TYPE_CHECKING:
    from collections.abc import Sequence

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
    import os

    if "_CHATCTX_COMPLETE" in os.environ:
        from tui.cli.completion import answer

        return answer(os.environ["_CHATCTX_COMPLETE"])
    import click

    from tui.cli.command_line import parse

    try:
        invocation = parse(argv)
    except click.exceptions.Exit as done:  # after --help and --version
        return done.exit_code
    except click.UsageError as error:
        program = error.ctx.command_path if error.ctx else "chatctx"
        return complain(f"{error.format_message()} See {program} --help", BAD_USAGE)
    from tui.cli.start import run

    return run(invocation)


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
