"""A summary to read and edit: the preview of a compaction, or the current summary."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static, TextArea
from textual.worker import Worker

from tui.errors import ExpectedError
from tui.screens.base import Hint, KeyLine, Panel, key_line, key_now
from tui.screens.question import FormPanel
from tui.text.cells import plain
from tui.text.clean import clean_text, error_line
from tui.views.view import Field, Form
from tui.widgets.fields import TextField

if TYPE_CHECKING:
    from tui.chat.compaction.compactor import SummaryEffect, SummaryText

log = logging.getLogger(__name__)

PAUSE = 0.12
"""Seconds after the last key before the text is measured; longer if measuring takes longer."""

CONFIRM = "closes without your changes; any other key goes on."


class SummaryField(TextField):
    """The text of a summary. `pressed` is called with every key, also with those that go no further."""

    def __init__(self, pressed: Callable[[events.Key], None]) -> None:
        super().__init__(compact=True, highlight_cursor_line=False, tab_behavior="focus")
        self._pressed = pressed

    async def on_key(self, event: events.Key) -> None:
        """Tell of it; the base class handles it then."""
        self._pressed(event)


class SummaryPanel(Panel[bool]):
    """Dismissed with True once the text was accepted."""

    DEFAULT_CSS = """
    SummaryPanel > .panel { height: 90%; }
    SummaryPanel.-short > .panel { height: 100%; }
    SummaryPanel .summary-head, SummaryPanel .summary-note { height: auto; }
    SummaryPanel TextArea {
        height: 1fr; min-height: 3; padding: 0; margin: 1 0; background: $background; color: $foreground;
        scrollbar-size-vertical: 1;
    }
    SummaryPanel.-short TextArea { margin: 0; }
    SummaryPanel .text-area--cursor-line { background: transparent; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "accept", "Accept", id="summary.accept", show=False, priority=True),
        Binding("ctrl+r", "ask", "Ask again, with instructions", id="summary.again", show=False, priority=True),
    ]

    def __init__(self, subject: SummaryText) -> None:
        super().__init__()
        self.subject = subject
        self.heading = subject.title
        self.effect: SummaryEffect | None = None
        self._original = ""  # the text before any change
        self.abandoned = ""  # an edited text that was not accepted
        self._confirming = False  # whether the question is shown
        self._asking: Worker[None] | None = None  # while the model writes another one
        self._note = ""
        self._measure_seconds = 0.0  # that the last measurement took

    def body(self) -> ComposeResult:
        """Figures, text, keys."""
        yield Static("", classes="summary-head", markup=False)
        yield SummaryField(self.key_pressed)
        yield KeyLine("summary-note")

    def on_mount(self) -> None:
        """Show the beginning of the text."""
        self.area.load_text(clean_text(self.subject.text))
        self._original = self.area.text
        self.area.focus()
        self.redraw()
        self.measure()

    @property
    def area(self) -> TextArea:
        """The text area."""
        return self.query_one(TextArea)

    @property
    def edited(self) -> str:
        """The text if a person has changed it, else ""."""
        text = self.area.text if self.is_mounted else ""
        return "" if text == self._original else text

    # -- figures --------------------------------------------------------------------------------------------------

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Measure the current text, after a short pause."""
        event.stop()
        if self.edited:
            self._clear_note()
        self.measure()

    @work(group="measure", exclusive=True, exit_on_error=False)
    async def measure(self) -> None:
        """Measure the next request with this text, off the event loop."""
        await asyncio.sleep(max(PAUSE, 2 * self._measure_seconds) if self.effect is not None else 0)
        text, began = self.area.text, time.monotonic()
        self.effect = await self.subject.measure(text)
        if self.edited:
            await self._save_draft(text)
        self._measure_seconds = min(1.0, time.monotonic() - began)
        self.redraw()

    async def _save_draft(self, text: str) -> None:
        try:
            await self.subject.compactor.save_draft(text)
        except ExpectedError as error:
            self._note = f"Not saved against a crash yet: {error}"

    def on_resize(self) -> None:
        """Draw for this width."""
        self.redraw()

    def redraw(self) -> None:
        """Draw figures above the text, keys or a note below it."""
        effect = self.effect
        if effect is not None:
            self.query_one(".summary-head", Static).update(
                Content.assemble((self.subject.about(effect), "$foreground"), "\n", (effect.line, "$text-muted"))
            )
        note = self.query_one(".summary-note", Static)
        problem, close = effect.problem if effect is not None else "", key_now(self, "esc", "close")
        if self._asking is not None:
            note.update(Content.styled(f"● writing another summary · {close} stops", "$primary"))
        elif self._confirming or self._note or problem:
            confirm = f"{close.capitalize()} again {CONFIRM}"
            note.update(Content.styled(plain(confirm if self._confirming else self._note or problem), "$text-warning"))
        else:
            width = max(20, note.size.width or self.app.size.width - 6)
            note.update(key_line(self, self._keys(wide=width >= 56), width))

    def _keys(self, *, wide: bool) -> list[Hint]:
        ask = [("ctrl+r", "ask again" if wide else "again", "ask")] if self.subject.can_ask else []
        accept = self.subject.accept_label if wide else "ok"
        return [("ctrl+s", accept, "accept"), *ask, ("esc", "cancel" if wide else "back", "close")]

    def _say(self, text: str) -> None:
        self._note = text
        self.redraw()

    def _clear_note(self) -> None:
        """Dismiss the question or note."""
        if self._confirming or self._note:
            self._confirming, self._note = False, ""
            self.redraw()

    def key_pressed(self, event: events.Key) -> None:
        """Any key but the one that closes answers the question."""
        bound = self.active_bindings.get(event.key)
        if bound is None or bound.binding.action != "close":
            self._clear_note()

    # -- actions -----------------------------------------------------------------------------------------

    def action_accept(self) -> None:
        """Accept the text, after the keys before it have reached it."""
        self.area.call_later(self._accept)

    async def _accept(self) -> None:
        """Apply it; if that is not possible, show why and keep the text."""
        if self._asking is not None:
            return
        try:
            await self.subject.accept(self.area.text)
        except ExpectedError as error:
            self._say(error_line(error))
            return
        self.dismiss(True)

    def action_ask(self) -> None:
        """Let the model write another one, with instructions from a form."""
        if not self.subject.can_ask or self._asking is not None:
            return
        self._clear_note()
        field = Field("instructions", "Instructions for another summary")
        self.app.push_screen(FormPanel(Form("Ask again", "", (field,), "ask", ""), lambda _text: None), self._begin)

    def _begin(self, values: Mapping[str, str] | None) -> None:
        if values is not None:
            self._asking = self._ask(values["instructions"].strip())
            self.redraw()

    @work(group="ask", exit_on_error=False)
    async def _ask(self, instructions: str) -> None:
        edited = bool(self.edited)
        try:
            await self.subject.ask(instructions)
        except asyncio.CancelledError:
            self._note = "Cancelled: the summary is as it was."
            raise
        except Exception as error:
            log.exception("no other summary was written")
            self._note = error_line(error)
        else:
            area = self.area
            area.replace(clean_text(self.subject.text), area.document.start, area.document.end)
            area.move_cursor(area.document.start)
            self._original = area.text
            self._note = "This is the new summary. ctrl+z restores your text." if edited else ""
        finally:
            self._asking = None
            if self.is_attached:
                self.redraw()
        self.measure()

    def action_close(self) -> None:
        """Esc: stop the call, else leave; with changes only after a question."""
        if self._asking is not None:
            self._asking.cancel()
        elif self.edited and not self._confirming:
            self._confirming = True
            self.redraw()
        else:
            self.leave()

    def leave(self) -> None:
        """Close without accepting; changes are in `abandoned`."""
        self.abandoned = self.edited
        self.dismiss(False)
