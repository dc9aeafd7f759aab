"""`m` in `/context`: every message with what it costs, to pin, leave out, or go to."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.screens.base import Panel
from tui.screens.ports import SessionLike
from tui.widgets.context_messages import MessageLine, listed, message_line, message_lines

log = logging.getLogger(__name__)


class MessagesPanel(Panel[str]):
    """Dismissed with the id of the message to go to, or None."""

    DEFAULT_CSS = """
    MessagesPanel OptionList { height: auto; max-height: 100%; border: none; padding: 0; background: transparent; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "sort", id="messages.sort", show=False),
        Binding("p", "pin", "pin", id="messages.pin", show=False),
        Binding("x", "exclude", "exclude", id="messages.exclude", show=False),
        Binding("q,m", "close", "back", id="messages.close", show=False),
    ]

    def __init__(self, session: SessionLike, *, changed: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.session = session
        self.changed = changed
        self.by_size = False
        self.lines: list[MessageLine] = []

    def compose(self) -> ComposeResult:
        """One list."""
        with Vertical(classes="panel"):
            yield OptionList(compact=True)

    def on_mount(self) -> None:
        """The newest message is the nearest."""
        self.query_one(OptionList).focus()
        self.redraw(at=-1)

    def on_resize(self, _event: events.Resize) -> None:
        """Draw for this width."""
        self.redraw()

    def redraw(self, at: int | None = None) -> None:
        """Draw the list; the cursor stays on its message, or goes to place `at`."""
        options = self.query_one(OptionList)
        chosen = self.chosen
        self.lines = message_lines(
            self.session.messages,
            self.session.usage,
            not_sent=self.session.not_sent,
            pinned=self.session.pinned,
            by_size=self.by_size,
        )
        width = max(20, min(112, self.app.size.width) - (4 if self.app.size.width < 60 else 6) - 2)
        whole = self.session.usage.limits.context if self.session.usage is not None else None
        now = time.time()
        options.clear_options()
        options.add_options(Option(message_line(line, width, now, whole=whole)) for line in self.lines)
        if self.lines:
            kept = next((i for i, line in enumerate(self.lines) if chosen is not None and line.id == chosen.id), 0)
            options.highlighted = kept if at is None else at % len(self.lines)
        panel = self.query_one(".panel")
        panel.border_title = f"Messages · {listed(self.lines)}"
        order = "s in order" if self.by_size else "s biggest first"
        panel.border_subtitle = f"p pin   x leave out   {order}   enter go to   esc back"

    @property
    def chosen(self) -> MessageLine | None:
        """The message under the cursor."""
        at = self.query_one(OptionList).highlighted
        return self.lines[at] if at is not None and at < len(self.lines) else None

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Go to the message in the conversation."""
        event.stop()
        if self.chosen is not None:
            self.dismiss(self.chosen.id)

    def action_sort(self) -> None:
        """In order, or biggest first."""
        self.by_size = not self.by_size
        self.redraw(at=0 if self.by_size else None)

    async def action_pin(self) -> None:
        """Keep this message whatever is trimmed; again: no longer."""
        if self.chosen is not None:
            await self.session.pin(self.chosen.id, not self.chosen.pinned)
            await self._recount()

    async def action_exclude(self) -> None:
        """Leave this message out of the request; again: take it back in."""
        if self.chosen is not None:
            await self.session.exclude(self.chosen.id, self.chosen.left_out != "excluded")
            await self._recount()

    async def _recount(self) -> None:
        await self.session.refresh_usage()
        self.redraw()
        self.changed()
