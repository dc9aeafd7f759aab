"""OpenAI Responses events in, our stream events out. Pure: fed with JSON objects, knows no SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from tui.providers.base import (
    FinishKind,
    ReasoningDelta,
    ReasoningMeta,
    RefusalDelta,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)
from tui.providers.http.errors import classify_error
from tui.providers.usage_reading import read_usage
from tui.providers.wire import Json

_INCOMPLETE: dict[str, FinishKind] = {"max_output_tokens": "length", "content_filter": "content_filter"}


@dataclass(slots=True)
class _Item:
    kind: str
    index: int  # counted within its kind
    place: int  # among all items of the answer
    said: str = ""  # what has come of it in deltas
    parts: int = 0  # summary parts begun


class ResponsesReader:
    """Reads one streamed answer. Feed every event, then call `finish` when the stream has ended.

    Items are known by `output_index`: some servers rotate the ids, others (llama.cpp) leave the index out.
    """

    def __init__(self, provider: str = "") -> None:
        self._provider = provider
        self._items: dict[object, _Item] = {}
        self._end: StreamEnd | None = None

    @property
    def ended(self) -> bool:
        """True once the closing event has come."""
        return self._end is not None

    def feed(self, event: Json) -> Iterator[StreamEvent]:
        """Events of one event. Raises `ProviderError` for an answer that failed."""
        kind = str(event.get("type") or "")
        match kind:
            case "response.output_item.added":
                yield from self._added(event)
            case "response.output_item.done":
                yield from self._done(event)
            case "response.completed" | "response.incomplete" | "response.failed":
                yield from self._closed(kind, event.get("response"))
            case _ if isinstance(delta := event.get("delta"), str):
                yield from self._delta(kind, event, delta)
            case "response.reasoning_summary_part.added":
                item = self._item(event, "reasoning")
                item.parts += 1
                if item.parts > 1:
                    item.said += "\n\n"
                    yield ReasoningDelta("\n\n", item.index)

    def finish(self) -> Iterator[StreamEvent]:
        """The end mark if there was one."""
        if self._end is not None:
            yield self._end

    def _delta(self, kind: str, event: Json, delta: str) -> Iterator[StreamEvent]:
        match kind:
            case "response.output_text.delta":
                item = self._item(event, "message")
                item.said += delta
                yield TextDelta(delta, item.place)
            case "response.refusal.delta":
                self._item(event, "message").said += delta
                yield RefusalDelta(delta)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                item = self._item(event, "reasoning")
                item.said += delta
                yield ReasoningDelta(delta, item.index)
            case "response.function_call_arguments.delta":
                item = self._item(event, "function_call")
                item.said += delta
                yield ToolCallDelta(item.index, arguments=delta)

    def _item(self, event: Json, kind: str) -> _Item:
        """The item an event belongs to; made up where a server did not announce it."""
        wire = event.get("item")
        item_id = wire.get("id") if isinstance(wire, dict) else event.get("item_id")
        index = event.get("output_index")
        key: object = index if isinstance(index, int) else str(item_id or kind)
        found = self._items.get(key)
        if found is None or found.kind != kind:
            count = sum(item.kind == kind for item in self._items.values())
            found = self._items[key] = _Item(kind, count, len(self._items))
        return found

    def _added(self, event: Json) -> Iterator[StreamEvent]:
        wire = event.get("item")
        if not isinstance(wire, dict):
            return
        item = self._item(event, str(wire.get("type")))
        if item.kind == "function_call":
            yield ToolCallDelta(
                item.index, str(wire.get("call_id") or wire.get("id") or ""), str(wire.get("name") or "")
            )

    def _done(self, event: Json) -> Iterator[StreamEvent]:
        """What a finished item holds beyond its deltas: metadata, and content whose deltas did not come."""
        wire = event.get("item")
        if not isinstance(wire, dict):
            return
        kind = str(wire.get("type"))
        known = len(self._items)
        item = self._item(event, kind)
        match kind:
            case "reasoning":
                yield from _reasoning(item, wire)
            case "message":
                parts = _parts(wire.get("content"))
                refused = any(part.get("type") == "refusal" for part in parts)
                whole = "".join(str(part.get("refusal" if refused else "text") or "") for part in parts)
                if rest := _rest(item, whole):
                    yield RefusalDelta(rest) if refused else TextDelta(rest, item.place)
            case "function_call":
                if len(self._items) > known:
                    call_id = str(wire.get("call_id") or wire.get("id") or "")
                    yield ToolCallDelta(item.index, call_id, str(wire.get("name") or ""))
                if rest := _rest(item, str(wire.get("arguments") or "")):
                    yield ToolCallDelta(item.index, arguments=rest)

    def _closed(self, kind: str, response: object) -> Iterator[StreamEvent]:
        response = response if isinstance(response, dict) else {}
        if usage := read_usage(response.get("usage")):
            yield UsageUpdate(usage)
        match kind:
            case "response.failed":
                raise classify_error(None, response.get("error") or response, provider=self._provider)
            case "response.incomplete":
                details = response.get("incomplete_details")
                reason = str(details.get("reason") or "") if isinstance(details, dict) else ""
                self._end = StreamEnd(_INCOMPLETE.get(reason, "other"), reason or "incomplete")
            case _:
                called = any(item.kind == "function_call" for item in self._items.values())
                self._end = StreamEnd("tool_calls" if called else "stop", "completed")


def _rest(item: _Item, whole: str) -> str:
    """What a finished item says beyond its deltas; nothing where the two disagree."""
    said, item.said = item.said, whole or item.said
    return whole[len(said) :] if whole.startswith(said) else ""


def _parts(value: object) -> list[Json]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def _reasoning(item: _Item, wire: Json) -> Iterator[StreamEvent]:
    summary, content = _parts(wire.get("summary")), _parts(wire.get("content"))
    if rest := _rest(item, "\n\n".join(str(part.get("text") or "") for part in summary or content)):
        yield ReasoningDelta(rest, item.index)
    encrypted, item_id = wire.get("encrypted_content"), wire.get("id")
    yield ReasoningMeta(
        item.index,
        encrypted=encrypted if isinstance(encrypted, str) and encrypted else None,
        item_id=item_id if isinstance(item_id, str) and item_id else None,
        details=json.dumps(summary, ensure_ascii=False) if len(summary) > 1 else None,
    )
