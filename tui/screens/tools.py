"""`/tools`: the tools of the model, their cost, and whether they ask first. Opening it changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.content import Content

from tui.screens.base import Hint
from tui.screens.rows import RowsPanel
from tui.views.tools_mcp import deferred_names, listed_tools, tool_rows, tools_summary, wrapped
from tui.views.view import Row

if TYPE_CHECKING:
    from tui.chat.tool_calls.session_tools import ToolLine
    from tui.tools.approval import Remembered
    from tui.views.tools_mcp import ToolsView

HINTS: Mapping[str, Sequence[Hint]] = {
    "source": (("space", "all on or off", "switch"),),
    "tool": (("space", "on or off", "switch"), ("f", "forget your answer", "forget")),
    "answer": (("f", "forget: ask again", "forget"),),
}
"""Keys for the highlighted line."""


class ToolsPanel(RowsPanel[None, Row]):
    """Lists the tools of a conversation."""

    max_width = 96

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,o", "switch", "on or off", id="tools.switch"),
        Binding("f,delete", "forget", "forget an answer", id="tools.forget"),
        Binding("q", "close", "close", id="tools.close", show=False),
    ]

    title_text = "Tools"

    def __init__(self, view: ToolsView, changed: Callable[[], None]) -> None:
        super().__init__(view.session, changed)
        self._tools: Sequence[ToolLine] = ()
        self._answers: Sequence[Remembered] = ()

    def on_mount(self) -> None:
        """Read and draw."""
        self.follow()

    def follow(self) -> None:
        """Read everything again and draw."""
        self._load()

    @work(group="tools", exclusive=True, exit_on_error=False)
    async def _load(self) -> None:
        with self.errors_noted("listing the tools"):
            self._tools = await listed_tools(self.session)
            self._answers = await self.session.tools.remembered()
        self.redraw()

    def redraw(self) -> None:
        """Draw everything."""
        width, deferred = self.list_width, deferred_names(self.session.tools.plan)
        head = wrapped(tools_summary(self.session, self._tools), width)
        self.draw(list(map(Content, head)), tool_rows(self._tools, self._answers, width, time.time(), deferred))

    def hints(self) -> Sequence[Hint]:
        """What can be done with the highlighted tool, source or answer."""
        return HINTS.get(self.chosen_item[0], ())

    def action_choose(self) -> None:
        """Switch a tool; a whole source only its own key does."""
        if self.chosen_item[0] == "tool":
            self.action_switch()

    def action_switch(self) -> None:
        """Switch the highlighted tool, or all of the source, off or on."""
        kind, name = self.chosen_item
        if kind in ("tool", "source"):
            self._switch(kind, name)

    def action_forget(self) -> None:
        """Forget the stored answer for the highlighted tool."""
        kind, name = self.chosen_item
        if kind in ("tool", "answer"):
            self._forget(name)

    @work(group="tools-change", exit_on_error=False)
    async def _switch(self, kind: str, name: str) -> None:
        self._note = ""
        affected = [line for line in self._tools if (line.name if kind == "tool" else line.origin) == name]
        on = not any(line.on for line in affected)
        names = [line.name for line in affected if line.on is not on]
        with self.errors_noted(f"switching {name}"):
            for pattern in _patterns(name if kind == "source" else "", names):
                await self.session.tools.switch(pattern, on)
        await self.session.refresh_usage()
        self.changed()
        self.follow()

    @work(group="tools-change", exit_on_error=False)
    async def _forget(self, name: str) -> None:
        self._note = ""
        with self.errors_noted(f"forgetting the answer for {name}"):
            await self.session.tools.forget(name)
        self.follow()


def _patterns(source: str, names: Sequence[str]) -> Sequence[str]:
    """Patterns that switch these tools: one for all of a server's, whose names share its prefix."""
    prefix = f"{source}__"
    return [f"{prefix}*"] if source and all(name.startswith(prefix) for name in names) else names
