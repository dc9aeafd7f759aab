"""`/find`: search this conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui.commands import UI, Chat, CommandError, command
from tui.text.cells import plain
from tui.text.numbers import plural

if TYPE_CHECKING:
    from textual.content import Content

    from tui.messages import Message


@dataclass(frozen=True, slots=True)
class FindView:
    """The lines of a conversation that contain some words."""

    messages: Sequence[Message]
    words: str
    title = "Found"

    async def lines(self, width: int) -> Sequence[Content]:
        """Each after the role of its author, then their number."""
        from textual.content import Content

        words = self.words.lower()
        matches = [
            f"{message.role}: {plain(line)}"
            for message in self.messages
            for line in message.text.splitlines()
            if words in line.lower()
        ]
        return [*map(Content, matches), Content(f"{plural(len(matches), 'line')}.")]


@command("search this conversation", "view", args="[words]", aliases=("search",))
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Go to the nearest match, or without words to the next one. In `--plain` list the matches."""
    if ui.screen is not None:
        number, count = await ui.screen.find(args)
        if count:
            await ui.say(f"{number} of {count}   /find for the next one", passing=True)
            return
    elif args:
        await ui.show(FindView(chat.session.messages, args))
        return
    raise CommandError(f"{args!r} is not in this conversation." if args else "/find needs words to look for.")
