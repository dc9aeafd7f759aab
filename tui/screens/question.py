"""Questions: a few answers below a text, also before a tool call runs; and forms, tested before they close."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option as ListOption

from tui.messages import BUILT_IN
from tui.screens.base import CLOSE, MAX_LINE, QUIET, SHORT, Hint, LongText, Panel, key_now
from tui.text.cells import pad, plain
from tui.views.call_text import both_ends, continued_by_words, description_line, readable_arguments
from tui.views.view import Form, Option, Question, RejectedError
from tui.widgets.fields import LineField

if TYPE_CHECKING:
    from tui.chat.conversation.events import ApprovalAsked


class QuestionPanel(Panel[str]):
    """A text above answers, which stay visible while it scrolls. Dismissed with an answer's key, or None for Esc.

    It may come while a person writes: `typed` gets what was meant for the prompt. `clock` is in seconds.
    """

    max_width = 84

    DEFAULT_CSS = """
    QuestionPanel Static { height: auto; color: $foreground; }
    QuestionPanel LongText { height: auto; max-height: 60vh; scrollbar-size-vertical: 1; }
    QuestionPanel.-short LongText { max-height: 40vh; }
    QuestionPanel OptionList { margin-top: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "scroll(-1)", show=False, priority=True),
        Binding("pagedown", "scroll(1)", show=False, priority=True),
    ]

    keys: ClassVar[tuple[Hint, ...]] = (("enter", "choose", "choose"), ("esc", "cancel", "close"))
    first: ClassVar[int | None] = 0
    """The answer that is highlighted at first."""

    def __init__(
        self,
        question: Question,
        typed: Callable[[str], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self.question = question
        self.heading = question.title
        self._typed = typed
        self._clock = clock
        self._last_key = float("-inf")  # that was meant for the prompt

    def body(self) -> ComposeResult:
        """The text, then the answers."""
        yield from self.notes()
        with LongText():
            yield Static(self.text(), markup=False)
        yield OptionList(*(ListOption(self.answer_line(answer)) for answer in self.question.answers), compact=True)

    def notes(self) -> Iterable[Widget]:
        """Widgets above the text, which do not scroll."""
        return ()

    def text(self) -> Content:
        """The text; of a very long one its ends. Where agreeing requires reading it, wrapped lines are marked."""
        width = self.list_width if self.question.must_read else sys.maxsize
        lines = [("", plain(line)) for line in self.question.text.split("\n")]
        return both_ends(lines, lambda _, line: continued_by_words(width, line))

    def answer_line(self, answer: Option) -> Content:
        """One answer."""
        label = plain(answer.label)
        if self.app.size.width >= 80:  # otherwise most descriptions wrap to a second line
            label = pad(label, max(cell_len(one.label) for one in self.question.answers))
        return Content.assemble((label, "$foreground"), (f"  {plain(answer.detail)}", "$text-muted"))

    def on_mount(self) -> None:
        """Focus the answers."""
        options = self.query_one(OptionList)
        options.focus()
        options.highlighted = self.first
        self.watch(self.query_one(LongText), "read", self.show_keys)

    @on(events.Resize)
    def _fit(self) -> None:
        self.query_one("LongText Static", Static).update(self.text())
        options = self.query_one(OptionList)
        for index, answer in enumerate(self.question.answers):
            options.replace_option_prompt_at_index(index, self.answer_line(answer))

    def show_keys(self) -> None:
        """Show the keys on the edge."""
        hint = self.query_one(LongText).hint if self.question.must_read else ""
        self.set_keys(*self.keys, before=hint)

    @property
    def ready(self) -> bool:
        """Whether a key is an answer by now, rather than typed ahead."""
        return self._clock() - self._last_key >= QUIET

    def is_for_prompt(self, event: events.Key) -> bool:
        """Whether a key goes on in what the person is writing. Its Enter answers nothing."""
        return self._typed is not None and (event.is_printable or (event.key == "enter" and not self.ready))

    def on_key(self, event: events.Key) -> None:
        """Pass a key that was meant for the prompt to it."""
        if not self.is_for_prompt(event):
            return
        event.stop()
        event.prevent_default()
        self._last_key = self._clock()
        if self._typed is not None and event.is_printable and event.character:
            self._typed(event.character)

    def on_paste(self, event: events.Paste) -> None:
        """A paste is never an answer."""
        if self._typed is not None:
            event.stop()
            self._typed(event.text)

    def action_scroll(self, pages: int) -> None:
        """Scroll the text."""
        self.query_one(LongText).page(pages)

    def action_choose(self) -> None:
        """Choose the highlighted answer, by a click on the key."""
        self.query_one(OptionList).action_select()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """An answer was chosen."""
        event.stop()
        self.action_answer(self.question.answers[event.option_index].key)

    def action_answer(self, key: str) -> None:
        """Answer, if `key` is offered. What agrees to the text counts only once its end was on screen."""
        if not self.ready or all(key != answer.key for answer in self.question.answers):
            return
        if key in self.question.must_read and not self.query_one(LongText).read:
            self.app.bell()
        else:
            self.dismiss(key)


DECISIONS = (
    Option("once", "run it, once", name="y"),
    Option("session", "run it, in this conversation", name="s"),
    Option("always", "run it, everywhere", name="a"),
    Option("no", "not this time", name="n"),
    Option("never", "never", name="d"),
)


class ApprovalPanel(QuestionPanel):
    """The question before a tool call runs. Dismissed with a decision, or None for Esc."""

    max_width = 90

    DEFAULT_CSS = """
    ApprovalPanel .about { color: $text-muted; }
    ApprovalPanel .why { color: $text-warning; margin-top: 1; }
    ApprovalPanel LongText { margin-top: 1; }
    ApprovalPanel.-short .why, ApprovalPanel.-short LongText, ApprovalPanel.-short OptionList { margin-top: 0; }
    ApprovalPanel.-short .about { max-height: 2; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer('once')", "run it once", id="approval.once"),
        Binding("s", "answer('session')", "for this conversation", id="approval.session"),
        Binding("a", "answer('always')", "always", id="approval.always"),
        Binding("n", "answer('no')", "not this time", id="approval.no"),
        Binding("d", "answer('never')", "never", id="approval.never"),
    ]

    keys = (("esc", "stop the answer", "close"),)
    first = None

    def __init__(self, asked: ApprovalAsked, typed: Callable[[str], None], clock: Callable[[], float] = time.monotonic):
        # A call with a special reason asks each time.
        answers = [answer for answer in DECISIONS if not asked.why or answer.key in ("once", "no")]
        question = Question(f"Run {asked.call.name}?", "", answers, must_read=("once", "session", "always"))
        super().__init__(question, typed, clock)
        self.asked = asked
        self._last_key = clock()

    def notes(self) -> Iterable[Widget]:
        """The server's description of the tool, and the special reason."""
        if self.asked.origin != BUILT_IN:
            about = description_line(f"MCP server {self.asked.origin}", self.asked.description, 240)
            yield Static(plain(about), classes="about", markup=False)
        if self.asked.why:
            yield Static(plain(self.asked.why), classes="why", markup=False)

    def text(self) -> Content:
        """The arguments."""
        return readable_arguments(self.asked.arguments, self.list_width)

    def answer_line(self, answer: Option) -> Content:
        """One answer after its letter."""
        letter = key_now(self, answer.name, f"answer('{answer.key}')")
        return Content.assemble((f"{letter}  ", "$primary"), (answer.label, "$foreground"))

    def on_resize(self, _event: events.Resize) -> None:
        """The arguments get the remaining height; they scroll if that is not enough."""
        others = len(self.question.answers) + (6 if self.app.size.height < SHORT else 14)
        self.query_one(LongText).styles.max_height = max(2, self.app.size.height - others)
        self.call_after_refresh(self.show_keys)

    def is_for_prompt(self, event: events.Key) -> bool:
        """Keys typed without a pause belong to the prompt; Esc and ctrl+c always work."""
        return not self.ready and event.key not in ("escape", "ctrl+c")


class FormFrame(VerticalScroll, can_focus=False):
    """A form may be higher than the screen."""


class FormPanel(Panel[dict[str, str]]):
    """Dismissed with the values by field, once the form's `submit` has accepted them; None for Esc.

    `changed` is called with what was typed, as lines of text and without what may be secret.
    """

    frame = FormFrame
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
        self.heading = form.title
        self._changed = changed

    def body(self) -> ComposeResult:
        """The fields, then the outcome."""
        several: list[Hint] = [("tab", "next", "app.focus_next")] if len(self.form.fields) > 1 else []
        self.set_keys(("enter", self.form.action, "submit"), *several, CLOSE)
        if self.form.text:
            yield Static("\n".join(map(plain, self.form.text.split("\n"))), markup=False)
            yield Static("")
        for field in self.form.fields:
            yield Static(plain(field.label), classes="label", markup=False)
            line = LineField(field.value, placeholder=field.hint, name=field.name, compact=True, select_on_focus=False)
            line.max_length = MAX_LINE
            yield line
        if self.form.submit is not None:
            yield Static("", classes="outcome", markup=False)

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
