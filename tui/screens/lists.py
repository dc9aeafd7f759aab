"""Menus with a search field, and those of conversations and models."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, Static
from textual.worker import WorkerError

from tui.commands.sessions import FORK, SessionMenu
from tui.screens.base import CLOSE, MAX_LINE, NARROW, Hint, key_now
from tui.screens.question import FormPanel
from tui.screens.rows import ListPanel
from tui.text.cells import clip, pad, plain
from tui.text.clean import error_line
from tui.text.numbers import age
from tui.views.models import ModelMenu, about_model, model_options
from tui.views.view import Field, Form, Menu, Option
from tui.widgets.fields import LineField

if TYPE_CHECKING:
    from tui.chat.model_list import Listing

log = logging.getLogger(__name__)

NO_MATCHES = "no matches"


class Picker(ListPanel[str, Option]):
    """Shows the options of a menu; dismissed with the chosen key, or None. The search field keeps the focus."""

    max_width = 84

    DEFAULT_CSS = """
    Picker > .panel { height: 24; max-height: 90%; }
    Picker RowList { height: 1fr; margin-top: 1; }
    Picker .empty { height: 1; color: $text-muted; display: none; margin-top: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("pageup", "page(-1)", show=False, priority=True),
        Binding("pagedown", "page(1)", show=False, priority=True),
        Binding("enter", "choose", show=False, priority=True),
    ]

    def __init__(self, menu: Menu) -> None:
        super().__init__()
        self.menu = menu
        self.heading = menu.title
        self.empty = menu.empty
        self.to_highlight = ""  # key of the option to highlight once it is listed
        self._shown: str | None = None  # the query of the shown options
        self._widths: tuple[int, ...] = (0, 0, 0)  # cells of the longest label, detail, and detail of a narrow screen

    def hints(self) -> Sequence[Hint]:
        """The keys on the panel's edge."""
        return (("enter", "choose", "choose"), CLOSE)

    def body(self) -> ComposeResult:
        """Search field, list, or a line that says why there is no list."""
        self.set_keys(*self.hints())
        line = LineField(placeholder=self.menu.placeholder, compact=True, select_on_focus=False)
        line.max_length = MAX_LINE
        yield line
        yield Static("loading …", classes="empty", markup=False)
        yield self.row_list

    def on_mount(self) -> None:
        """Search for everything."""
        self.query_one(Input).focus()
        self._say("loading …")
        self.search("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search again."""
        event.stop()
        self.search(event.value)

    async def options(self, query: str) -> Sequence[Option]:
        """The matches for `query`, best first."""
        return await self.menu.source(query)

    def moved(self) -> None:
        """Preview the option, if possible."""
        if self.menu.preview is not None and self.chosen is not None:
            self.menu.preview(self.chosen.key)

    @work(group="search", exclusive=True, exit_on_error=False)
    async def search(self, query: str) -> None:
        """Show what matches `query`."""
        try:
            options = await self.options(query)
        except Exception as error:
            log.exception("a list could not be loaded")
            self._say(error_line(error))
            self.show_rows((), None)
            return
        self._say("" if options else NO_MATCHES if query else self.empty)
        at = self.cursor if query == self._shown else None  # reloaded: the cursor stays
        self._shown = query
        if at is None:
            at = next((index for index, option in enumerate(options) if option.current and not query), 0)
        position = next((index for index, option in enumerate(options) if option.key == self.to_highlight), None)
        if position is not None:
            at, self.to_highlight = position, ""
        texts = ((option.label, option.detail, option.brief or option.detail) for option in options)
        self._widths = tuple(max(map(cell_len, column)) for column in zip(*texts, strict=True)) or (0, 0, 0)
        self.show_rows(options, min(at, len(options) - 1) if options else None)

    def content(self, row: Option, width: int) -> Content:
        """A line of an option: its label as wide as in the others, then its detail."""
        widest, *sides = self._widths
        narrow = width < NARROW
        label, detail = min(widest, max(width // 2, width - sides[narrow] - 4)), (narrow and row.brief) or row.detail
        return Content.assemble(
            ("● " if row.current else "  ", "$primary"),
            (pad(plain(row.label), label), "$foreground"),
            "  ",
            (clip(plain(detail), max(0, width - label - 4)), "$text-muted"),
        )

    def _say(self, text: str) -> None:
        line = self.query_one(".empty", Static)
        line.display = bool(text)
        line.update(plain(text))

    def action_choose(self) -> None:
        """Enter, after the keys before it have reached the search field."""
        self.query_one(Input).call_later(self.choose)

    async def choose(self) -> None:
        """Choose the highlighted option of the latest search."""
        query = self.query_one(Input).value
        if query != self._shown:
            with suppress(WorkerError):  # the next key starts a new search
                await self.search(query).wait()
        self.dismiss(self.chosen.key if self.chosen is not None else None)


class SessionPicker(Picker):
    """Dismissed with the id of the conversation to open, or None. Letters search, so its keys use control."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "rename", "Rename", id="sessions.rename", show=False, priority=True),
        Binding("ctrl+d", "delete", "Delete", id="sessions.delete", show=False, priority=True),
        Binding("ctrl+z", "undelete", "Restore", id="sessions.undo", show=False, priority=True),
    ]

    def __init__(self, menu: SessionMenu) -> None:
        super().__init__(menu)
        self.workspace = menu.workspace
        self.session = menu.session
        self._deleted: list[Option] = []

    def hints(self) -> Sequence[Hint]:
        """The keys for the highlighted conversation."""
        restore = [("^z", "restore", "undelete")] if self._deleted else []
        return [("enter", "open", "choose"), *restore, ("^r", "rename", "rename"), ("^d", "delete", "delete"), CLOSE]

    def action_rename(self) -> None:
        """Ask for another title."""
        if (chosen := self.chosen) is not None:
            title = "" if chosen.label == "(no title)" else chosen.label.removeprefix(FORK)
            form = Form("New title", "", (Field("title", "Title", title),), "rename", "")
            self.app.push_screen(FormPanel(form, lambda _text: None), partial(self._rename, chosen.key))

    async def _rename(self, session_id: str, values: Mapping[str, str] | None) -> None:
        title = " ".join(values["title"].split()) if values else ""
        if title and session_id == self.session.id:
            await self.session.conversation.update(title=title)
        elif title:
            await asyncio.to_thread(partial(self.workspace.store.update_session, session_id, title=title))
        self.search(self.query_one(Input).value)

    async def action_delete(self) -> None:
        """Delete the conversation from the list; it can be restored."""
        chosen = self.chosen
        if chosen is None:
            return
        if chosen.key == self.session.id:
            self.app.notify("This conversation is open: /delete deletes it.", severity="warning", markup=False)
            return
        await self.workspace.delete_session(chosen.key)
        self._deleted.append(chosen)
        restore = key_now(self, "ctrl+z", "undelete")
        self.app.notify(f"{chosen.label!r} is deleted. {restore} restores it.", timeout=8, markup=False)
        self.set_keys(*self.hints())
        self.search(self.query_one(Input).value)

    async def action_undelete(self) -> None:
        """Restore the conversation deleted last."""
        if self._deleted:
            self.to_highlight = self._deleted.pop().key
            await self.workspace.restore_session(self.to_highlight)
            self.set_keys(*self.hints())
            self.search(self.query_one(Input).value)


MAX_SHOWN = 60
"""Lines of the list: OpenRouter alone has hundreds, and each takes time at every key."""


class ModelPicker(Picker):
    """Models with window and price, last used first; below them details of the highlighted one."""

    max_width = 100

    DEFAULT_CSS = """
    ModelPicker .about { height: 2; color: $text-muted; margin-top: 1; }
    """

    def __init__(self, menu: ModelMenu) -> None:
        super().__init__(menu)
        self.models = menu.models
        self.present = menu.present
        self.listing: Listing | None = None

    def body(self) -> ComposeResult:
        """The list, and below it the details."""
        yield from super().body()
        yield Static("", classes="about", markup=False)

    def on_mount(self) -> None:
        """Show the last known list, and request the current one."""
        super().on_mount()
        self._ask()

    @work(group="models", exit_on_error=False)
    async def _ask(self) -> None:
        try:
            fresh = await self.models.ask()
        except Exception as error:
            log.exception("the models could not be listed")
            self.set_title("Models, as listed last")
            self.notify(error_line(error), severity="warning", markup=False)
            return
        self.listing = fresh
        query = self.query_one(Input).value
        if self.chosen is not None:
            has_current = any(option.current for option in self.rows)
            untouched = not has_current and not query and self.cursor == 0  # the list was empty at first
            self.to_highlight = self.present if untouched else self.chosen.key
        self.empty = self.menu.empty
        self.set_title(self.heading)
        self.search(query)
        if fresh.problems:
            self.notify("\n".join(plain(line) for line in fresh.problems), severity="warning", markup=False)

    async def options(self, query: str) -> Sequence[Option]:
        """The models of the last known or the current list."""
        if self.listing is None:
            self.listing = await self.models.cached()
            old = self.listing.at
            when = f" as of {age(old, time.time())} ago" if old and time.time() - old > 60 else ""
            self.set_title(f"Models{when}; refreshing …")
            self.empty = "asking the servers …"
        options = model_options(self.listing.models, query, self.present)
        more = len(options) - MAX_SHOWN
        self.set_keys(*self.hints(), before=f"{more:,} more: type to search   " if more > 0 else "")
        return options[:MAX_SHOWN]

    def moved(self) -> None:
        """Details of the highlighted model, below the list."""
        key = self.chosen_key
        model = next((m for m in self.listing.models if m.full_name == key), None) if self.listing else None
        if model is not None:
            when = age(model.used_at, time.time()) if model.used_at else ""
            used = f"used {'just now' if when == 'now' else f'{when} ago'}" if when else ""
            self.query_one(".about", Static).update(plain(about_model(model.info, model.able, used)))
