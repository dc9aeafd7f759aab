"""The line above the prompt."""

from __future__ import annotations

from textual.content import Content
from textual.widget import Widget

from tui.widgets.cells import clip


class RuleLine(Widget):
    """The line above the prompt: what is going on at the left, what the draft costs at the right."""

    DEFAULT_CSS = """
    RuleLine { height: 1; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.left = Content("")
        self.right = ""

    def show(self, *, left: Content | None = None, right: str | None = None) -> None:
        """Change either end; the layout stays."""
        self.left = self.left if left is None else left
        self.right = self.right if right is None else right
        self.refresh()

    def render(self) -> Content:
        """`left ───── right` at the current width."""
        width = self.content_size.width
        right = clip(self.right, max(0, width - self.left.cell_length - 4)) if self.right else ""
        pieces = [(self.left, " ")] if self.left else []
        used = sum(part.cell_length + 1 for part, _ in pieces) + (len(right) + 1 if right else 0)
        rule = "─" * max(0, width - used)
        left = Content.assemble(self.left, " ") if self.left else Content("")
        line = Content.assemble(left, (rule, "$border"), (f" {right}" if right else "", "$text-muted"))
        return line.truncate(width, ellipsis=True)
