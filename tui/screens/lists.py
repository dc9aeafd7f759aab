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
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option as ListOption
from textual.worker import WorkerError

from tui.commands.sessions import FORK, SessionMenu
from tui.screens.base import CLOSE, MAX_LINE, Hint, Panel, key_now, set_title
from tui.screens.question import FormPanel
from tui.text.cells import clip, pad, plain
from tui.text.clean import error_line
from tui.text.numbers import age
from tui.views.models import ModelMenu, about_model, model_options
from tui.views.view import Field, Form, Menu, Option

if TYPE_CHECKING:
    from tui.chat.model_list import Listing

log = logging.getLogger(__name__)

NO_MATCHES = "no matches"


class Picker(Panel[str]):
    """Shows the options of a menu; dismissed with the chosen key, or None."""

    max_width = 84

    DEFAULT_CSS = """
    Picker > .panel { height: 24; max-height: 90%; }
    Picker OptionList { height: 1fr; margin-top: 1; }
    Picker .empty { height: 1; color: $text-muted; display: none; margin-top: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("pageup", "move(-8)", show=False, priority=True),
        Binding("pagedown", "move(8)", show=False, priority=True),
        Binding("enter", "choose", show=False, priority=True),
    ]

    def __init__(self, menu: Menu) -> None:
        super().__init__()
        self.menu = menu
        self.heading = menu.title
        self.empty = menu.empty
        self.items: Sequence[Option] = ()
        self.held = []
        self.to_highlight = ""  # key of the item to highlight once it is listed
        self._shown: str | None = None  # the query of the shown items

    @property
    def chosen(self) -> Option | None:
        """The highlighted item."""
        at = self.query_one(OptionList).highlighted
        return self.items[at] if at is not None and at < len(self.items) else None

    def hints(self) -> Sequence[Hint]:
        """The keys on the panel's edge."""
        return (("enter", "choose", "choose"), CLOSE)

    def compose(self) -> ComposeResult:
        """Search field, list, or a line that says why there is no list."""
        with Vertical(classes="panel") as panel:
            set_title(panel, self.heading)
            self.set_keys(*self.hints())
            line = Input(placeholder=self.menu.placeholder, compact=True, select_on_focus=False)
            line.max_length = MAX_LINE
            yield line
            yield Static("loading …", classes="empty", markup=False)
            yield OptionList(compact=True)

    def on_mount(self) -> None:
        """Search for everything."""
        self.query_one(OptionList).can_focus = False
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

    def preview(self, key: str) -> None:
        """The cursor moved to this one."""
        if self.menu.preview is not None:
            self.menu.preview(key)

    @work(group="search", exclusive=True, exit_on_error=False)
    async def search(self, query: str) -> None:
        """Show what matches `query`."""
        try:
            self.items = await self.options(query)
        except Exception as error:
            log.exception("a list could not be loaded")
            self.items = ()
            self._say(error_line(error))
            self.listed()
            return
        self._say("" if self.items else NO_MATCHES if query else self.empty)
        at = self.query_one(OptionList).highlighted if query == self._shown else None  # reloaded: the cursor stays
        self._shown = query
        current = next((index for index, item in enumerate(self.items) if item.current and not query), 0)
        position = next((index for index, item in enumerate(self.items) if item.key == self.to_highlight), None)
        if position is not None:
            at, self.to_highlight = position, ""
        self._draw(current if at is None else at)
        self.listed()

    def on_resize(self, _event: events.Resize) -> None:
        """Lay out the list for the new width, once it is known."""
        self.call_after_refresh(lambda: self._draw(self.query_one(OptionList).highlighted or 0))

    def _draw(self, at: int) -> None:
        """Draw the items at the current width, with the cursor on one of them."""
        options = self.query_one(OptionList)
        options.clear_options()
        width, height = options.outer_size
        scroll_bar = 1 if len(self.items) > height else 0
        available = max(20, (width or self.app.size.width - 8) - scroll_bar)
        narrow = available < 60
        details = [(narrow and item.brief) or item.detail for item in self.items]
        side = max(map(cell_len, details), default=0)
        widest = max((cell_len(item.label) for item in self.items), default=0)
        label = min(widest, max(available // 2, available - side - 4))
        lines = [self._line(*pair, label, available) for pair in zip(self.items, details, strict=True)]
        options.add_options(map(ListOption, lines))
        options.highlighted = min(at, len(self.items) - 1) if self.items else None

    def _line(self, item: Option, detail: str, label: int, available: int) -> Content:
        return Content.assemble(
            ("● " if item.current else "  ", "$primary"),
            (pad(plain(item.label), label), "$foreground"),
            "  ",
            (clip(plain(detail), max(0, available - label - 4)), "$text-muted"),
        )

    def _say(self, text: str) -> None:
        line = self.query_one(".empty", Static)
        line.display = bool(text)
        line.update(plain(text))

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Preview the choice, if possible."""
        event.stop()
        if event.option_index < len(self.items):
            self.preview(self.items[event.option_index].key)

    async def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose by click."""
        event.stop()
        await self.choose()

    def action_move(self, step: int) -> None:
        """Move the list's cursor; the search field keeps the focus."""
        options = self.query_one(OptionList)
        if self.items:
            at = (options.highlighted or 0) + step
            options.highlighted = at % len(self.items) if abs(step) == 1 else min(max(at, 0), len(self.items) - 1)

    def action_choose(self) -> None:
        """Enter, after the keys before it have reached the search field."""
        self.query_one(Input).call_later(self.choose)

    async def choose(self) -> None:
        """Choose the highlighted item of the latest search."""
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

    def on_mount(self) -> None:
        """Show the last known list, and request the current one."""
        self.query_one(".panel", Vertical).mount(Static("", classes="about", markup=False))
        super().on_mount()
        self._ask()

    @work(group="models", exit_on_error=False)
    async def _ask(self) -> None:
        try:
            fresh = await self.models.ask()
        except Exception as error:
            log.exception("the models could not be listed")
            self._set_title("Models, as listed last")
            self.notify(error_line(error), severity="warning", markup=False)
            return
        self.listing = fresh
        options, query = self.query_one(OptionList), self.query_one(Input).value
        if options.highlighted is not None and options.highlighted < len(self.items):
            has_current = any(item.current for item in self.items)
            untouched = not has_current and not query and options.highlighted == 0  # the list was empty at first
            self.to_highlight = self.present if untouched else self.items[options.highlighted].key
        self.empty = self.menu.empty
        self._set_title(self.heading)
        self.search(query)
        if fresh.problems:
            self.notify("\n".join(plain(line) for line in fresh.problems), severity="warning", markup=False)

    def _set_title(self, text: str) -> None:
        set_title(self.query_one(".panel", Vertical), text)

    async def options(self, query: str) -> Sequence[Option]:
        """The models of the last known or the current list."""
        if self.listing is None:
            self.listing = await self.models.cached()
            old = self.listing.at
            when = f" as of {age(old, time.time())} ago" if old and time.time() - old > 60 else ""
            self._set_title(f"Models{when}; refreshing …")
            self.empty = "asking the servers …"
        options = model_options(self.listing.models, query, self.present)
        more = len(options) - MAX_SHOWN
        self.set_keys(*self.hints(), before=f"{more:,} more: type to search   " if more > 0 else "")
        return options[:MAX_SHOWN]

    def preview(self, key: str) -> None:
        """Details of the highlighted model, below the list."""
        model = next((m for m in self.listing.models if m.full_name == key), None) if self.listing else None
        if model is not None:
            when = age(model.used_at, time.time()) if model.used_at else ""
            used = f"used {'just now' if when == 'now' else f'{when} ago'}" if when else ""
            self.query_one(".about", Static).update(plain(about_model(model.info, model.able, used)))
