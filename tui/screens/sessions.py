"""The list of conversations: open, rename, delete and restore them."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList

from tui.screens.base import BACK, CLOSE, clickable, set_title
from tui.screens.picker import Picker
from tui.views.conversations import FORK, SessionMenu
from tui.views.view import Option


class SessionPicker(Picker):
    """Dismissed with the id of the conversation to open, or None. Letters search, so its keys use control."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "rename", "Rename", id="sessions.rename", show=False, priority=True),
        Binding("ctrl+d", "delete", "Delete", id="sessions.delete", show=False, priority=True),
        Binding("ctrl+z", "undelete", "Bring back", id="sessions.undo", show=False, priority=True),
    ]

    def __init__(self, menu: SessionMenu) -> None:
        super().__init__(menu)
        self.workspace = menu.workspace
        self.session = menu.session
        self._deleted: list[Option] = []
        self._naming: Option | None = None
        self._query = ""

    def on_mount(self) -> None:
        """Show the keys (after the base class's own handler, which is called too)."""
        self._show_keys()

    def on_resize(self, _event: events.Resize) -> None:
        """The line of keys depends on the width."""
        self._show_keys()

    def _show_keys(self) -> None:
        panel = self.query_one(".panel")
        if self._naming is not None:
            panel.border_title = "New title"
            panel.border_subtitle = clickable(self, ("enter", "rename", "choose"), BACK)
            return
        set_title(panel, self.heading)
        keys = [("enter", "open", "choose"), ("^r", "rename", "rename"), ("^d", "delete", "delete")]
        keys += [("^z", "bring back", "undelete")] if self._deleted else []
        narrow = self.app.size.width < 60
        panel.border_subtitle = clickable(self, *keys, *(() if narrow else (CLOSE,)))

    @property
    def chosen(self) -> Option | None:
        """The highlighted conversation."""
        at = self.query_one(OptionList).highlighted
        return self.items[at] if at is not None and at < len(self.items) else None

    @property
    def searching(self) -> bool:
        """Not while renaming."""
        return self._naming is None

    def action_move(self, step: int) -> None:
        """Move, unless a title is being edited."""
        if self._naming is None:
            super().action_move(step)

    def action_rename(self) -> None:
        """Edit the title in the search field."""
        line = self.query_one(Input)
        if self._naming is None and (chosen := self.chosen) is not None:
            self._naming, self._query = chosen, line.value
            line.value = "" if chosen.label == "(no title)" else chosen.label.removeprefix(FORK)
            line.cursor_position = len(line.value)
            self._show_keys()

    async def choose(self) -> None:
        """Open the conversation, or apply the edited title."""
        if self._naming is None:
            await super().choose()
            return
        item, title = self._naming, " ".join(self.query_one(Input).value.split())
        if title:
            await self._rename(item.key, title)
        self._end_naming()

    async def _rename(self, session_id: str, title: str) -> None:
        if session_id == self.session.id:
            await self.session.rename(title)
        else:
            await self.workspace.rename_session(session_id, title)

    def action_close(self) -> None:
        """Stop renaming, or close."""
        if self._naming is None:
            super().action_close()
        else:
            self._end_naming()

    def _end_naming(self) -> None:
        self._naming = None
        line = self.query_one(Input)
        with self.prevent(Input.Changed):
            line.value = self._query
        self._show_keys()
        self.search(self._query)

    async def action_delete(self) -> None:
        """Delete the conversation from the list; it can be restored."""
        chosen = self.chosen
        if self._naming is not None or chosen is None:
            return
        if chosen.key == self.session.id:
            self.app.notify("This conversation is open: /delete deletes it.", severity="warning", markup=False)
            return
        await self.workspace.delete_session(chosen.key)
        self._deleted.append(chosen)
        self.app.notify(f"{chosen.label!r} is deleted. ctrl+z restores it.", timeout=8, markup=False)
        self._show_keys()
        self.search(self.query_one(Input).value)

    async def action_undelete(self) -> None:
        """Restore the conversation deleted last."""
        if self._naming is None and self._deleted:
            self.to_highlight = self._deleted.pop().key
            await self.workspace.restore_session(self.to_highlight)
            self._show_keys()
            self.search(self.query_one(Input).value)
