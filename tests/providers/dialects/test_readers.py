"""What the readers make of single events, on plain values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.providers.collect import Answer
from tui.messages import Usage
from tui.providers.base import ModelNamed, ProviderError, SourceCited, StreamEnd
from tui.providers.dialects.anthropic import AnthropicReader
from tui.providers.dialects.openai_chat import ChatReader
from tui.providers.dialects.openai_responses import ResponsesReader


def read(reader: AnthropicReader | ChatReader | ResponsesReader, events: Iterable[dict[str, Any]]) -> Answer:
    answer = Answer()
    for wire in events:
        for event in reader.feed(wire):
            answer.add(event)
    for event in reader.finish():
        answer.add(event)
    return answer


class TestAnthropic:
    def block(self, index: int, block: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {"type": "content_block_start", "index": index, "content_block": block},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index},
        ]

    def test_thinking_redacted_and_signed(self) -> None:
        got = read(
            AnthropicReader(),
            [
                *self.block(
                    0,
                    {"type": "thinking", "thinking": "", "signature": ""},
                    {"type": "thinking_delta", "thinking": "hm"},
                    {"type": "signature_delta", "signature": "sig"},
                ),
                *self.block(1, {"type": "redacted_thinking", "data": "blob"}),
                *self.block(2, {"type": "thinking", "thinking": "more", "signature": "sig2"}),
            ],
        )
        assert got.reasoning == {0: "hm", 2: "more"}
        assert [got.meta[0][0].signature, got.meta[1][0].redacted, got.meta[2][0].signature] == ["sig", "blob", "sig2"]
        assert got.end is None

    @pytest.mark.parametrize(
        ("start", "deltas", "arguments"),
        [
            ({}, ['{"a"', ": 1}"], '{"a": 1}'),
            ({}, [], "{}"),
            ({}, [""], "{}"),
            ({"a": 1}, [], '{"a": 1}'),
        ],
    )
    def test_tool_input(self, start: dict[str, Any], deltas: list[str], arguments: str) -> None:
        pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in deltas]
        block = {"type": "tool_use", "id": "t1", "name": "look", "input": start}
        ends = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
        got = read(AnthropicReader(), [*self.block(0, block, *pieces), ends])
        assert [(call.id, call.name, call.arguments) for call in got.calls.values()] == [("t1", "look", arguments)]

    def test_no_arguments_are_made_up_for_a_call_that_was_cut(self) -> None:
        block = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
        cut = {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}
        [call] = read(AnthropicReader(), [*self.block(0, block), cut]).calls.values()
        assert call.arguments == ""

    def test_what_the_server_did_by_itself_is_not_ours(self) -> None:
        got = read(
            AnthropicReader(),
            [
                *self.block(
                    0,
                    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                    {"type": "input_json_delta", "partial_json": '{"query": "x"}'},
                ),
                *self.block(1, {"type": "web_search_tool_result", "content": []}),
                *self.block(2, {"type": "text", "text": "Found"}, {"type": "citations_delta", "citation": {}}),
                *self.block(3, {"type": "brand_new", "text": "?"}, {"type": "brand_new_delta", "text": "?"}),
            ],
        )
        assert (got.text, got.calls) == ("Found", {})

    def test_a_refusal_says_why(self) -> None:
        details = {"type": "refusal", "explanation": "Not this."}
        got = read(
            AnthropicReader(),
            [{"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}, "usage": {}}],
        )
        assert (got.refusal, got.end) == ("Not this.", StreamEnd("refusal", "refusal"))

    @pytest.mark.parametrize(
        "event",
        [
            {},
            {"type": "message_start"},
            {"type": "message_start", "message": None},
            {"type": "content_block_start", "index": 0},
            {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "lost"}},
            {"type": "content_block_start", "content_block": {"type": "text", "signature": "of no thinking"}},
            {"type": "content_block_delta"},
            {"type": "content_block_stop"},
            {"type": "message_delta"},
            {"type": "message_delta", "delta": None, "usage": None},
        ],
    )
    def test_odd_events_do_no_harm(self, event: dict[str, Any]) -> None:
        assert read(AnthropicReader(), [event]).events == []


class TestResponses:
    def item(self, kind: str, index: int | None, **fields: Any) -> dict[str, Any]:
        place = {} if index is None else {"output_index": index}
        return {"type": f"response.output_item.{kind}", **place, "item": fields}

    def test_a_call_by_its_index_although_ids_rotate(self) -> None:
        arguments = {"type": "response.function_call_arguments.delta", "output_index": 0}
        got = read(
            ResponsesReader(),
            [
                self.item("added", 0, type="function_call", id="x1", call_id="c1", name="look", arguments=""),
                {**arguments, "item_id": "x2", "delta": '{"a":'},
                {**arguments, "item_id": "x3", "delta": "1}"},
                self.item("done", 0, type="function_call", id="x4", call_id="c1", name="look", arguments='{"a":1}'),
                {"type": "response.completed", "response": {}},
            ],
        )
        assert [(call.id, call.name, call.arguments) for call in got.calls.values()] == [("c1", "look", '{"a":1}')]
        assert got.end == StreamEnd("tool_calls", "completed")

    def test_two_items_by_their_ids_where_there_is_no_index(self) -> None:
        got = read(
            ResponsesReader(),
            [
                self.item("added", None, type="reasoning", id="r1"),
                {"type": "response.reasoning_text.delta", "item_id": "r1", "delta": "hm"},
                self.item("added", None, type="message", id="m1"),
                {"type": "response.output_text.delta", "item_id": "m1", "delta": "Hi"},
                self.item("done", None, type="reasoning", id="r1", summary=[], content=[{"text": "hm"}]),
                {"type": "response.completed", "response": {"usage": {"input_tokens": 3, "output_tokens": 2}}},
            ],
        )
        assert (got.thoughts, got.text, got.usage) == ("hm", "Hi", Usage(3, 2))
        assert got.meta[0][0].item_id == "r1"

    def test_content_whose_deltas_did_not_come(self) -> None:
        summary = [{"text": "a"}, {"text": "b"}]
        got = read(
            ResponsesReader(),
            [
                self.item("done", 0, type="reasoning", id="r1", encrypted_content="enc", summary=summary),
                {"type": "response.output_text.delta", "output_index": 1, "delta": "Hel"},
                self.item("done", 1, type="message", content=[{"type": "output_text", "text": "Hello"}]),
                self.item("done", 2, type="function_call", call_id="c1", name="look", arguments="{}"),
                self.item("done", 3, type="message", content=[{"type": "refusal", "refusal": "No."}]),
            ],
        )
        assert (got.thoughts, got.text, got.refusal) == ("a\n\nb", "Hello", "No.")
        assert [(call.id, call.name, call.arguments) for call in got.calls.values()] == [("c1", "look", "{}")]
        meta = got.meta[0][0]
        assert (meta.encrypted, meta.item_id) == ("enc", "r1")
        assert meta.details == '[{"text": "a"}, {"text": "b"}]'

    def test_what_was_said_is_never_said_twice(self) -> None:
        delta = {"type": "response.output_text.delta", "output_index": 0, "delta": "Hullo"}
        done = self.item("done", 0, type="message", content=[{"type": "output_text", "text": "Hello"}])
        assert read(ResponsesReader(), [delta, done, done]).text == "Hullo"

    def test_summaries_are_set_apart(self) -> None:
        part = {"type": "response.reasoning_summary_part.added", "output_index": 0}
        text = {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "one"}
        done = self.item("done", 0, type="reasoning", id="r", summary=[{"text": "one"}, {"text": "one"}])
        assert read(ResponsesReader(), [part, text, part, text, done]).thoughts == "one\n\none"

    @pytest.mark.parametrize(
        ("response", "end"),
        [
            ({"incomplete_details": {"reason": "max_output_tokens"}}, StreamEnd("length", "max_output_tokens")),
            ({"incomplete_details": {"reason": "content_filter"}}, StreamEnd("content_filter", "content_filter")),
            ({"incomplete_details": {"reason": "steered"}}, StreamEnd("other", "steered")),
            ({}, StreamEnd("other", "incomplete")),
        ],
    )
    def test_incomplete_answers(self, response: dict[str, Any], end: StreamEnd) -> None:
        assert read(ResponsesReader(), [{"type": "response.incomplete", "response": response}]).end == end

    def test_a_failed_answer_still_has_its_usage(self) -> None:
        reader, got = ResponsesReader("p"), Answer()
        error = {"code": "server_error", "message": "Oops"}
        failed = {"usage": {"input_tokens": 5, "output_tokens": 1}, "error": error}
        with pytest.raises(ProviderError, match="p: Oops") as caught:
            for event in reader.feed({"type": "response.failed", "response": failed}):
                got.add(event)
        assert caught.value.kind == "server"
        assert got.usage == Usage(5, 1)
        assert not reader.ended

    @pytest.mark.parametrize(
        "event",
        [
            {},
            {"type": "response.brand_new", "delta": "?"},
            {"type": "response.audio.delta", "delta": "?"},
            {"type": "response.output_item.added"},
            {"type": "response.output_item.done", "item": None},
            {"type": "response.created", "response": None},
        ],
    )
    def test_odd_events_do_no_harm(self, event: dict[str, Any]) -> None:
        assert read(ResponsesReader(), [event]).events == []


def chunk(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": "x"}}], **fields}


# One call in each dialect: a placeholder or the whole, then something poorer. The model is named once.
@pytest.mark.parametrize("piece", [{"type": "thinking"}, {"type": "thinking", "text": "not said aloud"}])
def test_a_piece_of_thinking_is_never_a_part_of_the_text(piece: dict[str, Any]) -> None:
    assert read(ChatReader(), [{"choices": [{"delta": {"content": [piece]}}]}]).events == []


POORER_LATER: list[tuple[AnthropicReader | ChatReader | ResponsesReader, list[dict[str, Any]]]] = [
    (
        ChatReader(),
        [
            chunk(model="gpt-5-2025-08-07", usage={"prompt_tokens": 10_430, "completion_tokens": 4}),
            chunk(model="gpt-5-2025-08-07", usage={"prompt_tokens": 1, "completion_tokens": 9}),
            chunk(model="", usage={"prompt_tokens": None, "completion_tokens": 0}),
        ],
    ),
    (
        AnthropicReader(),
        [
            {"type": "message_start", "message": {"model": "gpt-5-2025-08-07", "usage": {"input_tokens": 10_430}}},
            {"type": "message_delta", "delta": {}, "usage": {"input_tokens": 26, "output_tokens": 9}},
            {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 0}},
        ],
    ),
    (
        ResponsesReader(),
        [
            {
                "type": "response.created",
                "response": {"model": "gpt-5-2025-08-07", "usage": {"input_tokens": 10_430, "output_tokens": 0}},
            },
            {
                "type": "response.completed",
                "response": {"model": "gpt-5-2025-08-07", "usage": {"input_tokens": 26, "output_tokens": 9}},
            },
        ],
    ),
]


@pytest.mark.parametrize(("reader", "events"), POORER_LATER, ids=["chat", "anthropic", "responses"])
def test_a_poorer_usage_later_takes_nothing_away_and_the_model_is_named(
    reader: AnthropicReader | ChatReader | ResponsesReader, events: list[dict[str, Any]]
) -> None:
    got = read(reader, events)
    assert got.usage is not None
    assert (got.usage.input_total, got.usage.output_total) == (10_430, 9)
    assert [event.model for event in got.events if isinstance(event, ModelNamed)] == ["gpt-5-2025-08-07"]


def test_a_name_that_is_none_is_not_taken_for_the_model_that_answers() -> None:
    names: tuple[Any, ...] = ("x" * 100_000, 7, None, "")
    events = [{"model": name, "choices": []} for name in names]
    assert read(ChatReader(), events).events == []


def test_arguments_that_come_as_an_object_are_written_as_json() -> None:
    part = {"id": "c", "function": {"name": "look", "arguments": {"path": "ä"}}}
    item = {"type": "function_call", "call_id": "c", "name": "look", "arguments": {"path": "ä"}}
    chat = read(ChatReader(), [{"choices": [{"delta": {"tool_calls": [part]}}]}])
    responses = read(ResponsesReader(), [{"type": "response.completed", "response": {"output": [item]}}])
    for got in (chat, responses):
        assert [call.arguments for call in got.calls.values()] == ['{"path": "ä"}']


def test_responses_may_come_in_their_last_event_alone() -> None:
    output = [
        {"type": "message", "content": [{"type": "output_text", "text": "Looking."}]},
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
    ]
    got = read(ResponsesReader(), [{"type": "response.completed", "response": {"output": output}}])
    assert (got.text, got.end) == ("Looking.", StreamEnd("tool_calls", "completed"))
    assert [call.name for call in got.calls.values()] == ["look"]


def test_sources_that_every_chunk_repeats_are_told_once() -> None:
    one, two = {"url": "https://a.example", "title": "A"}, {"url": "https://b.example", "title": "B"}
    got = read(
        ChatReader(), [*({"search_results": [one], "choices": []} for _ in range(9)), {"citations": [two["url"]]}]
    )
    assert [event for event in got.events if isinstance(event, SourceCited)] == [
        SourceCited(one["url"], "A"),
        SourceCited(two["url"]),
    ]
