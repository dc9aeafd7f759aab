"""The summary by the model, from requests that fit the window, with fallbacks when they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tui.chat.compaction.request import most_output, source_capacity, summary_request
from tui.chat.compaction.source import split_source, split_text
from tui.chat.conversation.completion import Complete
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
    """No summary could be made. `str()` is one line for a person. `usages` are those of the attempts."""

    def __init__(self, message: str, usages: tuple[Usage, ...] = ()) -> None:
        super().__init__(message)
        self.usages = usages


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary and its cost. `usages` are for billing only: they don't measure the conversation.

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
    """A summary as it is sent: under a heading that tells the model what it is."""
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
    """A summary of `source`. Raises `SummaryFailedError`.

    `goal` is the budget that the summary has to fit if another model continues with it. `prefix` (see `prefix_request`)
    is tried first. `count` gives the tokens of a text and runs in a thread. If a server read less than the share
    `least_read` of a request's tokens (by `count`), it cut the request, and the answer is not used.
    """
    work = _Summariser(complete, base, budget, goal, count, instructions, least_read)
    return await work.run(source, prefix)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The outcome of a request: `problem` is "" if complete. `read`: tokens of a prompt that the server cut, or 0."""

    text: str
    problem: str = ""
    cut: bool = False
    read: int = 0


class _Summariser:
    """A summary in progress.

    A source larger than the window is sent in parts, each request carrying the summary so far. A request that
    overflows, fails or returns nothing is repeated with half the source, up to `RETRIES` times. One whose answer is cut
    at its limit is repeated once with half the requested length; if that is cut too its complete lines are used, and
    marked: a small model may never stop, and without its answer more would be lost.
    """

    def __init__(
        self,
        complete: Complete,
        base: Request,
        budget: Budget,
        goal: Budget | None,
        count: Callable[[str], int],
        instructions: str,
        least_read: float,
    ) -> None:
        self._complete = complete
        self._base = base
        self._budget = budget
        self._goal = goal
        self._count = count
        self._instructions = instructions
        self._least_read = least_read
        self._capacity = source_capacity(budget, count, instructions, goal)  # tokens of source for each request
        self._longest = most_output(budget, goal)  # tokens of a part's summary that the next request can carry
        self._usages: list[Usage] = []
        self._requests = 0
        self._retries = RETRIES
        self._chunks: list[str] = []
        self._done = 0  # summarised chunks
        self._carried = ""  # their summary
        self._cuts = 0  # answers that met their limit
        self._cut_at = -1  # the chunk of the last one
        self._ends_early = False

    async def run(self, source: Sequence[Message], prefix: Request | None) -> Summary:
        """The summary of `source`."""
        if prefix is not None:
            answer = await self._ask(prefix)
            if not answer.problem and not answer.read:
                return self._summary(answer.text)
            self._learn_from_prefix(answer)
        if self._capacity < LEAST_CAPACITY:
            raise self._failure("This window is too small for a summary of the conversation.")
        self._chunks = list(await asyncio.to_thread(split_source, source, self._capacity, self._count))
        while self._done < len(self._chunks):
            await self._next_chunk()
        if not self._carried:
            raise self._failure("There was nothing to summarise.")
        return self._summary(self._carried)

    def _summary(self, text: str) -> Summary:
        return Summary(text, self._requests, tuple(self._usages), cut=self._ends_early)

    def _failure(self, message: str) -> SummaryFailedError:
        return SummaryFailedError(message, tuple(self._usages))

    # -- one request ---------------------------------------------------------------------------------------------

    async def _ask(self, request: Request) -> _Answer:
        """Raises `SummaryFailedError` if a retry is pointless."""
        self._requests += 1
        try:
            completion = await self._complete(request)
        except ProviderError as error:
            if error.kind in HOPELESS:
                raise self._failure(f"No summary could be made: {error}") from error
            return _Answer("", str(error))
        if completion.usage is not None:
            self._usages.append(completion.usage)
        text = completion.text.strip()
        problem = completion.problem or ("" if text else "the model answered with nothing")
        read = await asyncio.to_thread(self._read_in_part, request, completion.usage)
        return _Answer(text, problem, completion.cut, read)

    def _read_in_part(self, request: Request, usage: Usage | None) -> int:
        """The tokens read by a server that silently cut the request; 0 if it read all of it."""
        if usage is None or not usage.input_total:
            return 0
        read = usage.input_total + (usage.cleared or 0)
        sent = sum(self._count(message.text) for message in request.messages)
        return read if sent > LEAST_DOUBTED and read < self._least_read * sent else 0

    def _learn_from_prefix(self, answer: _Answer) -> None:
        self._retries -= 1
        if answer.read:
            self._capacity = min(self._capacity, int(self._least_read * answer.read))
        elif answer.cut:
            self._cuts, self._cut_at = 1, 0

    # -- one chunk -----------------------------------------------------------------------------------------------

    async def _next_chunk(self) -> None:
        answer = await self._ask(self._request())
        too_long = not answer.problem and self._cuts > 0 and await self._tokens(answer.text) > self._longest
        if too_long:
            answer = replace(answer, problem="the summary is longer than there is room for")
        elif not answer.problem and answer.read:
            answer = replace(answer, problem=READ_IN_PART)
            self._capacity = min(self._capacity, 2 * int(self._least_read * answer.read))  # which is halved
        if self._has_to_do(answer):
            answer = await self._shortened(answer)
        if not answer.problem:
            self._carried, self._done = answer.text, self._done + 1
            return
        if not self._retries or (answer.cut and self._cut_at == self._done):
            raise self._failure(f"No summary could be made: {answer.problem}")
        self._retries -= 1
        if answer.cut or too_long:
            self._cuts, self._cut_at = self._cuts + 1, self._done
        else:
            await asyncio.to_thread(self._halve)

    def _request(self) -> Request:
        return summary_request(
            self._base,
            self._chunks[self._done],
            part=self._done + 1,
            parts=len(self._chunks),
            carried=self._carried,
            instructions=self._instructions,
            budget=self._budget,
            goal=self._goal,
            cuts=self._cuts,
        )

    async def _tokens(self, text: str) -> int:
        return await asyncio.to_thread(self._count, text)

    def _has_to_do(self, answer: _Answer) -> bool:
        """Whether to use a cut answer, since there will be no better one."""
        last_try = self._cut_at == self._done or not self._retries
        return answer.cut and bool(answer.text) and not answer.read and last_try

    async def _shortened(self, answer: _Answer) -> _Answer:
        text = await asyncio.to_thread(_whole_lines, answer.text, self._longest, self._count)
        if self._done + 1 == len(self._chunks):
            text = f"{text}\n\n{CUT_MARK}"
        self._ends_early = True
        return replace(answer, text=text, problem="")

    def _halve(self) -> None:
        """Half the capacity, or half of the next chunk if that is less; the rest is split accordingly."""
        left = self._chunks[self._done :]
        self._capacity = max(LEAST_CAPACITY, min(self._capacity, self._count(left[0])) // 2)
        parts = [part for chunk in left for part in split_text(chunk, self._capacity, self._count)]
        self._chunks = self._chunks[: self._done] + parts


def _whole_lines(text: str, longest: int, count: Callable[[str], int]) -> str:
    """A cut `text` in at most `longest` tokens, without its incomplete last line if it has others."""
    start = split_text(text, longest, count)[0].rstrip()
    lines, _, last = start.rpartition("\n")
    return start if not lines.strip() or last.endswith((".", "!", "?", "。")) else lines.rstrip()
