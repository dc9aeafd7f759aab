"""`chatctx --plain`: the chat line by line, for screen readers, dumb terminals and pipes.

No cursor movement, no colour, nothing written twice. The same session and events as on the screen: answers and the
output of commands go to standard output, notices to standard error.
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
from tui.config.private import write_unsent
from tui.config.settings import Settings
from tui.terminal.signals import on_termination
from tui.text.clean import clean_line

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession
    from tui.tools.mcp.questions import Question as ServerQuestion
    from tui.tools.mcp.questions import Reply

log = logging.getLogger(__name__)

SECOND_PRESS = 2.0
"""Seconds in which a second ctrl+c leaves."""


def run(settings: Settings, *, resume: str | None) -> int:
    """Chat until standard input ends. Returns 0 then and after /quit, 130 after two ctrl+c."""
    return asyncio.run(_run(settings, resume))


async def _run(settings: Settings, resume: str | None) -> int:
    workspace = await Workspace.open(settings, resume=resume)
    try:
        talks = sys.stdin.isatty() and sys.stdout.isatty()
        chat = PlainChat(workspace, await workspace.start_session(), Lines(), talks=talks)
        workspace.servers.start(chat.answer_server if talks else None)
        streams.on_interrupt(chat.interrupt)
        on_termination(chat.leave)
        return await chat.talk()
    finally:
        await workspace.close()


class PlainChat:
    """A sequence of conversations. `talks`: both ends are a terminal, so speakers are labelled."""

    def __init__(self, workspace: Workspace, session: ChatSession, lines: Lines, *, talks: bool) -> None:
        self.workspace = workspace
        self.session = session
        self.talks = talks
        self._lines = lines
        self._state = Chat(workspace, session)
        self._ui = PlainUI(self)
        self._speaker = Speaker(self)
        self._code = 0
        self._unsent: list[str] = []  # messages that the store did not take
        self._prompt = ""  # the last question, while its answer is pending
        self._pressed = float("-inf")
        self._asking = asyncio.Lock()  # one question at a time

    async def talk(self) -> int:
        """Chat until the end; returns the exit code."""
        if self.talks:
            write(f"chatctx. /help lists the commands, {FENCE} begins and ends a message of several lines.")
        self.introduce()
        while (text := await self._message()) is not None:
            try:
                if not await self._take(text):
                    break
            except Exception as error:
                if streams.unwritable(error) is not None:
                    raise  # the reader is gone: don't send the remaining messages
                if known_error(error) is None:
                    log.exception("in --plain")
                complain(f"{error} Nothing was lost." if known_error(error) is None else str(error))
        if text is None and self.talks and not self._code:
            write("")  # the terminal's cursor is behind the prompt
        await self._leave()
        return self._code

    async def _leave(self) -> None:
        """End the chat. Answers held back by a full disk are written with the next change.

        Messages that were written and not taken any more go to the prompt history, else to a file.
        """
        unsent = [*self._unsent, *(self._lines.unread() if self.talks else ())]
        try:
            for text in unsent:
                await self.workspace.add_prompt(text)
            await self.session.save_draft(self.session.draft)
        except StoreError as error:
            settings = self.workspace.settings
            path = write_unsent("\n".join(unsent), (settings.data_dir, settings.log_dir)) if unsent else None
            complain(f"{error}. What was not sent is in {path}" if path else str(error))

    def attach(self, session: ChatSession) -> None:
        """Switch to another conversation."""
        self.session = session
        self._state.attach(session)
        self.introduce()

    def introduce(self) -> None:
        """Print the model, and where a stored conversation ended."""
        session = self.session
        for notice in session.memory.notices:
            complain(notice)
        if not self.talks:
            return
        write(f"{session.provider}/{session.model}. {self.workspace.place(session.provider)}")
        if session.messages:
            write(f"{clean_line(session.title)}: {len(session.messages):,} messages. The last of them:")
            chat_messages = (message for message in reversed(session.messages) if message.kind == "chat")
            self._speaker.recall(next(chat_messages, session.messages[-1]))  # not a summary

    async def _message(self) -> str | None:
        for line in self.workspace.servers.news():
            complain(line)
        self._show_prompt("you: ")
        text = await self._lines.message()
        self._prompt = ""
        return text

    async def ask(self, question: str) -> str:
        """One line from the person; "" at the end of the input. For a pipe, the next line."""
        self._show_prompt(f"{question} ")
        line = await (self._lines.fresh(self._lines.next) if self.talks else self._lines.next())
        self._prompt = ""
        return (line or "").strip()

    async def ask_alone(self, question: str) -> str:
        """As `ask`, once no server asks something."""
        async with self._asking:
            return await self.ask(question)

    async def text(self, question: str) -> str:
        """One line from the person, or all lines between two fences; "" at the end. It can be recalled later."""
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
        """Handle one message. Returns False to quit."""
        if not text.strip():
            return True
        try:
            await self.workspace.add_prompt(text)
        except StoreError:
            self._unsent.append(text)
            raise
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
        """Print a turn."""
        await self._speaker.turn(events)

    async def answer_server(self, question: ServerQuestion) -> Reply:
        """Ask the person what an MCP server wants to know, during a turn: between turns lines are messages."""
        from tui.commands.questions import CANCEL, ask

        if not self.session.running:
            complain(f"the MCP server {clean_line(question.server)} asked something outside of an answer: cancelled")
            return CANCEL
        async with self._asking:
            return await ask(self._ui, self._state, question)

    def interrupt(self) -> None:
        """ctrl+c: stop the answer, or quit on a second press."""
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
        """Stop the answer, which is kept, and end the chat."""
        self._code = INTERRUPTED
        self.session.cancel()
        self._lines.end()

    def _break_line(self) -> None:
        if self.talks:
            write("")  # the terminal printed ^C behind the prompt
