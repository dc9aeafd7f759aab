"""The terminal shows what whole repaints would have shown, after far fewer bytes."""

from __future__ import annotations

import re
from random import Random

import pytest
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from tui.terminal.screen import ScreenChanges

WIDTH, HEIGHT = 30, 14
CONSOLE = Console(force_terminal=True, color_system="truecolor", width=WIDTH)
TOKEN = re.compile(r"\x1b\[(?P<values>[0-9;]*)(?P<kind>[A-Za-z])|\x1b(?P<reverse>M)|(?P<text>[^\x1b])", re.S)


class Terminal:
    """As much of a terminal as the sequences need: cells with their style, a cursor, a scrolling region."""

    def __init__(self) -> None:
        self.cells = [[("?", "")] * WIDTH for _ in range(HEIGHT)]
        self._x = self._y = 0
        self._top, self._bottom = 0, HEIGHT - 1
        self._style = ""

    def write(self, sequence: str) -> None:
        for token in TOKEN.finditer(sequence):
            values = [int(value) for value in (token["values"] or "").split(";") if value]
            match token["kind"], token["text"] or token["reverse"]:
                case "m", _:
                    self._style = "" if values in ([], [0]) else self._style + (token["values"] or "")
                case "H", _:
                    self._y, self._x = (values[0] - 1, values[1] - 1) if values else (0, 0)
                case "r", _:
                    self._top, self._bottom = (values[0] - 1, values[1] - 1) if values else (0, HEIGHT - 1)
                    self._x = self._y = 0
                case None, "\n":
                    self._x = 0
                    self._down()
                case None, "M":
                    assert self._y == self._top
                    self.cells.insert(self._top, [(" ", self._style)] * WIDTH)
                    del self.cells[self._bottom + 1]
                case None, text:
                    self.cells[self._y][self._x] = text, self._style
                    self._x = min(self._x + 1, WIDTH - 1)
                case other:
                    raise AssertionError(other)

    def _down(self) -> None:
        if self._y == self._bottom:
            self.cells.insert(self._bottom + 1, [(" ", self._style)] * WIDTH)
            del self.cells[self._top]
        else:
            self._y = min(self._y + 1, HEIGHT - 1)


class Picture:
    """What is to be seen: lines that move, a scroll bar beside them, a title, sometimes a toast over them."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._number = 0
        self.lines = [self._line() for _ in range(HEIGHT - 1)]
        self.bar, self.toast = 0, False

    def _line(self) -> str:
        self._number += 1
        return self._chance.choice(("", f"line {self._number} of the answer", "the same"))

    def change(self) -> None:
        chance, lines = self._chance, self.lines
        match chance.choice(("up", "up", "grow", "down", "edit", "bar", "toast", "all", "nothing")):
            case "up":
                rows = chance.randrange(1, 5)
                self.lines = [*lines[rows:], *(self._line() for _ in range(rows))]
                self.bar = chance.randrange(HEIGHT)
            case "down":
                rows = chance.randrange(1, 5)
                self.lines = [*(self._line() for _ in range(rows)), *lines[:-rows]]
            case "grow":
                lines[-1] += " x"
            case "edit":
                lines[chance.randrange(len(lines))] = self._line()
            case "bar":
                self.bar = chance.randrange(HEIGHT)
            case "toast":
                self.toast = not self.toast
            case "all":
                self.lines = [self._line() for _ in lines]

    def chops(self) -> list[dict[int, Strip | None]]:
        """The pieces of each line, by the column where they begin."""
        lines: list[dict[int, Strip | None]] = [{0: _strip("the title", WIDTH, "reverse")}]
        for y, text in enumerate(self.lines, 1):
            bar = _strip("█" if y == self.bar else " ", 1, "blue")
            if self.toast and 2 <= y < 5:
                beside = _strip(text[:12], 12, "red")
                lines.append({0: beside, 12: _strip("a toast", WIDTH - 13, "green"), WIDTH - 1: bar})
            else:
                lines.append({0: _strip(text, WIDTH - 1, "red"), WIDTH - 1: bar})
        return lines


def _strip(text: str, width: int, style: str) -> Strip:
    return Strip([Segment(text[:width].ljust(width), Style.parse(style))], width)


def _ends(chops: list[dict[int, Strip | None]]) -> list[list[int]]:
    return [[*list(line)[1:], WIDTH] for line in chops]


def _whole(picture: Picture) -> LayoutUpdate:
    strips = [[strip for strip in line.values() if strip is not None] for line in picture.chops()]
    return LayoutUpdate(list(strips), Region(0, 0, WIDTH, HEIGHT))


def _partial(picture: Picture, top: int = 0) -> ChopsUpdate:
    chops = picture.chops()
    return ChopsUpdate(chops, [(y, 0, WIDTH) for y in range(top, HEIGHT)], _ends(chops))


def _sequence(changes: ScreenChanges, update: LayoutUpdate | ChopsUpdate) -> str:
    reduced = changes.of(update)
    assert isinstance(reduced, CompositorUpdate)
    return reduced.render_segments(CONSOLE)


@pytest.mark.parametrize("seed", range(8))
def test_the_terminal_shows_what_was_to_be_shown(seed: int) -> None:
    chance = Random(seed)
    picture, terminal, plain, changes = Picture(chance), Terminal(), Terminal(), ScreenChanges()
    terminal.write(_sequence(changes, _whole(picture)))
    for _ in range(60):
        picture.change()
        if chance.random() < 0.1:
            changes.forget()
        terminal.write(_sequence(changes, _partial(picture)))
        plain.write(_whole(picture).render_segments(CONSOLE))
        assert terminal.cells == plain.cells


def test_what_does_not_change_is_not_written_and_what_moves_is_moved() -> None:
    picture, changes = Picture(Random(1)), ScreenChanges()
    picture.lines = [f"line {number}" for number in range(HEIGHT - 1)]
    whole = len(_sequence(changes, _whole(picture)))
    assert _sequence(changes, _partial(picture)) == ""
    picture.lines = [*picture.lines[2:], "one more", "and another"]
    moved = _sequence(changes, _partial(picture))
    assert len(moved) < whole / 3
    assert "\x1b[2;14r\x1b[14;1H\n\n\x1b[r" in moved
    picture.lines = ["first", *picture.lines[:-1]]
    assert "\x1b[2;14r\x1b[2;1H\x1bM\x1b[r" in _sequence(changes, _partial(picture))


def test_a_screen_that_is_not_known_is_written_whole() -> None:
    picture, changes = Picture(Random(2)), ScreenChanges()
    _sequence(changes, _whole(picture))
    changes.forget()
    assert _sequence(changes, _partial(picture)).count("\x1b[") > HEIGHT
