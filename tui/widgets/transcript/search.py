"""Finding text in the transcript: hits by message and part, their positions in drawn rows."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby

from tui.render.message import part_text
from tui.render.rows import Row
from tui.widgets.transcript.entries import Entry

Span = tuple[int, int, int]
"""Row, first character, character after the last."""


@dataclass(frozen=True, slots=True)
class Hit:
    """The `nth` (from 0) occurrence in part `part` of entry `entry`."""

    entry: int
    part: int
    nth: int


@dataclass(slots=True)
class DrawnHits:
    """The occurrences in `rows` of an entry, by part and by row."""

    rows: Sequence[Row]
    by_part: dict[int, list[list[Span]]] = field(default_factory=dict)
    by_row: dict[int, list[Span]] = field(default_factory=dict)


ENTRIES = 64
"""Entries whose occurrences are cached, more than are on screen."""


class Search:
    """One search. `current` is the index of the current hit, None before the first step."""

    def __init__(self, text: str, entries: Iterable[Entry]) -> None:
        self._pattern = re.compile(re.escape(text), re.IGNORECASE)
        self.hits: list[Hit] = []
        self.current: int | None = None
        self._drawn: dict[int, DrawnHits] = {}  # of entries on screen, by entry
        for number, entry in enumerate(entries):
            if entry.message is None:
                continue
            for index, part in enumerate(entry.message.parts):
                count = sum(1 for _ in self._pattern.finditer(part_text(part)))
                self.hits += [Hit(number, index, nth) for nth in range(count)]

    def step(self, forward: bool, from_entry: int) -> Hit | None:
        """The next or previous hit, wrapping around; the first step starts at entry `from_entry`."""
        if not self.hits:
            return None
        if self.current is not None:
            self.current = (self.current + (1 if forward else -1)) % len(self.hits)
        else:
            entries = [hit.entry for hit in self.hits]
            place = bisect_right(entries, from_entry - 1) if forward else bisect_right(entries, from_entry) - 1
            self.current = place % len(self.hits)
        return self.hits[self.current]

    def row_hits(self, entry: int, rows: Sequence[Row], row: int) -> Sequence[tuple[int, int, bool]]:
        """Characters to mark in one row of an entry; True for the current hit."""
        chosen = self.place(rows) if self.current is not None and self.hits[self.current].entry == entry else ()
        return [(span[1], span[2], span in chosen) for span in self._drawn_hits(entry, rows).by_row.get(row, ())]

    def place(self, rows: Sequence[Row]) -> list[Span]:
        """Spans of the current hit in its entry's rows; empty if only the source has it (in markup, in a URL)."""
        if self.current is None:
            return []
        hit = self.hits[self.current]
        occurrences = self._drawn_hits(hit.entry, rows).by_part.get(hit.part)
        return occurrences[min(hit.nth, len(occurrences) - 1)] if occurrences else []

    def _drawn_hits(self, entry: int, rows: Sequence[Row]) -> DrawnHits:
        """All occurrences in the drawn rows of an entry, found once: a step costs the same in any message."""
        drawn = self._drawn.get(entry)
        if drawn is None or drawn.rows is not rows:
            if len(self._drawn) >= ENTRIES:
                self._drawn.clear()
            drawn = self._drawn[entry] = DrawnHits(rows)
            for part, numbered in groupby(enumerate(rows), key=lambda item: item[1].part):
                drawn.by_part.setdefault(part, []).extend(_occurrences(self._pattern, list(numbered)))
            for span in chain.from_iterable(chain.from_iterable(drawn.by_part.values())):
                drawn.by_row.setdefault(span[0], []).append(span)
        return drawn


def _occurrences(pattern: re.Pattern[str], rows: Sequence[tuple[int, Row]]) -> list[list[Span]]:
    """The occurrences in numbered rows that follow each other: a list of spans, several if a line wraps."""
    text: list[str] = []
    starts: list[int] = []  # of each row, in the joined text
    position = 0
    for _, row in rows:
        piece = row.copy
        starts.append(position)
        text += (piece, row.joint)
        position += len(piece) + len(row.joint)
    occurrences: list[list[Span]] = []
    for match in pattern.finditer("".join(text)):
        spans: list[Span] = []
        index = bisect_right(starts, match.start()) - 1
        while index < len(rows) and starts[index] < match.end():
            number, row = rows[index]
            low = max(0, match.start() - starts[index]) + row.start
            high = min(match.end() - starts[index] + row.start, row.end)
            if low < high:
                spans.append((number, low, high))
            index += 1
        occurrences.append(spans)
    return [spans for spans in occurrences if spans]
