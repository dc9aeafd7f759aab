"""Message parts as JSON, for the database and exports, and made of the events of a stream.

The events are JSON too while a stream runs, so that an answer whose program was killed can be recovered.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, get_args

from tui.messages import (
    Attachment,
    BilledPass,
    Message,
    Part,
    ProviderItem,
    Reasoning,
    Refusal,
    Source,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from tui.providers.base import (
    ItemReceived,
    ModelNamed,
    ReasoningDelta,
    ReasoningMeta,
    RefusalDelta,
    SourceCited,
    StreamEnd,
    StreamEvent,
    TextDelta,
    TextMeta,
    ToolCallDelta,
    UsageUpdate,
)
from tui.providers.text_repairs import thought_before
from tui.text.numbers import apportion

MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors raised by reading JSON that is damaged, or of another format or version."""

_PARTS: dict[str, type[Part]] = {
    "text": Text,
    "reasoning": Reasoning,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
    "attachment": Attachment,
    "refusal": Refusal,
    "source": Source,
    "provider_item": ProviderItem,
}
_NAMES = {kind: name for name, kind in _PARTS.items()}


def dump(value: object) -> str:
    """A JSON value with messages, parts, usages and events in it as JSON text. Lone surrogates survive, escaped."""
    return json.dumps(value, default=_object, separators=(",", ":"))


def _object(value: Any) -> dict[str, Any]:
    """The fields that are not at their default, and the type of a part."""
    kind = type(value)
    content = {name: one for name, default in _defaults(value.__class__) if (one := getattr(value, name)) != default}
    return {"type": _NAMES[kind], **content} if kind in _NAMES else content


@cache
def _defaults(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, field.default) for field in fields(kind))


def part_from_dict(data: dict[str, Any]) -> Part:
    """A part from its JSON object. Raises ValueError for an unknown type or missing fields."""
    if data.get("type") == "sealed_summary":  # OpenAI's server-side compaction, stored by older versions
        return Text("[Compacted by OpenAI in a form that is no longer supported; the messages themselves are sent]")
    values = dict(data)
    kind = _PARTS.get(values.pop("type", ""))
    if kind is None:
        raise ValueError(f"unknown message part {data.get('type')!r}")
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"message part {data.get('type')!r} is malformed: {error}") from None


def load_parts(text: str) -> tuple[Part, ...]:
    """A message's parts. Raises ValueError."""
    return tuple([part_from_dict(data) for data in json.loads(text)])


def usage_from_dict(data: dict[str, Any]) -> Usage:
    """A usage from its JSON object. Raises TypeError for unknown or missing fields."""
    passes = tuple(BilledPass(**entry) for entry in data.get("passes") or ())
    return Usage(**{**data, "passes": passes, "terms": tuple(data.get("terms") or ())})


def message_from_dict(data: dict[str, Any]) -> Message:
    """A message from its JSON object. Raises ValueError."""
    values = dict(data)
    usage = values.pop("usage", None)
    try:
        parts = tuple(part_from_dict(part) for part in values.pop("parts"))
        return Message(parts=parts, usage=usage_from_dict(usage) if usage else None, **values)
    except (TypeError, KeyError) as error:
        raise ValueError(f"message is malformed: {error}") from None


# -- streams ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """A growing part: its kind, its key within the kind, its text in pieces, its metadata."""

    kind: str
    key: int
    pieces: list[str] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)

    def describe(self, event: ReasoningMeta | ToolCallDelta) -> None:
        """Add what an event says besides text."""
        self.meta |= {name: value for name, value in _object(event).items() if name not in _NO_METADATA}


_NO_METADATA = ("block", "index", "arguments")


class PartsBuilder:
    """Collects the events of one answer. Parts keep the order in which they began; interleaved blocks stay apart.

    Sources come last, one for each address.
    """

    def __init__(self, provider: str, model: str) -> None:
        self._provider = provider
        self._model = model
        self._open: list[_Open] = []
        self._keyed: dict[tuple[str, int], _Open] = {}
        self._sources: dict[str, Source] = {}  # by address, in the order in which they were cited
        self.usage: Usage | None = None
        self.answered_by = ""  # the model, as the server names it
        self.end: StreamEnd | None = None

    def apply(self, event: StreamEvent) -> None:
        """Add an event. The cost is independent of earlier ones."""
        match event:
            case TextDelta(text, None):
                self._tail("text").pieces.append(text)
            case TextDelta(text, int(block)):
                self._part("text", block).pieces.append(text)
            case TextMeta(block, phase):
                self._part("text", block).meta["phase"] = phase
            case RefusalDelta(text, category, from_server):
                part = self._tail("refusal")
                part.pieces.append(text)
                part.meta |= {"category": category or part.meta.get("category"), "from_server": from_server}
            case SourceCited(url, title, quote):
                source = self._sources.get(url)
                if source is None or (title and not source.title):
                    self._sources[url] = Source(url, title, quote)
            case ItemReceived(kind, data):
                self._open.append(_Open("item", -1, meta={"kind": kind, "data": data}))
            case ReasoningDelta(text, block):
                self._part("reasoning", block).pieces.append(text)
            case ReasoningMeta(block=block):
                self._part("reasoning", block).describe(event)
            case ToolCallDelta(index=index, arguments=arguments):
                part = self._part("tool_call", index)
                part.pieces.append(arguments)
                part.describe(event)
            case UsageUpdate(usage):
                self.usage = usage
            case ModelNamed(model):
                self.answered_by = model
            case StreamEnd():
                self.end = event

    def _tail(self, kind: str) -> _Open:
        """The last part if it is of this kind, else a new one: text after a tool call is a separate part."""
        if not self._open or (self._open[-1].kind, self._open[-1].key) != (kind, -1):
            self._open.append(_Open(kind, -1))
        return self._open[-1]

    def _part(self, kind: str, key: int) -> _Open:
        part = self._keyed.get((kind, key))
        if part is None:
            part = self._keyed[kind, key] = _Open(kind, key)
            self._open.append(part)
        return part

    def parts(self) -> tuple[Part, ...]:
        """The parts so far. Empty text is left out, and so are tool calls without a name."""
        return tuple(self._built())

    def _built(self) -> Iterator[Part]:
        reasoning_tokens = self._reasoning_shares()
        for part in self._open:
            text = "".join(part.pieces)
            match part.kind:
                case "text":
                    thought, text = (part is self._open[0] and thought_before(text)) or ("", text)
                    if thought:
                        reported = None if self.usage is None else self.usage.reasoning
                        yield Reasoning(thought, provider=self._provider, model=self._model, tokens=reported)
                    if text:
                        yield Text(text, **part.meta)
                case "refusal" if text or part.meta["from_server"]:
                    yield Refusal(text, **part.meta)
                case "item":
                    yield ProviderItem(provider=self._provider, **part.meta)
                case "reasoning" if text or part.meta:
                    yield Reasoning(
                        text,
                        provider=self._provider,
                        model=self._model,
                        tokens=reasoning_tokens.get(part.key),
                        **part.meta,
                    )
                case "tool_call" if part.meta.get("name"):
                    meta = {**part.meta, "id": part.meta.get("id") or f"call_{part.key}"}
                    yield ToolCall(arguments=text, **meta)
        yield from self._sources.values()

    def _reasoning_shares(self) -> dict[int, int]:
        """The reported reasoning tokens, divided by length of text; all to the first block if none has text."""
        blocks = [part for part in self._open if part.kind == "reasoning" and (any(part.pieces) or part.meta)]
        if self.usage is None or self.usage.reasoning is None:
            return {}
        shares = apportion(self.usage.reasoning, [sum(map(len, part.pieces)) for part in blocks])
        return {part.key: share for part, share in zip(blocks, shares, strict=True)}


_EVENTS: dict[str, type[StreamEvent]] = {kind.__name__: kind for kind in get_args(StreamEvent)}


def dump_events(events: Iterable[StreamEvent]) -> str:
    """Events as JSON text."""
    return dump([[type(event).__name__, event] for event in events])


def load_events(text: str) -> list[StreamEvent]:
    """The inverse of `dump_events`."""
    events: list[StreamEvent] = []
    for name, values in json.loads(text):
        if name == "UsageUpdate":
            events.append(UsageUpdate(usage_from_dict(values["usage"])))
        elif name != "Compacted":  # OpenAI's server-side compaction, stored by older versions
            events.append(_EVENTS[name](**values))
    return events
