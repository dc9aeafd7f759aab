"""What a reader does in the transcript: fold, step from message to message, search, select, click."""

from __future__ import annotations

import asyncio

from textual.events import Click
from textual.message import Message as TextualMessage
from textual.selection import Selection

from tui.render.rows import Row
from tui.text.clean import clean_url
from tui.widgets.transcript.drawer import Job
from tui.widgets.transcript.paint import GUTTER
from tui.widgets.transcript.search import Hit, Search
from tui.widgets.transcript.select import cell_index, rows_selection, selected_text, word_at
from tui.widgets.transcript.view import Place, TranscriptView


class TranscriptReader(TranscriptView):
    """A `TranscriptView` one can work with."""

    _awaited: Hit | None = None  # found in a message that is still being drawn

    class LinkClicked(TextualMessage, namespace="transcript"):
        """A link in a message was clicked. Only http, https and mailto addresses get here."""

        def __init__(self, url: str) -> None:
            super().__init__()
            self.url = url

    class CursorMoved(TextualMessage, namespace="transcript"):
        """The block cursor stands on another message, or (None) on none."""

        def __init__(self, message_id: str | None) -> None:
            super().__init__()
            self.message_id = message_id

    # --- folds

    def toggle_fold(self, message_id: str | None = None, part: int | None = None) -> None:
        """Fold or unfold a part of a message, or all of it; without an id the cursor's message, else everything.

        What is on screen stays where it is.
        """
        document = self.document
        if message_id is not None:
            indexes = [document.index[message_id]] if message_id in document.index else []
        elif self._cursor is not None:
            indexes = [self._cursor]
        else:
            indexes = list(range(len(document.entries)))
        parts = {index: {part} if part is not None else document.foldable(index) for index in indexes}
        close = any(document.entries[index].open & parts[index] for index in indexes)
        place = self._top_place()
        for index in indexes:
            opened = document.entries[index].open
            document.fold(index, opened - parts[index] if close else opened | parts[index])
        if place is not None:
            self._show(place)

    def _top_place(self) -> Place | None:
        heights = self.document.heights
        if not len(heights):
            return None
        line = round(self.scroll_y)
        index = heights.find(line)
        return index, line - heights.top(index)

    # --- the block cursor

    @property
    def cursor_id(self) -> str | None:
        """The id of the message the block cursor stands on."""
        if self._cursor is None:
            return None
        message = self.document.entries[self._cursor].message
        return message.id if message else None

    @property
    def on_result(self) -> bool:
        """Whether the block cursor stands on what tools returned."""
        message = self.document.entries[self._cursor].message if self._cursor is not None else None
        return message is not None and message.role == "tool"

    @property
    def folds(self) -> bool:
        """Whether something of the message that the block cursor stands on can be folded."""
        return self._cursor is not None and bool(self.document.foldable(self._cursor))

    def move_cursor(self, step: int) -> str | None:
        """Move the block cursor down (1) or up (-1) a message, from nowhere to the last one; returns the id there."""
        entries = self.document.entries
        index = len(entries) if self._cursor is None else self._cursor
        index += step
        while 0 <= index < len(entries) and entries[index].message is None:
            index += step
        if self._cursor is None and step > 0:
            return None
        if index >= len(entries):
            self.clear_cursor()
            return None
        if index >= 0:
            self._cursor = index
            self._reveal(index)
            self.post_message(self.CursorMoved(self.cursor_id))
        return self.cursor_id

    def choose(self, message_id: str, *, unfold: bool = False) -> bool:
        """Put the block cursor on a message and show it, with `unfold` all of it. False where it is not here."""
        index = self.document.index.get(message_id)
        if index is None:
            return False
        if unfold:
            self.document.fold(index, self.document.foldable(index))
        self._cursor = index
        self._show((index, 0))
        self.focus()
        self.post_message(self.CursorMoved(message_id))
        return True

    def clear_cursor(self) -> None:
        """Take the block cursor away."""
        if self._cursor is not None:
            self._cursor = None
            self.post_message(self.CursorMoved(None))
            self.refresh()

    def _reveal(self, index: int) -> None:
        """Scroll so that entry `index` can be seen, its beginning above all."""
        document = self.document
        document.realise(index)
        top, bottom = document.heights.top(index), document.heights.top(index + 1)
        height = self.view_size.height
        line = round(self.scroll_y)
        if top < line or bottom - top > height:
            self._show((index, 0))
        elif bottom > line + height:
            first = document.heights.find(bottom - height)
            self._show((first, bottom - height - document.heights.top(first)))
        self.refresh()

    # --- search

    def find(self, text: str) -> int:
        """Search all messages without regard to case and mark the hits; returns their number. "" ends the search."""
        return self._found(Search(text, self.document.entries) if text else None)

    async def look_for(self, text: str) -> int:
        """`find` in a thread: ten thousand messages take 50 ms."""
        return self._found(await asyncio.to_thread(Search, text, list(self.document.entries)))

    def _found(self, search: Search | None) -> int:
        self._search = search
        self.refresh()
        return len(search.hits) if search else 0

    def find_next(self) -> tuple[int, int]:
        """Go to the next hit; returns its number (from 1) and how many there are, (0, 0) for none."""
        return self._find(forward=True)

    def find_previous(self) -> tuple[int, int]:
        """Go to the previous hit; returns its number (from 1) and how many there are, (0, 0) for none."""
        return self._find(forward=False)

    def _find(self, *, forward: bool) -> tuple[int, int]:
        place = self._top_place()
        search = self._search
        hit = search.step(forward, place[0]) if search and place else None
        if search is None or hit is None or search.current is None:
            return 0, 0
        self._show_hit(search, hit)
        return search.current + 1, len(search.hits)

    def _show_hit(self, search: Search, hit: Hit) -> None:
        """Bring a hit into view; once its message is drawn, where that is still to come."""
        document = self.document
        if hit.part in document.foldable(hit.entry):
            document.fold(hit.entry, document.entries[hit.entry].open | {hit.part})
        document.realise(hit.entry)
        spans = search.place(document.entries[hit.entry].rows or [])
        row = spans[0][0] if spans else 0
        line = document.heights.top(hit.entry) + row
        height = self.view_size.height
        top = round(self.scroll_y)
        if not top <= line < top + height:
            top = max(0, line - height // 3)
        index = document.heights.find(top)
        self._show((index, top - document.heights.top(index)))
        self._awaited = hit if document.job(hit.entry) is not None else None

    def _drawn(self, job: Job, rows: list[Row]) -> None:
        """A large message was drawn; perhaps the one with the hit that was asked for."""
        super()._drawn(job, rows)
        hit, self._awaited = self._awaited, None
        if hit is not None and self._search is not None and hit in self._search.hits:
            self._show_hit(self._search, hit)

    # --- selection and clicks

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, as it was written rather than as it was wrapped."""
        return selected_text(self.document, selection), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Show the selection."""
        del selection
        self.refresh()

    def on_click(self, event: Click) -> None:
        """Fold lines fold, links open, two clicks choose a word, three a message; the mark below leads to the end."""
        event.prevent_default()  # the base class would select the whole conversation on a double click
        if (
            self._unseen
            and not self._follow
            and event.y == self.view_size.height - 1
            and event.x >= self.view_size.width - 15
        ):
            self.scroll_end()
            return
        document = self.document
        line = round(self.scroll_y) + event.y
        index = document.heights.find(line)
        if index < 0 or line >= document.heights.total:
            return
        number = line - document.heights.top(index)
        rows = document.entries[index].rows or []
        if number >= len(rows):
            return
        row = rows[number]
        character = cell_index(row.text, event.x - GUTTER)
        if event.chain == 1 and row.fold:
            message = document.entries[index].message
            self.toggle_fold(message.id if message else None, row.part)
        elif event.chain == 1 and (url := clean_url(row.link_at(character))):
            self.post_message(self.LinkClicked(url))
        elif event.chain == 2:
            start, end = word_at(row.text, character)
            self.screen.selections = {self: rows_selection(index, (number, start), (number, end))}
        elif event.chain == 3:
            last = len(rows) - 1
            self.screen.selections = {self: rows_selection(index, (0, 0), (last, len(rows[last].text)))}
