"""Answers of a model outside the conversation: a summary, or for an MCP server. Billed like any other."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tui.chat.attachments import with_bytes
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.meter import Meter
from tui.chat.runtime.services import Services, uninterrupted
from tui.chat.store.calls import CallKind, billed_model
from tui.chat.store.codec import PartsBuilder
from tui.messages import Message, Reasoning, Refusal, Request, SystemSection, Text, Usage
from tui.providers.base import ProviderError
from tui.providers.catalog import price
from tui.text.clean import abbreviated
from tui.text.labels import is_cut

if TYPE_CHECKING:
    from tui.tools.mcp.questions import Sampled, SampleQuestion

MAX_PROBLEM = 200  # characters


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer of the model. `problem` says why it can't be used, or was `cut` off by the server; "" if it is whole.

    `answered_by` is the model as the server names it, "" if it doesn't.
    """

    text: str
    usage: Usage | None = None
    problem: str = ""
    cut: bool = False
    answered_by: str = ""


async def complete(services: Services, kind: CallKind, request: Request) -> Completion:
    """An answer outside the conversation. Its calls are logged, and billed like any other, but measure nothing.

    An answer that is too long for the server is asked for again, as long as it allows. Raises `ProviderError`.
    """
    try:
        return await _call(services, kind, request)
    except ProviderError as error:
        most = error.answer_budget if error.kind == "overflow_output" else None
        if most is None or request.max_output is None or not 0 < most < request.max_output:
            raise
        return await _call(services, kind, replace(request, max_output=most))


async def _call(services: Services, kind: CallKind, request: Request) -> Completion:
    started = time.monotonic()
    call = await uninterrupted(asyncio.to_thread(services.calls.begin, request, None, message=None, kind=kind))
    builder = PartsBuilder(request.provider, request.model)
    problem: str | None = "cancelled"
    try:
        outgoing = await asyncio.to_thread(with_bytes, request, services.store.blob)
        async with aclosing(services.provider(request.provider).stream(outgoing)) as stream:
            async for event in stream:
                builder.apply(event)
        problem = None
    except ProviderError as error:
        problem = str(error)
        raise
    finally:
        completion, seconds = _completion(builder), time.monotonic() - started
        if problem is None and not completion.cut:  # as for any answer, being cut is not a failure
            problem = completion.problem or None
        await uninterrupted(asyncio.to_thread(_log, services, call, request, completion, seconds, problem))
    return completion


def _completion(builder: PartsBuilder) -> Completion:
    """What has arrived. Without an end marker it is incomplete.

    So is an answer that was cut off, since a summary ends with open questions and the next step.
    """
    parts, end = builder.parts(), builder.end
    text = "".join(part.text for part in parts if isinstance(part, Text))
    refusals = [part.text for part in parts if isinstance(part, Refusal)]
    cut = end is not None and is_cut(end.raw)
    problem = ""
    if refusals:
        problem = abbreviated(f"the model refused: {' '.join(' '.join(refusals).split())}", MAX_PROBLEM)
    elif cut:
        problem = "the answer was cut off"
    elif end is None or end.kind not in ("stop", "other"):
        problem = "the answer broke off"
    elif not text.strip():
        thought = any(isinstance(part, Reasoning) for part in parts)
        problem = "the model thought, but wrote no answer" if thought else "the model answered with nothing"
    return Completion(text, builder.usage, problem, cut, builder.answered_by)


def _log(
    services: Services, call: str, request: Request, completion: Completion, seconds: float, problem: str | None
) -> None:
    usage = completion.usage
    if completion.text and (usage is None or not usage.input_total):  # as for any answer that was stopped
        tokens = services.estimator.estimate(replace(request, session="")).tokens
        usage = Usage(tokens, services.counter.count_text(completion.text, request.model), source="estimated")
    services.calls.finish(
        call,
        usage=usage,
        billed=(request.provider, billed_model(request.model, completion.answered_by)),
        seconds=seconds,
        error=problem,
        answered_by=completion.answered_by,
    )


@dataclass(frozen=True, slots=True)
class PreparedSample:
    """A request for a server, and its maximal cost in tokens and US dollars, None if the price is unknown.

    `problem` says why it must not be sent, "" if it may.
    """

    request: Request
    tokens: int
    upper_bound: int
    cost: float | None
    problem: str = ""


class Sampling:
    """Completions for MCP servers by the current model of a conversation; nothing of the conversation is sent.

    They cost the person money: ask before `run`.
    """

    def __init__(self, conversation: Conversation, services: Services) -> None:
        self._conversation = conversation
        self._services = services
        self._meter = Meter(conversation, services)

    async def prepare(self, question: SampleQuestion) -> PreparedSample:
        """The request, measured."""
        target = self._conversation.target
        await self._services.models.find(target.provider, target.model)
        most = self._meter.answer_tokens() or question.most_tokens
        request = Request(
            provider=target.provider,
            model=target.model,
            messages=tuple(
                Message(role, (Text(text),), id=f"sampling-{number}")
                for number, (role, text) in enumerate(question.messages)
            ),
            system=(SystemSection("system", "sampling", question.system),) if question.system.strip() else (),
            max_output=max(1, min(question.most_tokens, most)),
            reasoning="off",
            session=target.session,
        )
        return await asyncio.to_thread(self._measured, request)

    def _measured(self, request: Request) -> PreparedSample:
        apart = replace(request, session=f"{request.session} sampling")  # so that the conversation's ledger is kept
        usage = self._meter.measure(apart)
        limit = usage.budget.max_input
        most = Usage(usage.upper_bound, request.max_output or 0, source="estimated")
        problem = ""
        if limit is not None and usage.upper_bound > limit:
            problem = f"it may have {usage.upper_bound:,} tokens; {limit:,} fit"
        cost = price(most, request.provider, request.model)
        return PreparedSample(request, usage.total, usage.upper_bound, cost, problem)

    async def run(self, prepared: PreparedSample) -> Sampled:
        """The model's answer. Raises `ProviderError`."""
        from tui.tools.mcp.questions import Sampled

        request = prepared.request
        completion = await complete(self._services, "sampling", request)
        if completion.problem and not completion.cut:
            raise ProviderError("protocol", completion.problem)
        return Sampled(completion.text, request.model, "maxTokens" if completion.cut else "endTurn")
