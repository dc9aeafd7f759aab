"""The lists of `/context`: `h` its requests and their growth, `m` its messages, to pin, leave out, or go to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual
from textual.widgets import Static

from tui.screens.base import BACK, Panel, set_title
from tui.screens.pager import Pager
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

if TYPE_CHECKING:
    from tui.chat.store.calls import CallRow
    from tui.chat.turn.session import ChatSession
    from tui.chat.workspace import Workspace


Draw = Callable[[int, int], Content]
"""Index of a row and the width in cells -> what the row shows."""


class LineList(ScrollView, can_focus=True):
    """Rows by index; the cursor is a row. Enter or a click on a row posts `Chosen`."""

    DEFAULT_CSS = """
    LineList > .line-list--cursor {
        color: $block-cursor-foreground; background: $block-cursor-background; text-style: $block-cursor-text-style;
    }
    LineList { height: auto; max-height: 100%; background: transparent; scrollbar-size-vertical: 1; }
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"line-list--cursor"}

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "go(0)", show=False),
        Binding("end", "go(-1)", show=False),
        Binding("enter", "choose", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """Row `index` was chosen."""

        index: int

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.cursor = 0
        self._draw: Draw = lambda _index, _width: Content("")

    def show(self, count: int, draw: Draw, cursor: int) -> None:
        """Show `count` rows, with the cursor on one of them."""
        self.count, self._draw = count, draw
        self.virtual_size = Size(0, count)
        self.refresh(layout=True)
        self.call_after_refresh(self.action_go, cursor)
        self.cursor = min(max(cursor, 0), max(0, count - 1))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The number of rows."""
        return max(1, self.count)

    def action_go(self, index: int) -> None:
        """Put the cursor on a row (-1 is the last) and scroll it into view."""
        self.cursor = min(max(index if index >= 0 else self.count + index, 0), max(0, self.count - 1))
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Line `y` of the view."""
        index = y + round(self.scroll_y)
        width = self.scrollable_content_region.width
        if index >= self.count or width <= 0:
            return Strip.blank(width, self.rich_style)
        style = self.get_visual_style("line-list--cursor") if index == self.cursor else self.visual_style
        strips = Visual.to_strips(self, self._draw(index, width), width, 1, style, pad=True)
        return strips[0].extend_cell_length(width, style.rich_style)

    def on_click(self, event: events.Click) -> None:
        """Choose the row under the pointer."""
        index = event.y + round(self.scroll_y)
        if index < self.count:
            self.action_go(index)
            self.action_choose()

    def action_move(self, step: int) -> None:
        """Move the cursor up or down."""
        self.action_go(max(0, self.cursor + step))

    def action_page(self, pages: int) -> None:
        """Move a screenful up or down."""
        self.action_go(max(0, self.cursor + pages * max(1, self.size.height - 1)))

    def action_choose(self) -> None:
        """Choose the row under the cursor."""
        if self.count:
            self.post_message(self.Chosen(self.cursor))


class HistoryPanel(Panel[str]):
    """A chart over a list of requests, newest first. Dismissed with the id of the message to go to, or None."""

    DEFAULT_CSS = """
    HistoryPanel Static { height: auto; }
    HistoryPanel .requests-head { margin-top: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "go_to", "go to the answer", id="history.go_to", show=False),
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
        self.calls = await asyncio.to_thread(self.workspace.services.calls.rows, self.session.id)
        self.redraw()

    def on_resize(self, _event: events.Resize) -> None:
        """Draw for this size."""
        self.redraw()

    def redraw(self) -> None:
        """Draw everything."""
        width, height = self.inner_width, self.app.size.height
        messages = calls_of(self.session.messages, self.calls)
        usage = self.session.usage
        window = usage.limits.context if usage is not None else None
        chart_height = max(4, min(16, height - 7 if not self.calls else (height - 10) // 2))
        lines = chart_lines(messages, width, chart_height, window=window)
        text = Content.styled(clip(legend(messages, window), width), "$text-muted")
        self.query_one(".chart", Static).update(Content("\n").join([*lines, text]))
        requests = self.query_one(LineList)
        shown, count, now = self.calls[: -LEDGER - 1 : -1], len(self.calls), time.time()
        head, foot = self.query_one(".requests-head", Static), self.query_one(".requests-foot", Static)
        head.display = requests.display = bool(shown)
        foot.display = bool(shown) and height >= 16
        requests.styles.max_height = max(3, height - chart_height - 8)
        head.update(request_head(self.list_width))
        foot.update(Content.styled(clip(accuracy_line(self.calls), width), "$text-muted"))
        requests.show(len(shown), lambda at, wide: request_line(count - at, shown[at], wide, now), requests.cursor)
        panel = self.query_one(".panel")
        more = f" · the last {LEDGER} of {count:,}" if count > LEDGER else f" · {count:,}" if count else ""
        panel.border_title = f"Requests{more}"
        hints = [("enter", "details", "details"), ("o", "go to", "go_to"), ("x", "forget", "forget")] if shown else []
        self.set_keys(*hints, BACK)

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
        from tui.commands.model import learned_line

        self.notify(await learned_line(self.session, forget=True), markup=False)


class MessagesPanel(Panel[str]):
    """Dismissed with the id of the message to go to, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "biggest first, or in order", id="messages.sort", show=False),
        Binding("p", "select(True)", "pin", id="messages.pin", show=False),
        Binding("x", "select(False)", "leave out", id="messages.exclude", show=False),
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
            not_sent=self.session.conversation.not_sent(),
            pinned=self.session.conversation.state.pinned,
            by_size=self.by_size,
        )
        now = time.time()
        chosen_at = next((i for i, line in enumerate(self.lines) if chosen is not None and line.id == chosen.id), 0)
        shown = self.lines
        cursor = chosen_at if at is None else at % max(1, len(shown))
        rows.show(len(shown), lambda index, width: message_line(shown[index], width, now), cursor)
        panel = self.query_one(".panel")
        set_title(panel, f"Messages · {listed(self.lines)}")
        order = "in order" if self.by_size else "biggest first"
        pin, leave_out = ("p", "pin", "select(True)"), ("x", "leave out", "select(False)")
        self.set_keys(pin, leave_out, ("s", order, "sort"), ("enter", "go to", "choose"), BACK)

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

    async def action_select(self, pin: bool) -> None:
        """Pin the message under the cursor (it is never trimmed) or leave it out of requests; or undo that."""
        if self.chosen is not None and (reason := await select_message(self.session, self.chosen.id, pin=pin)):
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
