"""Answers that are odd, and refusals that waiting does not change."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tui.chat.store.codec import PartsBuilder
from tui.messages import ToolCall
from tui.providers.dialects.anthropic import AnthropicReader
from tui.providers.dialects.openai_chat import ChatReader
from tui.providers.dialects.openai_responses import ResponsesReader
from tui.providers.http.errors import classify_error
from tui.providers.wire import Json

TWO = ['{"path": "a"}', '{"path": "b"}']
Indices = tuple[object, object]


def chat_calls(indices: Indices, ids: Sequence[object], pieces: int, *, one_chunk: bool = False) -> list[Json]:
    """Two calls as Chat Completions streams them, each in so many pieces. `...` leaves a field out."""
    deltas = []
    for index, call_id, arguments in zip(indices, ids, TWO, strict=True):
        for number, text in enumerate(cut(arguments, pieces)):
            call = {"index": index, "id": call_id, "function": {"name": "read", "arguments": text}}
            if number:
                call = {"index": index, "function": {"arguments": text}}
            deltas.append({key: value for key, value in call.items() if value is not ...})
    chunks = [deltas] if one_chunk else [[delta] for delta in deltas]
    return [
        *({"choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": None}]} for calls in chunks),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]


def anthropic_calls(indices: Indices, ids: Sequence[object], pieces: int) -> list[Json]:
    """Two calls as Anthropic streams them."""
    events: list[Json] = []
    for index, call_id, arguments in zip(indices, ids, TWO, strict=True):
        block = {"type": "tool_use", "id": call_id, "name": "read", "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": text} for text in cut(arguments, pieces)]
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
    return [{key: value for key, value in event.items() if value is not ...} for event in events]


def responses_calls(indices: Indices, ids: Sequence[object], pieces: int, *, side_by_side: bool = False) -> list[Json]:
    """Two calls as the Responses API streams them, one after the other, or announced together and sent at the end."""
    begun: list[Json] = []
    ended: list[list[Json]] = []
    for index, call_id, arguments in zip(indices, ids, TWO, strict=True):
        item = {"type": "function_call", "id": call_id, "call_id": call_id, "name": "read"}
        begun.append({"type": "response.output_item.added", "output_index": index, "item": {**item, "arguments": ""}})
        kind = "response.function_call_arguments.delta"
        deltas: list[Json] = [
            {"type": kind, "output_index": index, "item_id": call_id, "delta": text} for text in cut(arguments, pieces)
        ]
        whole = {"type": "response.output_item.done", "output_index": index, "item": {**item, "arguments": arguments}}
        ended.append([whole] if side_by_side else [*deltas, whole])
    if side_by_side:
        events = [*begun, *(event for events in ended for event in events)]
    else:
        events = [event for first, rest in zip(begun, ended, strict=True) for event in (first, *rest)]
    events.append({"type": "response.completed", "response": {}})
    return [{key: value for key, value in event.items() if value is not ...} for event in events]


def cut(text: str, pieces: int) -> list[str]:
    """`text` in so many pieces."""
    size = -(-len(text) // pieces)
    return [text[at : at + size] for at in range(0, len(text), size)]


def read(reader: ChatReader | AnthropicReader | ResponsesReader, events: Sequence[Json]) -> list[ToolCall]:
    """The calls that a reader makes of events."""
    builder = PartsBuilder("p", "m")
    for event in (*(event for wire in events for event in reader.feed(wire)), *reader.finish()):
        builder.apply(event)
    return [part for part in builder.parts() if isinstance(part, ToolCall)]


INDICES = {"their own": (0, 1), "equal": (0, 0), "null": (None, None), "missing": (..., ...)}


@pytest.mark.parametrize("ids", [("c", "c"), ("c", "d"), ("", ""), (None, None)], ids=str)
@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("indices", INDICES.values(), ids=INDICES)
def test_two_calls_stay_two_whatever_their_ids_and_indices(indices: Indices, ids: tuple[str, str], pieces: int) -> None:
    answers = {
        "chat": read(ChatReader(), chat_calls(indices, ids, pieces)),
        "anthropic": read(AnthropicReader(), anthropic_calls(indices, ids, pieces)),
        "responses": read(ResponsesReader(), responses_calls(indices, ids, pieces)),
        "responses, side by side": read(ResponsesReader(), responses_calls(indices, ids, 1, side_by_side=True)),
    }
    if pieces == 1:
        answers["chat, one chunk"] = read(ChatReader(), chat_calls(indices, ids, 1, one_chunk=True))
    assert {name: [call.arguments for call in calls] for name, calls in answers.items()} == dict.fromkeys(answers, TWO)


def test_a_call_that_is_sent_again_as_a_whole_stays_one() -> None:
    piece = {"id": "c", "function": {"name": "read", "arguments": TWO[0]}}
    chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [piece]}, "finish_reason": None}]}
    assert [call.arguments for call in read(ChatReader(), [chunk, chunk])] == TWO[:1]


def test_a_rate_limit_that_can_never_pass_is_not_waited_for() -> None:
    message = "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45012. Visit the rate page."
    error = classify_error(429, {"error": {"message": message, "code": "rate_limit_exceeded"}})
    assert error.kind == "bad_request" and error.retry_after is None and "/compact" in str(error)
    passing = "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 5012. Try again in 8s."
    assert classify_error(429, {"error": {"message": passing}}).kind == "rate_limit"
