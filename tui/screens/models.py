"""The list of models: the last known one at once, then the servers' current ones."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import work
from textual.containers import Vertical
from textual.widgets import Input, OptionList, Static

from tui.screens.base import CLOSE, clickable, set_title
from tui.screens.lists import Picker
from tui.text.cells import plain
from tui.text.clean import error_line
from tui.text.numbers import age
from tui.views.models import ModelMenu, about_model, model_options
from tui.views.view import Option

if TYPE_CHECKING:
    from tui.chat.model_list import Listing


log = logging.getLogger(__name__)

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
            self._set_title("Models as they were listed last")
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
            self._set_title(f"Models{when}; asking …")
            self.empty = "asking the servers …"
        options = model_options(self.listing.models, query, self.present)
        more = len(options) - MAX_SHOWN
        self.query_one(".panel", Vertical).border_subtitle = (
            f"{more:,} more: type to search" if more > 0 else clickable(self, ("enter", "choose", "choose"), CLOSE)
        )
        return options[:MAX_SHOWN]

    def preview(self, key: str) -> None:
        """Details of the highlighted model, below the list."""
        model = next((m for m in self.listing.models if m.full_name == key), None) if self.listing else None
        if model is not None:
            when = age(model.used_at, time.time()) if model.used_at else ""
            used = f"used {'just now' if when == 'now' else f'{when} ago'}" if when else ""
            self.query_one(".about", Static).update(plain(about_model(model.info, model.able, used)))
