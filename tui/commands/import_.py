"""`/import`: read a conversation from a file, and open it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.commands import UI, Chat, CommandError, command, split_option
from tui.config.files import at_home
from tui.text.numbers import plural
from tui.views.view import Option, Question

if TYPE_CHECKING:
    from tui.chat.interchange.importing import AlreadyHereError

AGAIN = "--again"


@command(
    "import a session of chatctx or another program",
    "conversation",
    when="idle",
    args="FILE [--again]",
    local_only=True,
)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Read, store and open it. If it was imported before, the person decides."""
    from tui.chat.interchange.recording import RecordingError

    name, again = split_option(args, AGAIN)
    if not name:
        raise CommandError("/import needs a file: of chatctx, or of a program that `chatctx import --help` lists.")
    try:
        async with ui.progress(f"importing {at_home(name).name}"):
            await _import(ui, chat, name, again=again)
    except RecordingError as error:
        raise CommandError(f"Not imported: {str(error).rstrip('.')}.") from None


async def _import(ui: UI, chat: Chat, name: str, *, again: bool) -> None:
    from tui.chat.interchange.importing import AlreadyHereError

    workspace, path = chat.workspace, at_home(name)
    try:
        imported = await workspace.import_file(path, again=again)
    except AlreadyHereError as error:
        match await ui.confirm(_imported_before(error, name)):
            case "open":
                await ui.attach(await workspace.resume(error.info.id))
                return
            case "import":
                imported = await workspace.import_file(path, again=True)
            case _:
                return
    skipped = f"; {imported.skipped}" if imported.skipped else ""
    done = f"Imported {plural(imported.info.messages, 'message')}{skipped}"
    if ui.busy:  # a message was sent meanwhile: stay with its answer
        await ui.say(f"{done}: /sessions opens them.")
        return
    await ui.attach(await workspace.resume(imported.info.id))
    await ui.say(f"{done}.", passing=not skipped)


def _imported_before(error: AlreadyHereError, name: str) -> Question:
    info = error.info
    messages = f"The first {error.here:,}" if error.more else f"All {error.here:,}"
    new = f"; {error.more:,} more are new." if error.more else "."
    return Question(
        "Imported before",
        f"{messages} messages of this file are here already{new}",
        (
            Option("open", "Open what is here", info.title or "(no title)"),
            Option("import", "Import it again", "as another conversation; its calls count once more in /usage"),
        ),
        f"Not imported. /sessions {info.id[-8:]} opens it; /import {name} {AGAIN} imports it as another conversation.",
    )
