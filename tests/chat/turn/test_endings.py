"""How answers end: cut tool calls are not run, a pause is gone over, a refusal is never taken for the model's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.fakes import Answer, ScriptedProvider, answer, drain, of, open_workspace
from tests.chat.tool_calls.tool_calls import FunctionTools, results, well_formed
from tui.chat.conversation.events import ReplyDelta, TurnFailed
from tui.messages import ProviderItem, Refusal, Source, Text
from tui.providers.base import ItemReceived, RefusalDelta, SourceCited, StreamEnd, TextDelta, ToolCallDelta
from tui.text.labels import finish_kind


def ended(reason: str, *names: str) -> Answer:
    """An answer that calls tools and ends for `reason`."""
    deltas = [ToolCallDelta(number, f"c{number}", name, "{}") for number, name in enumerate(names)]
    return [TextDelta("Let me see."), *deltas, StreamEnd(finish_kind(reason), reason)]


def tools() -> FunctionTools:
    return FunctionTools(reads=("look", "find"), look=lambda _: "seen", find=lambda _: "found")


@pytest.mark.parametrize("reason", ["length", "max_tokens", "model_context_window_exceeded", "MALFORMED_FUNCTION_CALL"])
async def test_the_last_call_of_a_cut_answer_is_not_run(tmp_path: Path, reason: str) -> None:
    provider = ScriptedProvider([ended(reason, "look", "find"), answer("done")])
    source = tools()
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("go"))
        first, second = results(session)
        assert session.messages[-1].text == "done"
    assert source.ran == ["look"] and of(TurnFailed, events) == []
    assert (first.text, first.is_error) == ("seen", False)
    assert second.is_error and "Not run: the answer was cut off" in second.text
    assert f"{provider.requests[0].max_output:,} tokens" in second.text
    assert all(map(well_formed, provider.requests))


async def test_an_answer_that_is_cut_each_time_ends_after_two_requests_and_of_the_second_nothing_is_run(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider(fallback=lambda _: ended("length", "look", "find"))
    source = tools()
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        [failed] = of(TurnFailed, await drain(session.send("go")))
    assert len(provider.requests) == 2 and source.ran == ["look"]
    assert "twice in a row" in failed.text and "reserve_output" in failed.text


async def test_cuts_that_are_not_in_a_row_end_nothing(tmp_path: Path) -> None:
    script = [ended("length", "look"), ended("tool_calls", "look"), ended("length", "look"), answer("done")]
    provider = ScriptedProvider(script)
    source = tools()
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        assert of(TurnFailed, await drain(session.send("go"))) == []
        assert session.messages[-1].text == "done"
    assert source.ran == ["look"]


@pytest.mark.parametrize("reason", ["refusal", "content_filter", "SAFETY"])
async def test_no_call_of_an_answer_that_was_stopped_is_run(tmp_path: Path, reason: str) -> None:
    provider = ScriptedProvider([ended(reason, "look", "find"), answer("next")])
    source = tools()
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        await drain(session.send("go"))
        assert source.ran == [] and len(provider.requests) == 1
        await drain(session.send("go on"))
    assert well_formed(provider.requests[1])


async def test_a_pause_of_the_server_is_gone_over(tmp_path: Path) -> None:
    script: list[Answer] = [[TextDelta("Searching"), StreamEnd("paused", "pause_turn")], answer("found")]
    async with open_workspace(tmp_path, ScriptedProvider(script)) as workspace:
        session = await workspace.new_session()
        await drain(session.send("go"))
        assert [message.text for message in session.messages] == ["go", "Searching", "found"]


async def test_a_server_that_pauses_for_ever_is_left(tmp_path: Path) -> None:
    provider = ScriptedProvider(fallback=lambda _: [TextDelta("x"), StreamEnd("paused", "pause_turn")])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send("go"))
    assert len(provider.requests) == 6


async def test_what_only_explains_an_answer_is_stored_and_never_sent(tmp_path: Path) -> None:
    """And the number is that of what goes out."""
    odd: Answer = [
        TextDelta("So."),
        SourceCited("https://example.com/a", "A"),
        SourceCited("https://example.com/a"),
        ItemReceived("image_generation_call"),
        RefusalDelta("This asks for something that is not allowed. " * 40, "cyber", from_server=True),
        StreamEnd("refusal", "refusal"),
    ]
    sizes: list[int] = []
    plain: Answer = [TextDelta("So."), StreamEnd("stop", "stop")]
    for first in (odd, plain):
        provider = ScriptedProvider([first, answer("next")])
        async with open_workspace(tmp_path / str(len(sizes)), provider) as workspace:
            session = await workspace.new_session()
            events = await drain(session.send("go"))
            assert {delta.kind for delta in of(ReplyDelta, events)} == {"text"}  # no refusal in the model's name
            usage = await session.refresh_usage()
            sizes.append(usage.total)
            if first is odd:
                assert session.messages[-1].parts == (
                    Text("So."),
                    ProviderItem("image_generation_call", "scripted"),
                    Refusal("This asks for something that is not allowed. " * 40, "cyber", from_server=True),
                    Source("https://example.com/a", "A"),
                )
            await drain(session.send("more"))
        assert provider.requests[1].messages[1].parts == (Text("So."),)
    assert sizes[0] == sizes[1]
