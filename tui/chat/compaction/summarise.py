"""The summary by the model, from requests that fit the window, with fallbacks when they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from tui.chat.compaction.prompt import most_output, source_capacity, split_source, split_text, summary_request
from tui.chat.conversation.completion import Completion
from tui.context.reduction.compaction import summary_allowance
from tui.context.usage.limits import Budget
from tui.messages import Message, Request, Usage
from tui.providers.base import ErrorKind, ProviderError

RETRIES = 3  # of a summary request that overflowed or failed, each smaller than the previous one
TRUNCATED_BELOW = 0.6  # of a source's tokens: a server that reports less has cut it
LEAST_CAPACITY = 64  # tokens of source; smaller requests are not worth making
LEAST_DOUBTED = 1_000  # tokens; below that estimates are too inaccurate to detect a cut
HOPELESS: frozenset[ErrorKind] = frozenset({"auth", "not_found", "rate_limit", "overloaded", "network", "stalled"})

READ_IN_PART = "the server read only part of what was sent (Ollama: OLLAMA_CONTEXT_LENGTH, num_ctx)"
CUT_MARK = "[The summary ends here: it met its output limit.]"
HEADER = "[Summary of the earlier conversation. The messages it stands for are not shown any more.]"


class SummaryFailedError(Exception):
    """No summary could be made. `str()` is one line for a person."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary. `cut`: it, or that of a part, met its output limit each time."""

    text: str
    cut: bool = False


def outgoing_summary(text: str) -> str:
    """A summary as it is sent: under a heading that tells the model what it is."""
    return f"{HEADER}\n\n{text.strip()}"


def summary_text(outgoing: str) -> str:
    """The inverse of `outgoing_summary`."""
    return outgoing.removeprefix(HEADER).strip()


async def summarise(
    complete: Callable[[Request], Awaitable[Completion]],
    source: Sequence[Message],
    *,
    base: Request,
    budget: Budget,
    count: Callable[[str], int],
    instructions: str = "",
    prefix: Request | None = None,
    allowance: int | None = None,
    least_read: float = TRUNCATED_BELOW,
) -> Summary:
    """A summary of `source`. Raises `SummaryFailedError`.

    `budget` is that of the model that writes it, `allowance` the most tokens it should have: by default those that fit
    `budget`. `prefix` (see `prefix_request`) is tried first. `count` gives the tokens of a text and runs in a thread.
    If a server read less than the share `least_read` of a request's tokens (by `count`), it cut the request, and the
    answer is not used.
    """
    allowance = summary_allowance(budget) if allowance is None else allowance
    work = _Summariser(complete, base, budget, allowance, count, instructions, least_read)
    text = await work.run(source, prefix)
    return Summary(text, work.ends_early)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The outcome of a request: `problem` is "" if complete. `read`: tokens of a prompt that the server cut, or 0."""

    text: str
    problem: str = ""
    cut: bool = False
    read: int = 0


@dataclass(slots=True)
class _Summariser:
    """A summary in progress.

    A source larger than the window is sent in parts, each request carrying the summary so far. A request that
    overflows, fails or returns nothing is repeated with half the source, up to `RETRIES` times. One whose answer is cut
    at its limit is repeated once with half the requested length; if that is cut too its complete lines are used, and
    marked: a small model may never stop, and without its answer more would be lost.
    """

    complete: Callable[[Request], Awaitable[Completion]]
    base: Request
    budget: Budget
    allowance: int
    count: Callable[[str], int]
    instructions: str
    least_read: float
    capacity: int = field(init=False)  # tokens of source for each request
    longest: int = field(init=False)  # tokens of a part's summary that the next request can carry
    retries: int = RETRIES
    chunks: list[str] = field(default_factory=list)
    done: int = 0  # summarised chunks
    carried: str = ""  # their summary
    cuts: int = 0  # answers that met their limit
    cut_at: int = -1  # the chunk of the last one
    ends_early: bool = False

    def __post_init__(self) -> None:
        self.capacity = source_capacity(self.budget, self.allowance, self.count, self.instructions)
        self.longest = most_output(self.budget, self.allowance)

    async def run(self, source: Sequence[Message], prefix: Request | None) -> str:
        """The summary of `source`."""
        if prefix is not None:
            answer = await self.ask(prefix)
            if not answer.problem and not answer.read:
                return answer.text
            self.retries -= 1
            if answer.read:
                self.capacity = min(self.capacity, int(self.least_read * answer.read))
            elif answer.cut:
                self.cuts, self.cut_at = 1, 0
        if self.capacity < LEAST_CAPACITY:
            raise SummaryFailedError("This window is too small for a summary of the conversation.")
        self.chunks = list(await asyncio.to_thread(split_source, source, self.capacity, self.count))
        while self.done < len(self.chunks):
            await self.next_chunk()
        if not self.carried:
            raise SummaryFailedError("There was nothing to summarise.")
        return self.carried

    # -- one request ---------------------------------------------------------------------------------------------

    async def ask(self, request: Request) -> _Answer:
        """Raises `SummaryFailedError` if a retry is pointless."""
        try:
            completion = await self.complete(request)
        except ProviderError as error:
            if error.kind in HOPELESS:
                raise SummaryFailedError(f"No summary could be made: {error}") from error
            return _Answer("", str(error))
        text = completion.text.strip()
        problem = completion.problem or ("" if text else "the model answered with nothing")
        read = await asyncio.to_thread(self.read_in_part, request, completion.usage)
        return _Answer(text, problem, completion.cut, read)

    def read_in_part(self, request: Request, usage: Usage | None) -> int:
        """The tokens read by a server that silently cut the request; 0 if it read all of it."""
        if usage is None or not usage.input_total:
            return 0
        read = usage.input_total + (usage.cleared or 0)
        sent = sum(self.count(message.text) for message in request.messages)
        return read if sent > LEAST_DOUBTED and read < self.least_read * sent else 0

    # -- one chunk -----------------------------------------------------------------------------------------------

    async def next_chunk(self) -> None:
        answer = await self.ask(
            summary_request(
                self.base,
                self.chunks[self.done],
                part=self.done + 1,
                parts=len(self.chunks),
                carried=self.carried,
                instructions=self.instructions,
                budget=self.budget,
                allowance=self.allowance,
                cuts=self.cuts,
            )
        )
        too_long = (
            not answer.problem and self.cuts > 0 and await asyncio.to_thread(self.count, answer.text) > self.longest
        )
        if too_long:
            answer = replace(answer, problem="the summary is longer than there is room for")
        elif not answer.problem and answer.read:
            answer = replace(answer, problem=READ_IN_PART)
            self.capacity = min(self.capacity, 2 * int(self.least_read * answer.read))  # which is halved
        last_try = self.cut_at == self.done or not self.retries
        if answer.cut and answer.text and not answer.read and last_try:  # there will be no better one
            answer = await self.shortened(answer)
        if not answer.problem:
            self.carried, self.done = answer.text, self.done + 1
            return
        if not self.retries or (answer.cut and last_try):
            raise SummaryFailedError(f"No summary could be made: {answer.problem}")
        self.retries -= 1
        if answer.cut or too_long:
            self.cuts, self.cut_at = self.cuts + 1, self.done
        else:
            await asyncio.to_thread(self.halve)

    async def shortened(self, answer: _Answer) -> _Answer:
        text = await asyncio.to_thread(_whole_lines, answer.text, self.longest, self.count)
        if self.done + 1 == len(self.chunks):
            text = f"{text}\n\n{CUT_MARK}"
        self.ends_early = True
        return replace(answer, text=text, problem="")

    def halve(self) -> None:
        """Half the capacity, or half of the next chunk if that is less; the rest is split accordingly."""
        left = self.chunks[self.done :]
        self.capacity = max(LEAST_CAPACITY, min(self.capacity, self.count(left[0])) // 2)
        parts = [part for chunk in left for part in split_text(chunk, self.capacity, self.count)]
        self.chunks = self.chunks[: self.done] + parts


def _whole_lines(text: str, longest: int, count: Callable[[str], int]) -> str:
    """A cut `text` in at most `longest` tokens, without its incomplete last line if it has others."""
    start = split_text(text, longest, count)[0].rstrip()
    lines, _, last = start.rpartition("\n")
    return start if not lines.strip() or last.endswith((".", "!", "?", "。")) else lines.rstrip()
