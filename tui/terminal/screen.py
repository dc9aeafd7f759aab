"""Textual's output: without control characters, reduced to what changed, never waited for."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from queue import Queue
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from rich.console import Console, RenderableType
from rich.segment import Segment
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.color import Color
from textual.drivers._writer_thread import WriterThread
from textual.filter import LineFilter

if TYPE_CHECKING:
    from textual.driver import Driver


MIN_ROWS = 4  # changed rows from which scrolling is considered


class Piece(NamedTuple):
    """A part of a line up to column `end`, with its escape sequences."""

    end: int
    text: str


Line: TypeAlias = Mapping[int, Piece]
"""The pieces of a line, by the column they begin in."""

Lines: TypeAlias = Mapping[int, Line]
"""Lines by row; those that are missing are unknown."""


class Movement(NamedTuple):
    """The rows `top` to `bottom` move up by `rows`, or down where that is negative."""

    top: int
    bottom: int
    rows: int

    @property
    def sequence(self) -> str:
        """The escape sequences: a scrolling region, line feeds at its end (or reverse ones at its top)."""
        region = f"\x1b[{self.top + 1};{self.bottom + 1}r"
        if self.rows > 0:
            return f"{region}\x1b[{self.bottom + 1};1H" + "\n" * self.rows + "\x1b[r"
        return f"{region}\x1b[{self.top + 1};1H" + "\x1bM" * -self.rows + "\x1b[r"

    def apply(self, lines: Lines) -> Lines:
        """The lines after it; the new ones are empty."""
        rows = range(self.top, self.bottom + 1)
        return {**lines, **{y: lines[y + self.rows] if y + self.rows in rows else {} for y in rows}}


class ScreenChanges:
    """Reduces Textual's updates, which repaint whole regions, to what has changed."""

    def __init__(self) -> None:
        self._lines: Lines = {}
        self._width = 0

    def forget(self) -> None:
        """Forget the contents: another program may have written to the terminal."""
        self._lines = {}

    def of(self, update: RenderableType) -> RenderableType:
        """`update`, reduced to what has changed by the time it is written."""
        match update:
            case ChopsUpdate():
                return cast(RenderableType, _AtWriting(partial(self._reduced, update)))
            case LayoutUpdate():
                return cast(RenderableType, _AtWriting(partial(self._whole, update)))
            case _:
                self.forget()
                return update

    def _whole(self, update: LayoutUpdate, console: Console) -> str:
        """A whole region, even where the terminal should show it already."""
        lines: dict[int, Line] = {}
        for y, strips in enumerate(update.strips, update.region.y):
            x, line = update.region.x, dict[int, Piece]()
            for strip in strips:
                line[x] = Piece(x + strip.cell_length, strip.render(console))
                x += strip.cell_length
            lines[y] = line
        self._lines, self._width = lines, update.region.right
        return update.render_segments(console)

    def _reduced(self, update: ChopsUpdate, console: Console) -> str:
        """The sequences for what an update changes."""
        wanted: dict[int, dict[int, Piece]] = {}
        for y, x1, x2 in update.spans:
            line = wanted.setdefault(y, dict(self._lines.get(y, {})))
            for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                if strip is None or x > x2 or end <= x1:
                    continue
                for other in [other for other, piece in line.items() if other < end and x < piece.end]:
                    del line[other]
                line[x] = Piece(end, strip.render(console))
        movement = find_movement(self._lines, wanted, self._width)
        shown, sequence = self._lines, ""
        if movement is not None:
            shown, sequence = movement.apply(shown), movement.sequence
            inside = range(movement.top, movement.bottom + 1)
            wanted = {**{y: dict(self._lines[y]) for y in inside}, **wanted}  # scrolling moves whole lines
        self._lines = {**self._lines, **wanted}
        return sequence + "".join(_written(shown, wanted))


class _AtWriting(CompositorUpdate):
    """An update whose sequences are made by the time it is written; others before it may have been dropped."""

    def __init__(self, make: Callable[[Console], str]) -> None:
        self._make = make

    def render_segments(self, console: Console) -> str:
        return self._make(console)


def _written(shown: Lines, wanted: Lines) -> Iterable[str]:
    for y in sorted(wanted):
        before = shown.get(y, {})
        for x, piece in sorted(wanted[y].items()):
            if before.get(x) != piece:
                yield f"\x1b[{y + 1};{x + 1}H{piece.text}"


def find_movement(shown: Lines, wanted: Lines, width: int) -> Movement | None:
    """The movement of lines that leaves the least to be written; None if none saves anything.

    It moves whole lines, so that all of them have to be known.
    """
    changed = [y for y in sorted(wanted) if shown.get(y) != wanted[y]]
    if len(changed) < MIN_ROWS:
        return None
    top, bottom = changed[0], changed[-1]
    before = {y: shown.get(y, {}) for y in range(top, bottom + 1)}
    after: Lines = {y: wanted.get(y, line) for y, line in before.items()}
    if any(_cells(line) != width for lines in (before, after) for line in lines.values()):
        return None
    places: dict[Piece, int] = {}
    for y, line in before.items():
        places.setdefault(_widest(line), y)
    distances = Counter(places[piece] - y for y in changed if (piece := _widest(wanted[y])) in places)
    del distances[0]
    best: Movement | None = None
    least = _size(before, after)
    for rows, _ in distances.most_common(2):
        movement = Movement(top, bottom, rows)
        size = len(movement.sequence) + _size(movement.apply(before), after)
        if size < least:
            best, least = movement, size
    return best


def _size(shown: Lines, wanted: Lines) -> int:
    return sum(map(len, _written(shown, wanted)))


def _cells(line: Line) -> int:
    return sum(piece.end - x for x, piece in line.items())


def _widest(line: Line) -> Piece:
    return max(((piece.end - x, piece) for x, piece in line.items()), default=(0, Piece(0, "")))[1]


_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class SafeLines(LineFilter):
    """Removes control characters, bidirectional overrides and lone surrogates. None of them has a width.

    A second barrier: text is cleaned, visibly, where it enters the program (`text/clean.py`).
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """`segments` without control characters."""
        del background
        if not any(_CONTROLS.search(segment.text) for segment in segments):
            return segments
        return [Segment(_CONTROLS.sub("", text), style, control) for text, style, control in segments]


BEHIND = 20
"""Texts that wait for the terminal, from which on no more is drawn."""


class LastingWriter(WriterThread):
    """Textual's writer thread, for a terminal that takes no output for a while, or is gone: then it is discarded.

    The queue of Textual's own (8.2) fills up, and the event loop waits: nothing is stored, and no signal acted on.
    """

    def __init__(self, file: IO[str]) -> None:
        super().__init__(file)
        self._queue = Queue()

    @property
    def is_behind(self) -> bool:
        """Whether the terminal has to catch up, as one that is stopped, or far away."""
        return self._queue.qsize() > BEHIND

    def run(self) -> None:
        """Run the thread."""
        with suppress(OSError):
            while (text := self._queue.get()) is not None:
                self._file.write(text)
                if self._queue.qsize() == 0:
                    self._file.flush()
            return
        while self._queue.get() is not None:
            pass


def is_behind(driver: Driver | None) -> bool:
    """Whether the terminal has to catch up before more is drawn."""
    writer = getattr(driver, "_writer_thread", None)
    return isinstance(writer, LastingWriter) and writer.is_behind


def use_lasting_driver(driver: type[Driver]) -> type[Driver]:
    """`driver` for a terminal that may be closed at any time: with a `LastingWriter` and its own answer to signals."""
    if hasattr(module := sys.modules[driver.__module__], "WriterThread"):
        setattr(module, "WriterThread", LastingWriter)  # noqa: B010  # Textual has no other way to set one
    if not hasattr(driver, "_sigcont_application"):
        return driver
    stop = getattr(driver, "_sigtstp_application")  # noqa: B009  # not a part of `Driver`
    handlers = {"_sigtstp_application": _on_loop(stop), "_sigcont_application": _on_loop(_resume)}
    return type("LastingDriver", (driver,), handlers)


def _on_loop(act: Callable[[Any], None]) -> Callable[..., None]:
    """The signal handler of a driver that lets its event loop call `act`.

    A handler interrupts the main thread anywhere, also where it holds the lock of the output's queue: writing from
    there, as Textual (8.2) does, waits for that lock forever. While the screen is another program's (an editor), the
    loop may be waiting for it, and nothing is written.
    """

    def handle(driver: Any, *_: object) -> None:
        if not driver._auto_restart:
            act(driver)
            return
        with suppress(RuntimeError):  # the loop is closed: the program is ending
            driver._loop.call_soon_threadsafe(act, driver)

    return handle


def _resume(driver: Any) -> None:
    """Take the terminal back after SIGCONT, which the kernel also sends when a terminal is closed.

    Textual (8.2) starts its threads at every SIGCONT. A program that was just ending would then not end, and read the
    closed terminal forever; one that was not suspended would have every thread twice.
    """
    if not (driver._auto_restart and driver._app.is_running):
        return
    if not driver._must_signal_resume:  # stopped by SIGSTOP, or not at all
        driver.suspend_application_mode()
        driver._must_signal_resume = True  # the screen is drawn anew
    driver.resume_application_mode()
