"""What all screens share: a guard against a press on a widget that has just gone, and the look of a panel."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Generic, TypeVar

from textual import events, on
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.geometry import Offset
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.worker import Worker

Result = TypeVar("Result")

NARROW = 60
"""Columns of a screen below which panels have less padding and lines fewer columns."""

PANEL_WIDTH = 112
"""Columns of a panel at most, border and padding included: longer lines are hard to read."""

SHORT = 24
"""Lines of a screen below which nothing is kept free around a panel."""


def run_quietly(
    screen: Screen[Any], work: Callable[[], Coroutine[Any, Any, None]], group: str, *, exclusive: bool = False
) -> None:
    """Run a worker that handles its own errors: none of them may end the program."""
    worker: Worker[None] = screen.run_worker(work, group=group, exclusive=exclusive, exit_on_error=False)
    del worker  # named only for its type


class GuardedMouse(Screen[Result]):
    """A screen on which a press never reaches a widget that was removed a moment ago.

    Textual 8.2.8 looks for the parent of what is under the pointer when a selection starts, and a widget that streaming
    or a closing list has just taken away has none: the press would end the program.
    """

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """The widget and text offset under a cell; nothing where that widget no longer belongs to the screen."""
        widget, offset = super().get_widget_and_offset_at(x, y)
        if widget is not None and widget.parent is None and not isinstance(widget, Screen):
            return None, None
        return widget, offset

    def action_copy_text(self) -> None:
        """Copy what is selected, which then is so no more: ctrl+c has other work to do, too."""
        super().action_copy_text()
        self.clear_selection()


class BaseScreen(GuardedMouse[None]):
    """A whole screen."""


class Panel(GuardedMouse[Result], ModalScreen[Result], Generic[Result]):
    """A panel that lies over the conversation, which stays where it is and can be seen around it."""

    DEFAULT_CSS = """
    Panel { align: center top; background: $background 75%; }
    Panel:ansi { background: transparent; }
    Panel > .panel {
        width: 100%; height: auto; max-height: 100%;
        background: $surface; border: round $border; border-title-color: $foreground; border-title-style: bold;
        border-subtitle-color: $text-muted; padding: 0 2; margin-top: 2;
    }
    Panel.-short > .panel { margin-top: 0; }
    Panel.-narrow > .panel { padding: 0 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "close", id="panel.close", show=False),
    ]

    max_width: int | None = PANEL_WIDTH
    """Columns at most, border and padding included; None where the panel takes the whole width."""

    @property
    def inner_width(self) -> int:
        """Cells of a line between border and padding."""
        columns = self.app.size.width
        return max(20, min(self.max_width or columns, columns) - (4 if columns < NARROW else 6))

    @property
    def list_width(self) -> int:
        """Cells of a line beside a scroll bar."""
        return self.inner_width - 1

    @on(events.Mount)
    def _limit_width(self) -> None:
        self.query_one(".panel").styles.max_width = self.max_width

    def action_copy_text(self) -> None:
        """ctrl+c: copy what is selected, else what esc does."""
        try:
            super().action_copy_text()
        except SkipAction:
            self.call_next(self.run_action, "close")

    def action_close(self) -> None:
        """Go back; nothing was chosen."""
        self.dismiss(None)
