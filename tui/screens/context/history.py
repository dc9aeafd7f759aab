"""`h` in `/context`: the growth of the conversation over its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from tui.screens.base import BACK, Panel, clickable
from tui.views.context.history import calls_of, chart_lines, legend

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession


class HistoryPanel(Panel[None]):
    """A chart; any of its keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,h,enter", "close", "back", id="history.close", show=False),
    ]

    def __init__(self, session: ChatSession) -> None:
        super().__init__()
        self.session = session

    def compose(self) -> ComposeResult:
        """One drawing."""
        with Vertical(classes="panel") as panel:
            panel.border_title = "History"
            panel.border_subtitle = clickable(self, BACK)
            yield Static("", classes="chart", markup=False)

    def on_resize(self, _event: events.Resize) -> None:
        """Draw for this size."""
        size = self.app.size
        width = self.inner_width
        height = max(4, min(16, size.height - 7))
        calls = calls_of(self.session.messages)
        usage = self.session.usage
        window = usage.limits.context if usage is not None else None
        lines = chart_lines(calls, width, height, window=window)
        text = Content.styled(legend(calls, window), "$text-muted")
        self.query_one(".chart", Static).update(Content("\n").join([*lines, Content(""), text]))
