"""`chatctx --plain`: the chat line by line, for screen readers, dumb terminals and pipes.

No cursor movement, no colour, nothing written twice. The same session and events as on the screen: answers and the
output of commands go to standard output, notices to standard error.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

from tui.chat.conversation.events import (
    ApprovalAsked,
    ReplyDelta,
    ReplyFinished,
    ReplyStarted,
    SessionEvent,
    TurnFailed,
)
from tui.chat.store.database import StoreError
from tui.chat.workspace import Workspace
from tui.cli import INTERRUPTED, complain, expected_exit_code, streams, write
from tui.cli.plain_ui import FENCE, PlainUI
from tui.cli.subcommands.ask import call_lines, event_line
from tui.commands import registry as commands
from tui.commands.ui import Chat
from tui.config.private import write_unsent
from tui.config.settings import Settings
from tui.providers.keys import redact
from tui.terminal.signals import on_termination
from tui.text.clean import clean_line, clean_text
from tui.text.endings import provider_explanation, source_lines, status_text
from tui.text.names import label_of, short_model
from tui.text.numbers import percent, tokens_exact
from tui.views.call_text import readable_arguments

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession
    from tui.tools.approval import Decision
    from tui.tools.mcp.questions import Question as ServerQuestion
    from tui.tools.mcp.questions import Reply

log = logging.getLogger(__name__)

SECOND_PRESS = 2.0
"""Seconds in which a second ctrl+c leaves."""

ANSWERS: dict[str, Decision] = {"y": "once", "s": "session", "a": "always", "n": "no", "never": "never"}


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
        self.talks = talks
        self._lines = lines
        self._chat = Chat(workspace, session)
        self._ui = PlainUI(self)
        self._mid_line = False  # whether standard output is in the middle of a line
        self._code = 0
        self._unsent: list[str] = []  # messages that the store did not take
        self._prompt = ""  # the last question, while its answer is pending
        self._pressed = float("-inf")
        self._asking = asyncio.Lock()  # one question at a time

    @property
    def session(self) -> ChatSession:
        """The current conversation."""
        return self._chat.session

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
                if expected_exit_code(error) is not None:
                    complain(str(error))
                else:
                    log.exception("in --plain")
                    complain(f"{error} Nothing was lost.")
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
        self._chat.attached = session
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
            last = next(chat_messages, session.messages[-1])  # not a summary
            write(f"{label_of(last)}: {clean_text(last.text)}")

    async def _message(self) -> str | None:
        for line in self.workspace.servers.news():
            complain(line)
        return await self._read("you: ", self._lines.message)

    async def ask(self, question: str) -> str:
        """One line from the person; "" at the end of the input. For a pipe, the next line."""
        lines = self._lines
        line = await self._read(f"{question} ", (lambda: lines.fresh(lines.next)) if self.talks else lines.next)
        return (line or "").strip()

    async def text(self, question: str) -> str:
        """One line from the person, or all lines between two fences; "" at the end. It can be recalled later."""
        text = await self._read(f"{question} ", lambda: self._lines.fresh(self._lines.message)) or ""
        if text.strip():
            await self.workspace.add_prompt(text)
        return text.strip()

    async def _read(self, prompt: str, read: Callable[[], Awaitable[str | None]]) -> str | None:
        self._show_prompt(prompt)
        text = await read()
        self._prompt = ""
        return text

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
            attachments = await self.workspace.mentioned(text, self.session, Path.cwd())
            await self.turn(self.session.send(text, attachments))
            return True
        parsed = commands.parse(text)
        if isinstance(parsed, commands.Unknown):
            complain(parsed.text)
            return True
        command, args = parsed
        await commands.run(command, self._ui, self._chat, args)
        return not self._ui.leaving

    async def answer_server(self, question: ServerQuestion) -> Reply:
        """Ask the person what an MCP server wants to know, during a turn: between turns lines are messages."""
        from tui.commands.questions import CANCEL, ask

        if not self.session.running:
            complain(f"the MCP server {clean_line(question.server)} asked something outside of an answer: cancelled")
            return CANCEL
        async with self._asking:
            return await ask(self._ui, self._chat, question)

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

    # -- a turn ----------------------------------------------------------------------------------------------------

    async def turn(self, events: AsyncIterator[SessionEvent]) -> None:
        """Print one turn to its end."""
        async for event in events:
            await self._show(event)
        self._end_line()
        usage = self.session.usage
        if self.talks and usage is not None:
            window = tokens_exact(usage.limits.context)
            share = "" if usage.percent is None else f", {percent(usage.percent)}"
            write(f"({tokens_exact(usage.total, usage.source)} of {window} tokens{share})")

    async def _show(self, event: SessionEvent) -> None:
        match event:
            case ReplyStarted(_, _, model) if self.talks:
                write(f"{short_model(model)}:")
            case ReplyDelta(kind="text" | "refusal", text=piece) if piece:
                sys.stdout.write(clean_text(piece))
                sys.stdout.flush()
                self._mid_line = not piece.endswith("\n")
            case ReplyFinished(message):
                self._end_line()
                for line in call_lines(message):
                    complain(line)
                if lines := source_lines(message):
                    write("\n".join(["Sources:", *lines]))
                if ending := status_text(message):
                    complain(ending[2:])
                if explanation := provider_explanation(message):
                    complain(f"the provider says: {explanation}")
            case TurnFailed(reason):
                self._end_line()
                complain(reason)
            case ApprovalAsked():
                await self._approve(event)
            case _:
                if line := event_line(event):
                    self._end_line()
                    complain(line)

    async def _approve(self, question: ApprovalAsked) -> None:
        """Ask about a call that is not read-only. The end of the input means no, and so does a pipe."""
        self._end_line()
        name = clean_line(question.call.name)
        if not self.talks:
            complain(f"{name} was not run: nobody can be asked here; allow it with /tools in the chat")
            self.session.tools.approve(question.id, "no")
            return
        call = f"{name} ({clean_line(question.origin)})"
        complain(f"wants to run {call}" + (f": {question.why}" if question.why else ""))
        sys.stderr.write(indent(redact(readable_arguments(question.arguments).plain), "  ") + "\n")
        answers = "y yes, n no" if question.why else "y yes, s in this conversation always, a always, n no, never"
        async with self._asking:
            answer = await self.ask(f"Run it? {answers}:")
        self.session.tools.approve(question.id, ANSWERS.get(answer.lower(), "no"))

    def _end_line(self) -> None:
        if self._mid_line:
            write("")
            self._mid_line = False


class Lines:
    """Standard input, line by line, from a thread.

    `os.read` rather than `sys.stdin`: a thread waiting in the buffered reader would keep the interpreter from exiting.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._arrived: asyncio.Queue[str | None] = asyncio.Queue()
        self._ended = False
        threading.Thread(target=self._read, name="lines", daemon=True).start()

    def _read(self) -> None:
        rest = b""
        while True:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except OSError:
                data = b""
            *complete, rest = (rest + data).split(b"\n")
            lines: list[str | None] = [line.decode("utf-8", "replace").removesuffix("\r") for line in complete]
            if not data:
                lines += [rest.decode("utf-8", "replace"), None] if rest else [None]
            try:
                for line in lines:
                    self._loop.call_soon_threadsafe(self._arrived.put_nowait, line)
            except RuntimeError:
                return  # the event loop has been closed
            if not data:
                return

    def end(self) -> None:
        """End the input: pending readers get None at once."""
        self._ended = True
        self._arrived.put_nowait(None)

    async def next(self) -> str | None:
        """The next line without its end; None at the end of the input."""
        line = None if self._ended else await self._arrived.get()
        self._ended = self._ended or line is None
        return None if self._ended else line

    async def fresh(self, read: Callable[[], Awaitable[str | None]]) -> str | None:
        """The result of `read` (`next`, `message`) on lines that are not written yet.

        Earlier lines are no answer to a question, and stay queued.
        """
        early = self._drained()
        answer = None if None in early else await read()
        for line in (*early, *self._drained()):
            self._arrived.put_nowait(line)
        return answer

    def unread(self) -> list[str]:
        """The lines that nobody has taken."""
        return [line for line in self._drained() if line and line.strip()]

    def _drained(self) -> list[str | None]:
        return [self._arrived.get_nowait() for _ in range(self._arrived.qsize())]

    async def message(self) -> str | None:
        """The next line, or all lines between two fences."""
        line = await self.next()
        if line is None or line.strip() != FENCE:
            return line
        text: list[str] = []
        while (line := await self.next()) is not None and line.strip() != FENCE:
            text.append(line)
        return "\n".join(text)
