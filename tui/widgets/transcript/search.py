"""Finding text in the transcript: hits by message and part, their positions in drawn rows."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tui.messages import Attachment, Part, ProviderItem, Reasoning, Refusal, Source, Text, ToolCall, ToolResult
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


class Search:
    """One search. `current` is the index of the current hit, None before the first step."""

    def __init__(self, text: str, entries: Iterable[Entry]) -> None:
        self._pattern = re.compile(re.escape(text), re.IGNORECASE)
        self.hits: list[Hit] = []
        self.current: int | None = None
        self._cached: tuple[int, int, int, int | None] = (-1, 0, 0, None)
        self._rows: dict[int, list[tuple[int, int, bool]]] = {}
        for number, entry in enumerate(entries):
            if entry.message is None:
                continue
            for index, part in enumerate(entry.message.parts):
                count = sum(1 for _ in self._pattern.finditer(searchable(part)))
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
        key = (entry, id(rows[-1]) if rows else 0, len(rows), self.current)
        if key != self._cached:
            self._cached, self._rows = key, {}
            chosen = (
                set(self.place(rows)) if self.current is not None and self.hits[self.current].entry == entry else set()
            )
            for spans in self.spans(rows):
                for span in spans:
                    self._rows.setdefault(span[0], []).append((span[1], span[2], span in chosen))
        return self._rows.get(row, ())

    def place(self, rows: Sequence[Row]) -> list[Span]:
        """Spans of the current hit in its entry's rows; empty if only the source has it (in markup, in a URL)."""
        if self.current is None:
            return []
        hit = self.hits[self.current]
        occurrences = self.spans(rows, hit.part)
        return occurrences[min(hit.nth, len(occurrences) - 1)] if occurrences else []

    def spans(self, rows: Sequence[Row], part: int | None = None) -> list[list[Span]]:
        """Every occurrence in the drawn rows (of one part, or all): a list of spans, several if a line wraps."""
        text: list[str] = []
        places: list[tuple[int, int, int]] = []  # position in the joined text, row, first character
        position = 0
        for number, row in enumerate(rows):
            if part is not None and row.part != part:
                continue
            piece = row.copy
            places.append((position, number, row.start))
            text += (piece, row.joint)
            position += len(piece) + len(row.joint)
        occurrences: list[list[Span]] = []
        starts = [place[0] for place in places]
        for match in self._pattern.finditer("".join(text)):
            spans: list[Span] = []
            index = bisect_right(starts, match.start()) - 1
            while index < len(places) and starts[index] < match.end():
                begin, number, offset = places[index]
                low = max(0, match.start() - begin) + offset
                high = min(match.end() - begin + offset, rows[number].end)
                if low < high:
                    spans.append((number, low, high))
                index += 1
            occurrences.append(spans)
        return [spans for spans in occurrences if spans]


def searchable(part: Part) -> str:
    """The text of a part that a search covers."""
    match part:
        case Text(text) | Refusal(text) | Reasoning(text):
            return text
        case ToolCall(name=name, arguments=arguments):
            return f"{name} {arguments}"
        case ToolResult(text=text):
            return text
        case Attachment(name=name) | ProviderItem(kind=name):
            return name
        case Source(url, title):
            return f"{title} {url}"
