"""OpenAI Responses at any base URL, stateless: all items are sent again, nothing is stored."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from tui.messages import Attachment, Message, Part, Reasoning, Request, Text, ToolCall, ToolResult
from tui.providers.base import (
    Capabilities,
    ItemReceived,
    ReasoningDelta,
    ReasoningMeta,
    RefusalDelta,
    SourceCited,
    StreamEnd,
    StreamEvent,
    TextDelta,
    TextMeta,
    ToolCallDelta,
)
from tui.providers.capabilities import gpt_version, openai_efforts, responses_capabilities
from tui.providers.dialects.dialect import Change, DialectProvider, Reader, Style
from tui.providers.http.errors import classify_error
from tui.providers.usage_reading import read_terms, read_usage
from tui.providers.wire import (
    Json,
    arguments_text,
    as_objects,
    attached_files,
    attachment_text,
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
    tool_id,
    tool_name,
)
from tui.text.labels import finish_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesStyle(Style):
    """How a server's Responses API differs. `official`: OpenAI's own servers; others support fewer fields."""

    official: bool = True
    summaries: bool = True  # reasoning summaries may be asked for
    streams: bool = True


def to_wire(request: Request, style: ResponsesStyle) -> Json:
    """The JSON body of POST /responses, streaming."""
    official = style.official
    messages = request.messages if official else files_after_results(request.messages)
    own_ids = () if official else own_call_ids(request)
    items = [item for message in messages for item in _items(message, request, own_ids, official=official)]
    body: Json = {"model": request.model, "input": items, "store": False, "stream": style.streams}
    if system := system_text(request.system):
        body["instructions"] = system
    if request.tools:
        tools = style.tools(request, "parameters")
        body["tools"] = [{"type": "function", **tool, "strict": False} for tool in tools]
    if request.max_output is not None:
        body["max_output_tokens"] = request.max_output
    if official and request.session:
        body["prompt_cache_key"] = request.session
    return body | _reasoning_fields(request, style)


def _reasoning_fields(request: Request, style: ResponsesStyle) -> Json:
    """Fields for reasoning models; OpenAI's other models answer 400 to them."""
    if style.official and not style.efforts and not openai_efforts(request.model):
        return {}
    fields: Json = {}
    if style.official:
        fields["include"] = ["reasoning.encrypted_content"]
        if style.summaries:
            fields["reasoning"] = {"summary": "auto"}
    if (effort := style.effort(request.reasoning)) is not None:
        fields["reasoning"] = fields.get("reasoning", {}) | {"effort": "none" if effort == "off" else effort}
    return fields


def _items(message: Message, request: Request, own_ids: Collection[str], *, official: bool) -> list[Json]:
    if message.role == "assistant":
        return _assistant(message, request, own_ids, official=official)
    items = [
        _result(part, more, [_attachment(file, request) for file in attached_files(more)] if official else [], own_ids)
        for part, more in results_with_parts(message)
    ]
    content: list[Json] = []
    for part in message.parts if message.role == "user" else ():
        if isinstance(part, Attachment):
            content.append(_attachment(part, request))
        elif text := plain_text(part):
            content.append({"type": "input_text", "text": text})
    return [*items, {"type": "message", "role": "user", "content": content}] if content else items


def _result(part: ToolResult, more: list[Part], files: list[Json], own_ids: Collection[str]) -> Json:
    output: str | list[Json] = result_text(part, more)
    if files:
        output = [{"type": "input_text", "text": output}, *files]
    return {"type": "function_call_output", "call_id": tool_id(part.call_id, own_ids), "output": output}


def _attachment(part: Attachment, request: Request) -> Json:
    if (text := attachment_text(part, request)) is not None:
        return {"type": "input_text", "text": text}
    url = data_url(part, request)
    if part.kind == "pdf":
        return {"type": "input_file", "filename": part.name, "file_data": url}
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _assistant(message: Message, request: Request, own_ids: Collection[str], *, official: bool) -> list[Json]:
    """An answer's items in order; reasoning stays directly before the item it led to."""
    items: list[Json] = []
    last_call = max((at for at, part in enumerate(message.parts) if isinstance(part, ToolCall)), default=-1)
    version = gpt_version(request.model)
    same_model = (message.provider, message.model) == (request.provider, request.model)  # its phases are stored
    phased = version is not None and version >= (5, 4) and not same_model
    for at, part in enumerate(message.parts):
        match part:
            case Reasoning():
                if own_reasoning(part, request):
                    items += _reasoning_items(part)
            case ToolCall():
                items.append(
                    {
                        "type": "function_call",
                        "call_id": tool_id(part.id, own_ids),
                        "name": tool_name(part.name),
                        "arguments": arguments_text(part.arguments),
                    }
                )
            case _ if text := plain_text(part):
                item: Json = {"type": "message", "role": "assistant", "content": text}
                phase = part.phase if isinstance(part, Text) else None
                if phase is None and phased:  # text before a call, and text at the end
                    phase = "commentary" if at < last_call else "final_answer"
                if phase is not None and official:
                    item["phase"] = phase
                items.append(item)
    while items and items[-1]["type"] == "reasoning":
        items.pop()  # reasoning without its following item is refused
    return items


def _reasoning_items(part: Reasoning) -> list[Json]:
    if part.encrypted is not None:
        summary = as_objects(part.details)
        if not summary and part.text:
            summary = [{"type": "summary_text", "text": part.text}]
        item: Json = {"type": "reasoning", "summary": summary, "encrypted_content": part.encrypted}
        return [item | {"id": part.item_id} if part.item_id else item]
    if not part.text:
        return []
    # Servers that keep nothing and encrypt nothing (llama.cpp, LM Studio) take the plain text.
    content = [{"type": "reasoning_text", "text": part.text}]
    return [{"type": "reasoning", "id": part.item_id or "", "summary": [], "content": content, "encrypted_content": ""}]


_READ = ("message", "reasoning", "function_call")  # item types with content of their own
_DELTAS = {
    "response.output_text.delta": "message",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
    "response.function_call_arguments.delta": "function_call",
}


@dataclass(slots=True)
class _Item:
    kind: str
    key: object  # its index or id, which items may share
    index: int  # counted within its kind
    place: int  # among all items of the answer
    received: list[str] = field(default_factory=list)  # the deltas of its text
    refused: str = ""  # refusal text received in deltas
    named: bool = False  # whether its phase or existence was reported
    parts: int = 0  # summary parts begun
    added: bool = False  # its beginning was announced
    done: bool = False

    def event(self, text: str) -> StreamEvent:
        """A piece of its text."""
        match self.kind:
            case "message":
                return TextDelta(text, self.place)
            case "reasoning":
                return ReasoningDelta(text, self.index)
            case _:
                return ToolCallDelta(self.index, arguments=text)

    def rest(self, whole: str) -> Iterator[StreamEvent]:
        """The part of its whole text that was not in its deltas; nothing if the two disagree."""
        before = "".join(self.received)
        self.received = [whole or before]
        if whole.startswith(before) and whole != before:
            yield self.event(whole[len(before) :])


class ResponsesReader(Reader):
    """Reads one streamed answer.

    Items are identified by `output_index`: some servers rotate the ids, others (llama.cpp) leave the index out.
    """

    def __init__(self, provider: str = "") -> None:
        super().__init__(provider)
        self._items: list[_Item] = []

    def feed(self, event: Json, /) -> Iterator[StreamEvent]:
        """The stream events of one event. Raises `ProviderError` for a failed answer."""
        kind, delta = text_of(event.get("type")), event.get("delta")
        response = object_of(event.get("response"))
        yield from self._name_model(response.get("model"))
        if usage := read_usage(response.get("usage")):
            searches = sum(item.kind == "web_search_call" for item in self._items)
            yield from self._report(replace(usage, terms=read_terms(response), searches=searches or usage.searches))
        match kind:
            case "response.output_item.added":
                yield from self._added(event)
            case "response.output_item.done":
                yield from self._done(event)
            case "response.completed" | "response.incomplete" | "response.failed":
                for index, whole in enumerate([] if self._items else objects_of(response.get("output"))):
                    yield from self._done({"output_index": index, "item": whole})
                self._close(kind, response)
            case "response.output_text.annotation.added":
                yield from _cited(object_of(event.get("annotation")))
            case "response.refusal.delta" if isinstance(delta, str):
                self._item(event, "message").refused += delta
                yield RefusalDelta(delta)
            case _ if kind in _DELTAS and isinstance(delta, str):
                item = self._item(event, _DELTAS[kind])
                item.received.append(delta)
                yield item.event(delta)
            case "response.reasoning_summary_part.added":
                item = self._item(event, "reasoning")
                item.parts += 1
                if item.parts > 1:
                    item.received.append("\n\n")
                    yield item.event("\n\n")

    def _item(self, event: Json, kind: str, *, adding: bool = False) -> _Item:
        """The item an event belongs to; created if the server did not announce it."""
        item_id = object_of(event.get("item")).get("id") or event.get("item_id")
        index = event.get("output_index")
        key: object = index if isinstance(index, int) else str(item_id or kind)
        item = next((item for item in reversed(self._items) if item.key == key), None)
        if item is None or item.kind != kind or (adding and item.added):
            item = _Item(kind, key, sum(other.kind == kind for other in self._items), len(self._items))
            self._items.append(item)
        return item

    def _added(self, event: Json) -> Iterator[StreamEvent]:
        if not (wire := object_of(event.get("item"))):
            return
        item = self._item(event, str(wire.get("type")), adding=True)
        item.added = True
        if item.kind == "function_call":
            yield _call(item, wire)
        yield from _named(item, wire)

    def _done(self, event: Json) -> Iterator[StreamEvent]:
        """What a finished item has beyond its deltas: metadata, and content whose deltas are missing."""
        if not (wire := object_of(event.get("item"))):
            return
        announced = len(self._items)
        item = self._item(event, str(wire.get("type")))  # or an earlier one of its index or id that has not ended
        open_items = (one for one in self._items if not one.done)
        item = next((one for one in open_items if one.key == item.key and one.kind == item.kind), item)
        item.done = True
        parts = objects_of(wire.get("content"))
        match item.kind:
            case "reasoning":
                summary = objects_of(wire.get("summary"))
                yield from item.rest("\n\n".join(text_of(part.get("text")) for part in summary or parts))
                yield ReasoningMeta(
                    item.index,
                    encrypted=text_of(wire.get("encrypted_content")) or None,
                    item_id=text_of(wire.get("id")) or None,
                    details=json.dumps(summary, ensure_ascii=False) if len(summary) > 1 else None,
                )
            case "message":
                yield from item.rest("".join(text_of(part.get("text")) for part in parts))
                refusal = "".join(text_of(part.get("refusal")) for part in parts)
                if refusal.startswith(item.refused) and (rest := refusal[len(item.refused) :]):
                    yield RefusalDelta(rest)
                for part in parts:
                    for annotation in objects_of(part.get("annotations")):
                        yield from _cited(annotation)
            case "function_call":
                if len(self._items) > announced:
                    yield _call(item, wire)
                yield from item.rest(received_arguments(wire.get("arguments")))
        yield from _named(item, wire)

    def _close(self, kind: str, response: Json) -> None:
        match kind:
            case "response.failed":
                raise classify_error(None, response.get("error") or response, provider=self._provider)
            case "response.incomplete":
                reason = text_of(object_of(response.get("incomplete_details")).get("reason"))
                self._end = StreamEnd(finish_kind(reason or "incomplete"), reason or "incomplete")
            case _:
                called = any(item.kind == "function_call" for item in self._items)
                self._end = StreamEnd("tool_calls" if called else "stop", "completed")


def _call(item: _Item, wire: Json) -> ToolCallDelta:
    return ToolCallDelta(item.index, str(wire.get("call_id") or wire.get("id") or ""), str(wire.get("name") or ""))


def _named(item: _Item, wire: Json) -> Iterator[StreamEvent]:
    """Reported once for each item: the phase of a message, and the existence of other items."""
    if item.named:
        return
    if item.kind == "message" and (phase := text_of(wire.get("phase"))):
        item.named = True
        yield TextMeta(item.place, phase)
    elif item.kind not in _READ:
        item.named = True
        yield ItemReceived(item.kind)


def _cited(annotation: Json) -> Iterator[StreamEvent]:
    """A page cited by a text, or a file of OpenAI's, by its name."""
    if place := text_of(next((annotation[key] for key in ("url", "filename", "file_id") if annotation.get(key)), "")):
        yield SourceCited(place, text_of(annotation.get("title")))


class OpenAIResponses(DialectProvider[ResponsesStyle]):
    """One server that speaks Responses."""

    dialect = "openai-responses"
    route = "/responses"
    reader = ResponsesReader
    changes = (
        Change(
            "summaries",
            "summaries",
            False,
            "Its reasoning is not summarized: OpenAI does that for verified organizations",
        ),
        Change("streams", "streams", False, "Its answers come whole: OpenAI streams them to verified organizations"),
    )

    def _first_style(self, model: str) -> ResponsesStyle:
        efforts = openai_efforts(model)
        if efforts is None and self.config.official:
            efforts = ()  # not a reasoning model of OpenAI
        return ResponsesStyle(official=self.config.official, efforts=efforts)

    def _body(self, request: Request, style: ResponsesStyle) -> Json:
        return to_wire(request, style)

    def capabilities(self, model: str) -> Capabilities:
        """What is known of `model` without asking the server."""
        return responses_capabilities(model, official=self.config.official)
