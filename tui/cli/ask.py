"""`chatctx ask`: one question, the answer streamed to standard output."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tui.chat.attachments import LARGEST, check_taken
from tui.chat.conversation.events import (
    ApprovalAsked,
    CompactionFinished,
    CompactionStarted,
    ContextTrimmed,
    Notice,
    ReplyDelta,
    ReplyFinished,
    RetryScheduled,
    SessionEvent,
    TurnFailed,
)
from tui.chat.store.finding import UsageError
from tui.chat.store.reading import TooLargeError, read_all
from tui.chat.turn.session import ChatSession
from tui.chat.workspace import Workspace
from tui.cli import FAILED, INTERRUPTED, complain
from tui.cli.countdown import Countdown
from tui.cli.interrupts import on_interrupt
from tui.commands.registry import COMMANDS
from tui.config.settings import Settings
from tui.messages import Attachment, Message, ToolCall
from tui.text.clean import clean_line, clean_text
from tui.text.names import arguments_summary
from tui.tools.approval import matches


def run(args: Namespace, settings: Settings) -> int:
    """Ask and print. 0 for a whole answer, 1 for none or part of one, 130 when interrupted."""
    return asyncio.run(_ask(args, settings))


async def _ask(args: Namespace, settings: Settings) -> int:
    text = read_question(args.text)
    system = read_system(args)
    workspace = await Workspace.open(settings)
    try:
        workspace.servers.start()
        attachments = [await workspace.attach(path) for path in args.attach]
        named = (args.resume or None) if args.session is None else args.session  # None: the last one
        resumes = args.last or args.session is not None or args.resume is not None
        session = await (workspace.resume(named) if resumes else workspace.new_session())
        check_taken(attachments, session.capabilities, session.model)
        if system is not None:
            await session.set_system(system)
        for notice in (*session.memory.notices, *workspace.servers.news()):
            complain(notice)
        interrupted = asyncio.Event()
        on_interrupt(partial(_interrupt, session, interrupted))
        began = time.time()
        outcome = await _stream(session, text, attachments, silent=args.json, allowed=args.allow)
        if args.json:
            spent = [call.cost for call in await workspace.calls(session.id) if call.at >= began]
            cost = sum(known) if len(known := [c for c in spent if c is not None]) == len(spent) else None
            result = _result(session, outcome) | {"cost": cost, "seconds": round(time.time() - began, 3)}
            sys.stdout.write(json.dumps(result) + "\n")
        code = outcome.exit_code()
        return INTERRUPTED if code and interrupted.is_set() else code
    finally:
        await workspace.close()


def _interrupt(session: ChatSession, interrupted: asyncio.Event) -> None:
    interrupted.set()
    session.cancel()


def read_question(words: Sequence[str]) -> str:
    """The question from the command line, `-` replaced by standard input. Raises `UsageError` for an empty one.

    Without words it is what a pipe brings; a person at a terminal has forgotten them.
    """
    if not words and not sys.stdin.isatty():
        words = ["-"]
    pieces = [_standard_input() if word == "-" else word for word in words]
    text = "\n\n".join(pieces) if "-" in words else " ".join(pieces)
    if not text.strip():
        raise UsageError("the question is empty; write it after ask, or pipe it in with: chatctx ask -")
    return text


def _standard_input() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def read_system(args: Namespace) -> str | None:
    """The system prompt asked for; None leaves what is set. Raises `UsageError`."""
    path: Path | None = args.system_file
    if path is None:
        system: str | None = args.system
        return system
    try:
        return read_all(path, LARGEST).decode("utf-8-sig").replace("\r\n", "\n")
    except TooLargeError:
        raise UsageError(f"--system-file: {path} is too large") from None
    except OSError as error:
        raise UsageError(f"--system-file: {path} can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UsageError(f"--system-file: {path} is not UTF-8 text") from None


_COMMAND = re.compile(rf"(?<![\w/.:])/({'|'.join(command.name for command in COMMANDS)})\b(?!/|\.\w)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a question: the reply, whole or not, or why there is none."""

    reply: Message | None
    failure: str

    def exit_code(self) -> int:
        """0 for a whole answer; else says why on standard error."""
        reply = self.reply
        if self.failure:
            return complain(_outside(self.failure))
        if reply is not None and reply.status == "cancelled":
            return INTERRUPTED
        if reply is None or reply.status != "complete":
            return complain(_outside((reply and reply.error) or "no answer came"), FAILED)
        return 0


def _outside(text: str) -> str:
    """What went wrong; where its way on is a command of the chat, also how to get there."""
    return f"{text} (in the chat: chatctx --continue)" if _COMMAND.search(text) else text


async def _stream(
    session: ChatSession, text: str, attachments: Sequence[Attachment], *, silent: bool, allowed: Sequence[str]
) -> Outcome:
    """Ask, and write the answer to standard output as it comes unless `silent`. Tools in `allowed` need not ask."""
    reply: Message | None = None
    failure = ""
    countdown = Countdown()
    async for event in session.send(text, attachments):
        countdown.stop()
        match event:
            case ReplyDelta(kind="text" | "refusal", text=piece) if not silent:
                sys.stdout.write(clean_text(piece) if sys.stdout.isatty() else piece)
                sys.stdout.flush()
            case ReplyFinished(message):
                reply = message
                calls = [part for part in message.parts if isinstance(part, ToolCall)]
                if calls and not silent and message.text:
                    sys.stdout.write("\n")  # what is said on the way and the answer are two texts
                for call in calls:
                    complain(f"calls {clean_line(call.name)} {arguments_summary(call.arguments)}".rstrip())
            case ApprovalAsked(id=ask_id, call=call, why=why):
                yes = matches(call.name, allowed)
                if not yes:
                    reason = f" ({why})" if why else ""
                    complain(f"{clean_line(call.name)} was not run{reason}: nobody can be asked; --allow {call.name}")
                session.tools.approve(ask_id, "once" if yes else "no")
            case RetryScheduled():
                countdown.start(event, event_line(event))
            case TurnFailed(reason):
                failure = reason
            case _:
                if line := event_line(event):
                    complain(_outside(line))
    if not silent and reply is not None and reply.text and not reply.text.endswith("\n"):
        sys.stdout.write("\n")
    return Outcome(reply, failure)


def event_line(event: SessionEvent) -> str:
    """What a person should know while waiting, for standard error."""
    match event:
        case Notice(text=text):
            return text
        case CompactionStarted(automatic):
            return "Compacting, the window is nearly full" if automatic else "Compacting"
        case ContextTrimmed() | CompactionFinished():
            return event.line
        case RetryScheduled(seconds, attempt, reason):
            return f"{reason} Asking again in {max(1, round(seconds))} s (attempt {attempt + 1})"
        case _:
            return ""


def _result(session: ChatSession, outcome: Outcome) -> dict[str, object]:
    reply, failure = outcome.reply, outcome.failure
    usage = reply.usage if reply else None
    return {
        "session": session.id,
        "provider": session.provider,
        "model": session.model,
        "status": reply.status if reply else "failed",
        "text": reply.text if reply else "",
        "error": failure or (reply.error if reply else None),
        "usage": None
        if usage is None
        else {
            "input_total": usage.input_total,
            "input_cached": usage.input_cached,
            "input_cache_write": usage.input_cache_write,
            "output_total": usage.output_total,
            "reasoning": usage.reasoning,
            "source": usage.source,
        },
    }
