"""The program's entry point: runs the command line and always ends with an exit code, without a traceback."""

from __future__ import annotations

import sys

from tui.cli import BAD_USAGE, FAILED, INTERRUPTED, complain, streams
from tui.terminal.output import clean_streams

TYPE_CHECKING = False  # a name known to type checkers: until `main` runs nothing catches ctrl+c, so little is imported
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (without the program's name). Returns the exit code; shows no traceback."""
    try:
        streams.ensure_open()
        with clean_streams():
            code = _main(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()  # here, where a failure can still be reported
        return code
    except KeyboardInterrupt:
        return streams.exit_code(INTERRUPTED)
    except OSError as error:
        reason = streams.unwritable(error)
        if reason is None:
            raise
        streams.discard_buffers()
        return complain(reason) if reason else FAILED


def _main(argv: Sequence[str]) -> int:
    import os

    if list(argv) == ["watch", "--line"]:
        from tui.cli.subcommands import status_line  # 50 ms; the imports for parsing the rest take longer

        code = status_line.run()
        if code is not None:
            return code
    import click

    from tui.cli.command_line import ROOT, parse
    from tui.cli.parsing import COMPLETE, PROGRAM

    if instruction := os.environ.get(COMPLETE):  # a shell requests completions
        from click.shell_completion import shell_complete

        return shell_complete(ROOT, {}, PROGRAM, COMPLETE, instruction)
    try:
        invocation = parse(argv)
    except click.exceptions.Exit as done:  # after --help and --version
        return done.exit_code
    except click.UsageError as error:
        program = error.ctx.command_path if error.ctx else PROGRAM
        message = error.format_message().rstrip(".")
        if "(Did you mean" in message:
            message = message.replace("(Did", "Did").removesuffix(")")
        if " " in getattr(error, "command_name", ""):
            message = 'There is no such command; ask a question with: chatctx ask "..."'
            return complain(message, BAD_USAGE)
        return complain(f"{message}{'' if message.endswith('?') else '.'} See {program} --help", BAD_USAGE)
    from tui.cli.start import run

    return run(invocation)
