"""What was written while a turn ran and waits for its own."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from tui.text.cells import clip, plain

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

    texts: Sequence[str] = ()

    def show(self, texts: Sequence[str]) -> None:
        """Show these."""
        self.texts = texts
        self.display = bool(texts)
        self.on_resize()

    def on_resize(self) -> None:
        """One line each, at this width."""
        self.update(Content("\n").join(queue_lines(self.texts, max(10, self.app.size.width - 2))))
