"""Entries of the transcript: their labels and dividers, their heights, drawing in a thread."""

from __future__ import annotations

import gc
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from time import monotonic
from typing import Literal, TypeAlias

from tui.messages import Message, Reasoning, Text, ToolResult
from tui.render.message import HEAD_LINES, Count, LiveReply, MessageView, folds, is_long, message_rows, part_text
from tui.render.palette import Palette
from tui.render.rows import Row, blank_row, plain_rows, prefixed, text_row
from tui.text.labels import label_of
from tui.text.numbers import plural, source_of, tokens_short, total_of

Place: TypeAlias = tuple[int, int]
"""An entry and a row in it."""

Level: TypeAlias = Literal["info", "warning", "error"]
_REASONS = {"trimmed": "rolling context", "compacted": "compacted"}
_GLYPHS: dict[Level, str] = {"info": "·", "warning": "!", "error": "✗"}


@dataclass(slots=True)
class Entry:
    """A message, a streaming reply, or a notice.

    `rows` were drawn for `drawn`. While a large message waits to be drawn in a thread (`job`), they are its previous
    ones, or blank.
    """

    message: Message | None = None
    live: LiveReply | None = None
    notice: tuple[Level, str] | None = None
    open: frozenset[int] = frozenset()
    thought: float | None = None
    rows: list[Row] | None = None
    drawn: Drawing | None = None
    job: Drawing | None = None

    @property
    def foldable(self) -> frozenset[int]:
        """The parts that can be folded."""
        if self.live is not None:
            return frozenset(number for number, part in enumerate(self.live.parts) if part.kind == "reasoning")
        if (message := self.message) is None:
            return frozenset()
        return frozenset(number for number, part in enumerate(message.parts) if folds(message, part))

    @property
    def drawn_size(self) -> int:
        """Characters that have to be laid out: all but the folded ones."""
        if self.live is not None:
            parts = enumerate(self.live.parts)
            return sum(part.size for number, part in parts if part.kind == "text" or number in self.open)
        folded = self.foldable - self.open
        stored = self.message.parts if self.message is not None else ()
        return sum(len(part_text(part)) for number, part in enumerate(stored) if number not in folded)


def estimate(entry: Entry, width: int) -> int:
    """The probable number of rows; used only when scrolling far through messages that were never drawn."""
    message = entry.message
    if message is None:
        return 2
    rows = 0 if message.role == "tool" else 2
    for index, part in enumerate(message.parts):
        if not isinstance(part, Text):
            rows += 1 if isinstance(part, Reasoning | ToolResult) else 0
            continue
        lines, length = part.text.count("\n"), len(part.text)
        if message.role == "user" and index not in entry.open and is_long(part.text):
            rows += HEAD_LINES + 1
        else:
            rows += 1 + lines + max(0, length - lines * width // 2) // max(1, width)
    return max(1, rows)


def entry_label(entries: Sequence[Entry], index: int) -> str:
    """The label of an entry, or "" if the same model goes on after a tool call."""
    message = entries[index].message
    if message is None:
        return ""
    label = label_of(message)
    if message.role != "assistant" or message.kind != "chat":
        return label
    after_tool = False
    for number in range(index - 1, -1, -1):
        before = entries[number].message
        if before is None:
            continue
        if before.role == "tool":
            after_tool = True
            continue
        same = before.role == "assistant" and before.kind == "chat" and before.model == message.model
        return "" if after_tool and same else label
    return label


def waiting_rows(height: int, palette: Palette) -> list[Row]:
    """Placeholder rows of a large message until it is drawn."""
    line = text_row("drawing …", palette.muted)
    return [blank_row(), line, *[blank_row()] * max(0, height - 3), line][: max(2, height)]


def notice_rows(level: Level, text: str, follows: bool, width: int, palette: Palette) -> list[Row]:
    """The rows of a notice; if it `follows` another one no blank line separates them."""
    style = {"info": palette.info, "warning": palette.warning, "error": palette.error}[level]
    mark, rest = text_row(f"{_GLYPHS[level]} ", style).segments, text_row("  ", style).segments
    rows = prefixed(plain_rows(text, style, width - 2), mark, rest)
    return rows if follows else [blank_row(), *rows]


def find_dividers(entries: Sequence[Entry], not_sent: Mapping[str, str], counts: Mapping[str, Count]) -> dict[int, str]:
    """Lines that end runs of messages that are not sent, by the index of the last entry of each.

    A run of tool results only gets none: they are marked on their own lines.
    """
    dividers: dict[int, str] = {}
    indexed = [(index, entry.message) for index, entry in enumerate(entries if not_sent else ()) if entry.message]
    for reason, run in groupby(indexed, key=lambda item: not_sent.get(item[1].id, "")):
        indexes, messages = zip(*run, strict=True)
        if reason in _REASONS and any(message.role != "tool" for message in messages):
            dividers[indexes[-1]] = _divider([counts.get(message.id) for message in messages], reason)
    return dividers


def _divider(counts: Sequence[Count | None], reason: str) -> str:
    text = f"not sent any more: {plural(len(counts), 'message')}"
    total = total_of(count[0] if count is not None else None for count in counts)
    if total is not None:
        source = source_of(count[1] for count in counts if count is not None)
        text += f", {tokens_short(total, source)} tokens"
    return f"{text} ({_REASONS[reason]})"


class Heights:
    """The heights of the entries in rows, with their running sums.

    Changing one takes time proportional to the entries below it: nothing for the last one, a streaming reply.
    """

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._tops = [0]
        self._valid = 0  # tops are valid up to this index

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    def append(self, height: int) -> None:
        """Add an entry at the end."""
        self._heights.append(height)

    def pop(self) -> None:
        """Remove the last entry."""
        self._heights.pop()
        self._valid = min(self._valid, len(self._heights))
        del self._tops[len(self._heights) + 1 :]

    def set(self, index: int, height: int) -> int:
        """Change one height; returns the difference."""
        change = height - self._heights[index]
        if change:
            self._heights[index] = height
            self._valid = min(self._valid, index)
        return change

    def top(self, index: int) -> int:
        """The first line of entry `index`; for the index after the last one, the total."""
        if self._valid < len(self._heights):
            del self._tops[self._valid + 1 :]
            last = self._tops.pop()
            self._tops.extend(accumulate(self._heights[self._valid :], initial=last))
            self._valid = len(self._heights)
        return self._tops[index]

    @property
    def total(self) -> int:
        """All rows."""
        return self.top(len(self._heights))

    def find(self, line: int) -> int:
        """The entry at `line`; the first or the last one if it lies outside. -1 without entries."""
        self.top(0)
        return min(max(0, bisect_right(self._tops, line) - 1), len(self._heights) - 1)

    def place(self, line: int) -> Place:
        """The entry at `line`, and the row in it. There must be an entry."""
        index = self.find(line)
        return index, line - self.top(index)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause garbage collection while the body creates long-lived objects, and freeze them afterwards. Thread-safe.

    Messages and rows have no cycles: reference counting frees them. The collector's full passes would scan them again
    and again, and stop the screen each time: 50 ms for 10,000 messages, 400 ms for the rows of a megabyte.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


@dataclass(frozen=True, slots=True)
class Drawing:
    """All that the rows of an entry depend on: rows drawn for an equal one are still right.

    `notice` includes whether it follows another one; `live` is a streaming reply, to be drawn from its beginning.
    """

    message: Message | None
    notice: tuple[Level, str, bool] | None
    width: int
    palette: Palette
    view: MessageView
    live: LiveReply | None = field(compare=False)

    def rows(self) -> list[Row]:
        """The rows."""
        if self.notice is not None:
            return notice_rows(*self.notice, self.width, self.palette)
        if self.live is not None:
            self.live.draw(self.width, self.palette, self.view, monotonic())
            return self.live.rows
        return message_rows(self.message, self.width, self.palette, self.view) if self.message is not None else []

    def large_rows(self) -> list[Row]:
        """The rows of a large message. Takes about two seconds for a megabyte: for a thread, a frame is 16 ms."""
        with gc_paused():
            return self.rows()
