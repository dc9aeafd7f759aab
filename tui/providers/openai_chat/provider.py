"""Chat Completions at any base URL, through the official `openai` SDK."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tui.context.usage.limits import ModelLimits
from tui.messages import Request
from tui.providers.base import Capabilities, ModelInfo, Provider, ProviderError, StreamEvent
from tui.providers.capabilities import chat_capabilities
from tui.providers.config import ChatStyle, ProviderConfig
from tui.providers.effort import Effort
from tui.providers.http.connection import Connection
from tui.providers.http.transport import events, get_json, openai_client
from tui.providers.models import discovery
from tui.providers.openai_chat.reader import ChatReader
from tui.providers.openai_chat.wire import to_wire
from tui.providers.think_tags import with_thoughts
from tui.providers.wire import Json

if TYPE_CHECKING:
    from openai import AsyncOpenAI

log = logging.getLogger(__name__)

_UNKNOWN_FIELD = re.compile(
    r"stream_options|include_usage|unknown (?:field|parameter|argument)|unrecogni[sz]ed|extra (?:inputs|fields)"
    r"|unexpected (?:keyword|field|property)|not (?:permitted|allowed)|additional propert",
    re.IGNORECASE,
)
_OTHER_MAX = re.compile(
    r"max_(?:completion_)?tokens'? is not supported|use 'max_(?:completion_)?tokens' instead", re.IGNORECASE
)
# Gemini, Moonshot and OpenAI, of a tool's schema.
_SCHEMA = re.compile(
    r"unknown name .{1,40} at '(?:request\.)?tools|flavou?red json schema|invalid schema for function", re.IGNORECASE
)
_NEEDS_THOUGHTS = re.compile(r"reasoning_content.{0,60}(?:must be passed back|is missing)", re.IGNORECASE)


class OpenAIChat(Provider):
    """One server that speaks Chat Completions."""

    dialect = "openai-chat"

    def __init__(self, config: ProviderConfig) -> None:
        self.name = config.name
        self.config = config
        self._style = config.chat_style()
        self._connection = Connection(config, self._connect)
        self.effort = Effort()

    async def base_url(self) -> str:
        """Where the server is. The embedded provider starts its server here."""
        return self.config.base_url

    async def client(self) -> AsyncOpenAI:
        """The SDK's client, made at first use. Raises `ProviderError` where the key cannot be had."""
        return await self._connection.client()

    async def _connect(self, key: str | None) -> AsyncOpenAI:
        return await openai_client(await self.base_url(), key, self.config.headers)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the answer's events. Raises `ProviderError`."""
        answer = partial(self._connection.stream, self._stream)
        return with_thoughts(self.effort.stream(answer, request), on=not self.config.official)

    async def _stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        client = await self.client()
        reader = ChatReader(self.name)
        style = self._style
        while True:
            started = False
            body = await asyncio.to_thread(to_wire, request, style)  # attachments can be large
            try:
                async with aclosing(
                    events(client, "/chat/completions", body, self.name, self.config.idle_timeout)
                ) as chunks:
                    async for chunk in chunks:
                        if not started:
                            started, self._style = True, style
                        for event in reader.feed(chunk):
                            yield event
                break
            except ProviderError as error:
                if started and reader.ended and error.kind in ("network", "protocol"):
                    break  # the answer is whole; only its tail (usage) is lost
                changed = None if started else _without_refused(style, error, body)
                if changed is None:
                    raise
                style = changed
        for event in reader.finish():
            yield event

    def capabilities(self, model: str) -> Capabilities:
        """What is known of `model` without asking the server."""
        return self.config.adjust(chat_capabilities(model, self.config.family))

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
        """llama.cpp counts a request; no other Chat server has such a route."""
        if not self.capabilities(request.model).count_endpoint:
            return None
        body = await asyncio.to_thread(to_wire, request, self._style)
        return await discovery.chat_input_tokens(await self.client(), body, self.name)

    async def check_key(self) -> None:
        """OpenRouter shows its model list to everybody, so its /key is asked. Raises `ProviderError` of kind "auth"."""
        if self.name != "openrouter":
            return
        try:
            await get_json(await self.client(), "/key", self.name)
        except ProviderError as error:
            if error.kind == "auth":
                raise
            log.info("openrouter's /key says nothing of the key: %s", error)  # the first message will tell

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._connection.close()


def _without_refused(style: ChatStyle, error: ProviderError, body: Json) -> ChatStyle | None:
    """The style to try next where the server refused a field by name; None where the error has another cause."""
    if error.kind != "bad_request":
        return None
    if error.status in (400, 422) and _OTHER_MAX.search(str(error)):
        if style.max_tokens_field not in body:
            return None
        if style.max_tokens_field == "max_tokens":
            return replace(style, max_tokens_field="max_completion_tokens")
        return replace(style, max_tokens_field="max_tokens")
    if error.status in (400, 422) and not style.plain_schemas and "tools" in body and _SCHEMA.search(str(error)):
        return replace(style, plain_schemas=True)
    if error.status in (400, 422) and not style.needs_reasoning and _NEEDS_THOUGHTS.search(str(error)):
        return replace(style, needs_reasoning=True)
    if error.status in (400, 422) and style.include_usage and _UNKNOWN_FIELD.search(str(error)):
        return replace(style, include_usage=False)
    return None
