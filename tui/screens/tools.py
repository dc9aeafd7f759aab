"""`/tools`: the tools of the model, their cost, and whether they ask first. Opening it changes nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui.screens.base import CLOSE, SHORT, Hint, KeyLine, Panel, key_line
from tui.text.cells import clip, plain
from tui.views.mcp_lines import deferred_tools, listed_tools, wrapped
from tui.views.tool_lines import Row, tool_rows, tools_summary

if TYPE_CHECKING:
    from tui.chat.calling.session_tools import ToolLine
    from tui.tools.approval import Remembered
    from tui.views.tool_lines import ToolsView

log = logging.getLogger(__name__)

HINTS: Mapping[str, Sequence[Hint]] = {
    "source": (("space", "all on or off", "switch"),),
    "tool": (("space", "on or off", "switch"), ("f", "forget your answer", "forget")),
    "answer": (("f", "forget: ask again", "forget"),),
}
"""Keys for the highlighted line."""


class ToolsPanel(Panel[None]):
    """Lists the tools of a conversation. `changed` is called when the request may have changed."""

    max_width = 96

    DEFAULT_CSS = """
    ToolsPanel .tools-head, ToolsPanel .tools-keys { height: auto; }
    ToolsPanel .tools-head { margin-bottom: 1; }
    ToolsPanel .tools-keys { margin-top: 1; }
    ToolsPanel OptionList {
        height: auto; border: none; padding: 0; background: transparent; scrollbar-size-vertical: 1;
    }
    ToolsPanel OptionList > .option-list--option-disabled { color: $text-muted; background: transparent; }
    ToolsPanel.-short .tools-head, ToolsPanel.-short .tools-keys { margin: 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,o", "switch", "on or off", id="tools.switch"),
        Binding("f,delete", "forget", "forget an answer", id="tools.forget"),
        Binding("q", "close", "close", id="tools.close", show=False),
    ]

    def __init__(self, view: ToolsView, changed: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.session = view.session
        self.changed = changed
        self._lines: list[ToolLine] = []
        self._answers: list[Remembered] = []
        self._rows: list[Row] = []
        self._note = ""

    def compose(self) -> ComposeResult:
        """The lines scroll; the sum and the keys stay."""
        with Vertical(classes="panel") as panel:
            panel.border_title = "Tools"
            yield Static("looking …", classes="tools-head", markup=False)
            yield OptionList(compact=True)
            yield KeyLine("tools-keys")

    def on_mount(self) -> None:
        """Read and draw."""
        self.query_one(OptionList).focus()
        self.follow()

    def on_resize(self, _event: events.Resize) -> None:
        """Draw for the new size."""
        if self._rows:
            self.redraw()

    def follow(self) -> None:
        """Read everything again and draw."""
        self._load()

    @work(group="tools", exclusive=True, exit_on_error=False)
    async def _load(self) -> None:
        try:
            self._lines = list(await listed_tools(self.session))
            self._answers = list(await self.session.tools.remembered())
        except Exception as error:
            log.exception("the tools could not be listed")
            self._note = plain(" ".join(str(error).split())) or type(error).__name__
        self.redraw()

    def redraw(self) -> None:
        """Draw everything."""
        head = wrapped(tools_summary(self.session, self._lines), self.list_width)
        self.query_one(".tools-head", Static).update("\n".join(head))
        options = self.query_one(OptionList)
        around = len(head) + (3 if self.app.size.height < SHORT else 7)  # borders, keys, and lines kept free
        options.styles.max_height = max(2, self.app.size.height - around)
        at = options.highlighted
        chosen = self._rows[at].key if at is not None and at < len(self._rows) else ""
        self._rows = tool_rows(
            self._lines, self._answers, self.list_width, time.time(), deferred_tools(self.session).names
        )
        options.clear_options()
        options.add_options(Option(row.content, disabled=not row.key) for row in self._rows)
        choosable = [index for index, line in enumerate(self._rows) if line.key]
        same = [index for index in choosable if self._rows[index].key == chosen]
        options.highlighted = next(iter([*same, *choosable]), None)
        self._keys()

    def _keys(self) -> None:
        kind, _ = self._chosen()
        keys = key_line(self, [*HINTS.get(kind, ()), CLOSE], self.list_width)
        note = Content.styled(clip(self._note, self.list_width), "$text-muted")
        self.query_one(".tools-keys", Static).update(note if self._note else keys)

    def _chosen(self) -> tuple[str, str]:
        """The highlighted item: ("source" | "tool" | "answer" | "", name)."""
        at = self.query_one(OptionList).highlighted
        kind, _, name = (self._rows[at].key if at is not None and at < len(self._rows) else "").partition(":")
        return kind, name

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Update the keys for this line."""
        event.stop()
        self._keys()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter or a click switches a tool; a whole source only its own key."""
        event.stop()
        if self._chosen()[0] == "tool":
            self.action_switch()

    def action_switch(self) -> None:
        """Switch the highlighted tool, or all of the source, off or on."""
        kind, name = self._chosen()
        if kind in ("tool", "source"):
            self._switch(kind, name)

    def action_forget(self) -> None:
        """Forget the stored answer for the highlighted tool."""
        kind, name = self._chosen()
        if kind in ("tool", "answer"):
            self._forget(name)

    @work(group="tools-change", exit_on_error=False)
    async def _switch(self, kind: str, name: str) -> None:
        self._note = ""
        mine = [line for line in self._lines if (line.name if kind == "tool" else line.origin) == name]
        on = not any(line.on for line in mine)
        try:
            for pattern in _patterns(
                name if kind == "source" else "", [line.name for line in mine if line.on is not on]
            ):
                await self.session.tools.switch(pattern, on)
        except Exception as error:
            log.exception("%s could not be switched", name)
            self._note = plain(" ".join(str(error).split())) or type(error).__name__
        await self.session.refresh_usage()
        self.changed()
        self.follow()

    @work(group="tools-change", exit_on_error=False)
    async def _forget(self, name: str) -> None:
        self._note = ""
        try:
            await self.session.tools.forget(name)
        except Exception as error:
            log.exception("the answer for %s could not be forgotten", name)
            self._note = plain(" ".join(str(error).split())) or type(error).__name__
        self.follow()


def _patterns(source: str, names: Sequence[str]) -> Sequence[str]:
    """Patterns that switch these tools: one for all of a server's, whose names share its prefix."""
    prefix = f"{source}__"
    return [f"{prefix}*"] if source and all(name.startswith(prefix) for name in names) else names
