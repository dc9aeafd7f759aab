"""What a shell offers at Tab, and `chatctx completion`, which prints the script that asks for it."""

from __future__ import annotations

from click.shell_completion import get_completion_class, shell_complete

from tui.cli.command_line import PROGRAM, ROOT
from tui.config.settings import Settings

VARIABLE = "_CHATCTX_COMPLETE"
"""Set by the scripts when they ask."""


def run(settings: Settings, *, shell: str) -> int:
    """Print the script for `shell`."""
    from tui.cli.listing import write

    kind = get_completion_class(shell)
    assert kind is not None, shell  # the command line takes no other
    write(kind(ROOT, {}, PROGRAM, VARIABLE).source().rstrip("\n"))
    return 0


def answer(instruction: str) -> int:
    """Answer a script that asks what can come next. Returns the exit code."""
    return shell_complete(ROOT, {}, PROGRAM, VARIABLE, instruction)
