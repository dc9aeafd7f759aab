"""Questions with a few answers below a text; among them the one before a tool call runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Generic

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui.messages import BUILT_IN
from tui.screens.base import QUIET, SHORT, Hint, LongText, Panel, Result, clickable, key_now, set_title
from tui.text.cells import pad, plain
from tui.views.call_text import both_ends, description_line, readable_arguments
from tui.views.view import Option as Answer
from tui.views.view import Question

if TYPE_CHECKING:
    from tui.chat.conversation.events import ApprovalAsked
    from tui.tools.approval import Decision


class AnswerPanel(Panel[Result], Generic[Result]):
    """A text above answers, which stay visible while it scrolls (page up, page down).

    The panel may come while a person writes: `typed` gets what was meant for the prompt.
    """

    DEFAULT_CSS = """
    AnswerPanel Static { height: auto; }
    AnswerPanel LongText { height: auto; scrollbar-size-vertical: 1; }
    AnswerPanel OptionList { margin-top: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "scroll(-1)", show=False, priority=True),
        Binding("pagedown", "scroll(1)", show=False, priority=True),
    ]

    def __init__(self, typed: Callable[[str], object] | None, clock: Callable[[], float]) -> None:
        super().__init__()
        self._typed = typed
        self._clock = clock
        self._last_key = float("-inf")  # that was meant for the prompt

    @property
    def ready(self) -> bool:
        """Whether a key is an answer by now, rather than typed ahead."""
        return self._clock() - self._last_key >= QUIET

    def to_prompt(self, event: events.Key) -> None:
        """A key that was meant for the prompt."""
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


class QuestionPanel(AnswerPanel[str]):
    """Dismissed with an answer's key, or None for Esc."""

    max_width = 84

    DEFAULT_CSS = """
    QuestionPanel LongText { max-height: 60vh; }
    QuestionPanel.-short LongText { max-height: 40vh; }
    QuestionPanel Static { color: $foreground; }
    """

    def __init__(
        self,
        question: Question,
        typed: Callable[[str], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(typed, clock)
        self.question = question

    def compose(self) -> ComposeResult:
        """The text, then the answers."""
        with Vertical(classes="panel") as panel:
            set_title(panel, self.question.title)
            with LongText():
                yield Static(both_ends([("", plain(line)) for line in self.question.text.split("\n")]), markup=False)
            yield OptionList(*(Option(self._line(item)) for item in self.question.answers), compact=True)

    def on_mount(self) -> None:
        """Highlight the first answer."""
        options = self.query_one(OptionList)
        options.focus()
        options.highlighted = 0
        self.watch(self.query_one(LongText), "read", self._show_keys)

    def _show_keys(self) -> None:
        keys = clickable(self, ("enter", "choose", "choose"), ("esc", "cancel", "close"))
        hint = self.query_one(LongText).hint if self.question.must_read else ""
        self.query_one(".panel").border_subtitle = Content.assemble(hint, keys)

    def on_key(self, event: events.Key) -> None:
        """What the person is writing goes on in the prompt, and its Enter answers nothing."""
        if self._typed is None:
            return
        if event.is_printable:
            self.to_prompt(event)
        elif event.key != "enter" or self.ready:
            return
        event.stop()
        event.prevent_default()

    def _line(self, item: Answer) -> Content:
        label = plain(item.label)
        if self.app.size.width >= 80:  # otherwise most descriptions wrap to a second line
            label = pad(label, max(cell_len(one.label) for one in self.question.answers))
        return Content.assemble((label, "$foreground"), (f"  {plain(item.detail)}", "$text-muted"))

    def action_choose(self) -> None:
        """Choose the highlighted answer, by a click on the key."""
        self.query_one(OptionList).action_select()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """An answer was chosen. What agrees to the text counts only once its end was on screen."""
        event.stop()
        key = self.question.answers[event.option_index].key
        if key in self.question.must_read and not self.query_one(LongText).read:
            self.app.bell()
        else:
            self.dismiss(key)


STOP: Hint = ("esc", "stop the answer", "close")


class ApprovalPanel(AnswerPanel["Decision"]):
    """Dismissed with a decision, or None for Esc."""

    max_width = 90

    DEFAULT_CSS = """
    ApprovalPanel .about { color: $text-muted; }
    ApprovalPanel .why { color: $text-warning; margin-top: 1; }
    ApprovalPanel LongText { margin-top: 1; }
    ApprovalPanel.-short .why, ApprovalPanel.-short LongText, ApprovalPanel.-short OptionList { margin-top: 0; }
    ApprovalPanel.-short .about { max-height: 2; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "decide('once')", "run it once", id="approval.once"),
        Binding("s", "decide('session')", "for this conversation", id="approval.session"),
        Binding("a", "decide('always')", "always", id="approval.always"),
        Binding("n", "decide('no')", "not this time", id="approval.no"),
        Binding("d", "decide('never')", "never", id="approval.never"),
    ]

    def __init__(self, asked: ApprovalAsked, typed: Callable[[str], None], clock: Callable[[], float] = time.monotonic):
        super().__init__(typed, clock)
        self.asked = asked
        self._last_key = clock()
        self.answers: list[tuple[Decision, str, str]] = [("once", "y", "run it, once")]
        if not asked.why:  # a call with a special reason asks each time
            self.answers += [("session", "s", "run it, in this conversation")]
            self.answers += [("always", "a", "run it, everywhere")]
        self.answers += [("no", "n", "not this time")]
        if not asked.why:
            self.answers += [("never", "d", "never")]

    def compose(self) -> ComposeResult:
        """What asks, with what; then the answers."""
        call = self.asked.call
        with Vertical(classes="panel") as panel:
            set_title(panel, f"Run {call.name}?")
            panel.border_subtitle = clickable(self, STOP)
            if self.asked.origin != BUILT_IN:
                about = description_line(f"MCP server {self.asked.origin}", self.asked.description, 240)
                yield Static(plain(about), classes="about", markup=False)
            if self.asked.why:
                yield Static(plain(self.asked.why), classes="why", markup=False)
            with LongText():
                yield Static(readable_arguments(self.asked.arguments), markup=False)
            yield OptionList(*(Option(self._line(*answer)) for answer in self.answers), compact=True)

    def on_mount(self) -> None:
        """No answer is highlighted."""
        options = self.query_one(OptionList)
        options.focus()
        options.highlighted = None
        self.watch(self.query_one(LongText), "read", self._show_keys, init=False)

    def on_resize(self, _event: events.Resize) -> None:
        """The arguments get the remaining height; they scroll if that is not enough."""
        others = len(self.answers) + (6 if self.app.size.height < SHORT else 14)
        self.query_one(LongText).styles.max_height = max(2, self.app.size.height - others)
        self.call_after_refresh(self._show_keys)

    def _show_keys(self) -> None:
        hint = self.query_one(LongText).hint
        self.query_one(".panel").border_subtitle = Content.assemble(hint, clickable(self, STOP))

    def _line(self, decision: str, key: str, words: str) -> Content:
        key = key_now(self, key, f"decide('{decision}')")
        return Content.assemble((f"{key}  ", "$primary"), (words, "$foreground"))

    def on_key(self, event: events.Key) -> None:
        """Keys typed without a pause belong to the prompt; Esc and ctrl+c always work."""
        if self.ready or event.key in ("escape", "ctrl+c"):
            return
        self.to_prompt(event)
        event.stop()
        event.prevent_default()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """An answer was clicked or entered."""
        event.stop()
        self.action_decide(self.answers[event.option_index][0])

    def action_decide(self, decision: Decision) -> None:
        """Answer with this decision, if offered."""
        if not self.ready or all(decision != answer for answer, _, _ in self.answers):
            return
        if self.query_one(LongText).read or decision in ("no", "never"):
            self.dismiss(decision)
        else:
            self.app.bell()
