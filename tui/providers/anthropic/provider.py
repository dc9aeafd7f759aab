"""Anthropic Messages at any base URL."""

from __future__ import annotations

from dataclasses import replace

from tui.context.usage.limits import ModelLimits
from tui.messages import Request
from tui.providers.anthropic.reader import AnthropicReader
from tui.providers.anthropic.wire import to_wire, with_cache_breakpoints
from tui.providers.base import Capabilities, ModelInfo, ProviderError, StreamEvent
from tui.providers.capabilities import anthropic_capabilities
from tui.providers.config import AnthropicStyle, ProviderConfig
from tui.providers.dialect import DialectProvider, Reader
from tui.providers.http.client import Client, anthropic_client
from tui.providers.http.refusals import Cause
from tui.providers.models import discovery
from tui.providers.wire import Json

EDITING = "context-management-2025-06-27"
"""The beta feature that lets the provider clear old tool results by itself."""

_NOT_COUNTED = ("max_tokens", "context_management")  # fields that the counting route rejects


class AnthropicMessages(DialectProvider[AnthropicStyle]):
    """One server that speaks Anthropic's Messages API."""

    dialect = "anthropic"
    route = "/v1/messages"
    reader = AnthropicReader

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self._listed_thinking: dict[str, frozenset[str]] = {}  # model -> the values of `thinking.type` it takes

    async def _connect(self, key: str | None) -> Client:
        beta = EDITING if self.config.context_management else ""
        return await anthropic_client(self.config.base_url, key, self.config.max_response, beta=beta)

    def _first_style(self, model: str) -> AnthropicStyle:
        return self.config.anthropic_style(model, self._listed_thinking.get(model))

    def _body(self, request: Request, style: AnthropicStyle) -> Json:
        return with_cache_breakpoints(to_wire(request, style))

    async def _before_end(self, request: Request, reader: Reader) -> list[StreamEvent]:
        """Counts the input by request: llama.cpp sometimes begins a stream without `message_start`, which has it."""
        reported = reader.usage is not None and reader.usage.input_total is not None
        if reported or self.config.official:
            return []
        try:
            counted = await self.count_tokens(request)
        except ProviderError:
            return []  # the usage stays unknown
        event = {"type": "message_delta", "usage": {"input_tokens": counted}}
        return [] if counted is None else list(reader.feed(event))

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

    async def _count(self, client: Client, body: Json) -> int | None:
        counted = {key: value for key, value in body.items() if key not in _NOT_COUNTED}
        if "budget_tokens" in counted.get("thinking", {}):
            counted.pop("thinking")  # the budget is checked against max_tokens, which this route rejects
        return await discovery.input_tokens(client, "/v1/messages/count_tokens", counted, self.name)
