"""`/compact --preview` and `/summary` in `chatctx --plain`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.fake_summaries import FakeSummaries, standing
from tui.cli.plain.commands import PlainCommands
from tui.cli.plain.plain import PlainChat
from tui.commands.registry import Unknown, parse
from tui.messages import Message, Text

if TYPE_CHECKING:
    from tui.cli.lines import Lines


async def say(line: str, summaries: FakeSummaries, *answers: str, talks: bool = True) -> list[str]:
    """What was asked while the command `line` ran; every one of `answers` was needed."""
    left, asked = list(answers), []

    async def answer(question: str) -> str:
        asked.append(question)
        return left.pop(0)

    async def refresh_usage() -> None: ...

    session: Any = SimpleNamespace(summaries=summaries, refresh_usage=refresh_usage)
    chat = cast("PlainChat", SimpleNamespace(session=session, talks=talks, ask=answer, text=answer))
    parsed = parse(line)
    assert not isinstance(parsed, Unknown)
    await PlainCommands(chat).run(*parsed)
    assert not left
    return asked


async def test_a_preview_is_read_out_and_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    summaries = FakeSummaries(texts=["Goal: \x1b[2Jboats."])
    assert await say("/compact --preview mind the gulls", summaries, "y") == [
        "y compact with this, e write another text, n leave it:"
    ]
    assert (summaries.asked, summaries.accepted) == (["mind the gulls"], ["Goal: \x1b[2Jboats."])
    said = capsys.readouterr()
    assert "Goal: ␛[2Jboats." in said.out
    assert "This takes the place of 142 messages" in said.out
    assert "next request 121,400 -> ~17,004 tokens (-86 %)" in said.out
    assert said.err.startswith("chatctx: Compacting\nchatctx: Compacted 142 messages: 121,400 -> ")


async def test_the_persons_own_text_is_weighed_before_it_counts(capsys: pytest.CaptureFixture[str]) -> None:
    summaries = FakeSummaries(most=30)
    asked = await say("/compact --preview", summaries, "e", "x" * 40, "y", "e", "Boats, 9 gulls.", "y")
    assert asked[2] == asked[3] == "e write another text, n leave it:"  # too long: a y is no answer
    assert summaries.accepted == ["Boats, 9 gulls."]
    assert "This summary is too long: 10 tokens." in capsys.readouterr().err


@pytest.mark.parametrize("answers", [["n"], [""], ["what?", "N"]], ids=["no", "end of input", "something else"])
async def test_without_a_yes_nothing_changes(answers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    summaries = FakeSummaries()
    await say("/compact --preview", summaries, *answers)
    assert summaries.accepted == []
    assert capsys.readouterr().err == "chatctx: Compacting\nchatctx: Not compacted. Nothing was changed.\n"


async def test_in_a_pipe_it_is_read_out_and_nobody_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    summaries = FakeSummaries(in_force=standing("Of boats."))
    assert await say("/compact --preview", summaries, talks=False) == []
    assert await say("/summary", summaries, talks=False) == []
    said = capsys.readouterr()
    assert "Goal: fix the parser." in said.out
    assert "Of boats." in said.out
    assert "Nobody can be asked here; /compact compacts" in said.err
    assert (summaries.accepted, summaries.edited) == ([], [])


async def test_a_failed_call_is_one_line_and_nothing_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert await say("/compact --preview", FakeSummaries(failure="The server is down")) == []
    assert capsys.readouterr().err == "chatctx: Compacting\nchatctx: The server is down. Nothing was changed.\n"


async def test_the_summary_in_force_is_read_out_and_changed(capsys: pytest.CaptureFixture[str]) -> None:
    summaries = FakeSummaries()
    await say("/summary", summaries)
    assert "There is no summary in force" in capsys.readouterr().err
    summaries.in_force = standing("Of boats.")
    await say("/summary", summaries, "n")
    assert summaries.edited == []
    await say("/summary", summaries, "e", "Of boats and gulls.", "y")
    assert summaries.edited == ["Of boats and gulls."]
    assert "Edited the summary: 18,300 -> 18,900 tokens (+3 %)" in capsys.readouterr().err


def test_a_stored_conversation_is_introduced_by_what_was_said_last(capsys: pytest.CaptureFixture[str]) -> None:
    messages = [Message("assistant", (Text("Nine boats."),), "m1"), standing("Of boats.").message]
    session: Any = SimpleNamespace(
        provider="p", model="m", title="boats", messages=messages, memory=SimpleNamespace(notices=())
    )
    workspace: Any = SimpleNamespace(place=lambda _: "here")
    PlainChat(workspace, session, cast("Lines", None), talks=True).introduce()
    said = capsys.readouterr().out
    assert "Nine boats." in said
    assert "Of boats." not in said
