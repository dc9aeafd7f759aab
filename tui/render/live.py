"""A streaming reply, as rows that change only at their end."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from tui.render.message import View, fold_row, head_rows, indented
from tui.render.palette import Palette, dimmed
from tui.render.rows import Row, blank_row, text_row
from tui.render.wrap import plain_rows
from tui.text.clean import clean_line, clean_text
from tui.text.numbers import duration

if TYPE_CHECKING:
    from tui.render.stream import StreamRenderer

SLICE = 4_000
"""Characters processed by one `update`, so that none takes longer than a frame."""

DeltaKind: TypeAlias = Literal["text", "reasoning", "refusal", "tool_call"]


@dataclass(slots=True)
class LivePart:
    """A part of the reply so far. `started` and `ended` are clock readings in seconds."""

    kind: DeltaKind
    name: str
    started: float
    chunks: list[str] = field(default_factory=list)
    ended: float | None = None

    @property
    def beginning(self) -> str:
        """The text so far, of a long one its first chunks with at least `SLICE` characters."""
        text = ""
        for chunk in self.chunks:
            text += chunk
            if len(text) >= SLICE:
                break
        return text

    @property
    def size(self) -> int:
        """The number of characters so far."""
        return sum(map(len, self.chunks))


def warm_up() -> None:
    """Import what draws a reply (the parser, the usual lexers), in a thread, so that no reply waits for it."""
    import tui.render.stream  # noqa: F401
    from tui.render.code import find_lexer
    from tui.render.markdown import parser

    parser()
    for language in ("python", "bash", "json"):
        if (lexer := find_lexer(language)) is not None:
            list(lexer.get_tokens("x = 1\n"))


class LiveReply:
    """Collects deltas and draws them. `rows[:stable]` never change again at this width and in these colours."""

    def __init__(self) -> None:
        self.parts: list[LivePart] = []
        self.rows: list[Row] = []
        self.stable = 0
        self.behind = False  # whether `update` has more to process
        self.stale = False  # whether later text invalidated stable rows; `draw` corrects them
        self._most = SLICE  # characters processed by the present update
        self._width = 0
        self._palette: Palette | None = None
        self._view = View()
        self._stream: StreamRenderer | None = None
        self._drawn = 0  # parts whose drawing has begun
        self._fed = 0  # chunks of the last one passed to the stream
        self._summary = -1  # row of the unfolded reasoning's summary line

    def anew(self) -> LiveReply:
        """The same reply with other options; deltas fed to either reach both."""
        other = LiveReply()
        other.parts = self.parts
        return other

    def feed(self, kind: DeltaKind, text: str, name: str, now: float) -> None:
        """Add a delta; the cost is independent of earlier ones. `now` is a clock reading in seconds."""
        last = self.parts[-1] if self.parts else None
        if last is None or last.kind != kind or (kind == "tool_call" and name and last.chunks):
            if last is not None:
                last.ended = now
            last = LivePart(kind, name, now)
            self.parts.append(last)
        last.name = last.name or name
        last.chunks += [text[start : start + SLICE] for start in range(0, len(text), SLICE)]

    def thought(self) -> float | None:
        """Seconds spent on reasoning that has ended; None if there was none."""
        times = [part.ended - part.started for part in self.parts if part.kind == "reasoning" and part.ended]
        return sum(times) if times else None

    def draw(self, width: int, palette: Palette, view: View, now: float) -> None:
        """Draw everything from the start: the first time, after a change of width, colours or folds, and if `stale`."""
        self._width, self._palette, self._view = width, palette, view
        self._stream, self._drawn, self._fed, self._summary = None, 0, 0, -1
        self.rows = head_rows("assistant", width, palette, view)
        self.stable = len(self.rows)
        self.stale = False
        self._update(now, sys.maxsize)

    def update(self, now: float) -> int:
        """Draw what arrived since, or a part of it; returns the index of the first row that may differ."""
        return self._update(now, SLICE)

    def _update(self, now: float, most: int) -> int:
        self.behind, self._most = False, most
        if self._palette is None:
            return 0
        changed = self.stable
        del self.rows[changed:]
        if not self.parts:
            self.rows.append(text_row("…", self._palette.muted))
            return changed
        last = len(self.parts) - 1  # a snapshot: in a thread, more may arrive meanwhile
        for index in range(max(0, self._drawn - 1), last + 1):
            if index >= self._drawn:
                self._begin(index)
            tail = self._draw_part(index, now)
            if index < last and not self.behind:
                self.stable = len(self.rows) + len(tail)
            self.rows += tail
            self.stale = self.stale or (self._stream is not None and self._stream.stale)
            if self.behind:
                break
        return min(changed, self._summary) if self._summary >= 0 else changed

    def _begin(self, index: int) -> None:
        part = self.parts[index]
        self._drawn, self._fed, self._stream, self._summary = index + 1, 0, None, -1
        palette = self._palette
        assert palette is not None
        before = self.parts[index - 1].kind if index else None
        if before is not None and part.kind != "tool_call" and "text" in (before, part.kind):
            self.rows.append(blank_row())
            self.stable = len(self.rows)
        from tui.render.stream import StreamRenderer  # not before the first frame

        if part.kind == "text":
            self._stream = StreamRenderer(self._width, palette)
        elif part.kind == "reasoning" and index in self._view.open:
            self._stream = StreamRenderer(self._width - 2, dimmed(palette))

    def _draw_part(self, index: int, now: float) -> list[Row]:
        """Append final rows to `rows`, return the others."""
        part, palette = self.parts[index], self._palette
        assert palette is not None
        match part.kind:
            case "text":
                return self._streamed(index)
            case "reasoning":
                return self._reasoning(index, now, palette)
            case "refusal":
                return plain_rows(f"refused: {clean_text(part.beginning)}", palette.warning, self._width)
            case "tool_call":
                row = fold_row([clean_line(part.name) or "tool call", "preparing"], False, self._width, palette.muted)
                row.part = index
                return [row]

    def _streamed(self, index: int) -> list[Row]:
        assert self._stream is not None
        chunks, size = self.parts[index].chunks, 0
        while self._fed < len(chunks) and size + len(chunks[self._fed]) <= self._most:
            self._stream.feed(chunks[self._fed])
            size += len(chunks[self._fed])
            self._fed += 1
        self.behind = self._fed < len(chunks)
        frozen, tail = self._stream.update()
        for row in (*frozen, *tail):
            row.part = index
        self.rows += frozen
        self.stable = len(self.rows)
        return tail

    def _reasoning(self, index: int, now: float, palette: Palette) -> list[Row]:
        part = self.parts[index]
        opened = index in self._view.open
        time = duration((part.ended or now) - part.started)
        words = ["thinking", time] if part.ended is None else [f"thought for {time}"]
        line = fold_row(words, opened, self._width, palette.muted)
        line.part = index
        if not opened:
            return [line]
        # The summary line counts seconds while the rows below it are final: it is replaced in place.
        if self._summary < 0:
            self._summary = len(self.rows)
            self.rows.append(line)
        else:
            self.rows[self._summary] = line
        start = len(self.rows)
        tail = indented(self._streamed(index), palette)
        self.rows[start:] = indented(self.rows[start:], palette)
        self.stable = len(self.rows)
        return tail
