"""`/usage`: tokens, cost, and how good the estimates were; this conversation, today, all time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tui.chat.store.calls import CallRow
from tui.chat.usage_report import Totals, by_day, by_model, inherited, totals
from tui.screens.base import Panel
from tui.screens.hints import CLOSE, clickable
from tui.text.cells import plain
from tui.views.usage_table import NO_TRIMS, usage_lines

if TYPE_CHECKING:
    from tui.screens.ports import WorkspaceLike
    from tui.screens.session_ports import SessionLike

log = logging.getLogger(__name__)

DAYS = 30
"""Days in the chart."""


class UsagePanel(Panel[None]):
    """Reads the calls once and draws them."""

    DEFAULT_CSS = """
    UsagePanel VerticalScroll { height: auto; max-height: 100%; scrollbar-size-vertical: 1; }
    UsagePanel Static { height: auto; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,enter", "close", "close", id="usage.close", show=False)]

    def __init__(self, workspace: WorkspaceLike, session: SessionLike) -> None:
        super().__init__()
        self.workspace = workspace
        self.session = session
        self._drawn: tuple[list[Totals], list[Totals], list[tuple[date, int]]] | None = None
        self._before: Totals | None = None  # of a fork
        self._trims = NO_TRIMS

    def compose(self) -> ComposeResult:
        """One text."""
        with Vertical(classes="panel") as panel:
            panel.border_title = "Usage"
            panel.border_subtitle = clickable(self, CLOSE)
            with VerticalScroll():
                yield Static("adding up …", markup=False)

    def on_mount(self) -> None:
        """Scroll with the keys at once."""
        self.query_one(VerticalScroll).focus()
        self.load()

    @work(exit_on_error=False)
    async def load(self) -> None:
        """Add everything up, off the event loop."""
        try:
            calls = await self.workspace.calls()
            trims = await self.workspace.trims()
        except Exception as error:
            log.exception("the usage could not be read")
            self.query_one(Static).update(plain(" ".join(str(error).split())))
            return
        self._trims = trims
        self._drawn = await asyncio.to_thread(self._add_up, calls)
        self.redraw()

    def _add_up(self, calls: Sequence[CallRow]) -> tuple[list[Totals], list[Totals], list[tuple[date, int]]]:
        now = datetime.fromtimestamp(time.time()).astimezone()
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        messages = [message.id for message in self.session.messages]
        self._before = totals("before", inherited(calls, self.session.id, messages))
        columns = [
            totals("here", [call for call in calls if call.session == self.session.id]),
            totals("today", [call for call in calls if call.at >= midnight]),
            totals("total", calls),
        ]
        return columns, by_model(calls), by_day(calls, DAYS, now.date())

    def on_resize(self) -> None:
        """Draw for this width."""
        self.redraw()

    def redraw(self) -> None:
        """The text at the present width."""
        if self._drawn is None:
            return
        columns, models, days = self._drawn
        width = self.list_width
        lines = usage_lines(columns, models, days, width, trims=self._trims, before=self._before)
        self.query_one(Static).update(Content("\n").join(lines))
