"""OpenAI Responses at any base URL. Stateless: the server stores nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from tui.context.usage.limits import ModelLimits
from tui.messages import Request
from tui.providers.base import Capabilities, ModelInfo, ProviderError, StreamEvent
from tui.providers.capabilities import responses_capabilities
from tui.providers.config import ResponsesStyle
from tui.providers.dialect import DialectProvider
from tui.providers.http.client import Client, openai_client
from tui.providers.http.refusals import Cause
from tui.providers.http.transport import events
from tui.providers.models import discovery
from tui.providers.openai_responses.reader import ResponsesReader
from tui.providers.openai_responses.wire import to_wire

# Fields of a request that the counting route accepts.
_COUNTED = ("model", "input", "instructions", "tools", "reasoning")


class OpenAIResponses(DialectProvider[ResponsesStyle]):
    """One server that speaks Responses."""

    dialect = "openai-responses"

    async def _connect(self, key: str | None) -> Client:
        return await openai_client(self.config.base_url, key, self.config.headers, self.config.max_response)

    def _first_style(self, model: str) -> ResponsesStyle:
        return self.config.responses_style(model)

    async def _attempt(
        self, client: Client, request: Request, style: ResponsesStyle
    ) -> AsyncGenerator[StreamEvent, None]:
        reader = ResponsesReader(self.name)
        wired = await asyncio.to_thread(to_wire, request, style)
        body = wired | {"stream": style.streams} | dict(self.config.extra_body)
        try:
            async with aclosing(events(client, "/responses", body, self.config)) as wire:
                async for item in wire:
                    for event in reader.feed(item):
                        yield event
        except ProviderError as error:
            if not (reader.ended and error.kind in ("network", "protocol")):
                raise
        for event in reader.finish():
            yield event

    def _adapted(self, style: ResponsesStyle, cause: Cause, request: Request) -> ResponsesStyle | None:
        match cause:
            case "summaries":
                return replace(style, summaries=False)
            case "streams":
                return replace(style, streams=False)
            case _:
                return None

    def _lessons(self, style: ResponsesStyle, first: ResponsesStyle) -> tuple[str, ...]:
        lines = super()._lessons(style, first)
        if not style.summaries:
            lines += ("Its reasoning is not summarized: OpenAI does that for verified organizations",)
        if not style.streams:
            lines += ("Its answers come whole: OpenAI streams them to verified organizations",)
        return lines

    def capabilities(self, model: str) -> Capabilities:
        """What is known of `model` without asking the server."""
        return responses_capabilities(model, official=self.config.official)

    async def limits(self, model: str) -> ModelLimits | None:
        """The window reported by the server, or None. Raises `ProviderError`."""
        return await discovery.openai_limits(await self.client(), self.config, model)

    async def _list(self, client: Client) -> list[ModelInfo]:
        return await discovery.openai_models(client, self.config)

    async def count_tokens(self, request: Request) -> int | None:
        """The server's count of the input, in tokens; None if it has no such route. Raises `ProviderError`."""
        body = await asyncio.to_thread(to_wire, request, self._style(request.model))
        asked = {key: value for key, value in body.items() if key in _COUNTED}

        async def counted() -> int | None:
            return await discovery.input_tokens(await self.client(), "/responses/input_tokens", asked, self.name)

        return await self._connection.ask(counted)
