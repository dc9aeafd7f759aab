"""`chatctx ask`: one question, the answer streamed to standard output."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

from tui.chat.attachments import MAX_FILE, check_taken
from tui.chat.conversation.events import (
    ApprovalAsked,
    CompactionFinished,
    CompactionStarted,
    ContextTrimmed,
    Notice,
    ReplyDelta,
    ReplyFinished,
    ReplyStarted,
    RetryScheduled,
    SessionEvent,
    TurnFailed,
)
from tui.chat.store.calls import Totals
from tui.chat.store.database import damage_lines
from tui.chat.turn.session import ChatSession
from tui.chat.usage_report import totals
from tui.chat.workspace import Workspace
from tui.cli import INTERRUPTED, complain, streams, write
from tui.config.files import FileTooLargeError, read_all
from tui.config.settings import Settings
from tui.errors import UsageError
from tui.messages import Attachment, Message, Refusal, ToolCall
from tui.terminal.output import ERASE_LINE, write_raw
from tui.terminal.process import ENDED, ENDING, on_signals
from tui.text.clean import clean_line
from tui.text.labels import arguments_summary, ending_line, provider_explanation, source_lines, sources_of
from tui.text.numbers import size_text
from tui.tools.approval import matches
from tui.tools.files.texts import marked_encoding

USAGE = ("input_total", "input_cached", "input_cache_write", "output_total", "reasoning", "source")
"""Fields of `Usage` in the output of --json."""

WAIT = 2.0
"""Seconds to wait for standard input if there are words and no "-"."""


def run(settings: Settings, *, text: Sequence[str], **arguments: Any) -> int:
    """Run `ask`. Standard input is read first, before there is an event loop to block."""
    return asyncio.run(ask(settings, question=read_question(text), **arguments))


async def ask(
    settings: Settings,
    *,
    question: str,
    resume: str | None = None,
    attach: Sequence[Path] = (),
    allow: Sequence[str] = (),
    system: str | None = None,
    system_file: Path | None = None,
    as_json: bool = False,
) -> int:
    """Ask and print, in the session `resume` ("" is the last one) or a new one.

    Returns 0 for a complete answer, 1 for none or a part, 130 if interrupted.
    """
    prompt = read_system(system, system_file)
    workspace = await Workspace.open(settings)
    try:
        workspace.servers.start()
        attachments = [await workspace.attach(path) for path in attach]
        chat = await (workspace.new_session() if resume is None else workspace.resume(resume or None))
        check_taken(attachments, chat.conversation.target.capabilities, chat.model)
        if prompt is not None:
            await chat.set_system(prompt)
        notices = (*chat.conversation.memory.notices, *workspace.news())
        for notice in (*notices, *damage_lines(workspace.store.damage)):
            complain(notice)
        interrupted = asyncio.Event()
        started = time.time()

        def interrupt(why: str = "") -> None:
            interrupted.set()
            chat.cancel(why)

        def tell_of_servers() -> None:
            absent = workspace.servers.absent() if chat.tools.waits_for_servers else ()
            for line in (*workspace.news(), *absent):
                complain(line)

        on_signals(("SIGINT",), interrupt)
        on_signals(ENDING, partial(interrupt, ENDED))
        try:
            reply, failure = await _stream(
                chat, question, attachments, silent=as_json, allowed=allow, on_request=tell_of_servers
            )
        finally:
            await chat.stop()  # if the output can't be written
        for line in workspace.news():
            complain(line)
        if as_json:
            groups = await asyncio.to_thread(partial(workspace.services.calls.groups, chat.id, since=started))
            result = _result(chat, reply, failure, totals("ask", groups))
            write(json.dumps(result | {"seconds": round(time.time() - started, 3)}))
        code = report(reply, failure)
        return INTERRUPTED if code and interrupted.is_set() else code
    finally:
        await workspace.close()


def read_question(words: Sequence[str]) -> str:
    """The question: the words, and standard input, in place of "-" or after them.

    Reports on standard error if nothing arrived there. Raises `UsageError` for an empty question.
    """
    if "-" in words:
        text = "\n\n".join(_standard_input() if word == "-" else word for word in words)
    elif sys.stdin.isatty():
        text = " ".join(words)
    else:
        text = "\n\n".join(filter(str.strip, (" ".join(words), _standard_input(WAIT if words else None))))
    if not text.strip():
        raise UsageError("the question is empty; write it after ask, or pipe it in with: chatctx ask -")
    return text


def _standard_input(wait: float | None = None) -> str:
    data = streams.read_input(MAX_FILE, wait)
    if data is None:
        complain(
            f"standard input was not read: nothing arrived in {wait:g} s; - waits for it, </dev/null leaves it out"
        )
        return ""
    if len(data) > MAX_FILE:
        raise UsageError(f"standard input is over {size_text(MAX_FILE)}: send a part of it")
    encoding = marked_encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise UsageError("standard input is not UTF-8 text: convert it (iconv -t UTF-8), or attach a file with -a")
    if encoding not in ("utf-8", "utf-8-sig"):
        complain(f"standard input is read as {encoding.upper()}, by its byte order mark")
    return text.replace("\r\n", "\n")


def read_system(text: str | None, path: Path | None) -> str | None:
    """The system prompt given as text or as a file; None keeps the setting. Raises `UsageError`."""
    if path is None:
        return text
    if text is not None:
        raise UsageError("--system and --system-file can't go together; see chatctx ask --help")
    try:
        return read_all(path, MAX_FILE).decode("utf-8-sig").replace("\r\n", "\n")
    except FileTooLargeError:
        raise UsageError(f"--system-file: {path} is too large") from None
    except OSError as error:
        raise UsageError(f"--system-file: {path} can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UsageError(f"--system-file: {path} is not UTF-8 text") from None


def report(reply: Message | None, failure: str) -> int:
    """The exit code: 0 for a complete answer; otherwise prints on standard error why it is not."""
    if failure:
        return complain(_outside(failure))
    if reply is not None and reply.status == "cancelled":
        return INTERRUPTED
    if reply is None or reply.status != "complete":
        return complain(_outside((reply and reply.error) or "there was no answer"))
    ending, explanation = ending_line(reply), provider_explanation(reply)
    if ending and explanation:
        ending = f"{ending}. The provider says: {explanation}"
    return complain(_outside(ending)) if ending else 0


def _outside(text: str) -> str:
    """The error text; if it suggests a command or a key of the chat, also how to open the chat."""
    from tui.commands import all_commands

    names = "|".join(command.name for command in all_commands())
    suggestion = re.search(rf"(?<![\w/.:])(/({names})|f[89])\b(?!/|\.\w)", text)
    return f"{text} (in the chat: chatctx --continue)" if suggestion else text


async def _stream(
    session: ChatSession,
    text: str,
    attachments: Sequence[Attachment],
    *,
    silent: bool,
    allowed: Sequence[str],
    on_request: Callable[[], None] = lambda: None,
) -> tuple[Message | None, str]:
    """Ask, and print the answer as it arrives unless `silent`. Tools in `allowed` run without asking.

    `on_request` is called when a request has gone out, before anything of its answer is written. Returns the reply,
    complete or not, and why there is none.
    """
    reply: Message | None = None
    failure = ""
    last = ""  # piece that was written
    countdown = Countdown()
    async for event in session.send(text, attachments):
        countdown.stop()
        match event:
            case ReplyStarted():
                on_request()
            case ReplyDelta(kind="text" | "refusal", text=piece) if not silent:
                if sys.stdout.isatty():
                    sys.stdout.write(piece)
                else:
                    write_raw(sys.stdout, piece)
                sys.stdout.flush()
                last = piece
            case ReplyFinished(message):
                reply = message
                calls = call_lines(message)
                if calls and not silent and message.text:
                    sys.stdout.write("\n")  # text before a tool call and the answer are separate texts
                    last = ""
                for line in calls:
                    complain(line)
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
    if last and not last.endswith("\n"):
        sys.stdout.write("\n")
    if not silent and reply is not None and (lines := source_lines(reply)):
        sys.stdout.write("\n".join(["", "Sources:", *lines, ""]))
    return reply, failure


class Countdown:
    """The wait before a retry, on standard error: a countdown on a terminal, one line elsewhere.

    Ctrl+C ends it like an answer.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def start(self, event: RetryScheduled, line: str) -> None:
        """Show the wait; `line` is the text where nothing can count down."""
        if not sys.stderr.isatty():
            complain(line)
            return
        complain(event.reason)
        self._task = asyncio.create_task(self._run(event.seconds, event.attempt))

    def stop(self) -> None:
        """End the countdown and remove its line."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
            write_raw(sys.stderr, ERASE_LINE)
            sys.stderr.flush()

    async def _run(self, seconds: float, attempt: int) -> None:
        end = time.monotonic() + seconds
        while (seconds_left := ceil(end - time.monotonic())) > 0:
            write_raw(sys.stderr, ERASE_LINE)
            sys.stderr.write(f"chatctx: asking again in {seconds_left} s (attempt {attempt + 1}); ctrl+c stops")
            sys.stderr.flush()
            await asyncio.sleep(min(1.0, max(0.05, end - time.monotonic())))


def event_line(event: SessionEvent) -> str:
    """The notice for an event, on standard error; "" for none."""
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


def call_lines(message: Message) -> list[str]:
    """A line for each tool call of an answer, on standard error."""
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    return [f"calls {clean_line(call.name)} {arguments_summary(call.arguments)}".rstrip() for call in calls]


def _result(session: ChatSession, reply: Message | None, failure: str, sums: Totals) -> dict[str, object]:
    """For `--json`; `usage` is that of the last request, `sums` are over all requests of the turn."""
    usage = reply.usage if reply else None
    return {
        "session": session.id,
        "provider": session.provider,
        "model": session.model,
        "status": reply.status if reply else "failed",
        "finish_reason": reply.finish_reason if reply else None,
        "text": reply.text if reply else "",
        "refusal": "".join(part.text for part in (reply.parts if reply else ()) if isinstance(part, Refusal)) or None,
        "sources": [{"url": one.url, "title": one.title} for one in (sources_of(reply) if reply else ())],
        "error": failure or (reply.error if reply else None),
        "usage": None if usage is None else {name: getattr(usage, name) for name in USAGE},
        "calls": sums.calls,
        "input_tokens": sums.input,
        "output_tokens": sums.output,
        "tokens_estimated": sums.estimated,
        "cost": sums.cost.total,
        "cost_estimated": sums.cost.estimated,
    }
