"""The conversation on screen, with the keys and clicks to work with it: block cursor, folds, search, actions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.message import Message as TextualMessage

from tui.render.message import copy_text
from tui.render.rows import Row
from tui.text.clean import clean_url
from tui.widgets.transcript.entries import Drawing, Entry
from tui.widgets.transcript.search import Hit, Search
from tui.widgets.transcript.selection import character_at, entry_selection, word_selection
from tui.widgets.transcript.view import GUTTER, MORE_MARK, TranscriptView

Action: TypeAlias = Literal["copy", "copy_code", "retry", "edit", "fork", "pin", "exclude", "open"]


class Transcript(TranscriptView, can_focus=True):
    """A conversation in which messages can be chosen, folded, searched, copied, and acted on."""

    FOCUS_ON_CLICK = False  # a click unfolds or selects; letters typed next go to the prompt

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+up", "cursor(-1)", "Previous message", id="transcript.previous", show=False),
        Binding("alt+down", "cursor(1)", "Next message", id="transcript.next", show=False),
        Binding("escape", "leave", "Back to the prompt", id="transcript.leave", show=False),
        Binding("enter,space", "toggle_fold", "Unfold", id="transcript.fold", show=False),
        Binding("c", "request('copy')", "Copy", id="transcript.copy"),
        Binding("y", "request('copy_code')", "Copy code", id="transcript.copy_code"),
        Binding("r", "request('retry')", "Retry", id="transcript.retry"),
        Binding("e", "request('edit')", "Edit and resend", id="transcript.edit"),
        Binding("f", "request('fork')", "Fork", id="transcript.fork"),
        Binding("p", "request('pin')", "Pin", id="transcript.pin"),
        Binding("x", "request('exclude')", "Leave out", id="transcript.exclude"),
        Binding("o", "request('open')", "Open a tool's result", id="transcript.open"),
        Binding("n", "go_to_hit(True)", "Next hit", id="transcript.find_next", show=False),
        Binding("N", "go_to_hit(False)", "Previous hit", id="transcript.find_previous", show=False),
    ]

    @dataclass
    class ActionRequested(TextualMessage):
        """An action on a message is requested. `text` is the text to copy, for the two copy actions.

        `detail` names one of several code blocks, for a toast; "" for none.
        """

        message_id: str
        action: Action
        text: str = ""
        detail: str = ""

    @dataclass
    class LinkClicked(TextualMessage):
        """A link in a message was clicked. Only http, https and mailto addresses are passed on."""

        url: str

    @dataclass
    class CursorMoved(TextualMessage):
        """The block cursor moved to another message, or (None) was removed."""

        message_id: str | None

    def __init__(self) -> None:
        super().__init__()
        self._code_block = 0  # code block of the cursor's message that was copied last, counted from its end
        self._awaited: Hit | None = None  # hit in a message that is still being drawn

    # --- the block cursor and folds

    @property
    def cursor_entry(self) -> Entry | None:
        """The entry under the block cursor."""
        return self.document.entries[self._cursor] if self._cursor is not None else None

    @property
    def cursor_id(self) -> str | None:
        """The id of the message under the block cursor."""
        entry = self.cursor_entry
        return entry.message.id if entry and entry.message else None

    def choose(self, message_id: str, *, unfold: bool = False) -> bool:
        """Put the block cursor on a message and show it, unfolded with `unfold`. False if it is not here."""
        index = self.document.index.get(message_id)
        if index is None:
            return False
        if unfold:
            entry = self.document.entries[index]
            entry.open = entry.foldable
        self._cursor = index
        self._show((index, 0))
        self.focus()
        self.post_message(self.CursorMoved(message_id))
        return True

    def clear_cursor(self) -> None:
        """Remove the block cursor."""
        if self._cursor is not None:
            self._cursor = None
            self.post_message(self.CursorMoved(None))
            self.refresh()

    def action_cursor(self, step: int) -> None:
        """Move the block cursor down (1) or up (-1) a message; without a cursor to the last one."""
        self._code_block = 0
        index = self.document.next_message(self._cursor, step)
        if index is None:
            if step > 0:
                self.clear_cursor()
            return
        self._cursor = index
        self._reveal(index)
        self.post_message(self.CursorMoved(self.cursor_id))

    def _reveal(self, index: int) -> None:
        """Scroll entry `index` into view, its beginning first."""
        self.document.draw(index)
        heights, height, line = self.document.heights, self.view_size.height, round(self.scroll_y)
        top, bottom = heights.top(index), heights.top(index + 1)
        if top < line or bottom - top > height:
            self._show((index, 0))
        elif bottom > line + height:
            self._show(heights.place(bottom - height))
        self.refresh()

    def toggle_fold(self, message_id: str | None = None, part: int | None = None) -> None:
        """Fold or unfold a part of a message, or all of it; without an id the cursor's message, else everything.

        What is on screen stays in place.
        """
        document = self.document
        if message_id is not None:
            entries = [document.entries[document.index[message_id]]] if message_id in document.index else []
        else:
            entries = document.entries if self._cursor is None else [document.entries[self._cursor]]
        place = document.heights.place(round(self.scroll_y)) if len(document.heights) else None
        close = any(entry.open for entry in entries)
        for entry in entries:
            if part is not None:
                entry.open ^= {part}
            else:
                entry.open = frozenset() if close else entry.foldable
        if place is not None:
            self._show(place)

    def drop_reply(self, message_id: str) -> None:
        """Remove the reply without a trace, and the block cursor with it."""
        super().drop_reply(message_id)
        if self._cursor == len(self.document.entries):
            self.clear_cursor()

    # --- search

    async def search(self, text: str) -> int:
        """Search all messages, ignoring case, and mark the hits; returns their number.

        In a thread: ten thousand messages take 50 ms.
        """
        self._search = await asyncio.to_thread(Search, text, list(self.document.entries))
        self.refresh()
        return len(self._search.hits)

    def end_search(self) -> None:
        """Forget the hits."""
        self._search = None
        self.refresh()

    def go_to_hit(self, *, forward: bool) -> tuple[int, int]:
        """Go to the next or previous hit; returns its number (from 1) and how many there are, (0, 0) for none."""
        search, heights = self._search, self.document.heights
        hit = search.step(forward, heights.find(round(self.scroll_y))) if search and len(heights) else None
        if search is None or hit is None or search.current is None:
            return 0, 0
        self._show_hit(search, hit)
        return search.current + 1, len(search.hits)

    def _show_hit(self, search: Search, hit: Hit) -> None:
        """Scroll a hit into view, once its message is drawn."""
        document = self.document
        entry = document.entries[hit.entry]
        if hit.part in entry.foldable:
            entry.open |= {hit.part}
        document.draw(hit.entry)
        spans = search.place(entry.rows or [])
        line = document.heights.top(hit.entry) + (spans[0][0] if spans else 0)
        top, height = round(self.scroll_y), self.view_size.height
        if not top <= line < top + height:
            top = max(0, line - height // 3)
        self._show(document.heights.place(top))
        self._awaited = hit if entry.job is not None else None

    def _large_drawn(self, index: int, job: Drawing, rows: list[Row]) -> None:
        super()._large_drawn(index, job, rows)
        hit, self._awaited = self._awaited, None
        if hit is not None and self._search is not None and hit in self._search.hits:
            self._show_hit(self._search, hit)

    # --- clicks

    def on_click(self, event: Click) -> None:
        """A click toggles folds, opens links, selects a word (twice), a message (three times), or goes to the end."""
        event.prevent_default()  # the base class selects the whole conversation on a double click
        width, height = self.view_size
        if self._unseen and not self._follow and event.y == height - 1 and event.x >= width - len(MORE_MARK) - 2:
            self.scroll_end()
            return
        at = character_at(self.document, round(self.scroll_y) + event.y, event.x - GUTTER)
        if at is None:
            return
        if event.chain == 1 and at.row.fold:
            message = self.document.entries[at.entry].message
            self.toggle_fold(message.id if message else None, at.row.part)
        elif event.chain == 1 and (url := clean_url(at.row.link_at(at.character))):
            self.post_message(self.LinkClicked(url))
        elif event.chain == 2:
            self.screen.selections = {self: word_selection(at)}
        elif event.chain == 3:
            self.screen.selections = {self: entry_selection(self.document, at.entry)}

    # --- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Letters are keys only if they have something to act on; otherwise they go to the prompt."""
        match action:
            case "request":
                return self._cursor is not None
            case "go_to_hit":
                return self._search is not None
        return super().check_action(action, parameters)

    def action_leave(self) -> None:
        """Remove the block cursor; without one, leave the key to the screen."""
        if self.cursor_id is None:
            raise SkipAction
        self.clear_cursor()

    def action_toggle_fold(self) -> None:
        """Fold or unfold the cursor's message, or everything."""
        self.toggle_fold()

    def action_go_to_hit(self, forward: bool) -> None:
        """Go to the next or previous hit."""
        self.go_to_hit(forward=forward)

    async def action_request(self, action: Action) -> None:
        """Request an action on the cursor's message."""
        entry = self.cursor_entry
        if entry is None or (message := entry.message) is None:
            return
        text = detail = ""
        if action == "copy":
            text = copy_text(message)
        elif action == "copy_code":
            from tui.render.markdown import code_blocks  # not before the first frame

            if blocks := await asyncio.to_thread(code_blocks, message.text):  # longer than a frame for 20 KB
                self._code_block = self._code_block % len(blocks) + 1  # the last block first, then earlier ones
                text = blocks[-self._code_block].removesuffix("\n")  # a command pasted into a shell waits for enter
                detail = f"code block {len(blocks) - self._code_block + 1} of {len(blocks)}"
        self.post_message(self.ActionRequested(message.id, action, text, detail))
