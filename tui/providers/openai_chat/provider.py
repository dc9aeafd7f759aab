"""Chat Completions at any base URL."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from tui.context.usage.limits import ModelLimits
from tui.messages import Request
from tui.providers.base import Capabilities, ModelInfo, ProviderError, StreamEvent
from tui.providers.capabilities import chat_capabilities
from tui.providers.config import ChatStyle
from tui.providers.dialect import DialectProvider
from tui.providers.http.client import Client, openai_client
from tui.providers.http.refusals import Cause
from tui.providers.http.transport import events, get_json
from tui.providers.models import discovery
from tui.providers.openai_chat.counting import count_body
from tui.providers.openai_chat.reader import ChatReader
from tui.providers.openai_chat.wire import to_wire

log = logging.getLogger(__name__)


class OpenAIChat(DialectProvider[ChatStyle]):
    """One server that speaks Chat Completions."""

    dialect = "openai-chat"

    async def base_url(self) -> str:
        """The server's address. The embedded provider starts its server here."""
        return self.config.base_url

    async def _connect(self, key: str | None) -> Client:
        return await openai_client(await self.base_url(), key, self.config.headers, self.config.max_response)

    def _first_style(self, model: str) -> ChatStyle:
        return self.config.chat_style(model)

    async def _attempt(self, client: Client, request: Request, style: ChatStyle) -> AsyncGenerator[StreamEvent, None]:
        reader = ChatReader(self.name)
        body = await asyncio.to_thread(to_wire, request, style)  # attachments can be large
        try:
            async with aclosing(events(client, "/chat/completions", body, self.config)) as chunks:
                async for chunk in chunks:
                    for event in reader.feed(chunk):
                        yield event
        except ProviderError as error:
            if not (reader.ended and error.kind in ("network", "protocol")):
                raise  # otherwise the answer is complete; only its tail (usage) is missing
        for event in reader.finish():
            yield event

    def _adapted(self, style: ChatStyle, cause: Cause, request: Request) -> ChatStyle | None:
        match cause:
            case "max_tokens_name" if request.max_output is not None:
                other = style.max_tokens_field == "max_tokens"
                return replace(style, max_tokens_field="max_completion_tokens" if other else "max_tokens")
            case "reasoning_with_tools" if request.tools:
                return replace(style, reasons_with_tools=False)
            case "missing_reasoning":
                return replace(style, needs_reasoning=True)
            case "field" if style.include_usage:
                return replace(style, include_usage=False)
            case _:
                return None

    def _after(self, error: ProviderError, style: ChatStyle, request: Request) -> ChatStyle | None:
        changed = super()._after(error, style, request)
        if changed is not None and changed.efforts == () != style.efforts:
            return replace(changed, include_usage=True)  # the unsupported field was the effort, not this one
        return changed

    def _lessons(self, style: ChatStyle, first: ChatStyle) -> tuple[str, ...]:
        lines = super()._lessons(style, first)
        if style.reasons_with_tools or not first.reasons_with_tools:
            return lines
        line = "Over Chat Completions it reasons or calls tools, not both: with tools it is asked not to reason. "
        return (*lines, f'{line}With kind = "openai" in [providers.{self.name}] it does both')

    def capabilities(self, model: str) -> Capabilities:
        """What is known of `model` without asking the server."""
        return self.config.adjust(chat_capabilities(model, self.config.family))

    async def limits(self, model: str) -> ModelLimits | None:
        """The window reported by the server, or None. Raises `ProviderError`."""
        return await discovery.openai_limits(await self.client(), self.config, model)

    async def _list(self, client: Client) -> list[ModelInfo]:
        return await discovery.openai_models(client, self.config)

    async def count_tokens(self, request: Request) -> int | None:
        """The server's count of the input, in tokens; None if it has no such route. Raises `ProviderError`."""
        if not self.capabilities(request.model).count_endpoint:
            return None
        body = await asyncio.to_thread(to_wire, request, self._style(request.model))
        return await count_body(await self.client(), self.config, body)

    async def check_key(self) -> None:
        """Check the key at OpenRouter's /key: its model list is public. Raises `ProviderError` of kind "auth"."""
        if self.name != "openrouter":
            return
        try:
            await get_json(await self.client(), "/key", self.name)
        except ProviderError as error:
            if error.kind == "auth":
                raise
            log.info("openrouter's /key says nothing of the key: %s", error)  # the first message will show
