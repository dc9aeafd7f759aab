"""Panels that list rows to act on: `/context`, `/mcp`, `/tools`."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui.screens.base import CLOSE, SHORT, Hint, KeyLine, Panel, Result, key_line
from tui.text.cells import clip
from tui.text.clean import error_line
from tui.views.view import Row

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession

log = logging.getLogger(__name__)

RowType = TypeVar("RowType", bound=Row)


class RowsPanel(Panel[Result], Generic[Result, RowType]):
    """Rows that scroll, between a head and the line of keys, which stay.

    `changed` is called when the request may have changed.
    """

    DEFAULT_CSS = """
    RowsPanel.-under { background: transparent; }
    RowsPanel .head, RowsPanel .keys { height: auto; }
    RowsPanel .head { margin-bottom: 1; }
    RowsPanel .keys { margin-top: 1; }
    RowsPanel.-short .head, RowsPanel.-short .keys { margin: 0; }
    RowsPanel OptionList > .option-list--option-disabled { color: $text-muted; background: transparent; }
    """

    title_text: ClassVar[str] = ""
    highlights_first: ClassVar[bool] = True

    def __init__(self, session: ChatSession, changed: Callable[[], None]) -> None:
        super().__init__()
        self.session = session
        self.changed = changed
        self.expanded: frozenset[str] = frozenset()  # keys of unfolded rows
        self.rows: Sequence[RowType] = ()
        self._note = ""

    def compose(self) -> ComposeResult:
        """Head, rows, keys."""
        with Vertical(classes="panel") as panel:
            panel.border_title = self.title_text
            yield Static("looking …", classes="head", markup=False)
            yield OptionList(compact=True)
            yield KeyLine("keys")

    @on(events.Mount)
    def _focus_rows(self) -> None:
        self.query_one(OptionList).focus()

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

    def draw(self, head: Sequence[Content], rows: Sequence[RowType]) -> None:
        """Draw everything; the cursor stays on its row."""
        height = self.app.size.height
        top = self.query_one(".head", Static)
        top.display = bool(head)
        top.update(Content("\n").join(head))
        options, key = self.query_one(OptionList), self.chosen_key
        # Borders and keys; on a taller screen also the lines kept free above and below, and around the rows.
        options.styles.max_height = max(2, height - len(head) - (3 if height < SHORT else 8))
        self.rows = rows
        options.clear_options()
        options.add_options(Option(row.content, disabled=not row.key) for row in rows)
        keys = [row.key for row in rows]
        first = next((index for index, key in enumerate(keys) if key), None) if self.highlights_first else None
        options.highlighted = keys.index(key) if key and key in keys else first
        self.draw_keys()

    @property
    def chosen(self) -> RowType | None:
        """The highlighted row."""
        at = self.query_one(OptionList).highlighted
        return self.rows[at] if at is not None and at < len(self.rows) else None

    @property
    def chosen_key(self) -> str:
        """The key of the highlighted row, "" for none."""
        return self.chosen.key if self.chosen is not None else ""

    @property
    def chosen_item(self) -> tuple[str, str]:
        """The key of the highlighted row, "kind:name", in two parts."""
        kind, _, name = self.chosen_key.partition(":")
        return kind, name

    def draw_keys(self) -> None:
        """Draw the keys, or a note in their place."""
        width = self.inner_width
        note = Content.styled(clip(self._note, width), "$text-accent")
        self.query_one(KeyLine).update(note if self._note else key_line(self, [*self.hints(), CLOSE], width))

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
        self.draw_keys()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Update the keys."""
        event.stop()
        self.draw_keys()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter or a click on a row."""
        event.stop()
        self.action_choose()

    @abstractmethod
    def action_choose(self) -> None:
        """Act on the highlighted row."""

    def action_unfold(self, on: bool) -> None:
        """Unfold or fold the highlighted row."""
        if self.chosen is not None and self.chosen.foldable and (self.chosen_key in self.expanded) is not on:
            self.toggle_fold()

    def toggle_fold(self) -> None:
        """Unfold the highlighted row, or fold it."""
        self.expanded ^= {self.chosen_key}
        self.redraw()
