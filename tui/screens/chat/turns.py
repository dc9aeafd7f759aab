"""A turn on screen: the session's events update the transcript, the lines around it and the status."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

from textual.content import Content

from tui.chat.attachments import AttachmentError
from tui.chat.conversation.events import (
    ApprovalAsked,
    CompactionFinished,
    CompactionStarted,
    ContextTrimmed,
    MessageAdded,
    Notice,
    ReplyDelta,
    ReplyFinished,
    ReplyStarted,
    RetryScheduled,
    SessionEvent,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    UsageChanged,
)
from tui.messages import Message
from tui.render.message import Count
from tui.screens.base import key_line
from tui.text.clean import clean_line
from tui.text.numbers import duration, plural, source_of, tokens_exact, tokens_short, total_of

if TYPE_CHECKING:
    from tui.screens.chat.screen import ChatScreen
    from tui.screens.question import ApprovalPanel
    from tui.tools.approval import Decision

log = logging.getLogger(__name__)


LONG = 10.0
"""Seconds; the bell rings for longer answers if the terminal is unfocused."""


class Turns:
    """Runs one turn at a time for a chat screen, and queues messages."""

    def __init__(self, screen: ChatScreen) -> None:
        self.screen = screen
        self.waiting: deque[str] = deque()
        self.sending = ""  # a message that is being stored
        self.failed = False
        self._rewind_to = ""
        self._phase = ""
        self._reason = ""  # the error of the last reply
        self._asked: Message | None = None  # the message being answered, until the answer begins
        self._since = 0.0  # when the phase began, a `monotonic` time
        self._retry_at: float | None = None  # a `monotonic` time, while the next attempt is awaited
        self.tools = RunningTools(self)
        self._idle = asyncio.Event()
        self._idle.set()
        screen.set_interval(1.0, self.tick)

    @property
    def rewind_to(self) -> str:
        """Id of the message that the next one replaces; "" for none."""
        return self._rewind_to

    @rewind_to.setter
    def rewind_to(self, message_id: str) -> None:
        self._rewind_to = message_id
        self.show_hint()

    def show_hint(self) -> None:
        """Update the line above the prompt between turns: the keys of a chosen message, or what sending sets aside."""
        session, screen = self.screen.session, self.screen
        if self.busy:
            return
        line = Content("")
        entry = screen.transcript.cursor_entry if screen.focused is screen.transcript else None
        if entry is not None and entry.message is not None:
            from tui.screens.chat.message_actions import message_keys  # not before the first frame

            keys = message_keys(on_result=entry.message.role == "tool", folds=bool(entry.foldable))
            line = key_line(screen, keys, screen.size.width - 3)
        elif self._rewind_to and session is not None:
            counts = screen.transcript.document.counts
            stop = screen.key("chat.stop", "esc")
            text = rewind_line(session.rewound(self._rewind_to), counts, screen.size.width, stop)
            line = Content.styled(text, "$text-warning")
        screen.composer.rule.show(left=line)

    @property
    def busy(self) -> bool:
        """Whether a turn runs on this screen."""
        return not self._idle.is_set()

    def ask(self, text: str) -> None:
        """Send `text`, or queue it until the running turn has ended (or the program is ready)."""
        self.waiting.append(text)
        self.send_next()

    def send_next(self) -> None:
        """Send the next waiting message, unless a turn runs or nothing is ready yet."""
        if not self.busy and self.waiting and self.screen.session is not None:
            self._start(self._send_waiting())
        else:
            self._show_queue()

    async def run(self, events: AsyncIterator[SessionEvent]) -> None:
        """Show a turn that was not typed (retry, compaction), to its end. Not while another one runs."""
        self.rewind_to = ""
        self._start(self._follow(events))
        await self._idle.wait()

    def stop(self) -> bool:
        """Stop the running turn and put waiting messages back into the draft. False if nothing ran."""
        if not self.busy or self.screen.session is None:
            return False
        self._return_waiting()
        self.screen.session.cancel()
        composer = self.screen.composer
        if self._asked is not None and not composer.value and not self.rewind_to:
            self.rewind_to, composer.value = self._asked.id, self._asked.text
            self.screen.notify("Stopped before the answer began: your next message replaces this one.", markup=False)
        return True

    async def finish(self, seconds: float = 2.0) -> None:
        """Stop the running turn and wait until it is stored, at most `seconds`."""
        self._asked = None  # stored as a message, so not also as a draft
        if self.stop():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), seconds)

    def recall_waiting(self) -> str | None:
        """Remove the last waiting message and return it."""
        text = self.waiting.pop() if self.waiting else None
        self._show_queue()
        return text

    def tick(self) -> None:
        """Update the elapsed time of the turn, or the countdown to the retry; called once a second."""
        stops = f" · {self.screen.key('chat.stop', 'esc')} stops"
        if self.busy and self._retry_at is not None:
            remaining = max(0, ceil(self._retry_at - time.monotonic()))
            when = f"asking again in {duration(remaining)}" if remaining else "asking again"
            line = Content.assemble((f"● {when}", "$warning"), (f"{stops} · {self._phase}", "$text-muted"))
            self.screen.composer.rule.show(left=line)
        elif self.busy:
            seconds = time.monotonic() - self._since
            took = f" {duration(seconds)}" if seconds >= 1 else ""
            line = Content.assemble((f"● {self._phase}{took}", "$primary"), (stops, "$text-muted"))
            self.screen.composer.rule.show(left=line)

    def _start(self, work: Awaitable[None]) -> None:
        self._idle.clear()
        began = time.monotonic()
        self.enter("waiting for the answer")

        async def guarded() -> None:
            try:
                await work
            except Exception as error:
                log.exception("a turn ended in an error of the program")
                self.screen.show_error(self.screen.one_line(error))
                self._return_waiting()
            finally:
                self._idle.set()
                if time.monotonic() - began >= LONG and not self.screen.app.app_focus:
                    self.screen.app.bell()
                self._asked = None
                self.show_hint()
                self.screen.refresh_status()

        self.screen.run_worker(guarded(), group="turn", exit_on_error=False)

    async def _send_waiting(self) -> None:
        """Send the waiting messages, one after the other."""
        session = self.screen.session
        while self.waiting and session is not None and session is self.screen.session:
            self.sending = text = self.waiting.popleft()
            self._show_queue()
            self.enter("waiting for the answer")
            self.failed = False
            try:
                try:
                    assert self.screen.workspace is not None
                    folder = self.screen.files.folder
                    attachments = await self.screen.workspace.mentioned(text, session, folder)
                except AttachmentError as error:
                    self.screen.transcript.add_notice("error", f"Not sent: {error}.")
                    return
                if self.rewind_to:
                    await session.rewind(self.rewind_to)
                    self.rewind_to = ""
                    self._mark_not_sent()
                async for event in session.send(text, attachments):
                    self.show(event)
            finally:
                if self.sending:  # it did not become a message: put it back into the draft
                    self.waiting.appendleft(self.sending)
                    self.sending = ""
                    self._return_waiting()
            if self.failed:
                self._return_waiting()

    async def _follow(self, events: AsyncIterator[SessionEvent]) -> None:
        """Show a turn, then send what waits."""
        async for event in events:
            self.show(event)
        self._mark_not_sent()  # a retry sets the last answer aside
        await self._send_waiting()

    def _return_waiting(self) -> None:
        if self.waiting:
            composer = self.screen.composer
            composer.value = "\n\n".join([*self.waiting, *([composer.value] if composer.value else [])])
            self.waiting.clear()
        self._show_queue()

    def _show_queue(self) -> None:
        self.screen.queue_list.show(tuple(self.waiting))
        self.screen.composer.queued = bool(self.waiting)

    def enter(self, phase: str, since: float | None = None) -> None:
        """Show what the turn does, and for how long: `since` is a `monotonic` time, by default now."""
        self._phase = phase
        self._since = time.monotonic() if since is None else since
        self._retry_at = None
        self.tick()

    def show(self, event: SessionEvent) -> None:
        """One event, on screen."""
        screen, transcript = self.screen, self.screen.transcript
        match event:
            case ToolStarted() | ToolProgress() | ToolFinished() | ApprovalAsked():
                self.tools.show(event)
            case MessageAdded(message):
                if message.role == "user" and self.sending:
                    self.sending = ""
                    screen.drafts.save_soon()
                self.tools.reset()
                transcript.append(message)
                screen.refresh_title()
                self._asked = message if message.role == "user" else None
            case ReplyStarted(message_id, provider, model):
                transcript.start_reply(message_id, provider, model)
                self._reason = ""
                self.enter("answering")
            case ReplyDelta(message_id, kind, text, name):
                transcript.delta(message_id, kind, text, name)
                self._asked = None
            case ReplyFinished(message) if self._is_discarded(message):
                transcript.drop_reply(message.id)
            case ReplyFinished(message):
                transcript.finish_reply(message)
                self._reason = message.error or ""
                self.enter("working")
            case UsageChanged():
                screen.refresh_status(counts=True)
                transcript.prepare()  # the request goes out now
            case Notice(level, text):
                transcript.add_notice(level, text)
            case ContextTrimmed():
                self._mark_not_sent()
                transcript.add_notice("info", event.line)
            case CompactionStarted(automatic):
                self.enter("compacting, the window is nearly full" if automatic else "compacting")
            case CompactionFinished(summary=summary):
                if summary is not None:
                    transcript.append(summary)
                self._mark_not_sent()
                transcript.add_notice("info", event.line)
            case RetryScheduled(seconds, attempt, reason):
                self._phase = f"attempt {attempt + 1} · {reason}"
                self._retry_at = time.monotonic() + seconds
                self.tick()
            case TurnFailed(text):
                self.failed = True
                if not self._reason or self._reason not in text:  # otherwise the reply shows it
                    transcript.add_notice("error", text)
            case TurnFinished():
                self.tools.reset()
                screen.refresh_title()
                screen.refresh_status(counts=True)

    def _is_discarded(self, message: Message) -> bool:
        """Whether this was an empty failed attempt that the session does not store, since it retries by itself."""
        session = self.screen.session
        if session is None or message.status != "failed" or message.parts:
            return False
        return all(stored.id != message.id for stored in session.messages[-2:])

    def _mark_not_sent(self) -> None:
        if self.screen.session is not None:
            self.screen.transcript.set_not_sent(self.screen.session.conversation.not_sent())


MAX_NAMED = 3
"""Running tools named above the prompt."""


class RunningTools:
    """Tracks the tools of each turn."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._screen = turns.screen
        self._running: list[tuple[str, str]] = []  # call ids, which may repeat, and names
        self._progress: dict[str, str] = {}  # call id -> the progress that the tool reports
        self._since = 0.0
        self._done = 0
        self._panel: ApprovalPanel | None = None

    def show(self, event: ToolStarted | ToolProgress | ToolFinished | ApprovalAsked) -> None:
        """One event."""
        match event:
            case ToolStarted(call_id, name):
                if not self._running and not self._done:
                    self._since = time.monotonic()
                self._running.append((call_id, clean_line(name)))
                self._show_running()
            case ToolProgress(call_id, text):
                self._progress[call_id] = clean_line(text)
                self._show_running()
            case ToolFinished(call_id):
                self._progress.pop(call_id, None)
                if (call := next((call for call in self._running if call[0] == call_id), None)) is not None:
                    self._running.remove(call)
                self._done += 1
                self._show_running()
            case ApprovalAsked():
                self._ask(event)

    def reset(self) -> None:
        """The step or the turn has ended: nothing runs or asks."""
        self._running.clear()
        self._progress.clear()
        self._done = 0
        if self._panel is not None and self._panel.is_current:
            self._panel.dismiss(None)
        self._panel = None

    def _show_running(self) -> None:
        names = [f"{name}: {text}" if (text := self._progress.get(call)) else name for call, name in self._running]
        if not names or self._panel is not None:  # the person must notice the question
            return
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        done = f" ({self._done} done)" if self._done else ""
        self._turns.enter(f"running {', '.join(names[:MAX_NAMED])}{more}{done}", self._since)

    def _ask(self, asked: ApprovalAsked) -> None:
        from tui.screens.question import ApprovalPanel  # not before the first frame

        self._turns.enter(f"waiting for approval: {clean_line(asked.call.name)}", time.monotonic())
        if not self._screen.app.app_focus:
            self._screen.app.bell()
        self._panel = ApprovalPanel(asked, self._screen.composer.type_text)
        self._screen.app.push_screen(self._panel, partial(self._answered, asked, self._panel))

    def _answered(self, asked: ApprovalAsked, panel: ApprovalPanel, decision: Decision | None) -> None:
        if self._panel is not panel:
            return  # the turn ended meanwhile
        self._panel = None
        session = self._screen.session
        if decision is None or session is None:
            self._turns.stop()
            return
        session.tools.approve(asked.id, decision)


# -- the line above the prompt -------------------------------------------------------------------------------------


def rewind_line(aside: Sequence[Message], counts: Mapping[str, Count], width: int, stop: str) -> str:
    """`sets aside 5 messages, ~12,300 tokens · esc keeps them`; shorter below 60 cells. `stop` is the key."""
    sizes = [counts.get(message.id, (None, "estimated")) for message in aside]
    total, source = total_of(tokens for tokens, _ in sizes), source_of(source for _, source in sizes)
    if width < 60:
        return f"sets aside {len(aside):,}, {tokens_short(total, source)} tok · {stop} keeps"
    return f"sets aside {plural(len(aside), 'message')}, {tokens_exact(total, source)} tokens · {stop} keeps them"
