"""Which remedy follows which refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.fakes import ScriptedProvider, answer, drain, of, open_workspace
from tests.chat.test_attachments import png
from tui.chat.attachments import make_attachment
from tui.chat.conversation.events import Notice, TurnFailed
from tui.chat.turn.recovery import Action, Clamp, Recovery, Reduce, Wait, failure_text
from tui.messages import Attachment, Message, Request
from tui.providers.base import ProviderError

AT_LEAST = ProviderError("overflow_output", "too long", limit=8000, input_tokens=7000, output_tokens=1000)


def decided(*errors: ProviderError, asked: int = 1000) -> list[Action | None]:
    recovery, request = Recovery(), Request("p", "m", (), max_output=asked)
    return [recovery.decide(error, request, arrived=False) for error in errors]


def test_a_shorter_answer_that_is_refused_too_leads_to_a_shorter_conversation() -> None:
    """vLLM counts a prompt no further than it must: "at least 7000 input tokens"."""
    assert decided(AT_LEAST, AT_LEAST, AT_LEAST) == [Clamp(920), Reduce(), None]


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
        assert any(isinstance(event, Notice) and "900 tokens of answer" in event.text for event in events)
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


async def test_a_request_of_too_many_bytes_goes_without_its_largest_attachment(tmp_path: Path) -> None:
    refusal = ProviderError("too_many_bytes", "p: HTTP 413: request_too_large.", status=413)
    provider = ScriptedProvider([[refusal], answer(), [refusal], [refusal]], window=64_000)
    async with open_workspace(tmp_path, provider) as workspace:
        files = [
            make_attachment(f"{name}.txt", name.encode() * size) for name, size in (("a", 10), ("b", 90), ("c", 20))
        ]
        session = await workspace.new_session()
        events = await drain(session.send("look", files))
        names = [[part.name for part in parts_of(request)] for request in provider.requests]
        assert names == [["a.txt", "b.txt", "c.txt"], ["a.txt", "c.txt"]]
        assert any("too many bytes: b.txt (90 bytes) is left out" in event.text for event in of(Notice, events))
        assert len(parts_of(session.messages[0])) == 3  # the history has all of them
        failed = await drain(session.send("again"))
        assert [len(parts_of(request)) for request in provider.requests[2:]] == [2, 1]
        assert any("request_too_large" in event.text for event in of(TurnFailed, failed))


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
