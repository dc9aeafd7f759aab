"""The command `/tools`, and the whole text of a result that was cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.messages import Message, ToolResult
from tui.screens.chat.command_base import CommandBase
from tui.text.cells import plain
from tui.widgets.composer.completion import Choice

if TYPE_CHECKING:
    from tui.screens.chat.chat_parts import ChatParts


class ToolCommands(CommandBase):
    """`/tools [on|off NAME]`."""

    async def tools(self, args: str) -> None:
        """Without words the panel."""
        if (session := self.ready()) is None:
            return
        match args.split():
            case []:
                from tui.screens.tools.tools import ToolsPanel

                self.tools_panel = ToolsPanel(session, self.recounted)
                self.screen.app.push_screen(self.tools_panel, self._tools_closed)
            case ["on" | "off" as word, *names] if len(names) <= 1:
                await self._switch_tools(word == "on", names[0] if names else "*")
            case _:
                self.refuse(
                    "/tools lists the tools; /tools on NAME and /tools off NAME switch one (github__* several)."
                )

    def _tools_closed(self, _result: None) -> None:
        self.tools_panel = None

    async def _switch_tools(self, on: bool, pattern: str) -> None:
        if (session := self.idle()) is None:
            return
        from tui.tools.tool_search import SEARCH  # not before the first frame

        names = await session.tools.switch(pattern, on)
        if pattern == SEARCH:
            self.refuse(f'{SEARCH} is there as long as tools wait behind it: [tools] defer = "off" sends them all.')
            return
        if not names:
            self.refuse(f"There is no tool {plain(pattern)!r}: /tools lists them.")
            return
        await session.refresh_usage()
        self.recounted()
        what = plain(names[0]) if len(names) == 1 else f"{len(names)} tools"
        verb = "is" if len(names) == 1 else "are"
        if on and not session.tools.takes_any:
            self.say(f"{what} {verb} on, but this model calls no tools, as far as is known: none are offered.")
        else:
            self.say(f"{what} {verb} {'offered' if on else 'not offered any more'} in this conversation.")

    async def complete_tools(self, args: str) -> Sequence[Choice]:
        """on, off, and the tools."""
        word, blank, _ = args.partition(" ")
        if not blank or word not in ("on", "off"):
            return [Choice("on ", "on", "offer a tool"), Choice("off ", "off", "offer it no longer")]
        session = self.screen.session
        lines = await session.tools.lines() if session is not None else ()
        return [
            Choice(f"{word} {line.name}", f"{word} {plain(line.name)}", "on" if line.on else "off") for line in lines
        ]


async def open_result(screen: ChatParts, message: Message) -> None:
    """Show all of what the tools of a message returned."""
    session = screen.session
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    if session is None or not results:
        screen.notify("This message holds no tool result to open.", markup=False)
        return
    texts = []
    for result in results:
        whole = await session.tools.full_text(result.full) if result.full else None
        texts.append((result.name or "tool", result.text if whole is None else whole))
    from tui.screens.pager import Pager

    screen.app.push_screen(Pager(texts))
