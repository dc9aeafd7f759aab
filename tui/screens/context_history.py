"""`h` in `/context`: the growth of the conversation over its calls, and the ledger of its requests."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from tui.screens.base import BACK, Panel, clickable
from tui.screens.pager import Pager
from tui.text.cells import clip
from tui.views.ledger import (
    LEDGER,
    accuracy_line,
    calls_of,
    chart_lines,
    legend,
    predicted_instead,
    request_details,
    request_head,
    request_line,
)
from tui.widgets.line_list import LineList

if TYPE_CHECKING:
    from tui.chat.store.calls import CallRow
    from tui.chat.turn.session import ChatSession
    from tui.chat.workspace import Workspace


class HistoryPanel(Panel[str]):
    """A chart over a list of requests, newest first. Dismissed with the id of the message to go to, or None."""

    DEFAULT_CSS = """
    HistoryPanel Static { height: auto; }
    HistoryPanel .requests-head { margin-top: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "go_to", "go to", id="history.go_to", show=False),
        Binding("x", "forget", "forget what was learned", id="history.forget", show=False),
        Binding("q,h", "close", "back", id="history.close", show=False),
    ]

    def __init__(self, session: ChatSession, workspace: Workspace) -> None:
        super().__init__()
        self.session = session
        self.workspace = workspace
        self.calls: list[CallRow] = []  # of the session, oldest first

    def compose(self) -> ComposeResult:
        """The chart keeps its place; the requests scroll."""
        with Vertical(classes="panel"):
            yield Static("", classes="chart", markup=False)
            yield Static("", classes="requests-head", markup=False)
            yield LineList()
            yield Static("", classes="requests-foot", markup=False)

    async def on_mount(self) -> None:
        """Read the requests."""
        self.query_one(LineList).focus()
        self.calls = await self.workspace.calls(self.session.id)
        self.redraw()

    def on_resize(self, _event: events.Resize) -> None:
        """Draw for this size."""
        self.redraw()

    def redraw(self) -> None:
        """Draw everything."""
        width, height = self.inner_width, self.app.size.height
        messages = calls_of(self.session.messages, predicted_instead(self.calls))
        usage = self.session.usage
        window = usage.limits.context if usage is not None else None
        chart_height = max(4, min(16, height - 7 if not self.calls else (height - 10) // 2))
        lines = chart_lines(messages, width, chart_height, window=window)
        text = Content.styled(clip(legend(messages, window), width), "$text-muted")
        self.query_one(".chart", Static).update(Content("\n").join([*lines, text]))
        requests = self.query_one(LineList)
        shown, count, now = self.calls[: -LEDGER - 1 : -1], len(self.calls), time.time()
        self.query_one(".requests-head").display = bool(shown)
        self.query_one(".requests-foot").display = bool(shown) and height >= 16
        requests.display = bool(shown)
        requests.styles.max_height = max(3, height - chart_height - 8)
        self.query_one(".requests-head", Static).update(request_head(self.list_width))
        self.query_one(".requests-foot", Static).update(
            Content.styled(clip(accuracy_line(self.calls), width), "$text-muted")
        )
        requests.show(len(shown), lambda at, wide: request_line(count - at, shown[at], wide, now), requests.cursor)
        panel = self.query_one(".panel")
        more = f" · the last {LEDGER} of {count:,}" if count > LEDGER else f" · {count:,}" if count else ""
        panel.border_title = f"Requests{more}"
        hints = [("enter", "details", "details"), ("o", "go to", "go_to"), ("x", "forget", "forget")] if shown else []
        panel.border_subtitle = clickable(self, *hints, BACK)

    @property
    def chosen(self) -> CallRow | None:
        """The request under the cursor."""
        at = self.query_one(LineList).cursor
        return self.calls[-1 - at] if at < len(self.calls) else None

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Show all details of the request."""
        event.stop()
        if self.chosen is not None:
            number = len(self.calls) - event.index
            self.app.push_screen(Pager([(f"Request {number:,}", request_details(self.chosen))], wraps=True))

    def action_details(self) -> None:
        """Enter: show the details."""
        self.query_one(LineList).action_choose()

    def action_go_to(self) -> None:
        """Go to the answer in the conversation."""
        if self.chosen is not None and self.chosen.message is not None:
            self.dismiss(self.chosen.message)

    async def action_forget(self) -> None:
        """Forget what was learned of the model in use, as `/model forget` does."""
        name = f"{self.session.provider}/{self.session.model}"
        lessons = self.session.learned
        if lessons:
            await self.session.forget_learned()
        text = f"Forgotten of {name}: {'. '.join(lessons)}." if lessons else f"Nothing was learned of {name}."
        self.notify(text, markup=False)
