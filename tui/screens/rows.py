"""Panels of rows: those with a head and keys for each row are `/context` and its lists, `/mcp`, `/tools`."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual
from textual.widgets import Static

from tui.screens.base import CLOSE, SHORT, Hint, KeyLine, Panel, Result, key_line
from tui.text.cells import clip
from tui.text.clean import error_line
from tui.views.view import Row

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession
    from tui.views.context_lists import MessageLine
    from tui.views.view import Option


log = logging.getLogger(__name__)


RowType = TypeVar("RowType", bound="Row | MessageLine | Option")


class RowList(ScrollView, can_focus=False):
    """The rows of a panel, a line each; only visible ones are drawn."""

    DEFAULT_CSS = """
    RowList > .row-list--cursor {
        color: $block-cursor-foreground; background: $block-cursor-background; text-style: $block-cursor-text-style;
    }
    RowList > .row-list--text { color: $text-muted; }
    RowList { height: auto; max-height: 100%; background: transparent; scrollbar-size-vertical: 1; }
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"row-list--cursor", "row-list--text"}

    def __init__(self, panel: ListPanel[Any, Any]) -> None:
        super().__init__()
        self.panel = panel

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The number of rows."""
        return max(1, len(self.panel.rows))

    def render_line(self, y: int) -> Strip:
        """Line `y` of the view."""
        panel, index, width = self.panel, y + round(self.scroll_y), self.scrollable_content_region.width
        if index >= len(panel.rows) or width <= 0:
            return Strip.blank(width, self.rich_style)
        row = panel.rows[index]
        part = "cursor" if index == panel.cursor else "" if row.key else "text"
        style = self.get_visual_style(f"row-list--{part}") if part else self.visual_style
        strips = Visual.to_strips(self, panel.content(row, width), width, 1, style, pad=True)
        return strips[0].extend_cell_length(width, style.rich_style)

    def on_click(self, event: events.Click) -> None:
        """Choose the row under the pointer."""
        index = event.y + round(self.scroll_y)
        if index < len(self.panel.rows) and self.panel.rows[index].key:
            self.panel.go_to(index)
            self.panel.action_choose()


class ListPanel(Panel[Result], Generic[Result, RowType]):
    """A panel with rows. The cursor is on a row with a key, or nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: Sequence[RowType] = ()
        self.cursor: int | None = None
        self.row_list = RowList(self)
        self.held = []

    def show_rows(self, rows: Sequence[RowType], cursor: int | None) -> None:
        """Show these rows, with the cursor on one of them."""
        self.rows, self.cursor = rows, cursor
        self.row_list.virtual_size = Size(0, len(rows))
        self.row_list.refresh(layout=True)
        self.call_after_refresh(self._reveal)
        self.moved()
        self.listed()

    def content(self, row: Any, _width: int) -> Content:
        """A row at a width. Called for visible rows only."""
        content: Content = row.content
        return content

    def go_to(self, index: int | None) -> None:
        """Move the cursor to a row; None leaves it where it is."""
        if index is not None:
            self.cursor = index
            self._reveal()
            self.row_list.refresh()
            self.moved()

    def _reveal(self) -> None:
        if self.cursor is not None:
            self.row_list.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)

    def _next(self, index: int, step: int) -> int | None:
        """The first row with a key from `index` on, down (1) or up (-1)."""
        ways = range(index, len(self.rows)) if step > 0 else range(min(index, len(self.rows) - 1), -1, -1)
        return next((at for at in ways if self.rows[at].key), None)

    def action_move(self, step: int) -> None:
        """Move up or down, from one end to the other."""
        at = None if self.cursor is None else self._next(self.cursor + step, step)
        if at is None:
            self.action_end(step)
        self.go_to(at)

    def action_page(self, pages: int) -> None:
        """Move a screenful up or down."""
        at = (self.cursor or 0) + pages * max(1, self.row_list.size.height - 1)
        at = max(0, min(at, len(self.rows) - 1))
        after = self._next(at, pages)
        self.go_to(self._next(at, -pages) if after is None else after)

    def action_end(self, step: int) -> None:
        """Go to the first row (1) or the last one (-1)."""
        self.go_to(self._next(0 if step > 0 else len(self.rows) - 1, step))

    @property
    def chosen(self) -> RowType | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.cursor is not None else None

    @property
    def chosen_key(self) -> str:
        """The key of the highlighted row, "" for none."""
        return self.chosen.key if self.chosen is not None else ""

    def moved(self) -> None:
        """Called when the rows are there, and when the cursor is on another one."""

    @abstractmethod
    def action_choose(self) -> None:
        """Act on the highlighted row."""


class RowsPanel(ListPanel[Result, RowType]):
    """Rows that scroll, between a head and the line of keys, which stay.

    `changed` is called when the request may have changed.
    """

    DEFAULT_CSS = """
    RowsPanel.-under { background: transparent; }
    RowsPanel .head, RowsPanel .keys { height: auto; }
    RowsPanel .head { margin-bottom: 1; }
    RowsPanel .keys { margin-top: 1; }
    RowsPanel.-short .head, RowsPanel.-short .keys { margin: 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "end(1)", show=False),
        Binding("end", "end(-1)", show=False),
        Binding("enter", "choose", show=False),
    ]

    closing: ClassVar[Hint] = CLOSE
    highlights_first: ClassVar[bool] = True

    def __init__(self, session: ChatSession, changed: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.session = session
        self.changed = changed
        self.expanded: frozenset[str] = frozenset()  # keys of unfolded rows
        self._note = ""

    def body(self) -> ComposeResult:
        """Head, rows, keys."""
        yield Static("loading …", classes="head", markup=False)
        yield self.row_list
        yield KeyLine("keys")

    def on_resize(self, _event: events.Resize) -> None:
        """Draw for the new size."""
        if self.rows:
            self.redraw()

    def on_screen_suspend(self) -> None:
        """Hide below another panel, since overlapping frames are hard to read."""
        self.query_one(".panel").visible = False
        self.add_class("-under")

    def on_screen_resume(self) -> None:
        """Show again."""
        self.query_one(".panel").visible = True
        self.remove_class("-under")

    @abstractmethod
    def redraw(self) -> None:
        """Call `draw` with the current state."""

    @abstractmethod
    def hints(self) -> Sequence[Hint]:
        """The keys for the highlighted row; the one that closes is added."""

    def draw(self, head: Sequence[Content], rows: Sequence[RowType], cursor: str = "") -> None:
        """Draw everything; the cursor goes to a key, or stays on its row. Nothing once the panel is closed."""
        if not self.is_attached or self not in self.app.screen_stack:
            return
        height = self.app.size.height
        top, key = self.query_one(".head", Static), cursor or self.chosen_key
        top.display = bool(head)
        top.update(Content("\n").join(head))
        # Borders and keys; on a taller screen also the lines kept free above and below, and around the rows.
        self.row_list.styles.max_height = max(2, height - len(head) - (3 if height < SHORT else 8))
        first = next((at for at, row in enumerate(rows) if row.key), None) if self.highlights_first else None
        self.show_rows(rows, next((at for at, row in enumerate(rows) if row.key == key), first) if key else first)

    @property
    def chosen_item(self) -> tuple[str, str]:
        """The key of the highlighted row, "kind:name", in two parts."""
        kind, _, name = self.chosen_key.partition(":")
        return kind, name

    def moved(self) -> None:
        """Draw the keys for this row, or a note in their place."""
        width = self.inner_width
        note = Content.styled(clip(self._note, width), "$text-accent")
        self.query_one(KeyLine).update(note if self._note else key_line(self, [*self.hints(), self.closing], width))

    @contextmanager
    def errors_noted(self, work: str) -> Iterator[None]:
        """Show an error of the body as a note. `work` names it in the log."""
        try:
            yield
        except Exception as error:
            log.exception("%s failed", work)
            self._note = error_line(error)

    def say(self, text: str) -> None:
        """Show a note in place of the keys; "" restores them."""
        self._note = text
        self.moved()

    def action_unfold(self, on: bool) -> None:
        """Unfold or fold the highlighted row."""
        if isinstance(self.chosen, Row) and self.chosen.foldable and (self.chosen_key in self.expanded) is not on:
            self.toggle_fold()

    def toggle_fold(self) -> None:
        """Unfold the highlighted row, or fold it."""
        self.expanded ^= {self.chosen_key}
        self.redraw()
