"""A tool call that asks: what it would do, and a person's decision."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui.screens.base import SHORT, Hint, LongText, clickable, key_now, set_title
from tui.screens.question import AnswerPanel
from tui.text.cells import plain
from tui.views.call_text import readable_arguments, said_of_itself

if TYPE_CHECKING:
    from tui.chat.conversation.events import ApprovalAsked
    from tui.tools.approval import Decision

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
            if self.asked.origin != "built-in":
                about = said_of_itself(f"MCP server {self.asked.origin}", self.asked.description, 240)
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
        self.watch(self.query_one(LongText), "read", self._say_keys, init=False)

    def on_resize(self, _event: events.Resize) -> None:
        """The arguments get the remaining height; they scroll if that is not enough."""
        others = len(self.answers) + (6 if self.app.size.height < SHORT else 14)
        self.query_one(LongText).styles.max_height = max(2, self.app.size.height - others)
        self.call_after_refresh(self._say_keys)

    def _say_keys(self) -> None:
        self.query_one(".panel").border_subtitle = f"{self.query_one(LongText).hint}{clickable(self, STOP)}"

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
