"""`/compact --preview` and `/summary`: a summary to read and change before it counts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from textual.events import Key
from textual.widgets import TextArea

from tests.chat.fakes import Answer, answer
from tests.screens.conftest import Running, running
from tests.screens.scenarios import EchoProvider, Scenario, ident, long_scenario, user
from tests.screens.scenes import PLAN
from tests.usages import make_usage
from tui import commands
from tui.chat.compaction.compactor import SummaryDraft, SummaryEffect
from tui.providers.base import ProviderError
from tui.screens.summary import CONFIRM, SummaryPanel

pytestmark = pytest.mark.slow  # the whole program on a screen, most of a second each

KEYS = "ctrl+s compact with this"
GOAL = "Goal: fix the parser."


def scenario(*texts: str, script: Sequence[Answer] = (), **server: Any) -> Scenario:
    """A conversation that can be compacted; the model writes these summaries in turn."""
    answers = [*script, *(answer(text) for text in texts or (GOAL, GOAL, GOAL))]
    return long_scenario(server=EchoProvider(script=answers, **server))


def area(run: Running) -> TextArea:
    return run.app.screen.query_one(TextArea)


def current(run: Running) -> str:
    """The summary in force."""
    summary = run.session.compactor.current_summary()
    return summary.text if summary is not None else ""


@pytest.mark.slow
@pytest.mark.parametrize("size", [(120, 40), (60, 20), (40, 15)])
async def test_a_preview_shows_what_it_would_do_and_takes_what_was_written(size: tuple[int, int]) -> None:
    long = "Goal: 港町 " + "averylongword" * 20
    async with running(scenario(long), size=size) as run:
        await run.command("/compact --preview mind the gulls")
        await run.shows("Compaction preview", "replaces ", " -> ", "港町", "ctrl+s", "ctrl+r", "esc")
        assert "mind the gulls" in str(run.server.requests[-1].messages[-1])
        await run.type("Boats. ")
        await run.press("ctrl+s")
        await run.until(lambda: current(run) == f"Boats. {long}")
        assert not isinstance(run.app.screen, SummaryPanel)
        await run.idle()
        await run.shows("Compacted ", "summary of the earlier")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cleared": ()}, "replaces 142 messages, ~104,400 tokens; 2 of them stay as they are."),
        ({"cleared": (("m", "c"),), "kept": ()}, "replaces 142 messages and 1 old tool result, ~104,400 tokens."),
        (
            {"cleared": (("m", "c"), ("m", "d")), "kept": (), "source": PLAN.source[:1]},
            "1 message and 2 old tool results",
        ),
    ],
)
async def test_what_it_takes_the_place_of(changes: dict[str, Any], words: str) -> None:
    async with running() as run:
        draft = SummaryDraft(run.session.compactor, replace(PLAN, **changes), make_usage(121_400), "text", "stamp")
        assert words in draft.about(SummaryEffect(66, 121_400, 17_066))


async def test_figures_follow_the_text_and_what_is_refused_stays_to_be_changed() -> None:
    async with running(scenario()) as run:
        await run.command("/compact --preview")
        await run.shows("next request ", KEYS)
        area(run).insert("far too long " * 1_000, (0, 0))
        await run.shows("too long")
        await run.press("ctrl+s")
        await run.shows("too long")
        assert current(run) == ""
        assert area(run).text.startswith("far too long ")
        area(run).load_text("short")
        await run.shows(KEYS)
        await run.press("ctrl+s")
        await run.shows("Compacted ")
        assert current(run) == "short"


@pytest.mark.slow
async def test_esc_never_loses_a_changed_text_without_asking() -> None:
    async with running(scenario()) as run:
        await run.command("/compact --preview")
        await run.shows(KEYS)
        await run.press("escape")
        await run.shows("Not compacted. Nothing was changed.")  # nothing was written: nothing is asked

        await run.command("/compact --preview")
        await run.shows(KEYS)
        await run.type("mine ")
        await run.press("escape")
        await run.shows(CONFIRM)
        await run.press("left", "escape")  # the left key went on: it asks again
        await run.shows(CONFIRM)
        await run.press("right")
        await run.type("a")
        assert isinstance(run.app.screen, SummaryPanel)
        await run.shows(KEYS)
        await run.press("escape", "escape")
        await run.shows("Not compacted", "The up key puts their text")
        assert current(run) == ""
        await run.idle()
        await run.press("up")
        assert run.chat.composer.value == f"mine a{GOAL}"
        assert run.workspace.store.prompts()[-1] == run.chat.composer.value


@pytest.mark.slow
async def test_asking_again_has_instructions_and_the_own_text_can_be_had_back() -> None:
    async with running(scenario("first", "second")) as run:
        await run.command("/compact --preview")
        await run.shows("first")
        await run.type("mine ")
        await run.press("ctrl+r")
        await run.shows("Instructions for another summary")
        await run.press("escape")
        assert isinstance(run.app.screen, SummaryPanel)
        await run.press("ctrl+r")
        await run.type("gulls")
        await run.press("enter")
        await run.shows("second", "ctrl+z restores your text")
        assert "gulls" in str(run.server.requests[-1].messages[-1])
        area(run).focus()
        await run.press("ctrl+z")
        assert area(run).text == "mine first"
        await run.press("ctrl+s")
        await run.until(lambda: current(run) == "mine first")


@pytest.mark.slow
async def test_esc_stops_the_call_and_a_failed_one_leaves_the_text() -> None:
    async with running(scenario(GOAL)) as run:
        await run.command("/compact --preview")
        await run.shows(KEYS)
        await run.type("mine ")
        run.server.gate = asyncio.Event()
        await run.press("ctrl+r", "enter")
        await run.shows("writing another summary")
        await run.press("ctrl+s")  # not while it does
        await run.press("escape")
        await run.shows("Cancelled: the summary is as it was.")
        assert area(run).text == f"mine {GOAL}"
        run.server.gate = None
        run.server.script = [[ProviderError("not_found", "The server is down")]]
        await run.press("ctrl+r", "enter")
        await run.shows("The server is down")
        assert area(run).text == f"mine {GOAL}"
        assert current(run) == ""
        await run.press("escape", "escape")


async def test_a_call_that_fails_by_an_unexpected_error_leaves_the_panel_usable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(scenario()) as run:
        await run.command("/compact --preview")
        await run.shows(KEYS)
        monkeypatch.setattr(SummaryDraft, "ask", AsyncMock(side_effect=RuntimeError("odd")))
        await run.press("ctrl+r", "enter")
        await run.shows("odd")
        await run.press("escape")
        await run.until(lambda: run.app.screen is run.chat)


async def test_before_there_is_a_summary_esc_stops_it_and_a_failure_is_a_line() -> None:
    async with running(scenario(gate=asyncio.Event())) as run:
        await run.command("/compact --preview")
        await run.shows("compacting")
        await run.until(lambda: run.server.requested.is_set())
        await run.press("escape")
        await run.shows("Compaction cancelled. Nothing was changed.")
        run.server.script = [[ProviderError("not_found", "The server is down")]]
        await run.command("/compact --preview")
        await run.shows("The server is down. Nothing was changed.")


async def test_what_waits_is_sent_after_the_decision() -> None:
    async with running(scenario(gate=asyncio.Event())) as run:
        await run.command("/compact --preview")
        await run.shows("compacting")
        run.chat.composer.value = "and then?"
        await run.press("enter")
        assert run.server.gate is not None
        run.server.gate.set()
        await run.shows(KEYS)
        assert run.sent == []
        await run.press("ctrl+s")
        await run.until(lambda: run.sent == ["and then?"])
        assert current(run) == GOAL


@pytest.mark.slow
async def test_the_summary_in_force_is_changed_by_command_and_from_its_message() -> None:
    async with running(scenario()) as run:
        await run.command("/compact")
        await run.shows("summary of the earlier")
        await run.idle()
        before = run.session.messages[-1].id
        await run.command("/summary")
        await run.shows("It replaces ", "ctrl+s keep this")
        await run.press("ctrl+r")  # there is nothing to ask for
        assert isinstance(run.app.screen, SummaryPanel)
        await run.press("ctrl+s")  # unchanged: nothing is written
        await run.until(lambda: not isinstance(run.app.screen, SummaryPanel))
        assert run.session.messages[-1].id == before
        await run.press("alt+up", "e")
        await run.shows("It replaces ")
        await run.type("Boats. ")
        await run.press("ctrl+s")
        await run.shows("Edited the summary: ")
        assert current(run) == f"Boats. {GOAL}"
        assert run.session.messages[-1].id in run.chat.transcript.document.index
        run.chat.run_command(commands.parse("/summary")[0], before)
        await run.shows("This summary was replaced or undone.")


@pytest.mark.slow
async def test_leaving_the_program_keeps_the_text_for_the_next_run(tmp_path: Path) -> None:
    async with running(scenario(), folder=tmp_path) as run:
        await run.command("/compact --preview")
        await run.shows(KEYS)
        await run.type("mine ")
        assert await run.chat.leave() == ""
    async with running(scenario(), folder=tmp_path) as run:
        assert run.workspace.store.prompts()[-1] == f"mine {GOAL}"


async def test_letters_typed_just_before_it_is_accepted_are_part_of_it() -> None:
    async with running(scenario()) as run:
        await run.command("/compact --preview")
        await run.shows(KEYS)
        for key in (*"mine", "ctrl+s"):
            run.app.post_message(Key(key, key if len(key) == 1 else None))
        await run.shows("Compacted ")
        await run.idle()
        summary = next(message for message in run.session.messages if message.kind == "summary")
        assert "mineGoal" in summary.text


@pytest.mark.slow
async def test_what_is_written_survives_a_kill_until_it_is_decided_on() -> None:
    async with running(scenario()) as run:
        await run.command("/compact --preview")
        await run.shows(KEYS)
        await run.type("mine ")
        stored = ""
        while stored != f"mine {GOAL}":
            await run.pilot.pause(0.05)
            stored = await run.session.compactor.saved_draft()
        await run.press("ctrl+s")
        await run.shows("Compacted ")
        await run.idle()
        assert await run.session.compactor.saved_draft() == ""
        await run.session.compactor.save_draft("mine")
        await run.command("/new")
        await run.shows("new conversation")
        await run.chat.attach(await run.workspace.resume("s1"))
        await run.shows("the up key puts its text into the prompt")
        await run.press("up")
        assert run.chat.composer.value == "mine"
        assert await run.session.compactor.saved_draft() == ""


async def test_control_characters_of_a_model_are_shown_and_act_on_nothing() -> None:
    async with running(scenario("a\x1b[31mred\x07 [bold]b[/bold]")) as run:
        await run.command("/compact --preview")
        await run.shows("a␛[31mred␇ [bold]b[/bold]")
        await run.press("escape")


async def test_the_flag_is_offered_once_a_dash_is_typed() -> None:
    async with running(scenario()) as run:
        await run.type("/compact ")
        await run.press("enter")
        await run.shows("Compacted ")
        await run.type("/compact -")
        await run.shows("edit the summary before")


async def test_what_was_compacted_is_found_on_screen() -> None:
    messages = [user(f"number {index} of the boats", f"m{index:02}") for index in range(40)]
    messages[1] = user("the cormorant sat on the crane", "m01")
    not_sent = {ident(f"m{index:02}"): "compacted" for index in range(30)}
    async with running(Scenario(messages=messages, not_sent=not_sent), size=(80, 24)) as run:
        assert "cormorant" not in run.text
        await run.command("/find cormorant")
        await run.shows("the cormorant sat on the crane", "1 of 1")
