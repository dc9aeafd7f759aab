"""What was written while a turn ran and waits for its own."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from tui.widgets.cells import clip, plain

SHOWN = 3
"""Waiting messages shown; the rest is a number."""


def queue_lines(texts: Sequence[str], width: int) -> list[Content]:
    """One line for each of the first messages, and how many more wait."""
    lines = [
        Content.assemble(("queued  ", "$text-accent"), (clip(plain(text), max(1, width - 8)), "$text-muted"))
        for text in texts[:SHOWN]
    ]
    if len(texts) > SHOWN:
        lines.append(Content.styled(f"        and {len(texts) - SHOWN} more", "$text-muted"))
    return lines


class QueueList(Static):
    """The waiting messages, between transcript and composer; not there while none waits."""

    DEFAULT_CSS = """
    QueueList { height: auto; padding: 0 1; display: none; }
    """

    def show(self, texts: Sequence[str]) -> None:
        """Show these."""
        self.display = bool(texts)
        self.update(Content("\n").join(queue_lines(texts, max(10, self.app.size.width - 2))))
