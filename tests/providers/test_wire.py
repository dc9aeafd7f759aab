"""Requests in the three dialects, on plain values."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.messages import (
    Attachment,
    Message,
    Reasoning,
    Refusal,
    Request,
    SystemSection,
    Text,
    ToolCall,
    ToolResult,
    ToolSchema,
)
from tui.providers import anthropic_wire, chat_wire, responses_wire
from tui.providers.chat_wire import ChatStyle

IMAGE = Attachment("image", "cat.png", "image/png", "aa", 3, 10, 10)
PDF = Attachment("pdf", "paper.pdf", "application/pdf", "bb", 3, pages=1)
NOTE = Attachment("text", "note.txt", "text/plain", "cc", 5, text="a note")
GONE = Attachment("image", "gone.png", "image/png", "dd", 3)
TOOL = ToolSchema("look", "Look at a file", '{"properties":{"path":{"type":"string"}},"type":"object"}')


def user(*parts: Any) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def assistant(*parts: Any) -> Message:
    return Message("assistant", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def results(*parts: ToolResult) -> Message:
    return Message("tool", parts)


def request(*messages: Message, **changes: Any) -> Request:
    base = Request("p", "m", messages, blobs={"aa": b"img", "bb": b"pdf"})
    return replace(base, **changes)


def thought(text: str = "hm", **fields: Any) -> Reasoning:
    return Reasoning(text, fields.pop("provider", "p"), fields.pop("model", "m"), **fields)


TOOL_TURN = (
    user("Read both"),
    assistant("Looking.", ToolCall("c1", "look", '{"path": "a"}'), ToolCall("c2", "look", '{"path": "b"}')),
    results(ToolResult("c1", "look", "A"), ToolResult("c2", "look", "", is_error=True)),
    user("Thanks"),
)


class TestChat:
    def body(self, req: Request, **style: Any) -> dict[str, Any]:
        return chat_wire.to_wire(req, ChatStyle(**style))

    def test_system_text_and_usage_are_asked_for(self) -> None:
        system = (SystemSection("system", "prompt", "Be brief."), SystemSection("memory", "CHAT.md", "I am Ada."))
        body = self.body(request(user("Hi"), system=system, max_output=100, session="s1"))
        assert body == {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief.\n\nI am Ada."},
                {"role": "user", "content": "Hi"},
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": 100,
        }

    def test_a_tool_turn(self) -> None:
        body = self.body(request(*TOOL_TURN, tools=(TOOL,)))
        assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "tool", "user"]
        calls = body["messages"][1]["tool_calls"]
        assert [call["id"] for call in calls] == ["c1", "c2"]
        assert calls[0]["function"] == {"name": "look", "arguments": '{"path": "a"}'}
        assert body["messages"][2] == {"role": "tool", "tool_call_id": "c1", "content": "A"}
        assert body["messages"][3]["content"] == "(no output)"
        assert body["tools"][0]["function"]["parameters"]["properties"] == {"path": {"type": "string"}}

    def test_a_call_without_text_has_null_content(self) -> None:
        body = self.body(
            request(user("x"), assistant(ToolCall("c", "look", "{}")), results(ToolResult("c", "look", "A")))
        )
        assert body["messages"][1]["content"] is None

    @pytest.mark.parametrize(
        ("written", "sent"),
        [
            ("", "{}"),
            ('{"a":1}', '{"a":1}'),
            ('{"a": ', '{"invalid_json": "{\\"a\\": "}'),
            ("[1]", '{"value": [1]}'),
        ],
    )
    def test_arguments_are_always_an_object(self, written: str, sent: str) -> None:
        call = assistant(ToolCall("c", "look", written))
        body = self.body(request(user("x"), call, results(ToolResult("c", "look", "A"))))
        assert body["messages"][1]["tool_calls"][0]["function"]["arguments"] == sent

    def test_reasoning_goes_back_only_to_who_made_it(self) -> None:
        own, other = thought("mine"), thought("theirs", model="else")
        body = self.body(request(user("x"), assistant(own, other, "y"), user("z")), reasoning_field="reasoning")
        assert body["messages"][1] == {"role": "assistant", "content": "y", "reasoning": "mine"}

    def test_openrouter_details_go_back_whole_and_in_order(self) -> None:
        details = [
            {"type": "reasoning.text", "text": "hm", "signature": "sig"},
            {"type": "reasoning.encrypted", "data": "x"},
        ]
        message = assistant(thought("hm", details=json.dumps(details)), "y")
        body = self.body(request(user("x"), message, user("z")))
        assert body["messages"][1]["reasoning_details"] == details
        assert "reasoning_content" not in body["messages"][1]

    def test_thought_signatures_are_echoed(self) -> None:
        extra = '{"google": {"thought_signature": "abc"}}'
        call = assistant(ToolCall("c", "look", "{}", extra=extra))
        body = self.body(request(user("x"), call, results(ToolResult("c", "look", "A"))))
        assert body["messages"][1]["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "abc"}}

    def test_an_answer_of_nothing_but_reasoning_is_not_sent(self) -> None:
        body = self.body(request(user("x"), assistant(thought()), user("z")))
        assert body["messages"] == [{"role": "user", "content": "x\n\nz"}]

    def test_attachments(self) -> None:
        content = self.body(request(user("See", IMAGE, PDF, NOTE, GONE)))["messages"][0]["content"]
        assert content == [
            {"type": "text", "text": "See"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}},
            {"type": "file", "file": {"filename": "paper.pdf", "file_data": "data:application/pdf;base64,cGRm"}},
            {"type": "text", "text": '<file name="note.txt">\na note\n</file>'},
            {"type": "text", "text": "[attachment gone.png is not available any more]"},
        ]

    def test_two_of_one_side_become_one(self) -> None:
        body = self.body(request(user("a"), user("b", IMAGE), assistant("c"), assistant("d"), user("e")))
        assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
        assert [piece["type"] for piece in body["messages"][0]["content"]] == ["text", "text", "image_url"]
        assert body["messages"][1]["content"] == "c\n\nd"

    def test_an_answer_with_calls_is_never_merged(self) -> None:
        body = self.body(request(user("x"), assistant("a"), *TOOL_TURN[1:]))
        assert [message["role"] for message in body["messages"]] == [
            "user",
            "assistant",
            "assistant",
            "tool",
            "tool",
            "user",
        ]

    @pytest.mark.parametrize(
        "ids", [["call_0", "call_0"], ["", ""], ["x" * 64, "y y"], ["functions.look:0", "functions.look:1"]]
    )
    @pytest.mark.parametrize("short", [True, False])
    def test_ids_are_unique_and_valid_and_results_find_their_call(self, ids: list[str], short: bool) -> None:
        turns = []
        for number, call_id in enumerate(ids):
            turns += [
                user("go"),
                assistant(ToolCall(call_id, "look", "{}")),
                results(ToolResult(call_id, "look", f"result {number}")),
            ]
        messages = self.body(request(*turns), short_tool_ids=short)["messages"]
        sent = [message["tool_calls"][0]["id"] for message in messages if "tool_calls" in message]
        answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        assert sent == answered
        assert len(set(sent)) == 2
        assert all(0 < len(one) <= 40 and " " not in one for one in sent)
        if short:
            assert all(len(one) == 9 and one.isalnum() for one in sent)
        elif ids[0].startswith("functions"):
            assert sent == ids

    @pytest.mark.parametrize(
        ("effort", "wanted", "sent"),
        [
            ("effort", "high", {"reasoning_effort": "high"}),
            ("effort", "off", {"reasoning_effort": "none"}),
            ("openrouter", "low", {"reasoning": {"effort": "low"}}),
            ("openrouter", "off", {"reasoning": {"enabled": False}}),
            ("thinking", "high", {"thinking": {"type": "enabled"}}),
            ("thinking", "off", {"thinking": {"type": "disabled"}}),
        ],
    )
    def test_effort(self, effort: str, wanted: str, sent: dict[str, Any]) -> None:
        body = self.body(request(user("x"), reasoning=wanted), effort=effort)
        assert {key: body[key] for key in sent} == sent

    def test_the_settings_extra_fields_win(self) -> None:
        assert self.body(request(user("x")), extra_body={"temperature": 0, "model": "n"})["model"] == "n"


class TestAnthropic:
    def body(self, req: Request, **options: Any) -> dict[str, Any]:
        return anthropic_wire.to_wire(req, **options)

    def test_a_tool_turn(self) -> None:
        body = self.body(request(*TOOL_TURN, tools=(TOOL,)), cache=False)
        assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
        assert [block["type"] for block in body["messages"][1]["content"]] == ["text", "tool_use", "tool_use"]
        last = body["messages"][2]["content"]
        assert last == [
            {"type": "tool_result", "tool_use_id": "c1", "content": "A"},
            {"type": "tool_result", "tool_use_id": "c2", "content": "(no output)", "is_error": True},
            {"type": "text", "text": "Thanks"},
        ]
        assert body["tools"][0]["input_schema"]["type"] == "object"

    def test_results_come_first_in_their_message(self) -> None:
        history = (
            user("Read"),
            assistant(ToolCall("c1", "look", "{}")),
            user("Wait"),
            results(ToolResult("c1", "look", "A")),
        )
        content = self.body(request(*history), cache=False)["messages"][2]["content"]
        assert [block["type"] for block in content] == ["tool_result", "text"]

    def test_thinking_goes_back_verbatim_and_in_order(self) -> None:
        message = assistant(
            thought("first", signature="s1"),
            thought("", redacted="blob"),
            "Looking.",
            thought("second", signature="s2"),
            ToolCall("c1", "look", "{}"),
        )
        blocks = self.body(request(user("x"), message, results(ToolResult("c1", "look", "A"))))["messages"][1][
            "content"
        ]
        assert blocks == [
            {"type": "thinking", "thinking": "first", "signature": "s1"},
            {"type": "redacted_thinking", "data": "blob"},
            {"type": "text", "text": "Looking."},
            {"type": "thinking", "thinking": "second", "signature": "s2"},
            {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
        ]

    @pytest.mark.parametrize(
        "part",
        [
            thought("cancelled"),
            thought("of another model", model="n", signature="s"),
            thought("of another provider", provider="q", signature="s"),
        ],
    )
    def test_a_thought_that_would_be_refused_is_not_sent(self, part: Reasoning) -> None:
        blocks = self.body(request(user("x"), assistant(part, "y"), user("z")), cache=False)["messages"][1]["content"]
        assert blocks == [{"type": "text", "text": "y"}]

    def test_an_empty_signature_is_a_signature(self) -> None:
        blocks = self.body(request(user("x"), assistant(thought("t", signature=""), "y"), user("z")))["messages"][1][
            "content"
        ]
        assert blocks[0] == {"type": "thinking", "thinking": "t", "signature": ""}

    def test_nothing_empty_is_sent(self) -> None:
        body = self.body(
            request(
                user("x"),
                assistant("  \n", thought("t", signature="s")),
                user(" ", "y"),
                assistant(Refusal("no")),
                user("z"),
            ),
            cache=False,
        )
        assert body["messages"] == [
            {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "no"}]},
            {"role": "user", "content": [{"type": "text", "text": "z"}]},
        ]

    def test_only_an_answer_to_be_continued_loses_its_last_blanks(self) -> None:
        body = self.body(request(user("x"), assistant("a \n"), user("z"), assistant("b \n")), cache=False)
        assert body["messages"][1]["content"][0]["text"] == "a \n"
        assert body["messages"][3]["content"][0]["text"] == "b"

    def test_two_cache_marks(self) -> None:
        system = (SystemSection("system", "prompt", "Be brief."), SystemSection("memory", "CHAT.md", "I am Ada."))
        body = self.body(request(*TOOL_TURN, system=system, tools=(TOOL,)))
        marked = [block for block in body["system"] if "cache_control" in block]
        assert [block["text"] for block in marked] == ["I am Ada."]
        assert "cache_control" in body["messages"][-1]["content"][-1]
        assert json.dumps(body).count("cache_control") == 2
        assert "cache_control" not in json.dumps(self.body(request(*TOOL_TURN, system=system), cache=False))

    def test_attachments(self) -> None:
        content = self.body(request(user("See", IMAGE, PDF, NOTE, GONE)), cache=False)["messages"][0]["content"]
        assert [block["type"] for block in content] == ["text", "image", "document", "text", "text"]
        assert content[1]["source"] == {"type": "base64", "media_type": "image/png", "data": "aW1n"}

    @pytest.mark.parametrize(
        ("model", "wanted", "kind"),
        [
            ("claude-sonnet-4-5", None, None),
            ("claude-sonnet-4-5", "high", "enabled"),
            ("claude-sonnet-4-5", "off", "disabled"),
            ("claude-3-5-haiku-latest", "high", None),
            ("claude-opus-4-6", None, None),
            ("claude-opus-4-6", "low", "adaptive"),
            ("claude-opus-4-8", "off", "disabled"),
            ("claude-opus-5-5", None, "adaptive"),
            ("claude-opus-5-5", "off", "adaptive"),
            ("claude-fable-5", "off", "adaptive"),
        ],
    )
    def test_thinking_mode_by_model(self, model: str, wanted: str | None, kind: str | None) -> None:
        body = self.body(request(user("x"), model=model, reasoning=wanted, max_output=16_000))
        assert body.get("thinking", {}).get("type") == kind
        if kind == "enabled":
            assert 1024 <= body["thinking"]["budget_tokens"] < body["max_tokens"]
        if kind == "adaptive" and wanted not in (None, "off"):
            assert body["output_config"] == {"effort": wanted}


class TestResponses:
    def body(self, req: Request, **options: Any) -> dict[str, Any]:
        return responses_wire.to_wire(req, **options)

    def test_it_is_stateless(self) -> None:
        system = (SystemSection("system", "prompt", "Be brief."),)
        body = self.body(request(user("Hi"), model="gpt-5.6", system=system, max_output=50, session="s1"))
        assert body == {
            "model": "gpt-5.6",
            "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
            "store": False,
            "stream": True,
            "instructions": "Be brief.",
            "max_output_tokens": 50,
            "prompt_cache_key": "s1",
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"summary": "auto"},
        }

    def test_items_are_replayed_in_order(self) -> None:
        own = {"model": "gpt-5.6"}
        message = assistant(
            thought("summary", encrypted="enc1", item_id="rs_1", **own),
            "On it.",
            ToolCall("c1", "look", '{"path": "a"}'),
        )
        answer = assistant(thought("", encrypted="enc2", item_id="rs_2", **own), "Done.")
        body = self.body(
            request(
                user("x"),
                message,
                results(ToolResult("c1", "look", "A")),
                answer,
                user("z"),
                tools=(TOOL,),
                model="gpt-5.6",
            )
        )
        kinds = [item["type"] for item in body["input"]]
        assert kinds == [
            "message", "reasoning", "message", "function_call", "function_call_output",
            "reasoning", "message", "message",
        ]  # fmt: skip
        assert body["input"][1] == {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "summary"}],
            "encrypted_content": "enc1",
        }
        assert body["input"][2]["phase"] == "commentary"
        assert body["input"][6]["phase"] == "final_answer"
        assert body["input"][3] == {
            "type": "function_call",
            "call_id": "c1",
            "name": "look",
            "arguments": '{"path": "a"}',
        }
        assert body["input"][4] == {"type": "function_call_output", "call_id": "c1", "output": "A"}

    def test_reasoning_is_never_the_last_of_an_answer(self) -> None:
        message = assistant("Hm.", thought("cut off", encrypted="e", item_id="rs_1"))
        body = self.body(request(user("x"), message, user("z")))
        assert [item["type"] for item in body["input"]] == ["message", "message", "message"]

    def test_several_summaries_go_back_as_several(self) -> None:
        parts = [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]
        message = assistant(thought("a\n\nb", encrypted="e", item_id="rs_1", details=json.dumps(parts)), "y")
        assert self.body(request(user("x"), message, user("z")))["input"][1]["summary"] == parts

    @pytest.mark.parametrize(
        ("model", "wanted", "fields"),
        [
            ("gpt-4o", "high", None),
            ("gpt-5-chat-latest", None, None),
            ("gpt-5", "off", {"summary": "auto", "effort": "minimal"}),
            ("gpt-5.2", "off", {"summary": "auto", "effort": "none"}),
            ("o4-mini", "low", {"summary": "auto", "effort": "low"}),
            ("gpt-6-sol", None, {"summary": "auto"}),
        ],
    )
    def test_reasoning_fields_only_for_reasoning_models(self, model: str, wanted: str | None, fields: Any) -> None:
        body = self.body(request(user("x"), model=model, reasoning=wanted))
        assert body.get("reasoning") == fields
        assert ("include" in body) == (fields is not None)

    def test_other_servers_get_the_plain_fields(self) -> None:
        message = assistant(thought("hm", item_id="rs_1"), "y")
        body = self.body(request(user("x"), message, user("z"), session="s"), official=False)
        assert "include" not in body and "prompt_cache_key" not in body and "reasoning" not in body
        assert body["input"][1]["content"] == [{"type": "reasoning_text", "text": "hm"}]


# -- properties of all dialects ---------------------------------------------------------------------------------------

texts = st.text(max_size=20)
ids = st.sampled_from(["", "c", "call_0", "x" * 50, "ä", "a b"])
assistant_parts = st.one_of(
    texts.map(Text),
    texts.map(Refusal),
    st.builds(
        Reasoning,
        texts,
        st.sampled_from(["p", "q"]),
        st.just("m"),
        signature=st.none() | texts,
        redacted=st.none() | texts,
        encrypted=st.none() | texts,
        details=st.none() | texts,
    ),
    st.builds(ToolCall, ids, st.just("look"), texts),
)
user_parts = st.one_of(texts.map(Text), st.sampled_from([IMAGE, PDF, NOTE, GONE]))
messages = st.lists(
    st.one_of(
        st.builds(Message, st.just("user"), st.lists(user_parts, max_size=3).map(tuple)),
        st.builds(Message, st.just("assistant"), st.lists(assistant_parts, max_size=4).map(tuple)),
        st.builds(
            Message,
            st.just("tool"),
            st.lists(st.builds(ToolResult, ids, st.just("look"), texts), max_size=2).map(tuple),
        ),
    ),
    max_size=6,
)


@given(messages)
def test_any_history_becomes_json_without_empty_content(
    history: list[Message],
) -> None:
    req = request(*history)
    before = repr(req)
    chat = chat_wire.to_wire(req, ChatStyle())
    anthropic = anthropic_wire.to_wire(req)
    responses = responses_wire.to_wire(req)
    for body in (chat, anthropic, responses):
        json.dumps(body)
    assert repr(req) == before
    for message in chat["messages"]:
        assert message["content"] or message.get("tool_calls")
    previous = None
    for message in anthropic["messages"]:
        assert message["role"] != previous
        previous = message["role"]
        assert message["content"]
        for block in message["content"]:
            assert block["type"] != "text" or block["text"].strip()
    calls = [
        block["id"] for message in anthropic["messages"] for block in message["content"] if block["type"] == "tool_use"
    ]
    assert len(calls) == len(set(calls))
