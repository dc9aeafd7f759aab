"""Every event, block, item and finish of the SDKs' unions, through reader, store, screen, send-back and count.

The unions are walked from the SDKs' own types: a new version that brings another member fails here until somebody has
said what becomes of it, here and in `tui/providers/README.md`, "What a provider sends, and what it becomes".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest

from tests.messages import assistant, user
from tests.providers.wire_values import request
from tui.chat.store.codec import PartsBuilder, dump, dump_events, load_events, load_parts
from tui.context.counting.counting import TokenCounter
from tui.messages import Message, Part, ProviderItem, Reasoning, Refusal, Source, Text, ToolCall, is_sendable
from tui.providers.base import ProviderError, StreamEnd
from tui.providers.dialects import anthropic as anthropic_provider
from tui.providers.dialects import openai_chat as chat_provider
from tui.providers.dialects import openai_responses as responses_provider
from tui.providers.dialects.anthropic import AnthropicReader
from tui.providers.dialects.openai_chat import ChatReader
from tui.providers.dialects.openai_responses import ResponsesReader
from tui.text.labels import ending_line, finish_kind

pytestmark = pytest.mark.slow  # both SDKs are loaded


def members(union: Any) -> list[Any]:
    """The classes of a union, through its annotations."""
    if get_origin(union) is Annotated:
        return members(get_args(union)[0])
    if get_origin(union) is Union:
        return [one for member in get_args(union) for one in members(member)]
    return [union]


def types_of(union: Any) -> list[str]:
    """The values of `type` of a union's members."""
    types = {value for one in members(union) for value in get_args(one.model_fields["type"].annotation)}
    return sorted(types)


def literals(annotation: Any) -> list[str]:
    """All string literals inside an annotation."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [value for inner in get_args(annotation) for value in literals(inner)]


# -- Responses: items ----------------------------------------------------------------------------------------------

RESPONSES_ITEMS: Mapping[str, type[Part]] = {
    "message": Text,
    "reasoning": Reasoning,
    "function_call": ToolCall,
    **dict.fromkeys(
        (
            *("additional_tools", "apply_patch_call", "apply_patch_call_output", "code_interpreter_call"),
            *("compaction", "computer_call", "computer_call_output", "custom_tool_call", "custom_tool_call_output"),
            *("file_search_call", "function_call_output", "image_generation_call", "local_shell_call"),
            *("local_shell_call_output", "mcp_approval_request", "mcp_approval_response", "mcp_call"),
            *("mcp_list_tools", "program", "program_output", "shell_call", "shell_call_output"),
            *("tool_search_call", "tool_search_output", "web_search_call"),
        ),
        ProviderItem,
    ),
}
"""What an output item becomes. Of a `ProviderItem` only the name is shown, and it is never sent back."""


def responses_item(kind: str) -> dict[str, Any]:
    items: dict[str, dict[str, Any]] = {
        "message": {"content": [{"type": "output_text", "text": "Hi"}], "phase": "final_answer"},
        "reasoning": {"summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "e", "id": "rs_1"},
        "function_call": {"call_id": "c1", "name": "look", "arguments": "{}"},
    }
    return {"type": kind, **items.get(kind, {"id": "x_1", "status": "completed"})}


def responses_items() -> list[str]:
    from openai.types.responses.response_output_item import ResponseOutputItem

    return types_of(ResponseOutputItem)


def read_responses(*events: dict[str, Any]) -> PartsBuilder:
    return built(ResponsesReader(), *events, {"type": "response.completed", "response": {}})


def built(reader: Any, *events: dict[str, Any]) -> PartsBuilder:
    """What the store makes of an answer, after its events were stored and read again."""
    read = [made for event in events for made in reader.feed(event)] + list(reader.finish())
    assert load_events(dump_events(read)) is not None
    builder = PartsBuilder("p", "m")
    for event in load_events(dump_events(read)):
        builder.apply(event)
    return builder


def test_every_item_of_responses_becomes_something() -> None:
    assert set(responses_items()) == set(RESPONSES_ITEMS)
    for kind, becomes in RESPONSES_ITEMS.items():
        item = responses_item(kind)
        for events in (
            [{"type": "response.output_item.added", "output_index": 0, "item": {"type": kind}}],
            [{"type": "response.output_item.done", "output_index": 0, "item": item}],
        ):
            builder = read_responses(*events)
        [part] = builder.parts()
        assert type(part) is becomes, kind
        holds(builder)


RESPONSES_EVENTS = {
    **dict.fromkeys(("response.output_text.delta", "response.refusal.delta"), "text"),
    **dict.fromkeys(("response.reasoning_text.delta", "response.reasoning_summary_text.delta"), "reasoning"),
    "response.reasoning_summary_part.added": "reasoning",
    "response.function_call_arguments.delta": "call",
    "response.output_text.annotation.added": "source",
    **dict.fromkeys(("response.output_item.added", "response.output_item.done"), "item"),
    **dict.fromkeys(("response.completed", "response.incomplete"), "end"),
    **dict.fromkeys(("response.failed", "error"), "error"),
    # What the items at their end repeat, and signs of life.
    **dict.fromkeys(
        (
            *("response.created", "response.in_progress", "response.queued", "response.compaction.compacting"),
            *("response.content_part.added", "response.content_part.done", "response.output_text.done"),
            *("response.refusal.done", "response.reasoning_text.done", "response.reasoning_summary_text.done"),
            *("response.reasoning_summary_part.done", "response.function_call_arguments.done"),
            *("response.audio.delta", "response.audio.done", "response.audio.transcript.delta"),
            "response.audio.transcript.done",
        ),
        "nothing",
    ),
    **dict.fromkeys(
        (
            *("response.code_interpreter_call.completed", "response.code_interpreter_call.in_progress"),
            *("response.code_interpreter_call.interpreting", "response.code_interpreter_call_code.delta"),
            *("response.code_interpreter_call_code.done", "response.custom_tool_call_input.delta"),
            *("response.custom_tool_call_input.done", "response.file_search_call.completed"),
            *("response.file_search_call.in_progress", "response.file_search_call.searching"),
            *("response.image_generation_call.completed", "response.image_generation_call.generating"),
            *("response.image_generation_call.in_progress", "response.image_generation_call.partial_image"),
            *("response.mcp_call.completed", "response.mcp_call.failed", "response.mcp_call.in_progress"),
            *("response.mcp_call_arguments.delta", "response.mcp_call_arguments.done"),
            *("response.mcp_list_tools.completed", "response.mcp_list_tools.failed"),
            *("response.mcp_list_tools.in_progress", "response.web_search_call.completed"),
            *("response.web_search_call.in_progress", "response.web_search_call.searching"),
            *("response.shell_call_command.added", "response.shell_call_command.delta"),
            *("response.shell_call_command.done", "response.shell_call_output_content.delta"),
            "response.shell_call_output_content.done",
        ),
        "nothing",  # the item itself says that it is there
    ),
}
"""What each stream event is to us."""


def test_every_event_of_responses_is_accounted_for() -> None:
    from openai.types.responses.response_stream_event import ResponseStreamEvent

    assert set(types_of(ResponseStreamEvent)) == set(RESPONSES_EVENTS)


@pytest.mark.parametrize("kind", sorted(name for name, what in RESPONSES_EVENTS.items() if what == "nothing"))
def test_events_that_are_nothing_do_no_harm(kind: str) -> None:
    event = {"type": kind, "delta": "?", "output_index": 0, "item_id": "i", "text": "?", "code": "?"}
    assert read_responses(event).parts() == ()


def test_every_annotation_of_responses_is_a_source() -> None:
    from openai.types.responses.response_output_text import Annotation

    fields = {"url": "https://example.com/", "title": "T", "filename": "a.pdf", "file_id": "f"}
    for kind in types_of(Annotation):
        builder = read_responses(
            {"type": "response.output_text.annotation.added", "annotation": {"type": kind, **fields}}
        )
        assert [type(part) for part in builder.parts()] == [Source], kind


# -- Anthropic -----------------------------------------------------------------------------------------------------

ANTHROPIC_BLOCKS: Mapping[str, type[Part]] = {
    "text": Text,
    "thinking": Reasoning,
    "redacted_thinking": Reasoning,
    "tool_use": ToolCall,
    **dict.fromkeys(
        (
            *("server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result"),
            *("bash_code_execution_tool_result", "text_editor_code_execution_tool_result"),
            *("tool_search_tool_result", "container_upload"),
        ),
        ProviderItem,
    ),
}
"""What a content block becomes. A `ProviderItem` is sent back unchanged."""


def anthropic_blocks() -> list[str]:
    from anthropic.types import ContentBlock

    return types_of(ContentBlock)


def block(kind: str) -> dict[str, Any]:
    blocks: dict[str, dict[str, Any]] = {
        "text": {"text": "Hi"},
        "thinking": {"thinking": "hm", "signature": "s"},
        "redacted_thinking": {"data": "d"},
        "tool_use": {"id": "t1", "name": "look", "input": {}},
    }
    return {"type": kind, **blocks.get(kind, {"id": "x_1", "name": "web_search", "content": []})}


def read_anthropic(*events: dict[str, Any], reason: str = "end_turn") -> PartsBuilder:
    end = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}
    return built(AnthropicReader(), *events, end, {"type": "message_stop"})


def test_every_block_of_messages_becomes_something() -> None:
    assert set(anthropic_blocks()) == set(ANTHROPIC_BLOCKS)
    for kind, becomes in ANTHROPIC_BLOCKS.items():
        builder = read_anthropic(
            {"type": "content_block_start", "index": 0, "content_block": block(kind)},
            {"type": "content_block_stop", "index": 0},
        )
        [part] = builder.parts()
        assert type(part) is becomes, kind
        if isinstance(part, ProviderItem):
            body = anthropic_provider.to_wire(
                request(user("x"), assistant("a", part, provider="p", model="m"), user("y")),
                anthropic_provider.AnthropicStyle(),
            )
            assert body["messages"][1]["content"][1] == block(kind)
        holds(builder)


def test_every_delta_of_messages_is_read() -> None:
    from anthropic.types import RawContentBlockDelta

    citation = {"type": "web_search_result_location", "url": "https://example.com/", "title": "T", "cited_text": "q"}
    deltas: dict[str, tuple[str, dict[str, Any], type[Part]]] = {
        "text_delta": ("text", {"text": "Hi"}, Text),
        "thinking_delta": ("thinking", {"thinking": "hm"}, Reasoning),
        "signature_delta": ("thinking", {"signature": "s"}, Reasoning),
        "input_json_delta": ("tool_use", {"partial_json": "{}"}, ToolCall),
        "citations_delta": ("text", {"citation": citation}, Source),
    }
    assert set(types_of(RawContentBlockDelta)) == set(deltas)
    for kind, (within, fields, becomes) in deltas.items():
        start = {"type": within, "id": "t", "name": "look", "input": {}}
        builder = read_anthropic(
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **fields}},
        )
        assert [type(part) for part in builder.parts()] == [becomes], kind


def test_every_event_of_messages_is_known() -> None:
    from anthropic.types import RawMessageStreamEvent

    assert types_of(RawMessageStreamEvent) == [
        *("content_block_delta", "content_block_start", "content_block_stop"),
        *("message_delta", "message_start", "message_stop"),
    ]


def test_every_citation_of_messages_is_a_source() -> None:
    from anthropic.types.citations_delta import Citation

    fields = {"url": "https://example.com/", "source": "s", "document_title": "D", "cited_text": "q", "title": "T"}
    for kind in types_of(Citation):
        builder = read_anthropic(
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "citations_delta", "citation": {"type": kind, **fields}},
            },
        )
        assert [type(part) for part in builder.parts()] == [Text, Source], kind


# -- ends ----------------------------------------------------------------------------------------------------------


def finishes() -> Iterator[str]:
    from anthropic.types import StopReason
    from openai.types.chat.chat_completion_chunk import Choice
    from openai.types.responses.response import IncompleteDetails

    yield from literals(StopReason)
    yield from literals(Choice.model_fields["finish_reason"].annotation)
    yield from literals(IncompleteDetails.model_fields["reason"].annotation)


def test_every_end_is_usual_or_said() -> None:
    for reason in sorted(set(finishes())):
        message = assistant("Hi", status="complete", finish_reason=reason)
        line = ending_line(message)
        assert (line is None) == (finish_kind(reason) == "stop"), reason
        assert line is None or repr(reason) not in line  # it has words of its own


def test_the_sides_of_a_chat_delta_are_all_read() -> None:
    from openai.types.chat.chat_completion_chunk import ChoiceDelta

    assert set(ChoiceDelta.model_fields) == {"audio", "content", "function_call", "refusal", "role", "tool_calls"}
    delta = {"audio": {"transcript": "Hi"}, "refusal": "No", "tool_calls": [{"function": {"name": "look"}}]}
    builder = built(ChatReader(), {"choices": [{"delta": delta, "finish_reason": "stop"}]})
    assert [type(part) for part in builder.parts()] == [ProviderItem, Text, Refusal, ToolCall]


# -- all of them ---------------------------------------------------------------------------------------------------


def holds(builder: PartsBuilder) -> None:
    """Stored, counted and sent back by the rules."""
    parts = builder.parts()
    assert load_parts(dump(parts)) == parts
    reply = assistant("a", *parts, status="complete", provider="p", model="m")
    sent = tuple(part for part in reply.parts if is_sendable(part))
    counter = TokenCounter()
    if not all(is_sendable(part) for part in parts):
        assert counter.count_message(Message("assistant", sent), "m") == counter.count_message(assistant("a"), "m")
    question = request(user("x"), Message("assistant", sent, provider="p", model="m"), user("y"))
    for body in (
        chat_provider.to_wire(question, chat_provider.ChatStyle()),
        responses_provider.to_wire(question, responses_provider.ResponsesStyle()),
        anthropic_provider.to_wire(question, anthropic_provider.AnthropicStyle()),
    ):
        assert body["model"] == "m"
    assert isinstance(builder.end, StreamEnd)


def test_an_error_inside_an_answer_is_raised() -> None:
    with pytest.raises(ProviderError, match="The lamp is out"):
        list(ResponsesReader().feed({"type": "response.failed", "response": {"error": {"message": "The lamp is out"}}}))
