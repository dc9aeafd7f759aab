"""The numbers of a conversation: every part of a session gets them here, from the accounting."""

from __future__ import annotations

import asyncio
import logging
import time

from tui.chat.attachments import with_bytes
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.projection import Target, build_request
from tui.chat.runtime.services import Services
from tui.config.settings import ModelSettings
from tui.context.estimate.ledger import preamble_steps
from tui.context.usage.limits import DEFAULT_RESERVE, BudgetSettings, ModelLimits, answer_reserve
from tui.context.usage.usage import ContextUsage, calculate_context_usage
from tui.messages import Message, Request
from tui.providers.base import ProviderError

log = logging.getLogger(__name__)


class Meter:
    """Measures the requests of one conversation, for the current model or a possible next `target`."""

    def __init__(self, conversation: Conversation, services: Services, target: Target | None = None) -> None:
        self._conversation = conversation
        self._services = services
        self._target = target
        self.latest: ContextUsage | None = None

    @property
    def target(self) -> Target:
        """The model that the numbers are for."""
        return self._target or self._conversation.target

    def request(self) -> Request:
        """The next request to that model. May be slow for another model: not on the event loop."""
        if self._target is None:
            return self._conversation.request()
        conversation, state = self._conversation, self._conversation.state
        return build_request(conversation.messages, state, self._target)

    @property
    def settings(self) -> ModelSettings:
        """The person's settings for that model."""
        return self._services.settings.for_model(f"{self.target.provider}/{self.target.model}")

    def _window(self) -> tuple[ModelLimits, BudgetSettings]:
        """What is known about the window now, and a person's settings for it."""
        settings = self.settings
        reserve = DEFAULT_RESERVE if settings.reserve_output is None else settings.reserve_output
        compaction = None if settings.compaction == "off" else settings.compaction
        limits = self._services.models.limits(self.target.provider, self.target.model)
        return limits, BudgetSettings(reserve, compaction, self._conversation.info.rolling)

    def answer_tokens(self) -> int | None:
        """The most tokens of an answer: those reserved for it. None if the window is unknown."""
        limits, settings = self._window()
        return answer_reserve(limits, settings.reserve_output)

    async def usage(self) -> ContextUsage:
        """The measured next request. Takes two milliseconds for 10,000 messages where nothing has changed."""
        before = self.latest.warnings if self.latest is not None else ()
        usage = self.latest = await asyncio.to_thread(lambda: self.measure(self.request()))
        for warning in usage.warnings:
            if warning not in before:
                log.warning("context of %s/%s: %s", self.target.provider, self.target.model, warning)
        return usage

    async def usage_to_send(self) -> ContextUsage:
        """Like `usage`, but counted by the server if it is uncertain whether the request fits, or if that is free."""
        usage = await self.usage()
        limit = usage.budget.max_input
        may_not_fit = limit is not None and usage.source != "exact" and usage.total <= limit < usage.upper_bound
        if not may_not_fit and not (usage.source == "estimated" and self.target.capabilities.count_freely):
            return usage
        try:
            await self.count_request()
        except ProviderError as error:
            log.warning("exact count failed: %s", error)
        return await self.usage()

    def measure(self, request: Request) -> ContextUsage:
        """Measure `request`. May count tokens: not on the event loop."""
        compactions, (limits, settings) = self._conversation.in_force(), self._window()
        return calculate_context_usage(
            request,
            estimator=self._services.estimator,
            limits=limits,
            settings=settings,
            compactions=len(compactions),
            compaction_saved=sum(record.before - record.after for record in compactions),
            left_out=self._conversation.left_out(),
        )

    def estimate(self, request: Request) -> int:
        """Tokens of a request, according to the accounting."""
        return self._services.estimator.estimate(request).tokens

    def bound(self, request: Request) -> int:
        """The upper bound of a request's tokens, by the errors so far."""
        return self._services.estimator.estimate(request).upper_bound

    def count(self, message: Message) -> int:
        """Tokens of one message, at least 1."""
        return max(1, round(self._services.counter.count_message(message, self.target.model).size))

    async def count_request(self, *, parts: bool = False) -> int | None:
        """Let the provider count the tokens of the next request, and use that. None if it can't.

        With `parts` it also counts what stands before the messages, unless it did already, so that rows are exact too;
        a conversation without messages has these parts alone. Raises `ProviderError`.
        """
        if self.target.capabilities.count_endpoint is False:
            return None
        request = await asyncio.to_thread(self.request)
        if not request.messages:  # which no provider counts
            return (await self.usage()).total if parts and await self._count_parts(request) else None
        tokens = await self._counted(request)
        if not tokens:
            return None
        verdict = await asyncio.to_thread(self._services.estimator.note_count, request, tokens, at=time.time())
        if not verdict.believed:
            raise ProviderError("protocol", f"its count is not believed: {verdict.reason}")
        if parts:
            try:
                await self._count_parts(request)
            except ProviderError as error:  # the whole is what matters
                log.warning("exact count of the parts failed: %s", error)
        return tokens

    async def _count_parts(self, request: Request) -> bool:
        """Count what stands before the messages. False where the provider can't. Raises `ProviderError`."""
        estimator = self._services.estimator
        if await asyncio.to_thread(estimator.counted_parts, request) is not None:
            return True
        steps = preamble_steps(request)
        counts: dict[Request, int] = {}
        for step in dict.fromkeys(steps):  # without memory files two of them are the same
            count = await self._counted(step)
            if count is None:
                return False
            counts[step] = count
        if not await asyncio.to_thread(estimator.note_parts, request, [counts[step] for step in steps]):
            raise ProviderError("protocol", "its counts do not fit the text")
        return True

    async def _counted(self, request: Request) -> int | None:
        """The provider's count, the bytes of attachments included. Raises `ProviderError`."""
        complete = await asyncio.to_thread(with_bytes, request, self._services.store.blob)
        return await self._services.provider(self.target.provider).count_tokens(complete)
