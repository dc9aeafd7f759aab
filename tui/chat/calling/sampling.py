"""Sampling: completions for MCP servers. They cost the person money, so they need approval."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from tui.chat.conversation.completion import billed
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.meter import Meter, answer_tokens
from tui.chat.runtime.services import Services
from tui.messages import Message, Request, SystemSection, Text, Usage
from tui.providers.base import ProviderError
from tui.tools.mcp.questions import Sampled, SampleQuestion


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
    """Uses the current model of a conversation; nothing of the conversation is sent."""

    def __init__(self, conversation: Conversation, services: Services) -> None:
        self._conversation = conversation
        self._services = services
        self._meter = Meter(conversation, services)

    async def prepare(self, question: SampleQuestion) -> PreparedSample:
        """The request, measured."""
        target = self._conversation.target
        await self._services.windows.find(target.provider, target.model)
        most = answer_tokens(self._meter.limits(), self._meter.budget_settings()) or question.most_tokens
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
            problem = f"it may have {usage.upper_bound:,} tokens, and {limit:,} fit"
        cost = self._services.price(most, request.provider, request.model)
        return PreparedSample(request, usage.total, usage.upper_bound, cost, problem)

    async def run(self, prepared: PreparedSample) -> Sampled:
        """The model's answer. Raises `ProviderError`."""
        request = prepared.request
        provider = self._services.provider(request.provider)
        completion = await billed(provider, self._services, "sampling")(request)
        if not completion.complete and not completion.cut:
            raise ProviderError("protocol", "the answer broke off")
        return Sampled(completion.text, request.model, "maxTokens" if completion.cut else "endTurn")
