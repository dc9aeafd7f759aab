"""Anthropic Messages at any base URL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace

from tui.context.usage.limits import ModelLimits
from tui.messages import Request
from tui.providers.anthropic.reader import AnthropicReader
from tui.providers.anthropic.wire import to_wire
from tui.providers.base import Capabilities, ModelInfo, ProviderError, StreamEvent
from tui.providers.capabilities import anthropic_capabilities
from tui.providers.config import AnthropicStyle, ProviderConfig
from tui.providers.dialect import DialectProvider
from tui.providers.http.client import Client, anthropic_client
from tui.providers.http.refusals import Cause
from tui.providers.http.transport import events
from tui.providers.models import discovery

EDITING: Mapping[str, str] = {"anthropic-beta": "context-management-2025-06-27"}
"""Sent if the provider may clear old tool results by itself."""

_NOT_COUNTED = ("max_tokens", "context_management")  # fields that the counting route rejects


class AnthropicMessages(DialectProvider[AnthropicStyle]):
    """One server that speaks Anthropic's Messages API."""

    dialect = "anthropic"

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self._listed_thinking: dict[str, frozenset[str]] = {}  # model -> the values of `thinking.type` it takes

    async def _connect(self, key: str | None) -> Client:
        headers = {**self.config.headers, **(EDITING if self.config.context_management else {})}
        return await anthropic_client(self.config.base_url, key, headers, self.config.max_response)

    def _first_style(self, model: str) -> AnthropicStyle:
        return self.config.anthropic_style(model, self._listed_thinking.get(model))

    async def _attempt(
        self, client: Client, request: Request, style: AnthropicStyle
    ) -> AsyncGenerator[StreamEvent, None]:
        reader = AnthropicReader()
        body = await asyncio.to_thread(to_wire, request, style) | dict(self.config.extra_body)
        try:
            async with aclosing(events(client, "/v1/messages", body, self.config)) as wire:
                async for item in wire:
                    for event in reader.feed(item):
                        yield event
        except ProviderError as error:
            if not (reader.ended and error.kind in ("network", "protocol")):
                raise  # otherwise the answer is complete, only the closing event is missing
        if reader.ended and not reader.input_known and not self.config.official:
            for event in await self._counted(request, reader):
                yield event
        for event in reader.finish():
            yield event

    async def _counted(self, request: Request, reader: AnthropicReader) -> list[StreamEvent]:
        """Count the input by request: llama.cpp sometimes begins a stream without `message_start`, which has it."""
        try:
            counted = await self.count_tokens(request)
        except ProviderError:
            return []  # the usage stays unknown
        return (
            [] if counted is None else list(reader.feed({"type": "message_delta", "usage": {"input_tokens": counted}}))
        )

    def _adapted(self, style: AnthropicStyle, cause: Cause, request: Request) -> AnthropicStyle | None:
        if cause in ("effort", "field") and style.thinks_by_default:  # a gateway without adaptive thinking
            return replace(style, thinking=frozenset(), thinks_by_default=False, efforts=())
        return None

    def capabilities(self, model: str) -> Capabilities:
        """What is known of `model` without asking the server."""
        capabilities = anthropic_capabilities(model, official=self.config.official)
        return replace(capabilities, edits_context=self.config.context_management)

    async def limits(self, model: str) -> ModelLimits | None:
        """The window reported by the server, or None. Raises `ProviderError`."""
        return next((info.limits for info in await self.models() if info.id == model), None)

    async def _list(self, client: Client) -> list[ModelInfo]:
        infos = await discovery.anthropic_models(client, self.config)
        self._listed_thinking |= {info.id: frozenset(info.thinking) for info in infos if info.thinking is not None}
        return infos

    async def count_tokens(self, request: Request) -> int | None:
        """The server's count of the input, in tokens; None if it has no such route. Raises `ProviderError`."""
        wire = await asyncio.to_thread(to_wire, request, self._style(request.model), cache=False)
        body = {key: value for key, value in wire.items() if key not in _NOT_COUNTED}
        if "budget_tokens" in body.get("thinking", {}):
            body.pop("thinking")  # the budget is checked against max_tokens, which this route rejects

        async def counted() -> int | None:
            return await discovery.input_tokens(await self.client(), "/v1/messages/count_tokens", body, self.name)

        return await self._connection.ask(counted)
