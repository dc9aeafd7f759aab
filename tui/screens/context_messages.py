"""`m` in `/context`: every message with its tokens, to pin, leave out, or go to."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from tui.screens.base import BACK, Panel, clickable, set_title
from tui.views.context_messages import MessageLine, listed, message_line, message_lines, why_not
from tui.widgets.line_list import LineList

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession


class MessagesPanel(Panel[str]):
    """Dismissed with the id of the message to go to, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "sort", id="messages.sort", show=False),
        Binding("p", "pin", "pin", id="messages.pin", show=False),
        Binding("x", "exclude", "exclude", id="messages.exclude", show=False),
        Binding("q,m", "close", "back", id="messages.close", show=False),
    ]

    def __init__(self, session: ChatSession, changed: Callable[[], None]) -> None:
        super().__init__()
        self.session = session
        self.changed = changed
        self.by_size = False
        self.lines: list[MessageLine] = []

    def compose(self) -> ComposeResult:
        """One list."""
        with Vertical(classes="panel"):
            yield LineList()

    def on_mount(self) -> None:
        """Start at the newest message."""
        self.query_one(LineList).focus()
        self.redraw(at=-1)

    def on_resize(self, _event: events.Resize) -> None:
        """The keys below the list depend on the width."""
        self.redraw()

    def redraw(self, at: int | None = None) -> None:
        """Draw the list; the cursor stays on its message, or goes to position `at`."""
        rows = self.query_one(LineList)
        chosen = self.chosen
        self.lines = message_lines(
            self.session.messages,
            self.session.usage,
            not_sent=self.session.not_sent,
            pinned=self.session.pinned,
            by_size=self.by_size,
        )
        now = time.time()
        chosen_at = next((i for i, line in enumerate(self.lines) if chosen is not None and line.id == chosen.id), 0)
        shown = self.lines
        cursor = chosen_at if at is None else at % max(1, len(shown))
        rows.show(len(shown), lambda index, width: message_line(shown[index], width, now), cursor)
        panel = self.query_one(".panel")
        set_title(panel, f"Messages · {listed(self.lines)}")
        wide = self.app.size.width >= 70
        order = "in order" if self.by_size else "biggest first"
        pin = ("p", "pin", "pin")
        if wide:
            keys = clickable(
                self, pin, ("x", "leave out", "exclude"), ("s", order, "sort"), ("enter", "go to", "choose"), BACK
            )
        else:
            keys = clickable(self, pin, ("x", "out", "exclude"), ("s", "sort", "sort"), BACK)
        panel.border_subtitle = keys

    @property
    def chosen(self) -> MessageLine | None:
        """The message under the cursor."""
        at = self.query_one(LineList).cursor
        return self.lines[at] if at < len(self.lines) else None

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Go to the message in the conversation."""
        event.stop()
        if self.chosen is not None:
            self.dismiss(self.chosen.id)

    def action_sort(self) -> None:
        """Sort in order, or largest first."""
        self.by_size = not self.by_size
        self.redraw(at=0 if self.by_size else None)

    def action_choose(self) -> None:
        """Go to the message under the cursor."""
        self.query_one(LineList).action_choose()

    async def action_pin(self) -> None:
        """Pin or unpin this message: pinned ones are never trimmed."""
        chosen = self.chosen
        if chosen is not None and (chosen.pinned or self._can(why_not(chosen.left_out, pin=True))):
            await self.session.pin(chosen.id, not chosen.pinned)
            await self._recount()

    async def action_exclude(self) -> None:
        """Leave this message out of requests, or include it again."""
        chosen = self.chosen
        if chosen is not None and self._can(why_not(chosen.left_out, pin=False)):
            await self.session.exclude(chosen.id, chosen.left_out != "excluded")
            await self._recount()

    def _can(self, reason: str) -> bool:
        """Show the `reason` against it. Returns whether there is none."""
        if reason:
            self.notify(reason, markup=False)
        return not reason

    async def _recount(self) -> None:
        await self.session.refresh_usage()
        self.redraw()
        self.changed()
