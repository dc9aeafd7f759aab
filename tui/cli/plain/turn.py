"""A turn in plain lines: the streamed answer, tool calls, questions about them, and the cost."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
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
from tui.cli import complain
from tui.cli.output import write
from tui.cli.subcommands.ask import event_line
from tui.messages import Message, ToolCall
from tui.providers.keys import redact
from tui.text.clean import clean_line, clean_text
from tui.text.endings import provider_explanation, status_text
from tui.text.names import arguments_summary, label_of, short_model
from tui.text.numbers import approx, percent, tokens_exact
from tui.text.sources import source_lines
from tui.views.call_text import readable_arguments

if TYPE_CHECKING:
    from tui.cli.plain.plain import PlainChat
    from tui.tools.approval import Decision

ANSWERS: dict[str, Decision] = {"y": "once", "s": "session", "a": "always", "n": "no", "never": "never"}


class Speaker:
    """Prints the events of the turns of one chat."""

    def __init__(self, chat: PlainChat) -> None:
        self._chat = chat
        self._open = False  # whether standard output is in the middle of a line

    async def turn(self, events: AsyncIterator[SessionEvent]) -> None:
        """Print one turn to its end."""
        async for event in events:
            await self._show(event)
        self._end_line()
        usage = self._chat.session.usage
        if self._chat.talks and usage is not None:
            window = tokens_exact(usage.limits.context)
            share = "" if usage.percent is None else f", {percent(usage.percent)}"
            write(f"({approx(usage.source)}{tokens_exact(usage.total)} of {window} tokens{share})")

    def recall(self, message: Message) -> None:
        """Print an existing message."""
        write(f"{label_of(message)}: {clean_text(message.text)}")

    async def _show(self, event: SessionEvent) -> None:
        match event:
            case ReplyStarted(_, _, model) if self._chat.talks:
                write(f"{short_model(model)}:")
            case ReplyDelta(kind="text" | "refusal", text=piece) if piece:
                sys.stdout.write(clean_text(piece))
                sys.stdout.flush()
                self._open = not piece.endswith("\n")
            case ReplyFinished(message):
                self._end_line()
                for part in message.parts:
                    if isinstance(part, ToolCall):
                        complain(f"calls {clean_line(part.name)} {arguments_summary(part.arguments)}")
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
        if not self._chat.talks:
            complain(f"{name} was not run: nobody can be asked here; allow it with /tools in the chat")
            self._chat.session.tools.approve(question.id, "no")
            return
        call = f"{name} ({clean_line(question.origin)})"
        complain(f"wants to run {call}" + (f": {question.why}" if question.why else ""))
        sys.stderr.write(indent(redact(readable_arguments(question.arguments).plain), "  ") + "\n")
        answers = "y yes, n no" if question.why else "y yes, s in this conversation always, a always, n no, never"
        answer = await self._chat.ask_alone(f"Run it? {answers}:")
        decision = ANSWERS.get(answer.lower(), "no")
        self._chat.session.tools.approve(question.id, decision)

    def _end_line(self) -> None:
        if self._open:
            write("")
            self._open = False
