"""`/compact --preview` and `/summary`: a summary to read and change before it counts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest
from textual.widgets import TextArea

from tests.fake_summaries import PLAN, USAGE, FakeSummaries, standing
from tests.fakes import FakeSession, FakeWorkspace, user
from tests.screens.conftest import Running, running
from tui.chat.compaction.summaries import SummaryDraft, Weight
from tui.chat.turn.session import ChatSession
from tui.screens.summary import SURE, SummaryPanel
from tui.views.summary_text import SummaryPreview

KEYS = "ctrl+s compact with this"


def workspace(**values: Any) -> FakeWorkspace:
    return FakeWorkspace(FakeSession(messages=[user("hello")], summaries=FakeSummaries(**values)))


def area(run: Running) -> TextArea:
    return run.app.screen.query_one(TextArea)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(120, 40), (60, 20), (40, 15)])
async def test_a_preview_shows_what_it_would_do_and_takes_what_was_written(size: tuple[int, int]) -> None:
    long = "Goal: 港町 " + "averylongword" * 20
    async with running(workspace(texts=[long]), size=size) as run:
        await run.command("/compact --preview mind the gulls")
        await run.shows("Compaction, not made yet", "place of 142", "121,400 ->", "港町", "ctrl+s", "ctrl+r", "esc")
        assert run.session.summaries.asked == ["mind the gulls"]
        await run.type("Boats. ")
        await run.press("ctrl+s")
        await run.shows("Compacted 142 messages: 121,400")
        assert run.session.summaries.accepted == [f"Boats. {long}"]
        assert not isinstance(run.app.screen, SummaryPanel)
        await run.until(lambda: not run.chat.turns.busy)
        await run.shows("summary of the earlier")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cleared": ()}, "place of 142 messages, 104,400 tokens; 2 of them stay as they are."),
        ({"cleared": (("m", "c"),), "kept": ()}, "place of 142 messages and 1 old tool result, 104,400 tokens."),
        (
            {"cleared": (("m", "c"), ("m", "d")), "kept": (), "source": PLAN.source[:1]},
            "1 message and 2 old tool results",
        ),
    ],
)
def test_what_it_takes_the_place_of(changes: dict[str, Any], words: str) -> None:
    draft = SummaryDraft(replace(PLAN, **changes), USAGE, "text", "stamp")
    assert words in SummaryPreview(cast("ChatSession", FakeSession()), draft).about(Weight(66, 121_400, 17_066))


async def test_figures_follow_the_text_and_what_is_refused_stays_to_be_changed() -> None:
    async with running(workspace(texts=["word " * 8], most=60)) as run:
        await run.command("/compact --preview")
        await run.shows("summary ~10 tokens", "104,400 tokens; 2 of them stay", KEYS)
        area(run).insert("x" * 40, (0, 0))
        await run.shows("summary ~20 tokens", "This summary is too long: 20 tokens.")
        await run.press("ctrl+s")
        await run.shows("This summary is too long.")
        assert run.session.summaries.accepted == []
        assert area(run).text == "x" * 40 + "word " * 8
        area(run).load_text("short")
        await run.shows(KEYS)
        await run.press("ctrl+s")
        await run.shows("Compacted 142 messages")
        assert run.session.summaries.accepted == ["short"]


@pytest.mark.slow
async def test_esc_never_loses_a_changed_text_without_asking() -> None:
    async with running(workspace()) as run:
        await run.command("/compact --preview")
        await run.shows(KEYS)
        await run.press("escape")
        await run.shows("Not compacted. Nothing was changed.")  # nothing was written: nothing is asked

        await run.command("/compact --preview")
        await run.shows(KEYS)
        await run.type("mine ")
        await run.press("escape")
        await run.shows(SURE)
        await run.press("left", "escape")  # the left key went on: it asks again
        await run.shows(SURE)
        await run.press("right")
        await run.type("a")
        assert isinstance(run.app.screen, SummaryPanel)
        await run.shows(KEYS)
        await run.press("escape", "escape")
        await run.shows("Not compacted", "the up key brings their text")
        assert run.session.summaries.accepted == []
        await run.until(lambda: not run.chat.turns.busy)
        await run.press("up")
        assert run.chat.composer.value == "mine aGoal: fix the parser."
        assert run.workspace.prompts[-1] == run.chat.composer.value


@pytest.mark.slow
async def test_asking_again_has_instructions_and_the_own_text_can_be_had_back() -> None:
    async with running(workspace(texts=["first", "second"])) as run:
        await run.command("/compact --preview")
        await run.shows("first")
        await run.type("mine ")
        await run.press("ctrl+r")
        await run.shows("instructions for another summary")
        await run.press("escape")
        assert isinstance(run.app.screen, SummaryPanel)
        await run.press("ctrl+r")
        await run.type("gulls")
        await run.press("enter")
        await run.shows("second", "ctrl+z brings your text back")
        assert run.session.summaries.asked == ["", "gulls"]
        area(run).focus()
        await run.press("ctrl+z")
        assert area(run).text == "mine first"
        await run.press("ctrl+s")
        await run.until(lambda: run.session.summaries.accepted == ["mine first"])


@pytest.mark.slow
async def test_esc_stops_the_call_and_a_failed_one_leaves_the_text() -> None:
    async with running(workspace()) as run:
        summaries = run.session.summaries
        await run.command("/compact --preview")
        await run.shows(KEYS)
        await run.type("mine ")
        summaries.gate = asyncio.Event()
        await run.press("ctrl+r", "enter")
        await run.shows("the model writes another one")
        await run.press("ctrl+s")  # not while it does
        await run.press("escape")
        await run.shows("Compaction cancelled")
        assert area(run).text == "mine Goal: fix the parser."
        summaries.failure = "The server is down"
        await run.press("ctrl+r", "enter")
        await run.shows("The server is down")
        assert area(run).text == "mine Goal: fix the parser."
        assert summaries.accepted == []
        await run.press("escape", "escape")


async def test_before_there_is_a_summary_esc_stops_it_and_a_failure_is_a_line() -> None:
    async with running(workspace(gate=asyncio.Event())) as run:
        await run.command("/compact --preview")
        await run.shows("compacting")
        await run.press("escape")
        await run.shows("Compaction cancelled. Nothing was changed.")
        run.session.summaries.failure = "There is nothing older to summarise."
        await run.command("/compact --preview")
        await run.shows("nothing older to summarise. Nothing was changed.")
        await run.command("/compact --prewiev")
        await run.shows("/compact has the option --preview, not --prewiev.")
        assert run.session.log == []


async def test_what_waits_is_sent_after_the_decision() -> None:
    async with running(workspace(gate=asyncio.Event())) as run:
        await run.command("/compact --preview")
        await run.shows("compacting")
        run.chat.composer.value = "and then?"
        await run.press("enter")
        run.session.summaries.gate.set()
        await run.shows(KEYS)
        assert run.session.sent == []
        await run.press("ctrl+s")
        await run.until(lambda: run.session.sent == ["and then?"])
        assert run.session.summaries.accepted == ["Goal: fix the parser."]


@pytest.mark.slow
async def test_the_summary_in_force_is_changed_by_command_and_from_its_message() -> None:
    async with running(workspace()) as run:
        await run.command("/summary")
        await run.shows("There is no summary in force")
        run.session.summaries.in_force = found = standing()
        run.session.messages = [*run.session.messages, found.message]
        run.chat.transcript.append(found.message)
        await run.command("/summary")
        await run.shows("It stands for 142 messages", "ctrl+s keep this")
        await run.press("ctrl+r")  # there is nothing to ask for
        assert not run.app.screen.has_class("-asking")
        await run.press("ctrl+s")  # unchanged: nothing is written
        await run.until(lambda: not isinstance(run.app.screen, SummaryPanel))
        assert run.session.summaries.edited == []
        await run.press("alt+up", "e")
        await run.shows("It stands for 142 messages")
        await run.type("Boats. ")
        await run.press("ctrl+s")
        await run.shows("Edited the summary: 18,300 -> 18,900 tokens (+3 %)")
        assert run.session.summaries.edited == ["Boats. Goal: fix the parser."]
        assert "m300" in run.chat.transcript.document.index
        run.session.summaries.in_force = None
        await run.press("e")
        await run.shows("This summary is not in force any more.")


@pytest.mark.slow
async def test_leaving_the_program_keeps_the_text_for_the_next_run() -> None:
    async with running(workspace()) as run:
        await run.command("/compact --preview")
        await run.shows(KEYS)
        await run.type("mine ")
        assert await run.chat.leave() == ""
        assert run.workspace.prompts[-1] == "mine Goal: fix the parser."


@pytest.mark.slow
async def test_what_is_written_survives_a_kill_until_it_is_decided_on() -> None:
    async with running(workspace()) as run:
        await run.command("/compact --preview")
        await run.shows(KEYS)
        await run.type("mine ")
        await run.until(lambda: run.session.summaries.crashed == "mine Goal: fix the parser.")
        await run.press("ctrl+s")
        await run.until(lambda: run.session.summaries.crashed == "")
    async with running(workspace(crashed="mine")) as run:
        await run.shows("the up key brings its text into the prompt")
        await run.press("up")
        assert run.chat.composer.value == "mine"
        assert run.session.summaries.crashed == ""


async def test_control_characters_of_a_model_are_shown_and_act_on_nothing() -> None:
    async with running(workspace(texts=["a\x1b[31mred\x07 [bold]b[/bold]"])) as run:
        await run.command("/compact --preview")
        await run.shows("a␛[31mred␇ [bold]b[/bold]")
        await run.press("escape")


async def test_the_flag_is_offered_once_a_dash_is_typed() -> None:
    async with running() as run:
        await run.type("/compact ")
        await run.press("enter")
        await run.until(lambda: run.session.log == ["compact"])
        await run.type("/compact -")
        await run.shows("see and change the summary first")


async def test_what_was_compacted_is_found_on_screen() -> None:
    messages = [user(f"number {index} of the boats", f"m{index:02}") for index in range(40)]
    messages[1] = user("the cormorant sat on the crane", "m01")
    session = FakeSession(messages=messages, not_sent={f"m{index:02}": "compacted" for index in range(30)})
    async with running(FakeWorkspace(session), size=(80, 24)) as run:
        assert "cormorant" not in run.text
        await run.command("/find cormorant")
        await run.shows("the cormorant sat on the crane", "1 of 1")
