"""The title line: the conversation's title and the model."""

from __future__ import annotations

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from tui.text.cells import clip, plain


def title_line(title: str, model: str, width: int) -> Content:
    """`title ──────── model` in `width` cells; the model's end stays visible if both don't fit."""
    left, right = plain(title), plain(model)
    if cell_len(left) + cell_len(right) + 4 > width and "/" in right:
        right = right.rsplit("/", 1)[1]
    right = clip(right, max(0, width // 2))
    left = clip(left, max(0, width - cell_len(right) - 4))
    rule = max(1, width - cell_len(left) - cell_len(right) - 2)
    return Content.assemble(
        (left, "bold $foreground"), " ", ("─" * rule, "$border"), " ", (right, "$text-muted")
    ).truncate(width)


class TitleBar(Widget):
    """Shows title and model; a click opens the model picker."""

    DEFAULT_CSS = """
    TitleBar { height: 1; padding: 0 1; }
    """

    class Pressed(Message):
        """The line was clicked."""

    def __init__(self, title: str = "chatctx", model: str = "") -> None:
        super().__init__()
        self.title = title
        self.model = model

    def show(self, title: str, model: str) -> None:
        """Set the conversation's title and model."""
        if (title, model) != (self.title, self.model):
            self.title, self.model = title, model
            self.refresh()

    def render(self) -> Content:
        """The line at the current width."""
        return title_line(self.title, self.model, self.content_size.width)

    def on_click(self, event: events.Click) -> None:
        """A click to change the model."""
        event.stop()
        self.post_message(self.Pressed())
