"""A tool call for a person who has to judge it: its arguments as they are, readable, without power over the screen."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from textual.content import Content

from tui.text.clean import clean_line, clean_output, clean_text

MOST_LINES = 2_000
LONG_VALUE = 60  # characters of a list or object, from which it gets lines of its own


# What takes no cell, though a program reads it: soft hyphens, joiners, direction marks, variation selectors, Hangul
# fillers, tags. In a transcript they are part of scripts and emoji; a command is judged by what can be seen.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def _seen(text: str) -> str:
    """`text` without power over the screen, and with a mark where something in it would not be seen."""
    return _UNSEEN.sub("\ufffd", clean_text(text))


def readable_arguments(arguments: Mapping[str, Any]) -> Content:
    """One argument a line; long text in lines of its own behind a bar, so that it can't pass for another argument."""
    if not arguments:
        return Content.styled("no arguments", "$text-muted")
    lines: list[Content] = []
    for name, entry in arguments.items():
        text = entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False)
        if not isinstance(entry, str) and len(text) > LONG_VALUE:
            text = json.dumps(entry, ensure_ascii=False, indent=2)
        rows = _seen(text).split("\n")
        label = (f"{_seen(clean_line(str(name)))}: ", "$text-muted")
        if len(rows) == 1:
            lines.append(Content.assemble(label, (rows[0] or '""', "$foreground")))
            continue
        lines.append(Content.assemble(label))
        lines += [Content.assemble(("  │ ", "$text-muted"), (row, "$foreground")) for row in rows[:MOST_LINES]]
        if len(rows) > MOST_LINES:
            lines.append(Content.styled(f"  … {len(rows) - MOST_LINES:,} more lines", "$text-warning"))
    return Content("\n").join(lines)


def said_of_itself(origin: str, description: str, width: int) -> str:
    """What a tool's source says of it, on one line of at most `width` characters, marked as its own word."""
    text = clean_output(clean_line(description))
    words = f"{clean_line(origin)} says of it: {text}" if text else f"from {clean_line(origin)}"
    return words if len(words) <= width else words[: width - 1] + "…"
