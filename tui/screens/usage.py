"""`/usage`: tokens, cost, and the accuracy of the estimates; this conversation, today, all time."""

from __future__ import annotations

import logging
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tui.screens.base import CLOSE, Panel, clickable, set_title
from tui.text.clean import error_line
from tui.views.usage_table import UsageFigures, UsageView

log = logging.getLogger(__name__)


class UsagePanel(Panel[None]):
    """Reads the calls once and draws them."""

    DEFAULT_CSS = """
    UsagePanel VerticalScroll { height: auto; max-height: 100%; scrollbar-size-vertical: 1; }
    UsagePanel Static { height: auto; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,enter", "close", "close", id="usage.close", show=False)]

    def __init__(self, view: UsageView) -> None:
        super().__init__()
        self.view = view
        self._figures: UsageFigures | None = None

    def compose(self) -> ComposeResult:
        """One text."""
        with Vertical(classes="panel") as panel:
            set_title(panel, self.view.title)
            panel.border_subtitle = clickable(self, CLOSE)
            with VerticalScroll():
                yield Static("adding up …", markup=False)

    def on_mount(self) -> None:
        """Scroll with the keys at once."""
        self.query_one(VerticalScroll).focus()
        self.load()

    @work(exit_on_error=False)
    async def load(self) -> None:
        """Sum up, off the event loop."""
        try:
            self._figures = await self.view.added_up()
        except Exception as error:
            log.exception("the usage could not be read")
            self.query_one(Static).update(error_line(error))
            return
        self.redraw()

    def on_resize(self) -> None:
        """Draw for this width."""
        self.redraw()

    def redraw(self) -> None:
        """The text at the current width."""
        if self._figures is not None:
            self.query_one(Static).update(Content("\n").join(self._figures.lines(self.list_width)))
