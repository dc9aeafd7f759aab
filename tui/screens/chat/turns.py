"""A turn on screen: the session's events go to the transcript, the lines around it and the status."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator
from math import ceil
from typing import TYPE_CHECKING

from textual.content import Content

from tui.chat.attachments import AttachmentError, check_taken
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
    ToolStarted,
    TurnFailed,
    TurnFinished,
    UsageChanged,
)
from tui.messages import Attachment, Message
from tui.screens.base import run_quietly
from tui.screens.chat.message_keys import message_keys
from tui.screens.chat.resources import resources_named
from tui.screens.chat.rewind import rewind_line, set_aside
from tui.screens.chat.tool_turn import ToolTurn
from tui.screens.mentions import mentioned
from tui.text.numbers import duration

if TYPE_CHECKING:
    from tui.screens.chat.chat_parts import ChatParts
    from tui.screens.session_ports import SessionLike

log = logging.getLogger(__name__)


LONG = 10.0
"""Seconds after which an answer is worth ringing for, where the terminal window is not in front."""


class Turns:
    """Runs one turn after another for a chat screen, and keeps what waits."""

    def __init__(self, screen: ChatParts) -> None:
        self.screen = screen
        self.waiting: deque[str] = deque()
        self.failed = False
        self._rewind_to = ""
        self._phase = ""
        self._reason = ""  # what the last reply said it failed of
        self._asked: Message | None = None  # the message that is being answered, until something of an answer is there
        self._since = 0.0
        self._again: float | None = None  # when it asks again, monotonic seconds, while it waits for that
        self.tools = ToolTurn(screen, self._enter)
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def rewind_to(self) -> str:
        """Id of the message that the next one takes the place of; "" for none."""
        return self._rewind_to

    @rewind_to.setter
    def rewind_to(self, message_id: str) -> None:
        self._rewind_to = message_id
        self.show_rest()

    def show_rest(self) -> None:
        """The line above the prompt while no turn runs: keys of a chosen message, or what the draft would set aside."""
        session, screen = self.screen.session, self.screen
        if self.busy:
            return
        line = Content("")
        if screen.focused is screen.transcript and screen.transcript.cursor_id is not None:
            view = screen.transcript
            keys = message_keys(screen.keymap, screen.size.width - 3, on_result=view.on_result, folds=view.folds)
            line = Content.styled(keys, "$text-muted")
        elif self._rewind_to and session is not None:
            aside = set_aside(session.messages, session.not_sent, self._rewind_to)
            words = rewind_line(aside, screen.transcript.document.counts, screen.size.width)
            line = Content.styled(words, "$text-warning")
        screen.composer.rule.show(left=line)

    @property
    def busy(self) -> bool:
        """Whether a turn runs on this screen."""
        return not self._idle.is_set()

    def ask(self, text: str) -> None:
        """Send `text`, or let it wait for the running turn (or for the program to be ready)."""
        self.waiting.append(text)
        self.pump()

    def pump(self) -> None:
        """Start on what waits, unless a turn runs or nothing is ready yet."""
        self._show_queue()
        if not self.busy and self.waiting and self.screen.session is not None:
            self._start(self._all_waiting())

    def run(self, events: AsyncIterator[SessionEvent]) -> None:
        """Show the events of a turn that was not typed (retry, compaction). Not while another runs."""
        if not self.busy:
            self.rewind_to = ""
            self._start(self._one(events))

    def stop(self) -> bool:
        """End the running turn and put what waits back into the draft. False if nothing ran."""
        if not self.busy or self.screen.session is None:
            return False
        self._return_waiting()
        self.screen.session.cancel()
        composer = self.screen.composer
        if self._asked is not None and not composer.value and not self.rewind_to:
            self.rewind_to, composer.value = self._asked.id, self._asked.text
            self.screen.notify("Stopped before the answer began. What you send now takes its place.", markup=False)
        return True

    async def finish(self, seconds: float = 2.0) -> None:
        """End the running turn and wait until what arrived is kept, at most `seconds`."""
        self._asked = None  # it is kept as a message: no draft as well
        if self.stop():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), seconds)

    def take_back(self) -> str | None:
        """The last waiting message, which waits no longer."""
        text = self.waiting.pop() if self.waiting else None
        self._show_queue()
        return text

    def tick(self) -> None:
        """Redraw how long the turn has run, or how long it waits until it asks again; called once a second."""
        if self.busy and self._again is not None:
            left = max(0, ceil(self._again - time.monotonic()))
            when = f"asking again in {duration(left)}" if left else "asking again"
            line = Content.assemble((f"● {when}", "$warning"), (f" · esc stops · {self._phase}", "$text-muted"))
            self.screen.composer.rule.show(left=line)
        elif self.busy:
            seconds = time.monotonic() - self._since
            took = f" {duration(seconds)}" if seconds >= 1 else ""
            line = Content.assemble((f"● {self._phase}{took}", "$primary"), (" · esc stops", "$text-muted"))
            self.screen.composer.rule.show(left=line)

    def _start(self, work: AsyncIterator[None]) -> None:
        self._idle.clear()
        began = time.monotonic()
        self._enter("waiting for the answer")

        async def drain() -> None:
            try:
                async for _ in work:
                    pass
            except Exception as error:
                log.exception("a turn ended in an error of the program")
                self.screen.complain(error)
                self._return_waiting()
            finally:
                self._idle.set()
                self._call_back(time.monotonic() - began)
                self._asked = None
                self.show_rest()
                self.screen.refresh_status()

        run_quietly(self.screen, drain, "turn")

    def _call_back(self, seconds: float) -> None:
        """Ring when a long answer ends while the person is elsewhere; the terminal decides what that does."""
        if seconds >= LONG and not self.screen.app.app_focus:
            self.screen.app.bell()

    async def _all_waiting(self) -> AsyncIterator[None]:
        session = self.screen.session
        while self.waiting and session is not None and session is self.screen.session:
            text = self.waiting.popleft()
            self._show_queue()
            self._enter("waiting for the answer")
            self.failed = False
            try:
                attachments = await self._attachments(text, session)
            except AttachmentError as error:
                self.screen.transcript.add_notice("error", f"Not sent: {error}.")
                self.waiting.appendleft(text)
                self._return_waiting()
                return
            if self.rewind_to:
                await session.rewind(self.rewind_to)
                self.rewind_to = ""
                self._left_out()
            async for event in session.send(text, attachments):
                self.show(event)
                yield
            if self.failed:
                self._return_waiting()

    async def _attachments(self, text: str, session: SessionLike) -> list[Attachment]:
        """The files a message names with `@`, read now. Raises `AttachmentError`."""
        workspace = self.screen.workspace
        if workspace is None or "@" not in text:
            return []
        paths = await asyncio.to_thread(mentioned, text, self.screen.files.folder)
        found = [await workspace.attach(path) for path in paths]
        for resource in resources_named(text, workspace.servers):
            found += await workspace.servers.attach(resource)
        check_taken(found, session.capabilities, session.model)
        return found

    async def _one(self, events: AsyncIterator[SessionEvent]) -> AsyncIterator[None]:
        async for event in events:
            self.show(event)
            yield
        self._left_out()  # a retry sets the last answer aside
        async for step in self._all_waiting():
            yield step

    def _return_waiting(self) -> None:
        if self.waiting:
            composer = self.screen.composer
            composer.value = "\n\n".join([*self.waiting, *([composer.value] if composer.value else [])])
            self.waiting.clear()
        self._show_queue()

    def _show_queue(self) -> None:
        self.screen.queue_list.show(list(self.waiting))
        self.screen.composer.queued = bool(self.waiting)

    def _enter(self, phase: str, since: float | None = None) -> None:
        self._phase = phase
        self._since = time.monotonic() if since is None else since
        self._again = None
        self.tick()

    def show(self, event: SessionEvent) -> None:
        """One event, on screen."""
        screen, transcript = self.screen, self.screen.transcript
        match event:
            case ToolStarted() | ToolFinished() | ApprovalAsked():
                self.tools.show(event)
            case MessageAdded(message):
                self.tools.over()
                transcript.append(message)
                screen.refresh_title()
                self._asked = message if message.role == "user" else None
            case ReplyStarted(message_id, provider, model):
                transcript.start_reply(message_id, provider, model)
                self._reason = ""
                self._enter("answering")
            case ReplyDelta(message_id, kind, text, name):
                transcript.delta(message_id, kind, text, name)
                self._asked = None
            case ReplyFinished(message) if self._came_to_nothing(message):
                transcript.drop_reply(message.id)
            case ReplyFinished(message):
                transcript.finish_reply(message)
                self._reason = message.error or ""
                self._enter("working")
            case UsageChanged():
                screen.refresh_status(counts=True)
            case Notice(level, text):
                transcript.add_notice(level, text)
            case ContextTrimmed():
                self._left_out()
                transcript.add_notice("info", event.line)
            case CompactionStarted(automatic):
                self._enter("compacting, the window is nearly full" if automatic else "compacting")
            case CompactionFinished(summary=summary):
                if summary is not None:
                    transcript.append(summary)
                self._left_out()
                transcript.add_notice("info", event.line)
            case RetryScheduled(seconds, attempt, reason):
                self._phase = f"attempt {attempt + 1} · {reason}"
                self._again = time.monotonic() + seconds
                self.tick()
            case TurnFailed(text):
                self.failed = True
                if not self._reason or self._reason not in text:  # else the reply itself says it
                    transcript.add_notice("error", text)
            case TurnFinished():
                self.tools.over()
                screen.refresh_title()
                screen.refresh_status(counts=True)

    def _came_to_nothing(self, message: Message) -> bool:
        """Whether this was an attempt without an answer that the session does not keep: it tries again by itself."""
        session = self.screen.session
        if session is None or message.status != "failed" or message.parts:
            return False
        return all(kept.id != message.id for kept in session.messages[-2:])

    def _left_out(self) -> None:
        if self.screen.session is not None:
            self.screen.transcript.set_not_sent(self.screen.session.not_sent)
