"""Chat Completions at any base URL: its requests, its answers, and how servers and models differ in them."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tui.messages import EFFORTS, Attachment, Message, Part, Reasoning, Request, Text, ToolCall, ToolResult
from tui.providers.base import (
    NO_ANSWER,
    Capabilities,
    ErrorKind,
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
from tui.providers.capabilities import chat_capabilities, openai_efforts
from tui.providers.config import EffortStyle, ProviderConfig
from tui.providers.dialects.dialect import Change, DialectProvider, Reader, Style
from tui.providers.http.errors import classify_error
from tui.providers.http.refusals import Cause
from tui.providers.http.transport import ask_json
from tui.providers.usage_reading import read_terms, read_usage
from tui.providers.wire import (
    Json,
    arguments_text,
    as_object,
    as_objects,
    attachment_text,
    chat_tool_id,
    data_url,
    files_after_results,
    object_of,
    objects_of,
    own_call_ids,
    own_reasoning,
    plain_text,
    received_arguments,
    result_text,
    results_with_parts,
    system_text,
    text_of,
    tool_name,
)
from tui.text.labels import finish_kind

log = logging.getLogger(__name__)

NO_THOUGHT = " "
"""Placeholder for required but missing reasoning: DeepSeek V4 Pro refuses an empty text (hermes-agent, issue 17341)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatStyle(Style):
    """How a server's Chat Completions differ from OpenAI's, besides what its configuration says.

    `needs_reasoning`: with tools every answer must have the field for reasoning, even if it came from another model or
    without reasoning (DeepSeek V4, Kimi). `reasons_with_tools`: False if tools are accepted only with reasoning off.
    `takes_system`: False if the system prompt has to begin the first message (templates of Gemma 2 and others).
    `bridges`: a message of the model has to stand between a tool's result and the person's next message (Mistral).
    """

    config: ProviderConfig = field(default_factory=lambda: ProviderConfig(""))
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    include_usage: bool = True
    needs_reasoning: bool = False
    reasons_with_tools: bool = True
    takes_system: bool = True
    bridges: bool = False


_ENABLED = {"type": "enabled"}
_EFFORTS: Mapping[EffortStyle, tuple[str, ...] | None] = {
    "effort": None,
    "openrouter": EFFORTS,  # maps those that a model lacks to the nearest one
    # DeepSeek V4, Kimi K3 and GLM-5.3; Kimi treats any other value as "max" (their guides to thinking, autumn 2026).
    "thinking": ("off", "low", "high", "max"),
}


def to_wire(request: Request, style: ChatStyle) -> Json:
    """The JSON body of POST /chat/completions, streaming."""
    messages: list[Json] = []
    own_ids = () if style.config.official else own_call_ids(request)
    if system := system_text(request.system):
        messages.append({"role": "system" if style.takes_system else "user", "content": system})
    for message in files_after_results(request.messages):  # only user messages may have images in this dialect
        for wire in _message(message, request, style, own_ids):
            if style.bridges and wire["role"] == "user" and messages and messages[-1]["role"] == "tool":
                messages.append({"role": "assistant", "content": NO_ANSWER})
            _append(messages, wire)
    body: Json = {"model": request.model, "messages": messages, "stream": True}
    if style.include_usage:
        body["stream_options"] = {"include_usage": True}
    if request.max_output is not None:
        body[style.max_tokens_field] = request.max_output
    if request.tools:
        body["tools"] = [{"type": "function", "function": tool} for tool in style.tools(request, "parameters")]
    if style.config.official and request.session:
        body["prompt_cache_key"] = request.session
    return body | _effort(request, style)


def _append(messages: list[Json], wire: Json) -> None:
    """Add a message; two consecutive ones of a role are merged, since many chat templates require alternation."""
    last = messages[-1] if messages else {}
    same = last.get("role") == wire["role"] and wire["role"] in ("user", "assistant")
    one, other = last.get("content"), wire.get("content")
    if not same or wire.keys() | last.keys() > {"role", "content"} or one is None or other is None:
        messages.append(wire)
    elif isinstance(one, str) and isinstance(other, str):
        messages[-1] = {**last, "content": f"{one}\n\n{other}"}
    else:
        messages[-1] = {**last, "content": _pieces(one) + _pieces(other)}


def _pieces(content: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _effort(request: Request, style: ChatStyle) -> Json:
    if request.tools and not style.reasons_with_tools:
        return {"reasoning_effort": "none"}
    effort = style.effort(request.reasoning)
    if effort is None:
        return {}
    off = effort == "off"
    match style.config.effort_style:
        case "openrouter":
            return {"reasoning": {"enabled": False} if off else {"effort": effort}}
        case "thinking":  # DeepSeek refuses an effort beside "disabled"
            return {"thinking": {"type": "disabled"}} if off else {"thinking": _ENABLED, "reasoning_effort": effort}
        case "effort":
            return {"reasoning_effort": "none" if off else effort}


def _message(message: Message, request: Request, style: ChatStyle, own_ids: Collection[str]) -> list[Json]:
    if message.role != "tool" and len(message.parts) == 1 and isinstance(part := message.parts[0], Text):
        alone: Json = {"role": message.role, "content": part.text}  # most messages: a quarter of the time
        if message.role == "assistant" and style.needs_reasoning and request.tools:
            alone[style.config.reasoning_field] = NO_THOUGHT
        return [alone] if part.text else []
    if message.role == "assistant":
        return _assistant(message, request, style, own_ids)
    messages = [_result(part, more, style, own_ids) for part, more in results_with_parts(message)]
    if message.role == "user" and (content := _content(message, request)):
        messages.append({"role": "user", "content": content})
    return messages


def _result(part: ToolResult, more: list[Part], style: ChatStyle, own_ids: Collection[str]) -> Json:
    call = chat_tool_id(part.call_id, own_ids, short=style.config.short_tool_ids)
    return {"role": "tool", "tool_call_id": call, "content": result_text(part, more)}


def _content(message: Message, request: Request) -> str | list[Json]:
    """A plain string if there is only text: the form that every server accepts."""
    pieces: list[Json] = []
    for part in message.parts:
        if isinstance(part, Attachment):
            pieces.append(_attachment(part, request))
        elif text := plain_text(part):
            pieces.append({"type": "text", "text": text})
    if all(piece["type"] == "text" for piece in pieces):
        return "\n\n".join(piece["text"] for piece in pieces)
    return pieces


def _attachment(part: Attachment, request: Request) -> Json:
    if (text := attachment_text(part, request)) is not None:
        return {"type": "text", "text": text}
    url = data_url(part, request)
    if part.kind == "pdf":
        return {"type": "file", "file": {"filename": part.name, "file_data": url}}
    return {"type": "image_url", "image_url": {"url": url}}


def _assistant(message: Message, request: Request, style: ChatStyle, own_ids: Collection[str]) -> list[Json]:
    wire: Json = {"role": "assistant"}
    text = "".join(plain_text(part) for part in message.parts)
    same_provider = message.provider == request.provider
    calls = [
        _call(part, style, own_ids, same_provider=same_provider) for part in message.parts if isinstance(part, ToolCall)
    ]
    if not text and not calls:
        return []  # an answer with nothing but reasoning is refused as empty
    wire["content"] = text or None
    thoughts = [part for part in message.parts if isinstance(part, Reasoning) and own_reasoning(part, request)]
    details = [entry for part in thoughts for entry in as_objects(part.details)]
    if details:
        wire["reasoning_details"] = details
    elif (reasoning := "".join(part.text for part in thoughts)) or (style.needs_reasoning and request.tools):
        wire[style.config.reasoning_field] = reasoning or NO_THOUGHT
    if calls:
        wire["tool_calls"] = calls
    return [wire]


def _call(part: ToolCall, style: ChatStyle, own_ids: Collection[str], *, same_provider: bool) -> Json:
    """A call; metadata to be echoed (Gemini's signature) is sent to its own provider only."""
    wire: Json = {
        "id": chat_tool_id(part.id, own_ids, short=style.config.short_tool_ids),
        "type": "function",
        "function": {"name": tool_name(part.name), "arguments": arguments_text(part.arguments)},
    }
    if same_provider and (extra := as_object(part.extra)):
        wire["extra_content"] = extra
    return wire


# Finish reasons that are errors: OpenRouter, DeepSeek, Z.ai, vLLM and SGLang. Their meaning if no answer came.
_BROKEN: dict[str, ErrorKind] = {
    "error": "server",
    "insufficient_system_resource": "overloaded",
    "network_error": "server",
    "abort": "server",
}
# Fields for reasoning; some servers send two with the same text, so the first non-empty one is used.
_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")


class ChatReader(Reader):
    """Reads one streamed answer."""

    def __init__(self, provider: str = "") -> None:
        super().__init__(provider)
        self._calls = _Calls()
        self._details: list[Json] = []
        self._listed: tuple[object, object] = (None, None)  # the sources named last
        self._items: set[str] = set()  # kinds of what cannot be shown, each told once

    def feed(self, chunk: Json, /) -> Iterator[StreamEvent]:
        """The stream events of one chunk. Raises `ProviderError` for an error sent as a chunk."""
        choice = (objects_of(chunk.get("choices")) or [{}])[0]
        if error := choice.get("error"):
            raise classify_error(None, error, provider=self._provider)
        yield from self._name_model(chunk.get("model"))
        for holder in (chunk, choice, object_of(chunk.get("x_groq"))):  # reported at the end, or in every chunk
            if usage := read_usage(holder.get("usage")):
                yield from self._report(replace(usage, terms=usage.terms or read_terms(chunk)))
        if (listed := (chunk.get("search_results"), chunk.get("citations"))) != self._listed:
            self._listed = listed  # Perplexity repeats them in every chunk
            yield from _listed_sources(chunk)
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            yield from self._delta(delta)
        if reason := text_of(choice.get("finish_reason")):
            self._end = StreamEnd(finish_kind(reason), reason)

    def finish(self) -> Iterator[StreamEvent]:
        """Events known only at the end: collected reasoning details, and the end mark if there was one.

        Raises `ProviderError` if the server reported that it could not go on.
        """
        if self._details:
            yield ReasoningMeta(details=json.dumps(self._details, ensure_ascii=False))
        if self._end is not None and (kind := _BROKEN.get(self._end.raw)):
            text = f"the server broke the answer off ({self._end.raw}). What arrived is kept; /retry asks again."
            raise ProviderError(kind, f"{self._provider}: {text}" if self._provider else text)
        yield from super().finish()

    def _delta(self, delta: Json) -> Iterator[StreamEvent]:
        reasoning = next((text for name in _REASONING_FIELDS if (text := text_of(delta.get(name)))), "")
        details = objects_of(delta.get("reasoning_details"))
        for item in details:
            _merge_detail(self._details, item)
        if not reasoning:
            reasoning = "".join(text_of(item.get("text")) or text_of(item.get("summary")) for item in details)
        if reasoning:
            yield ReasoningDelta(reasoning)
        yield from self._content(delta.get("content"))
        for annotation in objects_of(delta.get("annotations")):  # OpenAI's and OpenRouter's citations
            cited = object_of(annotation.get("url_citation"))
            if url := text_of(cited.get("url")):
                yield SourceCited(url, text_of(cited.get("title")), text_of(cited.get("content")))
        if audio := object_of(delta.get("audio")):
            yield from self._item("audio")
            yield from self._content(audio.get("transcript"))
        if delta.get("images"):
            yield from self._item("image")
        if refusal := text_of(delta.get("refusal")):
            yield RefusalDelta(refusal)
        calls = objects_of(delta.get("tool_calls"))
        if not calls and (function := object_of(delta.get("function_call"))):  # the form before tool calls
            calls = [{"index": 0, "function": function}]
        self._calls.begin_chunk()
        for call in calls:
            if call.get("type") == "custom":
                yield from self._item("custom_tool_call")
            else:
                yield self._calls.read(call)

    def _item(self, kind: str) -> Iterator[StreamEvent]:
        if kind not in self._items:
            self._items.add(kind)
            yield ItemReceived(kind)

    def _content(self, content: object) -> Iterator[StreamEvent]:
        """Text, or a list of pieces (Mistral: text, thinking and references)."""
        match content:
            case list():
                for piece in content:
                    yield from self._content(piece)
            case {"type": "thinking", **rest}:
                pieces = objects_of(rest.get("thinking")) or [{"text": rest.get("thinking")}]
                if text := "".join(text_of(item.get("text")) for item in pieces):
                    yield ReasoningDelta(text)
            case str(text) | {"text": str(text)}:
                if text:
                    yield TextDelta(text)
            case {"type": str(kind)} if kind not in ("", "text", "reference"):
                yield from self._item(kind.removesuffix("_url"))


def _listed_sources(chunk: Json) -> Iterator[StreamEvent]:
    """Perplexity's and xAI's lists beside the choices: `citations` are addresses, `search_results` have titles."""
    citations = chunk.get("citations")
    addresses = [{"url": cited} for cited in citations if isinstance(cited, str)] if isinstance(citations, list) else []
    for source in (*objects_of(chunk.get("search_results")), *addresses, *objects_of(citations)):
        if url := text_of(source.get("url")):
            yield SourceCited(url, text_of(source.get("title")))


def _merge_detail(details: list[Json], piece: Json) -> None:
    """OpenRouter streams `reasoning_details` in pieces; those of one entry come in a row with one type and index."""
    last = details[-1] if details else {}
    ids = last.get("id"), piece.get("id")
    same = bool(details) and all(last.get(key) == piece.get(key) for key in ("type", "index"))
    if not same or (None not in ids and ids[0] != ids[1]):
        details.append(dict(piece))
        return
    for key, value in piece.items():
        if key in ("text", "summary", "data") and isinstance(value, str):
            last[key] = text_of(last.get(key)) + value
        elif value is not None:
            last[key] = value


@dataclass(slots=True)
class _Call:
    wire_index: object
    id: str = ""
    pieces: list[str] = field(default_factory=list)  # of its arguments

    def matches(self, wire_index: object, call_id: str, *, named: bool) -> bool:
        """Whether a piece of this index and id may belong to the call; `named`: it has the name of a tool."""
        if named and None not in (wire_index, self.wire_index) and wire_index != self.wire_index:
            return False  # another call, even with the same id
        if call_id and call_id == self.id:
            return True
        another_id = named and bool(call_id and self.id)
        return wire_index is not None and wire_index == self.wire_index and not another_id

    @property
    def whole(self) -> str:
        """The arguments so far if they are a JSON object, else ""."""
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return ""
        arguments = "".join(self.pieces)
        try:
            return arguments if isinstance(json.loads(arguments), dict) else ""
        except (ValueError, RecursionError):
            return ""


class _Calls:
    """Puts the pieces of tool calls together where servers forget indices, repeat ids, or number everything 0."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []  # by our index
        self._earlier = 0  # how many of them began in earlier chunks

    def begin_chunk(self) -> None:
        """Begin a chunk: the calls so far came in earlier ones."""
        self._earlier = len(self._calls)

    def read(self, call: Json) -> ToolCallDelta:
        """The piece as an event. `id` and `name` come with a call's first piece only."""
        function = object_of(call.get("function"))
        call_id, name = text_of(call.get("id")), text_of(function.get("name"))
        arguments = received_arguments(function.get("arguments"))
        index = self._continued(call.get("index"), call_id, arguments if name else None)
        begins = index is None
        if index is None:
            index = len(self._calls)
            self._calls.append(_Call(call.get("index")))
        open_call = self._calls[index]
        new_id = begins or (bool(call_id) and not open_call.id)
        open_call.id = open_call.id or call_id
        if not new_id and name and arguments == open_call.whole:
            arguments = ""  # the whole call was repeated
        if arguments:
            open_call.pieces.append(arguments)
        extra = call.get("extra_content")
        return ToolCallDelta(
            index,
            id=call_id if new_id else None,
            name=name or None,
            arguments=arguments,
            extra=json.dumps(extra, ensure_ascii=False) if isinstance(extra, dict) else None,
        )

    def _continued(self, wire_index: object, call_id: str, named: str | None) -> int | None:
        """Our index of the call that a piece belongs to; None for a new call. `named`: its arguments, if it has a name.

        A named piece after a complete call is a repetition of it, or another call of the same id or index.
        """
        for index in reversed(range(len(self._calls))):
            call = self._calls[index]
            if call.matches(wire_index, call_id, named=named is not None):
                if named is None or not named.lstrip().startswith("{") or not (whole := call.whole):
                    return index
                return index if index < self._earlier and named == whole else None  # two in one chunk are two calls
        unmarked = wire_index is None and not call_id and named is None
        return len(self._calls) - 1 if unmarked and self._calls else None


class OpenAIChat(DialectProvider[ChatStyle]):
    """One server that speaks Chat Completions."""

    dialect = "openai-chat"
    route = "/chat/completions"
    reader = ChatReader
    changes = (
        Change(
            "reasoning_with_tools",
            "reasons_with_tools",
            False,
            "Over Chat Completions it reasons or calls tools, not both: with tools it is asked not to reason. "
            'With kind = "openai" in [providers.{provider}] it does both',
            with_tools=True,
        ),
        Change("missing_reasoning", "needs_reasoning", True),
        Change("role_order", "bridges", True),
        Change("system_role", "takes_system", False),
        Change("field", "include_usage", False),
    )

    def _first_style(self, model: str) -> ChatStyle:
        return ChatStyle(
            config=self.config,
            efforts=_EFFORTS[self.config.effort_style] or openai_efforts(model, chat=True),
            max_tokens_field="max_completion_tokens" if self.config.official else "max_tokens",
            needs_reasoning=self.config.family in ("deepseek", "kimi"),
            bridges=self.config.short_tool_ids,
        )

    def _body(self, request: Request, style: ChatStyle) -> Json:
        return to_wire(request, style)

    def _adapted(self, style: ChatStyle, cause: Cause, request: Request) -> ChatStyle | None:
        if cause != "max_tokens_name" or request.max_output is None:
            return None
        other = style.max_tokens_field == "max_tokens"
        return replace(style, max_tokens_field="max_completion_tokens" if other else "max_tokens")

    def _after(self, error: ProviderError, style: ChatStyle, request: Request) -> ChatStyle | None:
        changed = super()._after(error, style, request)
        if changed is not None and changed.efforts == () != style.efforts:
            return replace(changed, include_usage=True)  # the unsupported field was the effort, not this one
        return changed

    def capabilities(self, model: str) -> Capabilities:
        """What is known of `model` without asking the server."""
        able = chat_capabilities(model, self.config.family)
        # Any server of a person's own may be vLLM, which counts; others answer that they have no such route.
        counts = able.count_endpoint or (False if self.config.hosted else None)
        images, pdfs = able.images and self.config.images, able.pdfs or self.config.official
        bridges = self.style(model).bridges
        return replace(able, count_endpoint=counts, images=images, pdfs=pdfs, bridges=bridges, files_after_results=True)

    async def check_key(self) -> None:
        """Check the key at OpenRouter's /key: its model list is public. Raises `ProviderError` of kind "auth"."""
        if self.config.family != "openrouter":
            return
        try:
            await ask_json(await self.client(), "/key")
        except ProviderError as error:
            if error.kind == "auth":
                raise
            log.info("openrouter's /key says nothing of the key: %s", error)  # the first message will show
