"""A tool call for a person to judge: its arguments readable and complete, without control characters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, islice, starmap
from typing import Any

from rich.cells import cell_len, chop_cells
from textual.content import Content

from tui.text.cells import CHARACTERS_PER_CELL
from tui.text.clean import TAB_SIZE, abbreviated, clean_line, clean_output, clean_text

MAX_LINES = 2_000
MAX_CHARACTERS = 100_000
PIECE = 1_000  # characters of a line in one piece, if not all is shown
CONTINUED = "  ┊ "
LONG_VALUE = 60  # characters; longer lists and objects get lines of their own


# Characters without width that programs read: soft hyphens, joiners, direction marks, variation selectors, Hangul
# fillers, tags. In a transcript they are part of scripts and emoji, but a command is judged by what is visible.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """`text` without control characters, and with a mark for characters that would be invisible."""
    return _UNSEEN.sub("\ufffd", clean_text(text))


def readable_arguments(arguments: Mapping[str, Any], width: int) -> Content:
    """One argument per line of at most `width` cells. What does not fit follows behind a bar, so that no value can
    pass for another argument.

    Of more than `MAX_LINES` lines or `MAX_CHARACTERS` the middle is left out, which is said there.
    """
    if not arguments:
        return Content.styled("no arguments", "$text-muted")
    lines: list[tuple[str, str]] = []  # what stands before it, and a line of a value
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if not isinstance(value, str) and len(text) > LONG_VALUE:
            text = json.dumps(value, ensure_ascii=False, indent=2)
        rows = visible(text).split("\n")
        label = f"{visible(clean_line(str(name)))}: "
        fits = cell_len(label) <= width // 2
        if fits and len(rows) == 1:
            lines.append((label, rows[0] or '""'))
        else:
            lines += [(label, "") if fits else ("", label), *(("  │ ", row) for row in rows)]
    return both_ends(lines, partial(continued, width))


def both_ends(lines: Sequence[tuple[str, str]], line: Callable[[str, str], Content]) -> Content:
    """`lines`, each a label and a text for `line`, without the middle if they are too many to be laid out at once."""
    if len(lines) <= MAX_LINES and sum(len(label) + len(text) for label, text in lines) <= MAX_CHARACTERS:
        return Content("\n").join(starmap(line, lines))
    pieces = [
        (label if at == 0 else CONTINUED, text[at : at + PIECE])
        for label, text in lines
        for at in range(0, max(1, len(text)), PIECE)
    ]
    head, tail = _fitting(pieces), len(pieces) - _fitting(reversed(pieces))
    missing = sum(len(text) for _, text in pieces[head:tail])
    gap = Content.styled(f"  … {missing:,} characters not shown …", "$text-warning")
    return Content("\n").join([*starmap(line, pieces[:head]), gap, *starmap(line, pieces[tail:])])


def _fitting(lines: Iterable[tuple[str, str]]) -> int:
    """How many of `lines` half of the limits take."""
    sizes = accumulate(len(label) + len(text) for label, text in islice(lines, MAX_LINES // 2))
    return sum(size <= MAX_CHARACTERS // 2 for size in sizes)


def continued(width: int, label: str, text: str) -> Content:
    """A label and a text. What of it needs more than `width` cells follows on lines behind a bar."""
    cells = max(8, width - max(len(CONTINUED), cell_len(label)))
    most = CHARACTERS_PER_CELL * cells
    chopped = chop_cells(text.expandtabs(TAB_SIZE), cells)
    rows = [row[at : at + most] for row in chopped for at in range(0, max(1, len(row)), most)]
    return Content.assemble((label, "$text-muted"), (f"\n{CONTINUED}".join(rows), "$foreground"))


def continued_by_words(width: int, text: str) -> Content:
    """Like `continued`, for prose: spaces at the end of a line are not shown."""
    first = Content(text).wrap(width)[0].plain
    rest = text[len(first) :].lstrip()
    more = Content(rest).wrap(width - len(CONTINUED)) if rest else []
    return Content(f"\n{CONTINUED}".join([first, *(line.plain for line in more)]))


def description_line(origin: str, description: str, width: int) -> str:
    """A tool's own description on one line of at most `width` characters, marked as such."""
    text = clean_output(clean_line(description))
    words = f"{clean_line(origin)} says of it: {text}" if text else f"from {clean_line(origin)}"
    return abbreviated(words, width)
