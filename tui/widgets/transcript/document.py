"""The content of the transcript, independent of the screen: entries, their rows at one width, their heights."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from textual.strip import Strip

from tui.messages import Message, ToolCall, ToolResult
from tui.render.message import NO_VIEW, Count, LiveReply, MessageView
from tui.render.palette import Palette
from tui.render.rows import Row
from tui.text.clean import clean_text
from tui.text.numbers import clock_time
from tui.widgets.transcript.entries import (
    Drawing,
    Entry,
    Heights,
    Level,
    Place,
    entry_label,
    estimate,
    find_dividers,
    waiting_rows,
)

CACHED_ROWS = 1_000
"""Rows cached outside the screen; the farthest are dropped and drawn again when needed."""

CACHED_STRIPS = 256
"""Finished lines cached with their rows: a few screens. A strip with Textual's caches takes 4 KB, a row half of one."""

ESTIMATED = 1_000
"""Entries whose heights are estimated one by one, which takes about a microsecond each."""

LARGE = 6_000
"""Characters; longer messages take more than about 10 ms to draw."""


class Document:
    """The entries in order. Rows are created on demand (`draw`); until then heights are estimates.

    With `later`, large messages are not drawn on demand: it is called with their index, to run the entry's `job` in a
    thread and pass the rows to `accept`.
    """

    def __init__(self, palette: Palette, later: Callable[[int], None] | None = None) -> None:
        self.palette = palette
        self._later = later
        self.width = 0
        self.entries: list[Entry] = []
        self.heights = Heights()
        self.index: dict[str, int] = {}
        self.counts: Mapping[str, Count] = {}  # tokens by message id, as far as known
        self._counted = 0  # entries that were there when the counts came
        self._last_counts: dict[str, Count] = {}  # of what is not sent any more
        self._not_sent: Mapping[str, str] = {}
        self._calls: dict[str, dict[int, ToolCall]] = {}  # message id -> part -> the call that it answers
        self._answered: dict[str, frozenset[int]] = {}  # message id -> parts that are answered calls
        self._open: tuple[str, dict[int, ToolCall]] = ("", {})  # the last message with calls: id, part -> open call
        self._dividers: dict[int, str] = {}
        self._drawn: set[int] = set()
        self._painted: deque[Row] = deque()  # rows with a strip, the oldest first
        self._times = False
        self._now = 0.0

    def show_times(self, on: bool, now: float) -> None:
        """Show when each message was written, relative to `now` (seconds since the epoch)."""
        self._times, self._now = on, now

    def set_messages(self, messages: Sequence[Message], not_sent: Mapping[str, str]) -> None:
        """Show these messages. Open folds stay open if the message is still there."""
        before = [entry for entry in self.entries if entry.message and (entry.open or entry.thought is not None)]
        self.entries = list(map(Entry, messages))
        self.index = {message.id: index for index, message in enumerate(messages)}
        for entry in before:
            if entry.message and (index := self.index.get(entry.message.id)) is not None:
                self.entries[index].open, self.entries[index].thought = entry.open, entry.thought
        self._calls, self._answered, self._open, self._drawn = {}, {}, ("", {}), set()
        for message in messages:
            if message.role != "user":
                self._pair_calls(message)
        self.set_not_sent(not_sent)
        self._counted = len(self.entries)
        self._estimate_all()

    def _pair_calls(self, message: Message) -> None:
        """Note which calls the results in `message` answer: servers repeat ids, in one message and later."""
        calls: dict[int, ToolCall] = {}
        for number, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                calls[number] = part
                self._open = message.id, calls
            elif isinstance(part, ToolResult):
                caller, waiting = self._open
                called = next((place for place, call in waiting.items() if call.id == part.call_id), None)
                if called is not None:
                    self._calls.setdefault(message.id, {})[number] = waiting.pop(called)
                    self._answered[caller] = self._answered.get(caller, frozenset()) | {called}

    def append(self, message: Message) -> None:
        """Add a message. A tool's results replace the calls they answer."""
        self.index[message.id] = len(self.entries)
        self._pair_calls(message)
        self._add(Entry(message))

    def add_notice(self, level: Level, text: str) -> None:
        """Add a notice, which is not a message and is removed by the next `set_messages`."""
        self._add(Entry(notice=(level, clean_text(text))))

    def start_reply(self, message_id: str, provider: str, model: str) -> LiveReply:
        """Add a reply that begins now, or restart it."""
        live = LiveReply()
        shell = Message("assistant", (), message_id, status="streaming", provider=provider, model=model)
        index = self.index.get(message_id)
        if index is None:
            self.index[message_id] = len(self.entries)
            self._add(Entry(shell, live))
        else:  # a retry: drop what had arrived
            self.entries[index] = Entry(shell, live, rows=self.entries[index].rows)
        return live

    def finish_reply(self, message: Message) -> None:
        """Replace the streaming reply by the stored one, drawn from its source."""
        index = self.index.get(message.id)
        if index is None:
            self.append(message)
            return
        entry = self.entries[index]
        entry.thought = entry.live.thought() if entry.live else entry.thought
        entry.message, entry.live = message, None
        self._pair_calls(message)

    def drop_last(self, message_id: str) -> None:
        """Remove a reply if it is the last entry."""
        index = self.index.get(message_id)
        if index is None or index != len(self.entries) - 1:
            return
        del self.index[message_id]
        self._drawn.discard(index)
        self.entries.pop()
        self.heights.pop()

    def _add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.heights.append(estimate(entry, self.width) if self.width else 1)

    def set_counts(self, counts: Mapping[str, Count]) -> None:
        """Set tokens by message id, with the source of each figure.

        Messages that are not sent any more have none: they keep their last figure, as an estimate.
        """
        self.counts, self._counted = counts, len(self.entries)

    def set_not_sent(self, not_sent: Mapping[str, str]) -> None:
        """Set the messages that are not sent any more, and why: trimmed, compacted, excluded."""
        last = {ident: count for ident, count in self._last_counts.items() if ident in not_sent}
        for ident in not_sent.keys() - self._not_sent.keys():
            if (count := self.counts.get(ident)) is not None:
                last[ident] = (count[0], "estimated")
        self._not_sent, self._last_counts = dict(not_sent), last
        self._dividers = find_dividers(self.entries, self._not_sent, self._last_counts)

    def view(self, index: int) -> MessageView:
        """The view of entry `index`, by which its message is drawn."""
        entry = self.entries[index]
        if (message := entry.message) is None:
            return NO_VIEW
        counts = self._last_counts if message.id in self._not_sent else self.counts
        return MessageView(
            label=entry_label(self.entries, index),
            count=counts.get(message.id) if index < self._counted else None,
            open=entry.open,
            calls=self._calls.get(message.id, {}),
            answered=self._answered.get(message.id, frozenset()),
            not_sent=self._not_sent.get(message.id, ""),
            thought=entry.thought,
            divider=self._dividers.get(index, ""),
            when=clock_time(message.created_at, self._now) if self._times else "",
        )

    def _drawing(self, index: int) -> Drawing:
        entry = self.entries[index]
        follows = index > 0 and self.entries[index - 1].notice is not None
        notice = (*entry.notice, follows) if entry.notice is not None else None
        live = entry.live.undrawn_copy() if entry.live is not None else None
        return Drawing(entry.message, notice, self.width, self.palette, self.view(index), live)

    def draw(self, index: int) -> int:
        """Draw entry `index` unless its rows are right; returns the change of its height."""
        entry, drawing = self.entries[index], self._drawing(index)
        if entry.drawn != drawing:
            if self._later is None or entry.drawn_size <= LARGE:
                return self.accept(index, drawing, drawing.rows()) or 0
            entry.rows = entry.rows or waiting_rows(self.heights[index], self.palette)
            if entry.job != drawing:
                entry.job = drawing
                self._later(index)
        self._drawn.add(index)
        return self.heights.set(index, len(entry.rows or ()))

    def accept(self, index: int, drawing: Drawing, rows: list[Row]) -> int | None:
        """Take the rows of entry `index`; returns the change of its height, None if they are outdated."""
        if index >= len(self.entries):
            return None
        entry = self.entries[index]
        if self._drawing(index) != drawing:
            entry.job = None if entry.job is drawing else entry.job  # an equal one may be wanted again
            return None
        entry.rows, entry.drawn, entry.job, entry.live = rows, drawing, None, drawing.live
        self._drawn.add(index)
        return self.heights.set(index, len(rows))

    def draw_more(self, index: int, now: float) -> int:
        """Draw what arrived of a reply since; returns the first row that may differ."""
        entry = self.entries[index]
        live = entry.live
        if live is None or entry.rows is not live.rows:
            self.draw(index)
            return 0
        if self._later is None or live.backlog <= LARGE:
            first = live.update(now)
            if not live.stale:
                self.heights.set(index, len(live.rows))
                return first
        entry.drawn = None
        self.draw(index)
        return 0

    def draw_now(self, index: int) -> None:
        """Draw the rows of entry `index`, however long that takes: for copying, which needs the text."""
        self.draw(index)
        if (job := self.entries[index].job) is not None:
            self.accept(index, job, job.large_rows())

    def resize(self, width: int, place: Place | None = None) -> Place | None:
        """Change the width: heights become estimates. Returns `place` at the new width, by its share of the entry."""
        share = place[1] / max(1, self.heights[place[0]]) if place else 0.0
        self.width = width
        self._estimate_all()
        if place is None:
            return None
        self.draw(place[0])
        return place[0], int(share * self.heights[place[0]])

    def _estimate_all(self) -> None:
        """Estimate the heights: of the last entries one by one, of those before them by a sample."""
        heights = [estimate(entry, self.width) if self.width else 1 for entry in self.entries[-ESTIMATED:]]
        others = len(self.entries) - len(heights)
        sample = [estimate(entry, self.width) for entry in self.entries[: others : max(1, others // ESTIMATED)]]
        typical = round(sum(sample) / len(sample)) if sample and self.width else 1
        self.heights = Heights([typical] * others + heights)

    def evict(self, first: int, last: int) -> None:
        """Keep the rows of entries `first` to `last`; drop others if there are too many."""
        if sum(len(self.entries[index].rows or ()) for index in self._drawn) <= CACHED_ROWS:
            return
        for index in list(self._drawn):
            entry = self.entries[index]
            if not first - 8 <= index <= last + 8 and entry.live is None:
                entry.rows = entry.drawn = entry.job = None
                self._drawn.discard(index)

    def cache_strip(self, row: Row, strip: Strip) -> None:
        """Cache the finished line of `row`; the oldest of too many are dropped."""
        row.strip = strip
        self._painted.append(row)
        if len(self._painted) > CACHED_STRIPS:
            self._painted.popleft().strip = None

    def next_message(self, index: int | None, step: int) -> int | None:
        """The entry of the next (1) or previous (-1) message, from the end without `index`. None if there is none."""
        at = (len(self.entries) if index is None else index) + step
        while 0 <= at < len(self.entries) and self.entries[at].message is None:
            at += step
        return at if 0 <= at < len(self.entries) else None

    # --- drawing what is visible

    def draw_end(self, height: int) -> int:
        """Draw the last entries, at least `height` rows; returns the first entry drawn."""
        covered, index = 0, len(self.entries)
        while index > 0 and covered < height:
            index -= 1
            self.draw(index)
            covered += self.heights[index]
        return index

    def draw_window(self, top: int, height: int) -> tuple[int, int]:
        """Draw lines `top` to `top + height`; returns the corrected top line and the first entry."""
        while True:  # actual heights may lower the last possible top line
            first = self.heights.find(top)
            if first < 0:
                return 0, 0
            self.draw(first)
            index, bottom = first, self.heights.top(first + 1)
            while bottom < top + height and index + 1 < len(self.entries):
                index += 1
                self.draw(index)
                bottom += self.heights[index]
            last_top = max(0, self.heights.total - height)
            if top <= last_top:
                return top, first
            top = last_top

    def draw_above(self, line: int, rows: int) -> int:
        """Draw at least `rows` rows above `line`; returns by how much that moved `line` down."""
        index = self.heights.find(line)
        if index < 0:
            return 0
        missing, moved = rows - (line - self.heights.top(index)), 0
        while missing > 0 and index > 0:
            index -= 1
            moved += self.draw(index)
            missing -= self.heights[index]
        return moved
