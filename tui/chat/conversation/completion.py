"""One answer of a model outside of the conversation: a summary, or what an MCP server wants. Billed like any other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from tui.chat.attachments import with_bytes
from tui.chat.runtime.services import Services
from tui.chat.runtime.tasks import uninterrupted
from tui.chat.store.calls import CallKind, billed_model
from tui.messages import Request, Usage
from tui.providers.base import ModelNamed, Provider, ProviderError, StreamEnd, TextDelta, UsageUpdate


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer of the model. `complete` is False if it broke off, or was `cut` at its output limit.

    `answered_by` is the model as the server names it, "" if it doesn't.
    """

    text: str
    usage: Usage | None = None
    complete: bool = True
    cut: bool = False
    answered_by: str = ""

    @property
    def problem(self) -> str:
        """Why it is incomplete, "" if it is not."""
        if self.complete:
            return ""
        return "the summary was cut off at its output limit" if self.cut else "the answer broke off"


Complete: TypeAlias = Callable[[Request], Awaitable[Completion]]


def complete_with(provider: Provider) -> Complete:
    """`Complete` by a provider: the answer's text and usage. A stream without an end marker is incomplete.

    So is one that ended at its output limit, since a summary ends with open questions and the next step.
    """

    async def complete(request: Request) -> Completion:
        texts: list[str] = []
        usage: Usage | None = None
        ended = cut = False
        answered_by = ""
        stream = provider.stream(request)
        try:
            async for event in stream:
                match event:
                    case TextDelta(text):
                        texts.append(text)
                    case UsageUpdate(latest):
                        usage = latest
                    case ModelNamed(model):
                        answered_by = model
                    case StreamEnd(kind):
                        ended, cut = kind in ("stop", "other"), kind == "length"
                    case _:
                        pass
        finally:
            await stream.aclose()
        return Completion("".join(texts), usage, ended, cut, answered_by)

    return complete


def billed(complete: Complete, services: Services, kind: CallKind) -> Complete:
    """`complete` with a row in the call log: it is billed, but does not measure the conversation."""

    def finish(call: str, request: Request, answer: Completion | None, seconds: float, problem: str | None) -> None:
        usage, answered_by = (answer.usage, answer.answered_by) if answer is not None else (None, "")
        model = billed_model(request.model, answered_by)
        cost = services.price(usage, request.provider, model) if usage else None
        services.calls.finish(call, usage=usage, seconds=seconds, error=problem, cost=cost, answered_by=answered_by)

    async def complete_billed(request: Request) -> Completion:
        started = time.monotonic()
        begin = asyncio.to_thread(services.calls.begin, request, None, message=None, kind=kind)
        call = await uninterrupted(begin)
        answer: Completion | None = None
        problem: str | None = "cancelled"
        try:
            answer = await complete(await asyncio.to_thread(with_bytes, request, services.store.blob))
            problem = None if answer.cut else answer.problem or None  # as for any answer: being cut is not a failure
        except ProviderError as error:
            problem = str(error)
            raise
        finally:
            seconds = time.monotonic() - started
            await uninterrupted(asyncio.to_thread(finish, call, request, answer, seconds, problem))
        return answer

    return complete_billed
