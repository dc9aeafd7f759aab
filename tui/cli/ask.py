"""`chatctx ask`: one question, the answer streamed to standard output."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from argparse import Namespace
from collections.abc import Sequence

from tui.chat.events import (
    CompactionFinished,
    ContextTrimmed,
    Notice,
    ReplyDelta,
    ReplyFinished,
    RetryScheduled,
    SessionEvent,
    TurnFailed,
)
from tui.chat.session import ChatSession
from tui.chat.workspace import UsageError, Workspace
from tui.cli import FAILED, INTERRUPTED, complain
from tui.config import Settings
from tui.messages import Message


def run(args: Namespace, settings: Settings) -> int:
    """Ask and print. 0 for a whole answer, 1 for none or part of one, 130 when interrupted."""
    return asyncio.run(_ask(args, settings))


async def _ask(args: Namespace, settings: Settings) -> int:
    text = read_question(args.text)
    workspace = await Workspace.open(settings)
    try:
        resumes = args.session or args.last
        session = await (workspace.resume(args.session) if resumes else workspace.new_session())
        for notice in session.memory.notices:
            complain(notice)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, session.cancel)
        return await _stream(session, text, as_json=args.json)
    finally:
        await workspace.close()


def read_question(words: Sequence[str]) -> str:
    """The question from the command line, `-` replaced by standard input. Raises `UsageError` for an empty one."""
    pieces = [_standard_input() if word == "-" else word for word in words]
    text = "\n\n".join(pieces) if "-" in words else " ".join(pieces)
    if not text.strip():
        raise UsageError("the question is empty; write it after ask, or pipe it in with: chatctx ask -")
    return text


def _standard_input() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace")


async def _stream(session: ChatSession, text: str, *, as_json: bool) -> int:
    reply: Message | None = None
    failure = ""
    async for event in session.send(text):
        match event:
            case ReplyDelta(kind="text" | "refusal", text=piece) if not as_json:
                sys.stdout.write(piece)
                sys.stdout.flush()
            case ReplyFinished(message):
                reply = message
            case TurnFailed(reason):
                failure = reason
            case _:
                if line := _line(event):
                    complain(line)
    if as_json:
        sys.stdout.write(json.dumps(_result(session, reply, failure)) + "\n")
    elif reply is not None and reply.text and not reply.text.endswith("\n"):
        sys.stdout.write("\n")
    if failure:
        return complain(failure)
    if reply is not None and reply.status == "cancelled":
        return INTERRUPTED
    if reply is None or reply.status != "complete":
        return complain((reply and reply.error) or "no answer came", FAILED)
    return 0


def _line(event: SessionEvent) -> str:
    """What a person should know while waiting, for standard error."""
    match event:
        case Notice(text=text):
            return text
        case ContextTrimmed(messages, tokens):
            return f"Context trimmed: {messages:,} messages, {tokens:,} tokens left out"
        case CompactionFinished(messages, before, after):
            return f"Compacted {messages:,} messages: {before:,} -> {after:,} tokens"
        case RetryScheduled(seconds, attempt, reason):
            return f"{reason} Asking again in {seconds:.0f} s (attempt {attempt})"
        case _:
            return ""


def _result(session: ChatSession, reply: Message | None, failure: str) -> dict[str, object]:
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
