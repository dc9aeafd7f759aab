"""Anthropic Messages at any base URL: its requests, its answers, and how servers and models differ in them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from tui.messages import Attachment, Message, Part, ProviderItem, Reasoning, Request, ToolCall, ToolResult
from tui.providers.base import (
    Capabilities,
    ItemReceived,
    ProviderError,
    ReasoningDelta,
    ReasoningMeta,
    RefusalDelta,
    SourceCited,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
)
from tui.providers.capabilities import anthropic_capabilities, claude
from tui.providers.dialects.dialect import DialectProvider, Reader, Style
from tui.providers.http.refusals import Cause
from tui.providers.usage_reading import read_edits, read_usage
from tui.providers.wire import (
    Json,
    arguments_object,
    as_object,
    attached_files,
    attachment_text,
    encoded,
    object_of,
    objects_of,
    own_call_ids,
    own_reasoning,
    plain_text,
    result_text,
    results_with_parts,
    text_of,
    tool_id,
    tool_name,
)
from tui.text.labels import finish_kind

DEFAULT_MAX_OUTPUT = 8192  # tokens; the field is required, and every model from 3.5 on accepts this value
MIN_BUDGET = 1024  # tokens; the smallest thinking budget
# Share of the answer's tokens, for models with a thinking budget.
_BUDGET_SHARES = {"minimal": 0.1, "low": 0.2, "medium": 0.5, "high": 0.8, "xhigh": 0.8, "max": 0.8}
_OFF = ("disabled", "between_tools")  # values of `thinking.type` that turn thinking off


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicStyle(Style):
    """How a server takes `thinking`: the values of its `type`, None if unknown. `official`: it is Anthropic's own."""

    official: bool = False
    thinking: frozenset[str] | None = None
    thinks_by_default: bool = False


def to_wire(request: Request, style: AnthropicStyle) -> Json:
    """The JSON body of POST /v1/messages, streaming."""
    messages: list[Json] = []
    own_ids = () if style.official else own_call_ids(request)
    for message in request.messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, request, own_ids)
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
    body: Json = {
        "model": request.model,
        "max_tokens": request.max_output or DEFAULT_MAX_OUTPUT,
        "messages": messages,
        "stream": True,
    }
    if system:
        body["system"] = system
    if request.tools:
        body["tools"] = style.tools(request, "input_schema")
    if request.server_edits:
        body["context_management"] = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    return body | _thinking_fields(style, request.reasoning, body["max_tokens"], may_think=_may_think(messages))


def with_cache_breakpoints(body: Json) -> Json:
    """`body` with two breakpoints for the prompt cache: after the system prompt (which survives trimming), at the end.

    The blocks are changed in place.
    """
    last = body["messages"][-1]["content"] if body["messages"] else []
    for blocks in (body.get("system") or body.get("tools"), [one for one in last if "thinking" not in one["type"]]):
        if blocks:
            blocks[-1]["cache_control"] = {"type": "ephemeral"}
    return body


def _may_think(messages: list[Json]) -> bool:
    """Whether a budget for thinking is accepted: not if the last answer calls a tool without having thought before.

    Its thinking may be another model's, or not be sent since a message of the person follows the result.
    """
    last: list[Json] = next((m["content"] for m in reversed(messages) if m["role"] == "assistant"), [])
    return not any(block["type"] == "tool_use" for block in last) or "thinking" in last[0]["type"]


def _thinking_fields(style: AnthropicStyle, requested: str | None, max_tokens: int, *, may_think: bool = True) -> Json:
    """The `thinking` field: adaptive with an effort if the model supports it, else a budget (tokens).

    "summarized" shows what is billed: from Claude 5.0 on thinking is hidden unless it is requested.
    """
    types, effort = style.thinking, style.effort(requested)
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
    if effort == "off" or max_tokens <= MIN_BUDGET or (types is not None and not may_think):
        return {"thinking": {"type": "disabled"}}
    budget = int(max_tokens * _BUDGET_SHARES[effort])
    return {"thinking": {"type": "enabled", "budget_tokens": max(MIN_BUDGET, budget)}}


def _blocks(message: Message, request: Request, own_ids: Collection[str]) -> list[Json]:
    if message.role == "tool":
        return [_result(result, more, request, own_ids) for result, more in results_with_parts(message)]
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
                        "id": tool_id(part.id, own_ids),
                        "name": tool_name(part.name),
                        "input": arguments_object(part.arguments),
                    }
                )
            case ToolResult():
                blocks.append(_result(part, [], request, own_ids))
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


def _result(part: ToolResult, more: list[Part], request: Request, own_ids: Collection[str]) -> Json:
    content: str | list[Json] = result_text(part, more)
    if files := [_attachment(file, request) for file in attached_files(more)]:
        content = [{"type": "text", "text": content}, *files]
    block: Json = {"type": "tool_result", "tool_use_id": tool_id(part.call_id, own_ids), "content": content}
    return block | {"is_error": True} if part.is_error else block


def _attachment(part: Attachment, request: Request) -> Json:
    if (text := attachment_text(part, request)) is not None:
        return {"type": "text", "text": text}
    source = {"type": "base64", "media_type": part.media_type, "data": encoded(part, request)}
    return {"type": "document" if part.kind == "pdf" else "image", "source": source}


# The field of a citation that names its source: a search result, a document, or a tool's search result.
_CITED = ("url", "source", "document_title", "file_id")


@dataclass(slots=True)
class _Block:
    kind: str
    index: int  # index in our events, counted by kind
    place: int  # among all blocks of the answer
    item: Json | None = None  # the whole block, for kinds that are sent back unchanged
    input: list[str] = field(default_factory=list)  # the pieces of the input received so far
    whole: bool = False  # whether its end was sent


class AnthropicReader(Reader):
    """Reads one streamed answer."""

    def __init__(self, provider: str = "") -> None:
        super().__init__(provider)
        self._blocks: dict[int, _Block] = {}  # by the server's index: the latest one
        self._opened: list[_Block] = []
        self._reported: Json = {}  # all fields of usage so far
        self._edits: tuple[int, int] | None = None
        self._refusal = RefusalDelta("", from_server=True)

    def feed(self, event: Json, /) -> Iterator[StreamEvent]:
        """The stream events of one server event."""
        match event.get("type"):
            case "message_start":
                message = object_of(event.get("message"))
                self._edits = read_edits(message.get("context_management"))
                yield from self._name_model(message.get("model"))
                yield from self._merge_usage(message.get("usage"))
            case "content_block_start":
                yield from self._start(event)
            case "content_block_delta":
                if (block := self._blocks.get(_index(event))) is not None:
                    yield from _delta(block, object_of(event.get("delta")))
            case "content_block_stop":
                if (block := self._blocks.get(_index(event))) is not None:
                    yield from _ended(block)
            case "message_delta":
                self._edits = read_edits(event.get("context_management")) or self._edits
                yield from self._merge_usage(event.get("usage"))
                delta = object_of(event.get("delta"))
                if reason := text_of(delta.get("stop_reason")):
                    self._end = StreamEnd(finish_kind(reason), reason)
                if details := object_of(delta.get("stop_details")):
                    explanation, category = text_of(details.get("explanation")), text_of(details.get("category"))
                    self._refusal = RefusalDelta(explanation, category or None, from_server=True)

    def finish(self) -> Iterator[StreamEvent]:
        """The end mark, if there was one."""
        kind = None if self._end is None else self._end.kind
        if kind == "refusal":
            yield self._refusal
        for block in self._opened:  # a tool without arguments; in a cut answer they may be missing
            if kind == "tool_calls" and block.kind == "tool_use" and block.whole and not block.input:
                yield ToolCallDelta(block.index, arguments="{}")
        yield from super().finish()

    def _merge_usage(self, usage: object) -> Iterator[StreamEvent]:
        """Merge cumulative usage: later values replace earlier ones, field by field."""
        if isinstance(usage, dict):
            self._reported |= {key: value for key, value in usage.items() if value is not None}
            if usage := read_usage(self._reported):
                tokens, uses = self._edits or (None, None)
                yield from self._report(replace(usage, cleared=tokens, cleared_uses=uses))

    def _start(self, event: Json) -> Iterator[StreamEvent]:
        content = event.get("content_block")
        if not isinstance(content, dict):
            return
        kind = "reasoning" if content.get("type") in ("thinking", "redacted_thinking") else str(content.get("type"))
        count = sum(block.kind == kind for block in self._opened)
        block = self._blocks[_index(event)] = _Block(kind, count, len(self._opened))
        self._opened.append(block)
        match content.get("type"):
            case "text" | "thinking":
                yield from _piece(block, content)
                if kind == "reasoning" and (signature := content.get("signature")):
                    yield ReasoningMeta(block.index, signature=str(signature))
            case "redacted_thinking":
                yield ReasoningMeta(block.index, redacted=str(content.get("data", "")))
            case "tool_use":
                yield ToolCallDelta(block.index, str(content.get("id") or ""), str(content.get("name") or ""))
                if arguments := object_of(content.get("input")):
                    block.input = [json.dumps(arguments, ensure_ascii=False)]
                    yield ToolCallDelta(block.index, arguments=block.input[0])
            case _:
                block.item = content


def _ended(block: _Block) -> Iterator[StreamEvent]:
    block.whole = True
    if block.item is not None:
        whole = block.item | ({"input": as_object("".join(block.input))} if block.input else {})
        yield ItemReceived(block.kind, json.dumps(whole, ensure_ascii=False))
        block.item = None


def _index(event: Json) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else -1


def _delta(block: _Block, delta: Json) -> Iterator[StreamEvent]:
    match delta:
        case {"type": "signature_delta", "signature": str(signature)}:
            yield ReasoningMeta(block.index, signature=signature)
        case {"type": "input_json_delta", "partial_json": str(piece)} if piece:
            block.input.append(piece)
            if block.kind == "tool_use":
                yield ToolCallDelta(block.index, arguments=piece)
        case {"type": "text_delta" | "thinking_delta" | "citations_delta"}:
            yield from _piece(block, delta)


def _piece(block: _Block, piece: Json) -> Iterator[StreamEvent]:
    """Text, thinking and citations: a block begins with the fields that its deltas have."""
    if block.kind == "text" and (text := text_of(piece.get("text"))):
        yield TextDelta(text, block.place)
    if thinking := text_of(piece.get("thinking")):
        yield ReasoningDelta(thinking, block.index)
    for citation in (*objects_of(piece.get("citations")), object_of(piece.get("citation"))):
        if place := next((str(citation[key]) for key in _CITED if citation.get(key)), ""):
            title = citation.get("title") or citation.get("document_title")
            yield SourceCited(place, text_of(title), text_of(citation.get("cited_text")))


class AnthropicMessages(DialectProvider[AnthropicStyle]):
    """One server that speaks Anthropic's Messages API."""

    dialect = "anthropic"
    route = "/v1/messages"
    reader = AnthropicReader

    def _first_style(self, model: str) -> AnthropicStyle:
        listed, kind = self._listed.get(model), claude(model)  # the list takes precedence over the name
        types = None if listed is None or listed.thinking is None else frozenset(listed.thinking)
        if kind is None:
            by_default = types is not None and "disabled" not in types
            return AnthropicStyle(official=self.config.official, thinking=types, thinks_by_default=by_default)
        return AnthropicStyle(
            official=self.config.official,
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
