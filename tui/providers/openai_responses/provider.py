"""OpenAI Responses at any base URL, through the official `openai` SDK. Stateless: the server keeps nothing."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from tui.context.usage.limits import ModelLimits
from tui.messages import Request
from tui.providers.base import Capabilities, ModelInfo, Provider, ProviderError, StreamEvent
from tui.providers.capabilities import responses_capabilities
from tui.providers.config import ProviderConfig
from tui.providers.effort import Effort
from tui.providers.http.connection import Connection
from tui.providers.http.transport import events, openai_client
from tui.providers.models import discovery
from tui.providers.openai_responses.reader import ResponsesReader
from tui.providers.openai_responses.wire import to_wire
from tui.providers.think_tags import with_thoughts
from tui.providers.wire import Json

if TYPE_CHECKING:
    from openai import AsyncOpenAI

log = logging.getLogger(__name__)

# OpenAI's words for what only verified organisations get (continuedev/continue#9602).
_UNVERIFIED = {
    "summaries": re.compile(r"verified to generate reasoning summar", re.IGNORECASE),
    "streams": re.compile(r"verified to stream", re.IGNORECASE),
}
# What the counting route takes of a request.
_COUNTED = ("model", "input", "instructions", "tools", "reasoning")


class OpenAIResponses(Provider):
    """One server that speaks Responses."""

    dialect = "openai-responses"

    def __init__(self, config: ProviderConfig) -> None:
        self.name = config.name
        self.config = config
        self._connection = Connection(config, self._connect)
        self.effort = Effort()
        self._lacks: set[str] = set()  # what this account is not allowed: "summaries", "streams"

    async def client(self) -> AsyncOpenAI:
        """The SDK's client, made at first use. Raises `ProviderError` where the key cannot be had."""
        return await self._connection.client()

    async def _connect(self, key: str | None) -> AsyncOpenAI:
        return await openai_client(self.config.base_url, key, self.config.headers)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the answer's events. Raises `ProviderError`."""
        answer = partial(self._connection.stream, self._stream)
        return with_thoughts(self.effort.stream(answer, request), on=not self.config.official)

    async def _stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        client = await self.client()
        reader = ResponsesReader(self.name)
        while True:
            begun = False
            wired = await asyncio.to_thread(self._body, request)
            body = wired | {"stream": "streams" not in self._lacks} | dict(self.config.extra_body)
            try:
                async with aclosing(events(client, "/responses", body, self.name, self.config.idle_timeout)) as wire:
                    async for item in wire:
                        begun = True
                        for event in reader.feed(item):
                            yield event
                break
            except ProviderError as error:
                if reader.ended and error.kind in ("network", "protocol"):
                    break
                lacks = next((name for name, words in _UNVERIFIED.items() if words.search(str(error))), None)
                if begun or lacks is None or lacks in self._lacks:
                    raise
                self._lacks.add(lacks)
                log.warning("asked without %s: %s", lacks, error)
        for event in reader.finish():
            yield event

    def _body(self, request: Request) -> Json:
        return to_wire(request, official=self.config.official, summaries="summaries" not in self._lacks)

    def capabilities(self, model: str) -> Capabilities:
        """What is known of `model` without asking the server."""
        return responses_capabilities(model, official=self.config.official)

    async def limits(self, model: str) -> ModelLimits | None:
        """The server's word on the window; None where it says nothing. Raises `ProviderError`."""
        return await discovery.openai_limits(await self.client(), self.config, model)

    async def takes_tools(self, model: str) -> bool | None:
        """Whether the server says that `model` calls tools; None where it says nothing. Raises `ProviderError`."""
        return await discovery.server_takes_tools(await self.client(), self.config, model)

    async def models(self) -> list[ModelInfo]:
        """The models the server offers. Raises `ProviderError`."""
        return await self._connection.ask(self._models)

    async def _models(self) -> list[ModelInfo]:
        return await discovery.openai_models(await self.client(), self.config)

    async def count_tokens(self, request: Request) -> int | None:
        """The server's count of the input, in tokens; None where it has no such route. Raises `ProviderError`."""
        body = await asyncio.to_thread(self._body, request)
        asked = {key: value for key, value in body.items() if key in _COUNTED}

        async def counted() -> int | None:
            return await discovery.input_tokens(await self.client(), "/responses/input_tokens", asked, self.name)

        return await self._connection.ask(counted)

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._connection.close()
