"""Choosing a model: the list, and what happens when its window is too small."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.screens.conftest import SIZES, Running, running
from tests.screens.scenarios import EchoProvider, Model, Scenario, long_scenario
from tui.chat.turn.session import ChatSession
from tui.context.usage.limits import ModelLimits
from tui.providers.base import Capabilities, ModelInfo
from tui.screens.lists import ModelPicker
from tui.views.models import about_model

pytestmark = pytest.mark.slow  # the whole program on a screen, most of a second each

PRICED = (
    ("anthropic", Model("claude-x", ModelLimits(200_000, source="probe", detail="models API"), (3.0, 15.0))),
    ("lab", Model("mystery")),
)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
async def test_the_list_as_it_was_is_there_before_anybody_answers(size: tuple[int, int]) -> None:
    async with running(Scenario(models=PRICED), size=size) as run:
        run.models.gate, run.models.problems = asyncio.Event(), ("lab: no answer",)
        await run.command("/model")
        await run.shows("anthropic/claud", "200k", "$3/$15", "lab/mystery", "as of 2 d ago")
        await run.press("down")
        run.models.current = (*PRICED, ("lab", Model("fresh", ModelLimits(8_192, source="probe"))))
        run.models.gate.set()
        await run.shows("lab/fresh", "lab: no answer")
        assert "as of" not in run.text
        await run.press("enter")  # what was under the cursor still is
        await run.until(lambda: run.model == "lab/mystery")


async def test_what_is_known_of_a_model_stands_below_the_list() -> None:
    async with running(Scenario(models=PRICED)) as run:
        await run.command("/model")
        await run.shows("images, PDFs, tools: ?", "reasoning is not sent back", "no counting endpoint")


async def test_the_model_in_use_is_under_the_cursor_also_where_the_list_as_it_was_did_not_have_it() -> None:
    async with running(Scenario(models=PRICED[1:])) as run:
        run.models.gate = asyncio.Event()
        await run.command("/model")
        await run.shows("lab/mystery")
        run.models.current = (PRICED[1], PRICED[0])
        run.models.gate.set()
        await run.shows("● anthropic/claude-x")
        picker = run.app.screen
        assert isinstance(picker, ModelPicker)
        await run.until(lambda: picker.cursor == 1)


def test_what_a_model_lacks_and_when_it_was_used_in_words() -> None:
    able = Capabilities()
    info = ModelInfo("m", images=False, tools=False, pdfs=True)
    assert about_model(info, able, "used just now") == (
        "takes PDFs · takes no images or tools · reasoning is not sent back · no counting endpoint · used just now"
    )
    assert "counting endpoint: ?" in about_model(info, Capabilities(count_endpoint=None), "")


def narrow(window: int | None = 3_000, **values: Any) -> Scenario:
    """A conversation of some 3,300 tokens, and a model "smol" with a smaller window."""
    return long_scenario(server=EchoProvider(windows={"smol": window}), **values)


async def offer_smaller_model(run: Running) -> None:
    await run.command("/model smol")
    await run.shows("A smaller window", "3,000", "Summarise first", "Switch anyway", "Stay")
    assert run.model == "anthropic/claude-x"


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
async def test_summarise_first(size: tuple[int, int]) -> None:
    async with running(narrow(), size=size) as run:
        await offer_smaller_model(run)
        await run.press("enter")
        await run.shows("Compacted ")
        await run.idle()
        assert run.model == "local/smol"
        assert run.text.splitlines()[0].rstrip().endswith("smol")


@pytest.mark.parametrize(
    ("keys", "model"),
    [
        (("down", "enter"), "local/smol"),
        (("escape",), "anthropic/claude-x"),
        (("down", "down", "enter"), "anthropic/claude-x"),
    ],
)
async def test_switch_anyway_or_stay(keys: tuple[str, ...], model: str) -> None:
    async with running(narrow()) as run:
        await offer_smaller_model(run)
        await run.press(*keys)
        await run.until(lambda: run.app.screen is run.chat and run.model == model)


@pytest.mark.slow
@pytest.mark.parametrize(("rolling", "words"), [(True, "old content is left out"), (False, "in parts")])
async def test_the_question_says_what_happens_otherwise(rolling: bool, words: str) -> None:
    async with running(narrow(rolling=rolling)) as run:
        await run.command("/model smol")
        await run.shows(words)


@pytest.mark.slow
@pytest.mark.parametrize("window", [None, 200_000])
async def test_no_question_where_the_window_is_unknown_or_large_enough(window: int | None) -> None:
    async with running(narrow(window)) as run:
        await run.command("/model smol")
        await run.shows("local/smol is the model from now on.")


async def test_a_message_sent_while_the_server_is_asked_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = asyncio.Event()
    measured = ChatSession.measured_for

    async def slowly(self: ChatSession, name: str) -> object:
        await gate.wait()
        return await measured(self, name)

    monkeypatch.setattr(ChatSession, "measured_for", slowly)
    async with running(narrow()) as run:
        await run.command("/model smol")
        await run.shows("asking about smol")
        run.server.gate = asyncio.Event()
        await run.command("a question")
        await run.until(lambda: run.sent == ["a question"])
        gate.set()
        await run.shows("an answer is under way")
        run.server.gate.set()
        assert run.model == "anthropic/claude-x"


async def test_enter_right_behind_a_search_takes_what_was_searched_for() -> None:
    async with running() as run:
        await run.command("/model")
        await run.shows("local/smol")
        await run.press(*"gpt", "enter")  # faster than the list
        await run.until(lambda: run.model == "openai/gpt-x")


@pytest.mark.slow
async def test_of_hundreds_of_models_the_first_are_shown_and_all_are_searched() -> None:
    many = tuple(("openrouter", Model(f"vendor/model-{number}")) for number in range(400))
    async with running(Scenario(models=many)) as run:
        await run.command("/model")
        await run.shows("vendor/model-0", "340 more: type to search   enter choose   esc close")
        await run.type("399")
        await run.shows("openrouter/vendor/model-399", "enter choose")
