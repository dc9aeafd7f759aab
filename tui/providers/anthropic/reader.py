"""Reads Anthropic Messages events into stream events. Pure: fed with JSON objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tui.providers.base import (
    ItemReceived,
    ReasoningDelta,
    ReasoningMeta,
    RefusalDelta,
    SourceCited,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
)
from tui.providers.dialect import Reader
from tui.providers.usage_reading import read_edits, read_usage
from tui.providers.wire import Json, as_object, object_of, objects_of, text_of
from tui.text.endings import finish_kind

# The field of a citation that names its source, by type.
_CITED = ("url", "source", "document_title", "file_id")


@dataclass(slots=True)
class _Block:
    kind: str
    index: int  # index in our events, counted by kind
    place: int  # among all blocks of the answer
    item: Json | None = None  # the whole block, for kinds that are sent back unchanged
    input: str = ""  # the input received so far
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
                self._edited(message)
                yield from self._name_model(message.get("model"))
                yield from self._merge_usage(message.get("usage"))
            case "content_block_start":
                yield from self._start(event)
            case "content_block_delta":
                if (block := self._blocks.get(_index(event))) is not None:
                    yield from _delta(block, object_of(event.get("delta")))
            case "content_block_stop":
                block = self._blocks.get(_index(event))
                if block is not None:
                    block.whole = True
                if block is not None and block.item is not None:
                    whole = block.item | ({"input": as_object(block.input)} if block.input else {})
                    yield ItemReceived(block.kind, json.dumps(whole, ensure_ascii=False))
                    block.item = None
            case "message_delta":
                self._edited(event)
                yield from self._merge_usage(event.get("usage"))
                self._stop(object_of(event.get("delta")))

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

    def _edited(self, holder: Json) -> None:
        """What the server's context editing cleared from the prompt, if reported."""
        self._edits = read_edits(holder.get("context_management")) or self._edits

    def _stop(self, delta: Json) -> None:
        if reason := text_of(delta.get("stop_reason")):
            self._end = StreamEnd(finish_kind(reason), reason)
        if details := object_of(delta.get("stop_details")):
            explanation, category = text_of(details.get("explanation")), text_of(details.get("category"))
            self._refusal = RefusalDelta(explanation, category or None, from_server=True)

    def _start(self, event: Json) -> Iterator[StreamEvent]:
        content = event.get("content_block")
        if not isinstance(content, dict):
            return
        kind = "reasoning" if content.get("type") in ("thinking", "redacted_thinking") else str(content.get("type"))
        count = sum(block.kind == kind for block in self._opened)
        block = self._blocks[_index(event)] = _Block(kind, count, len(self._opened))
        self._opened.append(block)
        match content.get("type"):
            case "text":
                yield from _text(block, content.get("text"))
                for citation in objects_of(content.get("citations")):
                    yield from _cited(citation)
            case "thinking":
                yield from _thinking(block, content.get("thinking"))
                yield from _signature(block, content.get("signature") or None)
            case "redacted_thinking":
                yield ReasoningMeta(block.index, redacted=str(content.get("data", "")))
            case "tool_use":
                yield ToolCallDelta(block.index, str(content.get("id") or ""), str(content.get("name") or ""))
                if isinstance(arguments := content.get("input"), dict) and arguments:
                    block.input = json.dumps(arguments, ensure_ascii=False)
                    yield ToolCallDelta(block.index, arguments=block.input)
            case _:
                block.item = content


def _index(event: Json) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else -1


def _delta(block: _Block, delta: Json) -> Iterator[StreamEvent]:
    match delta.get("type"):
        case "text_delta":
            yield from _text(block, delta.get("text"))
        case "thinking_delta":
            yield from _thinking(block, delta.get("thinking"))
        case "signature_delta":
            yield from _signature(block, delta.get("signature"))
        case "input_json_delta" if block.kind == "tool_use" and isinstance(delta.get("partial_json"), str):
            if delta["partial_json"]:
                block.input += delta["partial_json"]
                yield ToolCallDelta(block.index, arguments=delta["partial_json"])
        case "input_json_delta" if block.item is not None and isinstance(delta.get("partial_json"), str):
            block.input += delta["partial_json"]
        case "citations_delta":
            yield from _cited(object_of(delta.get("citation")))


def _cited(citation: Json) -> Iterator[StreamEvent]:
    """The source of a citation: a search result, a document, or a tool's search result."""
    place = next((str(citation[key]) for key in _CITED if citation.get(key)), "")
    if place:
        title = citation.get("title") or citation.get("document_title") or ""
        yield SourceCited(place, str(title), str(citation.get("cited_text") or ""))


def _text(block: _Block, text: object) -> Iterator[StreamEvent]:
    if block.kind == "text" and isinstance(text, str) and text:
        yield TextDelta(text, block.place)


def _thinking(block: _Block, text: object) -> Iterator[StreamEvent]:
    if isinstance(text, str) and text:
        yield ReasoningDelta(text, block.index)


def _signature(block: _Block, signature: object) -> Iterator[StreamEvent]:
    if isinstance(signature, str):
        yield ReasoningMeta(block.index, signature=signature)
