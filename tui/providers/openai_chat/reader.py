"""Reads Chat Completions chunks into stream events. Pure: fed with JSON objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tui.providers.base import (
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
from tui.providers.dialect import Reader
from tui.providers.http.errors import classify_error
from tui.providers.usage_reading import read_terms, read_usage
from tui.providers.wire import Json, object_of, objects_of, text_of
from tui.text.endings import finish_kind

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
        self._items: set[str] = set()  # kinds of what cannot be shown, each told once

    def feed(self, chunk: Json, /) -> Iterator[StreamEvent]:
        """The stream events of one chunk. Raises `ProviderError` for an error sent as a chunk."""
        choice = (objects_of(chunk.get("choices")) or [{}])[0]
        if error := choice.get("error"):
            raise classify_error(None, error, provider=self._provider)
        yield from self._name_model(chunk.get("model"))
        yield from self._read_usage(chunk, choice)
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

    def _read_usage(self, chunk: Json, choice: Json) -> Iterator[StreamEvent]:
        """Servers report usage at the end, in every chunk, inside the choice, or in more than one of these places."""
        for holder in (chunk, choice, object_of(chunk.get("x_groq"))):
            if usage := read_usage(holder.get("usage")):
                yield from self._report(replace(usage, terms=usage.terms or read_terms(chunk)))

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
        yield from _annotations(delta.get("annotations"))
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
        if isinstance(content, str):
            if content:
                yield TextDelta(content)
            return
        for piece in content if isinstance(content, list) else []:
            if isinstance(piece, str):
                yield from self._content(piece)
            elif isinstance(piece, dict) and piece.get("type") == "thinking":
                thinking = piece.get("thinking")
                pieces = objects_of(thinking) or [{"text": thinking}]
                if text := "".join(text_of(item.get("text")) for item in pieces):
                    yield ReasoningDelta(text)
            elif isinstance(piece, dict) and isinstance(piece.get("text"), str):
                yield from self._content(piece["text"])
            elif isinstance(piece, dict) and (kind := text_of(piece.get("type"))) not in ("", "text", "reference"):
                yield from self._item(kind.removesuffix("_url"))


def _annotations(listed: object) -> Iterator[StreamEvent]:
    """OpenAI's and OpenRouter's citations of an answer's text."""
    for annotation in objects_of(listed):
        cited = object_of(annotation.get("url_citation"))
        if url := text_of(cited.get("url")):
            yield SourceCited(url, text_of(cited.get("title")), text_of(cited.get("content")))


def _listed_sources(chunk: Json) -> Iterator[StreamEvent]:
    """Perplexity's and xAI's lists beside the choices: `citations` are addresses, `search_results` have titles."""
    citations = chunk.get("citations")
    addresses = [{"url": cited} for cited in citations if isinstance(cited, str)] if isinstance(citations, list) else []
    for source in (*objects_of(chunk.get("search_results")), *addresses, *objects_of(citations)):
        if url := text_of(source.get("url")):
            yield SourceCited(url, text_of(source.get("title")))


def _merge_detail(details: list[Json], piece: Json) -> None:
    """OpenRouter streams `reasoning_details` in pieces; those of one entry come in a row with one type and index."""
    last = details[-1] if details else None
    if last is None or any(last.get(key) != piece.get(key) for key in ("type", "index")) or _starts_anew(last, piece):
        details.append(dict(piece))
        return
    for key, value in piece.items():
        if key in ("text", "summary", "data") and isinstance(value, str):
            last[key] = text_of(last.get(key)) + value
        elif value is not None:
            last[key] = value


def _starts_anew(last: Json, piece: Json) -> bool:
    one, other = last.get("id"), piece.get("id")
    return one is not None and other is not None and one != other


@dataclass(slots=True)
class _Call:
    wire_index: object
    id: str
    pieces: list[str] = field(default_factory=list)  # of its arguments
    in_chunk: bool = True  # a piece of it came in the chunk that is being read

    @property
    def complete(self) -> bool:
        """Whether the arguments so far are a JSON object."""
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads("".join(self.pieces)), dict)
        except (ValueError, RecursionError):
            return False


class _Calls:
    """Puts the pieces of tool calls together where servers forget indices, repeat ids, or number everything 0."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []  # by our index

    def begin_chunk(self) -> None:
        """Begin a chunk: the calls so far came in earlier ones."""
        for call in reversed(self._calls):
            if not call.in_chunk:
                break
            call.in_chunk = False

    def read(self, call: Json) -> ToolCallDelta:
        """The piece as an event. `id` and `name` come with a call's first piece only."""
        function = object_of(call.get("function"))
        call_id, name, arguments = text_of(call.get("id")), text_of(function.get("name")), _arguments(function)
        index, new = self._place(call.get("index"), call_id, arguments if name else None)
        merged = self._calls[index]
        if not new and name and merged.complete and arguments == "".join(merged.pieces):
            arguments = ""  # the whole call was repeated
        if arguments:
            merged.pieces.append(arguments)
        extra = call.get("extra_content")
        return ToolCallDelta(
            index,
            id=call_id if new else None,
            name=name or None,
            arguments=arguments,
            extra=json.dumps(extra, ensure_ascii=False) if isinstance(extra, dict) else None,
        )

    def _place(self, wire_index: object, call_id: str, named: str | None) -> tuple[int, bool]:
        """Our index of the call, and whether its id is new. `named`: the piece's arguments, if it has a name."""
        for index in range(len(self._calls) - 1, -1, -1):
            earlier = self._calls[index]
            if named is not None and None not in (wire_index, earlier.wire_index) and wire_index != earlier.wire_index:
                continue  # another call, even with the same id
            same_id = bool(call_id) and call_id == earlier.id
            both_named = bool(call_id and earlier.id) and named is not None
            if same_id or (wire_index is not None and wire_index == earlier.wire_index and not both_named):
                if named is not None and self._is_another(earlier, named):
                    break
                fresh = bool(call_id) and not earlier.id
                earlier.id = earlier.id or call_id
                return index, fresh
        if wire_index is None and not call_id and named is None and self._calls:
            return len(self._calls) - 1, False
        self._calls.append(_Call(wire_index, call_id))
        return len(self._calls) - 1, True

    def _is_another(self, earlier: _Call, arguments: str) -> bool:
        """Whether a named piece begins a new call after a complete one with the same id or index.

        A repetition of the whole call does not, unless both are in one chunk.
        """
        if not arguments.lstrip().startswith("{") or not earlier.complete:
            return False
        return earlier.in_chunk or arguments != "".join(earlier.pieces)


def _arguments(function: Json) -> str:
    match function.get("arguments"):
        case str(text):
            return text
        case dict(value):
            return json.dumps(value, ensure_ascii=False)
        case _:
            return ""
