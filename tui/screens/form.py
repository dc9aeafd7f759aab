"""A form: a few fields to fill in, tested before it closes."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from tui.screens.base import CLOSE, Hint, Panel, clickable, set_title
from tui.text.cells import plain
from tui.views.view import Field, Form, RejectedError


class FormPanel(Panel[dict[str, str]]):
    """Dismissed with the values by field, once the form's `submit` has accepted them; None for Esc.

    `changed` is called with what was typed, as lines of text and without what may be secret.
    """

    max_width = 84

    DEFAULT_CSS = """
    FormPanel Static { height: auto; color: $text-muted; }
    FormPanel .label { color: $foreground; }
    FormPanel Input { background: $background; margin-bottom: 1; }
    FormPanel Input:focus { background: $panel; }
    FormPanel .outcome { min-height: 2; }
    FormPanel .outcome.wrong { color: $text-error; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", show=False, priority=True),
        # With priority, so that letters typed next go to the next field.
        Binding("tab,down", "app.focus_next", show=False, priority=True),
        Binding("shift+tab,up", "app.focus_previous", show=False, priority=True),
    ]

    def __init__(self, form: Form, changed: Callable[[str], None]) -> None:
        super().__init__()
        self.form = form
        self._changed = changed

    def compose(self) -> ComposeResult:
        """The fields, then the outcome."""
        several: list[Hint] = [("tab", "next", "app.focus_next")] if len(self.form.fields) > 1 else []
        with VerticalScroll(classes="panel") as panel:
            panel.can_focus = False
            set_title(panel, self.form.title)
            panel.border_subtitle = clickable(self, ("enter", self.form.action, "submit"), *several, CLOSE)
            if self.form.text:
                yield Static("\n".join(map(plain, self.form.text.split("\n"))), markup=False)
                yield Static("")
            for field in self.form.fields:
                yield Static(plain(field.label), classes="label", markup=False)
                yield self._input(field)
            if self.form.submit is not None:
                yield Static("", classes="outcome", markup=False)

    def _input(self, field: Field) -> Input:
        return Input(field.value, placeholder=field.hint, name=field.name, compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        """Focus the first field."""
        self.query(Input).first().focus(scroll_visible=False)  # a long form is read from its beginning

    def on_input_changed(self, event: Input.Changed) -> None:
        """Note what was typed."""
        event.stop()
        typed = {str(line.name): line.value.strip() for line in self.query(Input)}
        fields = [
            field for field in self.form.fields if not field.secret and typed[field.name] not in ("", field.value)
        ]
        self._changed("\n".join(f"{field.name}: {typed[field.name]}" for field in fields))

    def action_submit(self) -> None:
        """Enter, after the keys before it have reached their field."""
        (self.focused or self).call_later(self._check)

    def _check(self) -> None:
        """Go to a required field that is empty; else submit the form."""
        values = {str(line.name): line.value.strip() for line in self.query(Input)}
        empty = next((field.name for field in self.form.fields if field.required and not values[field.name]), None)
        if empty is not None:
            self._line(empty).focus()
        elif self.form.submit is None:
            self.dismiss(values)
        else:
            self._submit(values)

    def _line(self, name: str) -> Input:
        return next(line for line in self.query(Input) if line.name == name)

    @work(group="submit", exclusive=True, exit_on_error=False)
    async def _submit(self, values: dict[str, str]) -> None:
        assert self.form.submit is not None
        self._say(self.form.waiting)
        try:
            self._say(await self.form.submit(values))
        except RejectedError as error:
            self._say(str(error), wrong=True)
            for name in error.clear:
                self._line(name).value = ""
            return
        self.dismiss(values)

    def _say(self, text: str, *, wrong: bool = False) -> None:
        line = self.query_one(".outcome", Static)
        line.set_class(wrong, "wrong")
        line.update(Content(("✗ " if wrong else "") + plain(text)))
        line.scroll_visible(animate=False)
