"""Anthropic Messages at any base URL, through the official `anthropic` SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tui.context.usage.limits import ModelLimits
from tui.messages import Request
from tui.providers.anthropic.reader import AnthropicReader
from tui.providers.anthropic.wire import to_wire
from tui.providers.base import Capabilities, ModelInfo, Provider, ProviderError, StreamEvent
from tui.providers.capabilities import anthropic_capabilities
from tui.providers.config import ProviderConfig
from tui.providers.effort import Effort
from tui.providers.http.connection import Connection
from tui.providers.http.transport import anthropic_client, events
from tui.providers.models import discovery
from tui.providers.think_tags import with_thoughts

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic


EDITING: Mapping[str, str] = {"anthropic-beta": "context-management-2025-06-27"}
"""Sent where the provider may clear old tool results by itself."""

_NOT_COUNTED = ("max_tokens", "context_management")  # what the counting route does not take


class AnthropicMessages(Provider):
    """One server that speaks Anthropic's Messages API."""

    dialect = "anthropic"

    def __init__(self, config: ProviderConfig) -> None:
        self.name = config.name
        self.config = config
        self._connection = Connection(config, self._connect)
        self.effort = Effort()
        self._thinking: dict[str, frozenset[str]] = {}  # model -> what the server's list says it takes

    async def client(self) -> AsyncAnthropic:
        """The SDK's client, made at first use. Raises `ProviderError` where the key cannot be had."""
        return await self._connection.client()

    async def _connect(self, key: str | None) -> AsyncAnthropic:
        base_url = self.config.base_url.rstrip("/").removesuffix("/v1")  # the SDK's paths begin with /v1
        headers = {**self.config.headers, **(EDITING if self.config.context_management else {})}
        return await anthropic_client(base_url, key, headers)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the answer's events. Raises `ProviderError`."""
        answer = partial(self._connection.stream, self._stream)
        return with_thoughts(self.effort.stream(answer, request), on=not self.config.official)

    async def _stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        client = await self.client()
        reader = AnthropicReader()
        types = self._thinking.get(request.model)
        body = await asyncio.to_thread(to_wire, request, types=types) | dict(self.config.extra_body)
        try:
            async with aclosing(events(client, "/v1/messages", body, self.name, self.config.idle_timeout)) as wire:
                async for item in wire:
                    for event in reader.feed(item):
                        yield event
        except ProviderError as error:
            if not (reader.ended and error.kind in ("network", "protocol")):
                raise  # otherwise the answer is whole, only the closing event is lost
        if reader.ended and not reader.input_known and not self.config.official:
            for event in await self._counted(request, reader):
                yield event
        for event in reader.finish():
            yield event

    async def _counted(self, request: Request, reader: AnthropicReader) -> list[StreamEvent]:
        """llama.cpp now and then begins a stream without its `message_start`, where the input is; so ask for it."""
        try:
            counted = await self.count_tokens(request)
        except ProviderError:
            return []  # then the usage stays unknown
        return (
            [] if counted is None else list(reader.feed({"type": "message_delta", "usage": {"input_tokens": counted}}))
        )

    def capabilities(self, model: str) -> Capabilities:
        """What is known of `model` without asking the server."""
        known = anthropic_capabilities(model, official=self.config.official)
        return replace(known, edits_context=self.config.context_management)

    async def limits(self, model: str) -> ModelLimits | None:
        """The server's word on the window; None where it says nothing. Raises `ProviderError`."""
        found = [info for info in await self.models() if info.id == model]
        return found[0].limits if found else None

    async def takes_tools(self, model: str) -> bool | None:
        """Whether the server says that `model` calls tools; None where it says nothing. Raises `ProviderError`."""
        return await discovery.server_takes_tools(await self.client(), self.config, model)

    async def models(self) -> list[ModelInfo]:
        """The models the server offers. Raises `ProviderError`."""
        found = await self._connection.ask(self._models)
        self._thinking |= {info.id: frozenset(info.thinking) for info in found if info.thinking is not None}
        return found

    async def _models(self) -> list[ModelInfo]:
        return await discovery.anthropic_models(await self.client(), self.config)

    async def count_tokens(self, request: Request) -> int | None:
        """The server's count of the input, in tokens; None where it has no such route. Raises `ProviderError`."""
        whole = await asyncio.to_thread(to_wire, request, cache=False, types=self._thinking.get(request.model))
        body = {key: value for key, value in whole.items() if key not in _NOT_COUNTED}
        if "budget_tokens" in body.get("thinking", {}):
            body.pop("thinking")  # it is checked against max_tokens, which this route does not take

        async def counted() -> int | None:
            return await discovery.input_tokens(await self.client(), "/v1/messages/count_tokens", body, self.name)

        return await self._connection.ask(counted)

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._connection.close()
