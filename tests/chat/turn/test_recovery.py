"""Which remedy follows which refusal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chat.fakes import Answer, ScriptedProvider, Tools, answer, drain, of, open_workspace, real_tokens
from tests.chat.test_attachments import png
from tui.chat.attachments import make_attachment
from tui.chat.conversation.events import Notice, TurnFailed
from tui.chat.turn.recovery import Action, Clamp, Recovery, Reduce, Wait, failure_text, request_bytes
from tui.messages import Attachment, Message, Request, ToolCall, ToolResult
from tui.providers.base import (
    Capabilities,
    ErrorKind,
    ProviderError,
    ReasoningDelta,
    ReasoningMeta,
    StreamEnd,
    ToolCallDelta,
)
from tui.providers.http.errors import classify_error

TOO_LARGE = ProviderError("too_many_bytes", "p: HTTP 413: request_too_large.", status=413)
AT_LEAST = ProviderError("overflow_output", "too long", limit=8000, input_tokens=7000, output_tokens=1000)


def call(arguments: str) -> Answer:
    return [ToolCallDelta(0, "c1", "fetch", arguments), StreamEnd("tool_calls", "tool_calls")]


def decided(*errors: ProviderError, max_output: int = 1000) -> list[Action | None]:
    recovery, request = Recovery(), Request("p", "m", (), max_output=max_output)
    return [recovery.decide(error, request, arrived=False) for error in errors]


def test_a_shorter_answer_that_is_refused_too_leads_to_a_shorter_conversation() -> None:
    """vLLM counts a prompt no further than it must: "at least 7000 input tokens"."""
    assert decided(AT_LEAST, AT_LEAST, AT_LEAST) == [Clamp(920), Reduce(), None]


SUM = ProviderError("overflow_input", "input and answer exceed the window", limit=8000)
COUNTED = ProviderError("overflow_input", "the input exceeds the window", limit=8000, input_tokens=8100)
UNNAMED = ProviderError("overflow_input", "context length exceeded")


@pytest.mark.parametrize(
    ("error", "tokens", "asked", "first"),
    [
        (SUM, 600, 8000, Clamp(2000)),
        (SUM, 6500, 8000, Clamp(1500)),
        (SUM, 600, 1500, Reduce()),  # so short an answer fits
        (SUM, 9000, 8000, Reduce()),
        (COUNTED, 600, 8000, Reduce()),
        (UNNAMED, 600, 8000, Clamp(1000)),
        (UNNAMED, 600, 900, Reduce()),
        (UNNAMED, 9000, 8000, Reduce()),
    ],
)
def test_the_answer_asked_for_may_be_what_is_too_long(
    error: ProviderError, tokens: int, asked: int, first: Action
) -> None:
    recovery, request = Recovery(), Request("p", "m", (), max_output=asked)
    actions = [recovery.decide(error, request, arrived=False, tokens=tokens) for _ in range(3)]
    assert actions == ([first, Reduce(), None] if isinstance(first, Clamp) else [Reduce(), None, None])


@pytest.mark.parametrize("limit", [None, 8_000])
async def test_a_server_that_adds_the_answer_to_the_input_teaches_no_small_window(
    tmp_path: Path, limit: int | None
) -> None:
    def answered(request: Request) -> Answer:
        fits = real_tokens(request) + (request.max_output or 0) <= 8_000
        return answer() if fits else [ProviderError("overflow_input", "context length exceeded", limit=limit)]

    provider = ScriptedProvider(window=None, claimed=64_000, fallback=answered)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        for number in range(4):
            events = await drain(session.send(f"question {number} " * 20))
            assert not of(TurnFailed, events)
            assert session.usage is not None and session.usage.limits.context == (limit or 64_000)


def test_an_answer_beyond_an_unnamed_limit_is_asked_for_in_short() -> None:
    error = ProviderError("overflow_output", "max_tokens is too large")
    assert decided(error, error, max_output=16_000) == [Clamp(1000), None]
    assert decided(error, max_output=900) == [None]


@pytest.mark.parametrize("most", [8, 900, 2000])
def test_a_longest_answer_never_costs_any_of_the_conversation(most: int) -> None:
    error = ProviderError("overflow_output", "max_tokens is too large", most_output=most)
    assert decided(error, error) == [Clamp(900) if most == 900 else None, None]


async def test_what_credit_pays_for_is_asked_for_and_is_no_limit_of_the_model(tmp_path: Path) -> None:
    refusal = ProviderError("overflow_output", "can only afford 900", status=402, most_output=900)
    provider = ScriptedProvider([[refusal], answer(), [refusal], [refusal]], window=64_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("one"))
        assert [r.max_output for r in provider.requests] == [16_000, 900]
        assert any(isinstance(event, Notice) and "answers of 900 tokens" in event.text for event in events)
        assert session.usage is not None and session.usage.limits.output is None
        failed = await drain(session.send("two"))
        assert any(isinstance(event, TurnFailed) and "can only afford 900" in event.text for event in failed)
        assert [r.max_output for r in provider.requests[2:]] == [16_000, 900]


@pytest.mark.parametrize(
    ("seconds", "action", "words"),
    [
        (7.0, Wait(7.0, 1), "/retry asks again."),
        (60.0, Wait(60.0, 1), "/retry asks again."),
        (61.0, None, "/retry asks again; the server wants 2 min."),
        (40_000.0, None, "/retry asks again; the server wants 11 h 7 min."),
    ],
)
def test_a_wait_that_is_too_long_is_left_to_the_person(seconds: float, action: Action | None, words: str) -> None:
    error = ProviderError("rate_limit", "p: HTTP 429: slow down.", status=429, retry_after=seconds)
    assert decided(error) == [action]
    assert failure_text(error) == f"p: HTTP 429: slow down. Your message is kept; {words}"


@pytest.mark.parametrize(
    ("status", "body", "kind", "seconds"),
    [
        (200, {"error": {"code": "E1234", "message": "odd"}}, "unknown", [2, 4]),
        (None, {"error": {"type": "odd_error"}}, "unknown", [2, 4]),
        (200, {"error": {"code": 502, "message": "odd"}}, "server", [2, 4, 8, 16, 32]),
        (None, {"error": {"type": "server_error", "message": "odd"}}, "server", [2, 4, 8, 16, 32]),
        (500, {"error": {"code": "E1234", "message": "odd"}}, "server", [2, 4, 8, 16, 32]),
    ],
)
def test_an_error_that_is_not_understood_soon_reaches_the_person(
    status: int | None, body: object, kind: ErrorKind, seconds: list[int]
) -> None:
    error = classify_error(status, body)
    waits = [action.seconds for action in decided(*[error] * 7) if isinstance(action, Wait)]
    assert (error.kind, waits) == (kind, seconds)


async def test_a_request_of_too_many_bytes_goes_without_its_largest_attachment(tmp_path: Path) -> None:
    provider = ScriptedProvider([[TOO_LARGE], answer()], window=64_000)
    async with open_workspace(tmp_path, provider) as workspace:
        files = [
            make_attachment(f"{name}.txt", name.encode() * size) for name, size in (("a", 10), ("b", 90), ("c", 20))
        ]
        session = await workspace.new_session()
        events = await drain(session.send("look", files))
        names = [[part.name for part in parts_of(request)] for request in provider.requests]
        assert names == [["a.txt", "b.txt", "c.txt"], ["a.txt", "c.txt"]]
        assert any("too many bytes: b.txt (90 B) is left out" in event.text for event in of(Notice, events))
        assert len(parts_of(session.messages[0])) == 3  # the history has all of them


async def test_what_was_left_out_in_vain_is_sent_again(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=64_000, fallback=lambda _: [TOO_LARGE])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("look", [make_attachment("a.txt", b"a" * 300)]))
        assert [len(parts_of(request)) for request in provider.requests] == [1, 0]
        assert any("did not help" in event.text for event in of(Notice, events))
        assert any("request_too_large" in event.text and "a.txt" in event.text for event in of(TurnFailed, events))
        provider.fallback = lambda _: answer()
        await drain(session.retry())
        assert len(parts_of(provider.requests[-1])) == 1


@pytest.mark.parametrize(
    ("refusal", "able"),
    [
        (ProviderError("bad_request", "this model does not support images", status=400), Capabilities()),
        (ProviderError("bad_request", "this model does not support tools", status=400), Capabilities()),
        (
            ProviderError("signature", "Invalid signature in thinking block"),
            Capabilities(reasoning_return="always", needs_signature=True),
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, ProviderError) else "",
)
async def test_no_remedy_that_did_not_help_stays(refusal: ProviderError, able: Capabilities, tmp_path: Path) -> None:
    thinking: Answer = [ReasoningDelta("hm"), ReasoningMeta(signature="s"), *answer()]
    provider = ScriptedProvider([thinking, [refusal], [refusal]], able=able)
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        session = await workspace.new_session()
        await drain(session.send("one", [make_attachment("a.png", png(3, 3))]))
        assert of(TurnFailed, await drain(session.send("two")))
        await drain(session.retry())
        before, changed, after = provider.requests[1:4]
        assert changed != before == after


def refusing(most: int) -> ScriptedProvider:
    """A server that takes `most` bytes, and does not say how many."""
    return ScriptedProvider(
        window=200_000, fallback=lambda request: [TOO_LARGE] if request_bytes(request) > most else answer()
    )


async def test_a_result_that_is_too_large_in_bytes_is_shortened(tmp_path: Path) -> None:
    provider = refusing(20_000)
    provider.script = [call("{}")]
    async with open_workspace(tmp_path, provider, tools=Tools(lambda _: "line of it\n" * 9_000)) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("fetch it"))
        assert not of(TurnFailed, events)
        assert any("the result of fetch" in event.text and "shortened" in event.text for event in of(Notice, events))
        (result,) = (p for p in provider.requests[-1].messages[-1].parts if isinstance(p, ToolResult))
        assert "characters left out" in result.text and len(result.text) < 9_000
        stored = [p for m in session.messages for p in m.parts if isinstance(p, ToolResult)]
        assert len(stored[0].text) > 20_000  # the history has all of it


@pytest.mark.parametrize("most_length", [1_048_576, None])
async def test_arguments_over_the_limit_go_out_shortened(most_length: int | None, tmp_path: Path) -> None:
    refusal = ProviderError("too_many_bytes", "string too long", status=400, most_length=most_length)
    wordy = json.dumps({"id": 1, "note": "x" * 2_000_000})

    def refuse(request: Request) -> Answer:
        calls = [p for m in request.messages for p in m.parts if isinstance(p, ToolCall)]
        return [refusal] if any(len(p.arguments) > 1_048_576 for p in calls) else answer()

    provider = ScriptedProvider([call(wordy)], window=None, fallback=refuse)
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("fetch it"))
        assert not of(TurnFailed, events)
        (sent,) = (p for m in provider.requests[-1].messages for p in m.parts if isinstance(p, ToolCall))
        assert json.loads(sent.arguments) == {"left out": f"{len(wordy):,} characters"}


async def test_a_history_of_too_many_bytes_is_made_smaller_by_itself(tmp_path: Path) -> None:
    provider = refusing(30_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        for number in range(16):
            events = await drain(session.send(f"{number} " + "word " * 600))
            assert not of(TurnFailed, events)
        assert len(provider.requests) > 16
        assert len(session.messages) >= 32


async def test_an_own_message_of_too_many_bytes_is_never_cut(tmp_path: Path) -> None:
    provider = refusing(30_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        (failed,) = of(TurnFailed, await drain(session.send("word " * 12_000)))
        assert "your message (60 kB): shorten it" in failed.text and "attachment" not in failed.text
        assert all(len(request.messages[-1].text) == 60_000 for request in provider.requests)


async def test_a_picture_that_the_server_cannot_read_poisons_no_conversation(tmp_path: Path) -> None:
    refusal = ProviderError("bad_request", "anthropic: HTTP 400: Could not process image.", status=400)
    provider = ScriptedProvider([answer(), [refusal]], window=64_000)
    async with open_workspace(tmp_path, provider) as workspace:
        good, bad = make_attachment("good.png", png(3, 3)), make_attachment("b.png", png(2, 2))
        session = await workspace.new_session()
        await drain(session.send("look", [good]))
        events = await drain(session.send("and this", [bad, make_attachment("c.txt", b"text")]))
        assert [[part.name for part in parts_of(request)] for request in provider.requests[1:]] == [
            ["good.png", "b.png", "c.txt"],
            ["good.png", "c.txt"],
        ]
        assert any("cannot read it: b.png" in event.text for event in of(Notice, events))
        assert session.messages[-1].status == "complete"
        await drain(session.send("next"))
        assert len(parts_of(provider.requests[-1])) == 2  # it stays out


def parts_of(holder: Request | Message) -> list[Attachment]:
    messages = holder.messages if isinstance(holder, Request) else (holder,)
    return [part for message in messages for part in message.parts if isinstance(part, Attachment)]
