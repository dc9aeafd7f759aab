"""The conversation on screen: messages, the reply that arrives, notices; keys to work with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from time import monotonic, time
from typing import ClassVar, Literal, TypeAlias

from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.message import Message as TextualMessage
from textual.timer import Timer

from tui.messages import Message
from tui.render.live import DeltaKind, LiveReply
from tui.render.markdown import code_blocks, warm_up
from tui.render.message import Count
from tui.render.message_words import copy_text
from tui.render.rows import Row
from tui.widgets.transcript.collector import spared
from tui.widgets.transcript.drawer import Job
from tui.widgets.transcript.entry import Level
from tui.widgets.transcript.reader import TranscriptReader

Place: TypeAlias = tuple[str, int]
"""A message's id and a row of it."""

Action: TypeAlias = Literal["copy", "copy_code", "retry", "edit", "fork", "pin", "exclude", "open"]

LEAST_GAP, MOST_GAP = 0.05, 0.5
"""Seconds between two drawings of a growing reply."""
GAP_FACTOR = 4.0
"""The pause is this many times what the last drawing cost, so drawing never takes more than a fifth of the time."""
MANY = 500
"""Messages from which on a conversation is kept out of garbage collection."""


class Transcript(TranscriptReader):
    """The one view of a conversation. Its own entries, rows and heights; no widget for a message.

    While the reader is scrolled up a running reply is taken in but not drawn.
    """

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
        Binding("n", "find_next", "Next hit", id="transcript.find_next", show=False),
        Binding("N", "find_previous", "Previous hit", id="transcript.find_previous", show=False),
    ]

    class ActionRequested(TextualMessage):
        """The reader wants something done with a message. `text` is what to copy, for the two kinds of copying.

        `detail` says which of several code blocks it is, for a toast; "" where there is nothing to say.
        """

        def __init__(self, message_id: str, action: Action, text: str = "", detail: str = "") -> None:
            super().__init__()
            self.message_id, self.action, self.text, self.detail = message_id, action, text, detail

    def __init__(self, name: str | None = None, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(name, id=id, classes=classes)
        self._live_index = -1
        self._timer: Timer | None = None
        self._cost = 0.0  # seconds the last drawing took
        self._code_block = 0
        self._warm = False

    # --- what is shown

    @property
    def _live(self) -> LiveReply | None:
        """The reply that arrives, None while none does. Drawn in a thread, another takes its place in the document."""
        return self.document.entries[self._live_index].live if self._live_index >= 0 else None

    def set_messages(self, messages: Sequence[Message], *, not_sent: Mapping[str, str] | None = None) -> None:
        """Show these messages instead of the present ones; the reader's place is kept where it is still there."""
        document = self.document
        place = self._place_of_reader()
        message = document.entries[place[0]].message if place else None
        with spared() if len(messages) >= MANY else nullcontext():
            document.set_messages(messages, not_sent or {})
        self._stop_live()
        self._cursor, self._search, self._unseen = None, None, False
        index = document.index.get(message.id) if message else None
        self._follow = index is None
        self._settle((index, place[1]) if index is not None and place else None)
        self.refresh()

    @property
    def reader_place(self) -> Place | None:
        """What is at the top of the view; None while the end is followed."""
        place = self._place_of_reader()
        entries = self.document.entries
        while place is not None and place[0] > 0 and entries[place[0]].message is None:  # a notice is gone next time
            place = place[0] - 1, 0
        message = entries[place[0]].message if place is not None else None
        return (message.id, place[1]) if place is not None and message is not None else None

    def return_to(self, place: Place | None) -> None:
        """Go to where `reader_place` was; None is the end."""
        index = self.document.index.get(place[0]) if place is not None else None
        if place is None or index is None:
            self.scroll_end()
        else:
            self._show((index, place[1]))

    def append(self, message: Message) -> None:
        """Add a message at the end."""
        if not self._warm:  # an answer will follow: what draws it is imported while it is awaited
            self._warm = True
            self.run_worker(warm_up, thread=True, exit_on_error=False)
        self.document.append(message)
        self._grown()

    def add_notice(self, level: Level, text: str) -> None:
        """Add a line that is no message: something the reader should know. Gone with the next `set_messages`."""
        self.document.add_notice(level, text)
        self._grown()

    def start_reply(self, message_id: str, provider: str, model: str) -> None:
        """A reply begins."""
        self.document.start_reply(message_id, provider, model)
        self._live_index = self.document.index[message_id]
        self._grown()

    def delta(self, message_id: str, kind: DeltaKind, text: str, name: str = "") -> None:
        """A piece of the reply. Costs the same however long the conversation is; drawing follows at its own pace."""
        if self._live is None or self.document.index.get(message_id) != self._live_index:
            return
        self._live.feed(kind, text, name, monotonic())
        if not self._follow:
            if not self._unseen:
                self._unseen = True
                self.refresh()
        else:
            self._pace()

    def finish_reply(self, message: Message) -> None:
        """The reply is over; it is drawn once more, whole, from its source."""
        self._stop_live()
        self.document.finish_reply(message)
        self._grown()

    def drop_reply(self, message_id: str) -> None:
        """The reply came to nothing and is asked for again: it leaves no trace."""
        self._stop_live()
        place = self._place_of_reader()
        if self.document.drop_last(message_id):
            if self._cursor == len(self.document.entries):
                self.clear_cursor()
            self._settle(place)
            self.refresh()

    def set_not_sent(self, mapping: Mapping[str, str]) -> None:
        """Message ids that don't go out any more, and why: `trimmed`, `compacted` or `excluded`."""
        place = self._place_of_reader()
        self.document.set_not_sent(mapping)
        self._settle(place)
        self.refresh()

    def set_counts(self, counts: Mapping[str, Count]) -> None:
        """Tokens of each message id, with the source of the figure (`measured`, `derived`, `counted`, `estimated`)."""
        place = self._place_of_reader()
        self.document.set_counts(counts)
        self._settle(place)
        self.refresh()

    def show_times(self, on: bool) -> None:
        """Show or hide when each message was written."""
        place = self._place_of_reader()
        self.document.show_times(on, time())
        self._settle(place)
        self.refresh()

    # --- the reply that arrives

    def _flush(self) -> None:
        """Draw what arrived, unless the reader is elsewhere."""
        self._timer = None
        if self._live is None or not self._follow:
            return
        begin = monotonic()
        self._catch_up()
        self._settle()
        self._cost = monotonic() - begin

    def _pace(self) -> None:
        """Draw again after a pause that leaves most of the time to everything else."""
        if self._timer is None:
            gap = min(MOST_GAP, max(LEAST_GAP, GAP_FACTOR * self._cost))
            self._timer = self.set_timer(gap, self._flush, name="transcript-flush")

    def _catch_up(self) -> None:
        live, document = self._live, self.document
        if live is None or not document.width:
            return
        now = monotonic()
        if document.entries[self._live_index].rows is not live.rows:
            document.realise(self._live_index, now)
            return
        first = live.update(now)
        if live.behind:
            self._pace()
        if live.stale and document.entries[self._live_index].job is None:
            document.redraw(self._live_index)
            document.realise(self._live_index, now)
            self.refresh()
            return
        document.heights.set(self._live_index, len(live.rows))
        self.refresh_lines(document.heights.top(self._live_index) + first, max(1, len(live.rows) - first))

    def _drawn(self, job: Job, rows: list[Row]) -> None:
        """Something large was drawn; perhaps the reply, which goes on in these rows."""
        super()._drawn(job, rows)
        if job.index == self._live_index:
            self._pace()  # what arrived meanwhile

    def _stop_live(self) -> None:
        self._live_index = -1
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _grown(self) -> None:
        self._unseen = not self._follow
        self._settle()
        self.refresh()

    # --- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A letter is a key only where it has something to act on; else it belongs to the prompt."""
        match action:
            case "request":
                return self._cursor is not None
            case "find_next" | "find_previous":
                return self._search is not None
        return super().check_action(action, parameters)

    def action_cursor(self, step: int) -> None:
        """Move the block cursor."""
        self._code_block = 0
        self.move_cursor(step)

    def action_leave(self) -> None:
        """Take the block cursor away; without one, leave the key to the screen."""
        if self.cursor_id is None:
            raise SkipAction
        self.clear_cursor()

    def action_toggle_fold(self) -> None:
        """Fold or unfold the cursor's message, or everything."""
        self.toggle_fold()

    def action_find_next(self) -> None:
        """Go to the next hit."""
        self.find_next()

    def action_find_previous(self) -> None:
        """Go to the previous hit."""
        self.find_previous()

    def action_request(self, action: Action) -> None:
        """Ask for something to be done with the cursor's message."""
        message = self.document.entries[self._cursor].message if self._cursor is not None else None
        if message is None:
            return
        text = detail = ""
        if action == "copy":
            text = copy_text(message)
        elif action == "copy_code":
            blocks = code_blocks(message.text)
            if blocks:  # the last block first, the ones before it on further presses
                self._code_block = self._code_block % len(blocks) + 1
                text = blocks[-self._code_block].removesuffix("\n")  # a command pasted into a shell waits for enter
                detail = f"code block {len(blocks) - self._code_block + 1} of {len(blocks)}"
        self.post_message(self.ActionRequested(message.id, action, text, detail))
