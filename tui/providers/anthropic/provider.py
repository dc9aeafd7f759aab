"""Anthropic Messages at any base URL: its requests, and how servers and models differ in them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tui.context.usage.limits import ModelLimits
from tui.messages import Attachment, Message, Part, ProviderItem, Reasoning, Request, ToolCall, ToolResult
from tui.providers.anthropic.reader import AnthropicReader
from tui.providers.base import Capabilities, ModelInfo, ProviderError, StreamEvent
from tui.providers.capabilities import anthropic_capabilities, claude
from tui.providers.config import ProviderConfig
from tui.providers.dialect import DialectProvider, Reader, Style
from tui.providers.http.client import Client, anthropic_client
from tui.providers.http.refusals import Cause
from tui.providers.models import discovery
from tui.providers.wire import (
    Json,
    arguments_object,
    as_object,
    attached_files,
    attachment_text,
    encoded,
    own_reasoning,
    plain_text,
    result_text,
    results_with_parts,
    tool_id,
)

_NOT_COUNTED = ("max_tokens", "context_management")  # fields that the counting route rejects
DEFAULT_MAX_OUTPUT = 8192  # tokens; the field is required, and every model from 3.5 on accepts this value
MIN_BUDGET = 1024  # tokens; the smallest thinking budget
# Share of the answer's tokens, for models with a thinking budget.
_BUDGET_SHARES = {"minimal": 0.1, "low": 0.2, "medium": 0.5, "high": 0.8, "xhigh": 0.8, "max": 0.8}
_OFF = ("disabled", "between_tools")  # values of `thinking.type` that turn thinking off
_CACHE: Json = {"type": "ephemeral"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicStyle(Style):
    """How a server takes `thinking`: the values of its `type`, None if unknown."""

    thinking: frozenset[str] | None = None
    thinks_by_default: bool = False


class AnthropicMessages(DialectProvider[AnthropicStyle]):
    """One server that speaks Anthropic's Messages API."""

    dialect = "anthropic"
    route = "/v1/messages"
    reader = AnthropicReader

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self._listed_thinking: dict[str, frozenset[str]] = {}  # model -> the values of `thinking.type` it takes

    async def _connect(self, key: str | None) -> Client:
        return await anthropic_client(self.config, key)

    def _first_style(self, model: str) -> AnthropicStyle:
        types, kind = self._listed_thinking.get(model), claude(model)  # the list takes precedence over the name
        if kind is None:
            return AnthropicStyle(thinking=types, thinks_by_default=types is not None and "disabled" not in types)
        return AnthropicStyle(
            thinking=kind.thinking_types if types is None else types,
            thinks_by_default=kind.thinks_by_default,
            efforts=kind.efforts if types is None else None,
        )

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
        infos = await discovery.anthropic_models(client)
        self._listed_thinking |= {info.id: frozenset(info.thinking) for info in infos if info.thinking is not None}
        return infos

    async def _count(self, client: Client, body: Json) -> int | None:
        counted = {key: value for key, value in body.items() if key not in _NOT_COUNTED}
        if "budget_tokens" in counted.get("thinking", {}):
            counted.pop("thinking")  # the budget is checked against max_tokens, which this route rejects
        return await discovery.input_tokens(client, "/v1/messages/count_tokens", counted)


def to_wire(request: Request, style: AnthropicStyle) -> Json:
    """The JSON body of POST /v1/messages, streaming."""
    messages: list[Json] = []
    for message in request.messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, request)
        if not blocks:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    for message_body in messages:
        if message_body["role"] == "user":  # results come first, directly behind their calls
            message_body["content"].sort(key=lambda block: block["type"] != "tool_result")
    if messages and messages[-1]["role"] == "assistant" and messages[-1]["content"][-1]["type"] == "text":
        last = messages[-1]["content"][-1]  # an answer to be continued must not end with blanks
        last["text"] = last["text"].rstrip()
    system = [{"type": "text", "text": section.text} for section in request.system if section.text.strip()]
    tools = [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": as_object(tool.parameters),
        }
        for tool in map(style.tool, request.tools)
    ]
    body: Json = {
        "model": request.model,
        "max_tokens": request.max_output or DEFAULT_MAX_OUTPUT,
        "messages": messages,
        "stream": True,
    }
    if system:
        body["system"] = system
    if tools:
        body["tools"] = tools
    if request.server_edits:
        body["context_management"] = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    return body | _thinking(style, request.reasoning, body["max_tokens"])


def with_cache_breakpoints(body: Json) -> Json:
    """`body` with two breakpoints for the prompt cache: after the system prompt (which survives trimming), at the end.

    The blocks are changed in place.
    """
    last = body["messages"][-1]["content"] if body["messages"] else []
    for blocks in (body.get("system") or body.get("tools"), [one for one in last if "thinking" not in one["type"]]):
        if blocks:
            blocks[-1]["cache_control"] = dict(_CACHE)
    return body


def _thinking(style: AnthropicStyle, wish: str | None, max_tokens: int) -> Json:
    """The `thinking` field: adaptive with an effort if the model supports it, else a budget (tokens).

    "summarized" shows what is billed: from Claude 5.0 on thinking is hidden unless it is requested.
    """
    types, effort = style.thinking, style.effort(wish)
    if types is not None and "adaptive" in types:
        shown: Json = {"thinking": {"type": "adaptive", "display": "summarized"}}
        if effort is None:
            return shown if style.thinks_by_default else {}
        if effort == "off":
            off = next((kind for kind in _OFF if kind in types), None)
            return {"thinking": {"type": off}} if off else shown | {"output_config": {"effort": "low"}}
        return shown | {"output_config": {"effort": effort}}
    if effort is None or (types is not None and "enabled" not in types):
        return {}
    if effort == "off" or max_tokens <= MIN_BUDGET:
        return {"thinking": {"type": "disabled"}}
    budget = int(max_tokens * _BUDGET_SHARES[effort])
    return {"thinking": {"type": "enabled", "budget_tokens": max(MIN_BUDGET, budget)}}


def _blocks(message: Message, request: Request) -> list[Json]:
    if message.role == "tool":
        return [_result(result, more, request) for result, more in results_with_parts(message)]
    blocks: list[Json] = []
    for part in message.parts:
        match part:
            case Reasoning():
                if message.role == "assistant" and own_reasoning(part, request):
                    blocks += _reasoning(part)
            case ToolCall():
                blocks.append(
                    {
                        "type": "tool_use",
                        "id": tool_id(part.id),
                        "name": part.name,
                        "input": arguments_object(part.arguments),
                    }
                )
            case ToolResult():
                blocks.append(_result(part, [], request))
            case Attachment():
                blocks.append(_attachment(part, request))
            case ProviderItem(data=data) if part.provider == request.provider and (item := as_object(data)):
                blocks.append(item)
            case _ if (text := plain_text(part)).strip():
                blocks.append({"type": "text", "text": text})
    if message.role == "assistant" and all("thinking" in block["type"] for block in blocks):
        return []  # an answer with nothing but thinking is refused as empty
    return blocks


def _reasoning(part: Reasoning) -> list[Json]:
    if part.redacted is not None:
        return [{"type": "redacted_thinking", "data": part.redacted}]
    if part.signature is None:
        return []  # cancelled thinking has no signature and can't be sent back
    return [{"type": "thinking", "thinking": part.text, "signature": part.signature}]


def _result(part: ToolResult, more: list[Part], request: Request) -> Json:
    content: str | list[Json] = result_text(part, more)
    if files := [_attachment(file, request) for file in attached_files(more)]:
        content = [{"type": "text", "text": content}, *files]
    block: Json = {"type": "tool_result", "tool_use_id": tool_id(part.call_id), "content": content}
    return block | {"is_error": True} if part.is_error else block


def _attachment(part: Attachment, request: Request) -> Json:
    if (text := attachment_text(part, request)) is not None:
        return {"type": "text", "text": text}
    source = {"type": "base64", "media_type": part.media_type, "data": encoded(part, request)}
    return {"type": "document" if part.kind == "pdf" else "image", "source": source}
