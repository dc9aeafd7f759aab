"""Filters the lines of the screen, whichever widget drew them: nothing in them acts on the terminal."""

from __future__ import annotations

import re

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

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
