"""`chatctx --plain`: the chat line by line, for screen readers, dumb terminals and pipes.

No cursor movement, no colour, no escape sequence, nothing written twice. The same session, events and commands as on
the screen: answers and the output of commands go to standard output, notices and refusals to standard error.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from textwrap import indent
from typing import TYPE_CHECKING

from tui import commands
from tui.chat.clipboard import copied_line, run_copy_tool
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
from tui.cli import INTERRUPTED, complain, streams, table, write
from tui.cli.streams import FENCE, Lines
from tui.cli.subcommands.ask import call_lines, event_line
from tui.commands import Chat
from tui.config.files import write_unsent
from tui.config.settings import Settings
from tui.errors import ExpectedError
from tui.providers.keys import redact
from tui.terminal.process import ENDED, ENDING, on_signals
from tui.text.clean import clean_copied, clean_line, clean_text, failure_line
from tui.text.labels import label_of, provider_explanation, short_model, source_lines, status_text
from tui.text.numbers import percent, plural, tokens_exact
from tui.views.call_text import continued, readable_arguments
from tui.views.view import RejectedError

if TYPE_CHECKING:
    from tui.chat.compaction.compactor import SummaryText
    from tui.chat.turn.session import ChatSession
    from tui.tools.approval import Decision
    from tui.tools.mcp.questions import Question as ServerQuestion
    from tui.tools.mcp.questions import Reply
    from tui.views.view import Form, Menu, Question, View

log = logging.getLogger(__name__)

LISTED = 20
"""Options shown of a list; words after the command filter it."""

WIDTH = 79
"""Cells of a line: the default width of terminals."""

_SIGNS = re.compile("[\u2500-\u25ff]|^\u00b7")
"""Box drawing, block elements and shapes: meaningless without the picture."""

SECOND_PRESS = 2.0
"""Seconds in which a second ctrl+c leaves."""

ANSWERS: dict[str, Decision] = {"y": "once", "s": "session", "a": "always", "n": "no", "never": "never"}


def run(settings: Settings, *, resume: str | None) -> int:
    """Chat until standard input ends. Returns 0 then and after /quit, 130 after two ctrl+c."""
    return asyncio.run(_run(settings, resume))


async def _run(settings: Settings, resume: str | None) -> int:
    workspace = await Workspace.open(settings, resume=resume)
    try:
        interactive = sys.stdin.isatty() and sys.stdout.isatty()
        chat = PlainChat(workspace, await workspace.start_session(), Lines(), interactive=interactive)
        workspace.servers.start(chat.answer_server if interactive else None)
        on_signals(("SIGINT",), chat.interrupt)
        on_signals(ENDING, chat.stop)
        try:
            return await chat.run()
        finally:
            await chat.session.stop()  # if the output can't be written
    finally:
        await workspace.close()


class PlainChat:
    """A sequence of conversations, and the `UI` of slash commands, whose panels become lines.

    `interactive`: both ends are a terminal, so speakers are labelled and questions asked. In a pipe all lines are
    messages.
    """

    screen = None
    busy = False  # commands are read only between turns

    def __init__(self, workspace: Workspace, session: ChatSession, lines: Lines, *, interactive: bool) -> None:
        self.workspace = workspace
        self.interactive = interactive
        self._lines = lines
        self._chat = Chat(workspace, session)
        self._leaving = False
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

    async def run(self) -> int:
        """Chat until the end; returns the exit code."""
        if self.interactive:
            write(f"chatctx. /help lists the commands, {FENCE} begins and ends a message of several lines.")
        self.introduce()
        text: str | None = ""
        while not self._leaving and (text := await self._message()) is not None:
            try:
                await self._take(text)
            except ExpectedError as error:
                log.warning("in --plain", exc_info=True)
                complain(str(error))
            except Exception as error:
                if streams.unwritable(error) is not None:
                    raise  # the reader is gone: don't send the remaining messages
                log.exception("in --plain")
                complain(failure_line(error, self.workspace.settings.log_file))
        if text is None and self.interactive and not self._code:
            write("")  # the terminal's cursor is behind the prompt
        await self._leave()
        return self._code

    async def _leave(self) -> None:
        """End the chat. Answers held back by a full disk are written with the next change.

        Messages that were written and not taken any more go to the prompt history, else to a file.
        """
        unsent = [*self._unsent, *(self._lines.unread() if self.interactive else ())]
        try:
            for text in unsent:
                await self.workspace.add_prompt(text)
            await self.session.conversation.save_draft(self.session.conversation.info.draft)
        except StoreError as error:
            settings = self.workspace.settings
            path = write_unsent("\n".join(unsent), (settings.data_dir, settings.log_dir)) if unsent else None
            complain(f"{error}. What was not sent is in {path}" if path else str(error))

    def introduce(self) -> None:
        """Print the model, and where a stored conversation ended."""
        session = self.session
        for notice in session.conversation.memory.notices:
            complain(notice)
        if not self.interactive:
            return
        write(f"{session.provider}/{session.model}. {self.workspace.place(session.provider)}")
        if session.messages:
            title = clean_line(session.conversation.info.title)
            write(f"{title}: {plural(len(session.messages), 'message')}. The last of them:")
            chat_messages = (message for message in reversed(session.messages) if message.kind == "chat")
            last = next(chat_messages, session.messages[-1])  # not a summary
            write(f"{label_of(last)}: {clean_text(last.text)}")

    async def _message(self) -> str | None:
        for line in self.workspace.news():
            complain(line)
        return await self._read("you: ", self._lines.message)

    async def _answer(self, question: str) -> str:
        """One line from the person; "" at the end of the input."""
        return (await self._read(f"{question} ", lambda: self._lines.fresh(self._lines.next)) or "").strip()

    async def _text(self, question: str) -> str:
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
        if self.interactive:
            sys.stdout.write(prompt)
            sys.stdout.flush()

    async def _take(self, text: str) -> None:
        """Handle one message or command."""
        if not text.strip():
            return
        try:
            await self.workspace.add_prompt(text)
        except StoreError:
            self._unsent.append(text)
            raise
        if not commands.is_command(text):
            text = text[1:] if text.startswith(" /") else text
            attachments = await self.workspace.mentioned(text, self.session, self.workspace.folder)
            await self.turn(self.session.send(text, attachments))
        else:
            command, args = commands.parse(text)
            await commands.run(command, self, self._chat, args)

    async def answer_server(self, question: ServerQuestion) -> Reply:
        """Ask the person what an MCP server wants to know, during a turn: between turns lines are messages."""
        from tui.commands.questions import CANCEL, ask

        if not self.session.running:
            complain(f"the MCP server {clean_line(question.server)} asked something outside of an answer: cancelled")
            return CANCEL
        async with self._asking:
            return await ask(self, self._chat, question)

    def interrupt(self) -> None:
        """ctrl+c: stop the answer, or quit on a second press."""
        now = time.monotonic()
        if now - self._pressed < SECOND_PRESS:
            self._break_line()
            self.stop()
            return
        self._pressed = now
        if self.session.running:
            self.session.cancel()
            return
        self._break_line()
        complain("press ctrl+c again to quit")
        self._show_prompt(self._prompt)

    def stop(self) -> None:
        """Stop the answer, which is kept, and end the chat."""
        self._code = INTERRUPTED
        self.session.cancel(ENDED)
        self._lines.end()

    def _break_line(self) -> None:
        if self.interactive:
            write("")  # the terminal printed ^C behind the prompt

    # -- a turn ----------------------------------------------------------------------------------------------------

    async def turn(self, events: AsyncIterator[SessionEvent]) -> None:
        """Print one turn to its end."""
        async for event in events:
            await self._show(event)
        self._end_line()
        usage = self.session.usage
        if self.interactive and usage is not None:
            window = tokens_exact(usage.limits.context)
            share = "" if usage.percent is None else f", {percent(usage.percent)}"
            write(f"({tokens_exact(usage.total, usage.source)} of {window} tokens{share})")

    async def _show(self, event: SessionEvent) -> None:
        match event:
            case ReplyStarted(_, _, model) if self.interactive:
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
                # A failed request is repeated, or ends the turn: both are reported by themselves.
                if message.status != "failed" and (ending := status_text(message)):
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
        if not self.interactive:
            complain(f"{name} was not run: nobody can be asked here; allow it with /tools in the chat")
            self.session.tools.approve(question.id, "no")
            return
        call = f"{name} ({clean_line(question.origin)})"
        complain(f"wants to run {call}" + (f": {question.why}" if question.why else ""))
        arguments = redact(readable_arguments(question.arguments, sys.maxsize).plain)  # before a key is divided
        for line in arguments.split("\n"):
            sys.stderr.write(indent(continued(WIDTH - 2, "", line).plain, "  ") + "\n")
        answers = "y yes, n no" if question.why else "y yes, s for this conversation, a always, n no, never"
        async with self._asking:
            answer = (await self._answer(f"Run it? {answers}:")).lower()
        offered = not question.why or answer == "y"
        self.session.tools.approve(question.id, ANSWERS.get(answer, "no") if offered else "no")

    def _end_line(self) -> None:
        if self._mid_line:
            write("")
            self._mid_line = False

    # -- commands ------------------------------------------------------------------------------------------------------

    async def say(self, text: str, *, passing: bool = False) -> None:
        """Print on standard output."""
        write(clean_text(text))

    async def refuse(self, text: str) -> None:
        """Print on standard error."""
        complain(text)

    def progress(self, text: str) -> AbstractAsyncContextManager[None]:
        """Shows nothing: a line can't be taken back."""
        return nullcontext()

    async def show(self, view: View) -> None:
        """Print all lines."""
        for line in await view.lines(WIDTH):
            write(_SIGNS.sub(" ", line.plain).rstrip())

    async def choose(self, menu: Menu) -> str | None:
        """Print the list and how to name an entry; nothing is read, since the next line of a pipe is no answer."""
        options = await menu.source("")
        rows = []
        for option in options[:LISTED]:
            name = option.name or option.key
            label = "" if option.label == name else option.label
            rows.append(("*" if option.current else " ", name, label, option.detail.strip()))
        if not rows:
            write(f"{menu.empty[:1].upper()}{menu.empty[1:]}.")
            return None
        write(table(rows))
        current = "* in use now. " if any(option.current for option in options) else ""
        more = f" {len(options) - LISTED:,} more are not listed." if len(options) > LISTED else ""
        write(f"{current}{menu.usage} chooses one.{more}")
        return None

    async def confirm(self, question: Question) -> str | None:
        """Print the text and the answers by their keys. Nobody is asked in a pipe, which has messages only."""
        if not self.interactive:
            if question.default is None:
                write(clean_text(question.text))
                complain(question.otherwise)
            return question.default
        write(clean_text(question.text))
        answers = {option.key: option for option in question.answers if option.key}
        for option in answers.values():
            write("  " + clean_line(f"{option.key}: {option.label}" + (f", {option.detail}" if option.detail else "")))
        answer = (await self._answer(f"{question.title} ({', '.join(answers)}, or Enter to cancel)")).lower()
        return answer if answer in answers else None

    async def ask(self, form: Form) -> Mapping[str, str] | None:
        """Ask for each field on a line; a required field left empty cancels."""
        if not self.interactive:
            complain(form.otherwise)
            return None
        write(clean_line(f"{form.title}. {form.text}".rstrip(". ") + "."))
        values: dict[str, str] = {}
        for field in form.fields:
            default = f" [{field.value}]" if field.value else f" ({field.hint})" if field.hint else ""
            value = await self._answer(clean_line(f"{field.label}{default}:")) or field.value
            if field.required and not value:
                complain("cancelled")
                return None
            values[field.name] = value
        if form.submit is not None:
            try:
                write(await form.submit(values))
            except RejectedError as error:
                complain(str(error))
                return None
        return values

    async def edit(self, text: SummaryText) -> bool:
        """Print it, and ask until it is accepted or left. Nobody is asked in a pipe."""
        edited = text.text
        while True:
            weight = await text.measure(edited)
            write(f"{text.title}. {text.about(weight)}")
            write(clean_text(edited))
            write(f"({weight.line})")
            if weight.problem:
                complain(weight.problem)
            if not self.interactive:
                complain("nobody can be asked here: the summary stays as it is")
                return False
            accept = "" if weight.problem else f"y {text.accept_label}, "
            match (await self._answer(f"{accept}e write another one, n cancel:")).lower():
                case "y" if not weight.problem:
                    try:
                        await text.accept(edited)
                    except ExpectedError as error:
                        complain(str(error))
                    else:
                        return True
                case "e":
                    write(f"{FENCE} begins and ends a text of several lines.")
                    edited = await self._text("summary:") or edited
                case "n" | "":
                    return False

    async def attach(self, session: ChatSession) -> None:
        """Switch to the conversation: print the model and where it ended."""
        self._chat.attached = session
        self.introduce()

    async def changed(self) -> None:
        """Measure again; the next turn shows the result."""
        await self.session.refresh_usage()

    async def copy(self, text: str) -> None:
        """Copy with the system's tools only."""
        text = clean_copied(text)
        if (tool := await run_copy_tool(text)) is None:
            complain("The clipboard is not available here: /export FILE writes the conversation to a file.")
        else:
            write(copied_line("", len(text), tool))

    async def leave(self) -> None:
        """End the chat after this command."""
        self._leaving = True
