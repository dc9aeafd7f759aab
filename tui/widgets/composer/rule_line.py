"""The line above the prompt."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from tui.text.cells import clip

LEAST = 12
"""Cells below which a piece of a sentence says nothing."""


class RuleLine(Widget):
    """The line above the prompt: what is going on at the left, what the draft costs at the right."""

    DEFAULT_CSS = """
    RuleLine { height: 1; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.left = Content("")
        self.right: Sequence[str] = ()

    def show(self, *, left: Content | None = None, right: Sequence[str] | None = None) -> None:
        """Change either end; the layout stays. `right` are ways to say the same, the longest first."""
        self.left = self.left if left is None else left
        self.right = self.right if right is None else right
        self.refresh()

    def render(self) -> Content:
        """`left ───── right` at the current width."""
        width = self.content_size.width
        left = Content.assemble(self.left, " ") if self.left else Content("")
        room = width - left.cell_length - 3
        right = next((words for words in self.right if cell_len(words) <= room), "")
        if not right and self.right and room >= LEAST:
            right = clip(self.right[-1], room)
        right = f" {right}" if right else ""
        rule = "─" * max(0, width - left.cell_length - cell_len(right))
        line = Content.assemble(left, (rule, "$border"), (right, "$text-muted"))
        return line.truncate(width, ellipsis=True)
