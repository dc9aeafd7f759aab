"""The lists of `/context`: `h` its requests and their growth, `m` its messages, to pin, leave out, or go to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from tui.screens.base import BACK, Hint
from tui.screens.pager import Pager
from tui.screens.rows import RowsPanel
from tui.text.cells import clip
from tui.views.context_lists import (
    LEDGER,
    MessageLine,
    accuracy_line,
    calls_of,
    chart_lines,
    legend,
    listed,
    message_line,
    message_lines,
    request_details,
    request_head,
    request_line,
    why_not,
)
from tui.views.view import Row

if TYPE_CHECKING:
    from tui.chat.store.calls import CallRow
    from tui.chat.turn.session import ChatSession
    from tui.chat.workspace import Workspace


class HistoryPanel(RowsPanel[str, Row]):
    """A chart over a list of requests, newest first. Dismissed with the id of the message to go to, or None."""

    DEFAULT_CSS = "HistoryPanel .head { margin-bottom: 0; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "go_to", "go to the answer", id="history.go_to", show=False),
        Binding("x", "forget", "forget what was learned", id="history.forget", show=False),
        Binding("q,h", "close", "back", id="history.close", show=False),
    ]

    closing = BACK

    def __init__(self, session: ChatSession, workspace: Workspace) -> None:
        super().__init__(session)
        self.workspace = workspace
        self.calls: list[CallRow] = []  # of the session, oldest first

    async def on_mount(self) -> None:
        """Read the requests."""
        self.calls = await asyncio.to_thread(self.workspace.services.calls.rows, self.session.id)
        self.redraw()

    def redraw(self) -> None:
        """Draw the chart, which keeps its place, and the requests."""
        width, height = self.inner_width, self.app.size.height
        calls, usage = self.calls, self.session.usage
        messages = calls_of(self.session.messages, calls)
        window = usage.limits.context if usage is not None else None
        chart_height = max(4, min(16, (height - 13) // 2 if calls else height - 7))
        notes = legend(messages, window), accuracy_line(calls) if height >= 16 else ""
        head = chart_lines(messages, width, chart_height, window=window)
        head += [Content.styled(clip(note, width), "$text-muted") for note in notes if note]
        head += [Content(""), request_head(self.list_width)] if calls else []
        now, count = time.time(), len(calls)
        rows = [
            Row(request_line(number, calls[number - 1], self.list_width, now), str(number))
            for number in range(count, max(0, count - LEDGER), -1)
        ]
        more = f" · the last {LEDGER} of {count:,}" if count > LEDGER else f" · {count:,}" if count else ""
        self.set_title(f"Requests{more}")
        self.draw(head, rows or [Row(Content(""))])

    def hints(self) -> Sequence[Hint]:
        """The keys for the request under the cursor."""
        keys = [("enter", "details", "choose"), ("o", "go to", "go_to"), ("x", "forget", "forget")]
        return keys if self.calls else []

    def _chosen_call(self) -> CallRow | None:
        return self.calls[int(self.chosen_key) - 1] if self.chosen_key else None

    def action_choose(self) -> None:
        """Show all details of the request."""
        if (call := self._chosen_call()) is not None:
            self.app.push_screen(Pager([(f"Request {int(self.chosen_key):,}", request_details(call))], wraps=True))

    def action_go_to(self) -> None:
        """Go to the answer in the conversation."""
        if (call := self._chosen_call()) is not None and call.message is not None:
            self.dismiss(call.message)

    async def action_forget(self) -> None:
        """Forget what was learned of the model in use, as `/model forget` does."""
        from tui.commands.model import learned_line

        self.notify(await learned_line(self.session, forget=True), markup=False)


class MessagesPanel(RowsPanel[str, MessageLine]):
    """Dismissed with the id of the message to go to, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "biggest first, or in order", id="messages.sort", show=False),
        Binding("p", "select(True)", "pin", id="messages.pin", show=False),
        Binding("x", "select(False)", "leave out", id="messages.exclude", show=False),
        Binding("q,m", "close", "back", id="messages.close", show=False),
    ]

    closing = BACK
    by_size = False

    def on_mount(self) -> None:
        """Start at the newest message."""
        self.redraw(at=-1)

    def redraw(self, at: int | None = None) -> None:
        """Draw the list; the cursor stays on its message, or goes to position `at`."""
        lines = message_lines(
            self.session.messages,
            self.session.usage,
            not_sent=self.session.conversation.not_sent(),
            pinned=self.session.conversation.state.pinned,
            by_size=self.by_size,
        )
        self.set_title(f"Messages · {listed(lines)}")
        self.draw((), lines, "" if at is None or not lines else lines[at].key)

    def content(self, row: MessageLine, width: int) -> Content:
        """A message; there may be thousands."""
        return message_line(row, width, time.time())

    def hints(self) -> Sequence[Hint]:
        """The keys for the message under the cursor."""
        order = "in order" if self.by_size else "biggest first"
        pin, leave_out = ("p", "pin", "select(True)"), ("x", "leave out", "select(False)")
        return pin, leave_out, ("s", order, "sort"), ("enter", "go to", "choose")

    def action_sort(self) -> None:
        """Sort in order, or largest first."""
        self.by_size = not self.by_size
        self.redraw(at=0 if self.by_size else None)

    def action_choose(self) -> None:
        """Go to the message in the conversation."""
        if self.chosen_key:
            self.dismiss(self.chosen_key)

    async def action_select(self, pin: bool) -> None:
        """Pin the message under the cursor (it is never trimmed) or leave it out of requests; or undo that."""
        if self.chosen_key and (reason := await select_message(self.session, self.chosen_key, pin=pin)):
            self.notify(reason, markup=False)
        self.redraw()
        self.changed()


async def select_message(session: ChatSession, message_id: str, *, pin: bool) -> str:
    """Pin a message or leave it out, or undo that. Returns why not, "" if it was done."""
    left_out = session.conversation.not_sent().get(message_id, "")
    pinned = message_id in session.conversation.state.pinned
    if (reason := why_not(left_out, pin=pin)) and not (pin and pinned):
        return reason
    if pin:
        await session.pin(message_id, not pinned)
    else:
        await session.exclude(message_id, left_out != "excluded")
    await session.refresh_usage()
    return ""
