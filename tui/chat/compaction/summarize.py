"""The compaction call: a summary by the model, from requests that fit the window, with a ladder down when they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tui.chat.compaction.request import most_output, source_capacity, summary_request
from tui.chat.compaction.source import split_source, split_text
from tui.chat.conversation.meter import TRUNCATED_BELOW
from tui.context.usage.limits import Budget
from tui.messages import Message, Request, Usage
from tui.providers.base import ErrorKind, Provider, ProviderError, StreamEnd, TextDelta, UsageUpdate

RETRIES = 3  # of a summary request that overflowed or failed, each smaller than the one before
LEAST_CAPACITY = 64  # tokens of source below which a request is not worth making
LEAST_DOUBTED = 1_000  # tokens of a request that a server may have cut: estimates of small ones are too far off
HOPELESS: frozenset[ErrorKind] = frozenset({"auth", "not_found", "rate_limit", "overloaded", "network", "stalled"})

CUT_MARK = "[The summary ends here: it met its output limit.]"
HEADER = "[Summary of the earlier conversation. The messages it stands for are not shown any more.]"


class SummaryFailedError(Exception):
    """No summary could be had. `str()` says why, in one line for a person. `usages` is what the attempts cost."""

    def __init__(self, message: str, usages: tuple[Usage, ...] = ()) -> None:
        super().__init__(message)
        self.usages = usages


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of the model. `complete` is False for one that broke off, or was `cut` at its output limit."""

    text: str
    usage: Usage | None = None
    complete: bool = True
    cut: bool = False

    @property
    def problem(self) -> str:
        """Why it is not whole, "" where it is."""
        if self.complete:
            return ""
        return "the summary was cut off at its output limit" if self.cut else "the answer broke off"


Complete: TypeAlias = Callable[[Request], Awaitable[Completion]]


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary and what it took. `usages` are for the bill only: they measure requests beside the conversation.

    `cut`: it, or that of a part, met its output limit each time.
    """

    text: str
    requests: int
    usages: tuple[Usage, ...] = ()
    cut: bool = False

    @property
    def outgoing(self) -> str:
        """The text of the summary message."""
        return outgoing_summary(self.text)


def outgoing_summary(text: str) -> str:
    """A summary as it goes out: under a heading that tells the model what it is."""
    return f"{HEADER}\n\n{text.strip()}"


def summary_text(outgoing: str) -> str:
    """The inverse of `outgoing_summary`."""
    return outgoing.removeprefix(HEADER).strip()


async def summarise(
    complete: Complete,
    source: Sequence[Message],
    *,
    base: Request,
    budget: Budget,
    count: Callable[[str], int],
    instructions: str = "",
    prefix: Request | None = None,
    goal: Budget | None = None,
    least_read: float = TRUNCATED_BELOW,
) -> Summary:
    """A summary of `source` by the model of `base`, whose budget is `budget`.

    `goal` is the budget the summary is to fit where another model goes on with it.

    Source larger than the window goes in parts, each request carrying the summary so far. `prefix` (see
    `prefix_request`) is tried first. A request that overflows, fails or brings nothing is repeated with half the
    source, three times in all; then `SummaryFailedError`. One whose answer is cut at its limit is repeated once with
    half the length asked for; what is cut then too is taken as far as its lines are whole, and marked: a small model
    may go on for ever, and without it more would be lost. `count` gives the tokens of a text and runs in a thread. A
    request of which a server read less than the share `least_read`, as `count` has it, was cut there: its
    answer is not taken.
    """
    usages: list[Usage] = []
    requests, retries, capacity = 0, RETRIES, source_capacity(budget, count, instructions, goal)
    longest = most_output(budget, goal)  # tokens of a part's summary: what the next part's request has room for
    cuts, cut_at = 0, -1  # answers that met their limit, and the part the last one was of
    if prefix is not None:
        requests += 1
        answer, problem = await _attempt(complete, prefix, usages)
        read = await asyncio.to_thread(_read_in_part, prefix, answer, count, least_read)
        if not problem and not read:
            return Summary(answer.text.strip(), requests, tuple(usages))
        retries -= 1
        if read:
            capacity = min(capacity, int(least_read * read))
        elif answer.cut:
            cuts, cut_at = 1, 0
    if capacity < LEAST_CAPACITY:
        raise SummaryFailedError("This window is too small for a summary of the conversation.", tuple(usages))
    chunks = list(await asyncio.to_thread(split_source, source, capacity, count))
    carried, done, ends_early = "", 0, False
    while done < len(chunks):
        request = summary_request(
            base,
            chunks[done],
            part=done + 1,
            parts=len(chunks),
            carried=carried,
            instructions=instructions,
            budget=budget,
            goal=goal,
            cuts=cuts,
        )
        requests += 1
        answer, problem = await _attempt(complete, request, usages)
        text = answer.text.strip()
        long = not problem and cuts > 0 and await asyncio.to_thread(count, text) > longest
        if long:
            problem = "the summary is longer than there is room for"
        read = await asyncio.to_thread(_read_in_part, request, answer, count, least_read)
        if not problem and read:
            problem = "the server read only part of what was sent (Ollama: OLLAMA_CONTEXT_LENGTH, num_ctx)"
            capacity = min(capacity, 2 * int(least_read * read))  # which is halved
        if answer.cut and text and not read and (cut_at == done or not retries):
            text = await asyncio.to_thread(_whole_lines, text, longest, count)
            if done + 1 == len(chunks):
                text = f"{text}\n\n{CUT_MARK}"
            problem, ends_early = "", True
        if not problem:
            carried, done = text, done + 1
            continue
        if not retries or (answer.cut and cut_at == done):
            raise SummaryFailedError(f"No summary could be made: {problem}", tuple(usages))
        retries -= 1
        if answer.cut or long:
            cuts, cut_at = cuts + 1, done
            continue
        capacity, rest = await asyncio.to_thread(_halved, chunks[done:], capacity, count)
        chunks = chunks[:done] + rest
    if not carried:
        raise SummaryFailedError("There was nothing to summarise.", tuple(usages))
    return Summary(carried, requests, tuple(usages), cut=ends_early)


def _whole_lines(text: str, longest: int, count: Callable[[str], int]) -> str:
    """`text`, which was cut, in at most `longest` tokens, without a last line that is not whole where it has others."""
    kept = split_text(text, longest, count)[0].rstrip()
    lines, _, last = kept.rpartition("\n")
    return kept if not lines.strip() or last.endswith((".", "!", "?", "。")) else lines.rstrip()


def _halved(chunks: Sequence[str], capacity: int, count: Callable[[str], int]) -> tuple[int, list[str]]:
    """Half the capacity, or half of the first of `chunks` where that is less; and all of them in such parts."""
    capacity = max(LEAST_CAPACITY, min(capacity, count(chunks[0])) // 2)
    return capacity, [part for chunk in chunks for part in split_text(chunk, capacity, count)]


def _read_in_part(request: Request, answer: Completion, count: Callable[[str], int], least: float) -> int:
    """The tokens a server read of a request that it cut in silence; 0 where it read all of it."""
    usage = answer.usage
    if usage is None or not usage.input_total:
        return 0
    read = usage.input_total + (usage.cleared or 0)
    sent = sum(count(message.text) for message in request.messages)
    return read if sent > LEAST_DOUBTED and read < least * sent else 0


async def _attempt(complete: Complete, request: Request, usages: list[Usage]) -> tuple[Completion, str]:
    """The answer, and what is wrong with it, "" for nothing.

    Raises `SummaryFailedError` where trying again is of no use.
    """
    try:
        answer = await complete(request)
    except ProviderError as error:
        if error.kind in HOPELESS:
            raise SummaryFailedError(f"No summary could be made: {error}", tuple(usages)) from error
        return Completion("", complete=False), str(error)
    if answer.usage is not None:
        usages.append(answer.usage)
    return answer, answer.problem or ("" if answer.text.strip() else "the model answered with nothing")


def complete_with(provider: Provider) -> Complete:
    """`Complete` by a provider: the answer's text and usage; a stream without its end marker is not complete.

    Nor is one that ended at its output limit: what a summary says last, open questions and the next step, is missing.
    """

    async def complete(request: Request) -> Completion:
        texts: list[str] = []
        usage: Usage | None = None
        ended = cut = False
        stream = provider.stream(request)
        try:
            async for event in stream:
                match event:
                    case TextDelta(text):
                        texts.append(text)
                    case UsageUpdate(latest):
                        usage = latest
                    case StreamEnd(kind):
                        ended, cut = kind in ("stop", "other"), kind == "length"
                    case _:
                        pass
        finally:
            await stream.aclose()
        return Completion("".join(texts), usage, ended, cut)

    return complete
