"""`chatctx --plain`: the chat line by line, for screen readers, dumb terminals and pipes.

No cursor movement, no colour, nothing written twice. The same session and the same events as on the screen: answers and
what commands say go to standard output, notices to standard error.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

from tui.chat.conversation.events import SessionEvent
from tui.chat.mentions import named_attachments
from tui.chat.store.database import StoreError
from tui.chat.workspace import Workspace
from tui.cli import INTERRUPTED, complain, known_error, streams
from tui.cli.output import write
from tui.cli.plain.lines import FENCE, Lines
from tui.cli.plain.turn import Speaker
from tui.cli.plain.ui import PlainUI
from tui.commands import registry as commands
from tui.commands.ui import Chat
from tui.config.settings import Settings
from tui.terminal.signals import on_termination
from tui.text.clean import clean_line

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession

log = logging.getLogger(__name__)

SECOND_PRESS = 2.0
"""Seconds in which a second ctrl+c leaves."""


def run(settings: Settings, *, resume: str | None) -> int:
    """Talk until standard input ends. 0 then and after /quit, 130 after two ctrl+c."""
    return asyncio.run(_run(settings, resume))


async def _run(settings: Settings, resume: str | None) -> int:
    workspace = await Workspace.open(settings, resume=resume)
    workspace.servers.start()
    try:
        talks = sys.stdin.isatty() and sys.stdout.isatty()
        chat = PlainChat(workspace, await workspace.start_session(), Lines(), talks=talks)
        streams.on_interrupt(chat.interrupt)
        on_termination(chat.leave)
        return await chat.talk()
    finally:
        await workspace.close()


class PlainChat:
    """One conversation after another. `talks`: a person is at both ends, so that who speaks has to be said."""

    def __init__(self, workspace: Workspace, session: ChatSession, lines: Lines, *, talks: bool) -> None:
        self.workspace = workspace
        self.session = session
        self.talks = talks
        self._lines = lines
        self._state = Chat(workspace, session)
        self._ui = PlainUI(self)
        self._speaker = Speaker(self)
        self._code = 0
        self._prompt = ""  # what was asked last, while the answer is awaited
        self._pressed = float("-inf")

    async def talk(self) -> int:
        """Everything up to the end; the exit code."""
        if self.talks:
            write(f"chatctx. /help lists the commands, {FENCE} begins and ends a message of several lines.")
        self.introduce()
        while (text := await self._message()) is not None:
            try:
                if not await self._take(text):
                    break
            except Exception as error:
                if streams.unwritable(error) is not None:
                    raise  # nobody reads any more: the messages still to come would be sent for nothing
                if known_error(error) is None:
                    log.exception("in --plain")
                complain(f"{error} Nothing was lost." if known_error(error) is None else str(error))
        if text is None and self.talks and not self._code:
            write("")  # the terminal's cursor stands behind the prompt
        await self._leave()
        return self._code

    async def _leave(self) -> None:
        """An answer that a full disk kept back goes with the next thing that is written."""
        try:
            await self.session.save_draft(self.session.draft)
        except StoreError as error:
            complain(str(error))

    def attach(self, session: ChatSession) -> None:
        """Go on with another conversation."""
        self.session = session
        self._state.attach(session)
        self.introduce()

    def introduce(self) -> None:
        """Who answers, and where a stored conversation stood."""
        session = self.session
        for notice in session.memory.notices:
            complain(notice)
        if not self.talks:
            return
        write(f"{session.provider}/{session.model}. {self.workspace.place(session.provider)}")
        if session.messages:
            write(f"{clean_line(session.title)}: {len(session.messages):,} messages. The last of them:")
            chat_messages = (message for message in reversed(session.messages) if message.kind == "chat")
            self._speaker.recall(next(chat_messages, session.messages[-1]))  # a summary is nobody's last word

    async def _message(self) -> str | None:
        for line in self.workspace.servers.news():
            complain(line)
        self._show_prompt("you: ")
        text = await self._lines.message()
        self._prompt = ""
        return text

    async def ask(self, question: str) -> str:
        """One line from the person; "" at the end of all lines. A pipe has written its answers beforehand."""
        self._show_prompt(f"{question} ")
        line = await (self._lines.fresh(self._lines.next) if self.talks else self._lines.next())
        self._prompt = ""
        return (line or "").strip()

    async def text(self, question: str) -> str:
        """One line from the person, or all between two fences; "" at the end of all lines. Within reach afterwards."""
        self._show_prompt(f"{question} ")
        text = await self._lines.fresh(self._lines.message) or ""
        self._prompt = ""
        if text.strip():
            await self.workspace.add_prompt(text)
        return text.strip()

    def _show_prompt(self, prompt: str) -> None:
        self._prompt = prompt
        if self.talks:
            sys.stdout.write(prompt)
            sys.stdout.flush()

    async def _take(self, text: str) -> bool:
        """Do what one message says. False: leave."""
        if not text.strip():
            return True
        await self.workspace.add_prompt(text)
        if not commands.is_command(text):
            text = text[1:] if text.startswith(" /") else text
            attachments = await named_attachments(text, self.workspace, self.session, Path.cwd())
            await self.turn(self.session.send(text, attachments))
            return True
        parsed = commands.parse(text)
        if isinstance(parsed, commands.Unknown):
            complain(parsed.text)
            return True
        command, args = parsed
        await commands.run(command, self._ui, self._state, args)
        return not self._ui.leaving

    async def turn(self, events: AsyncIterator[SessionEvent]) -> None:
        """Write down what a turn brings."""
        await self._speaker.turn(events)

    def interrupt(self) -> None:
        """ctrl+c: stop the answer, or leave on a second press."""
        now = time.monotonic()
        if now - self._pressed < SECOND_PRESS:
            self._break_line()
            self.leave()
            return
        self._pressed = now
        if self.session.running:
            self.session.cancel()
            return
        self._break_line()
        complain("press ctrl+c again to leave")
        self._show_prompt(self._prompt)

    def leave(self) -> None:
        """End the answer, which is kept, and the chat."""
        self._code = INTERRUPTED
        self.session.cancel()
        self._lines.end()

    def _break_line(self) -> None:
        if self.talks:
            write("")  # the terminal wrote ^C behind the prompt
