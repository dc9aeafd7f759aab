"""Questions with answers: what agrees to a text waits for its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.screens.conftest import running
from tests.screens.scenarios import Scenario
from tui.screens.base import LongText, Panel
from tui.screens.lists import Picker
from tui.screens.pager import Pager
from tui.screens.question import FormPanel, QuestionPanel
from tui.views.view import Field, Form, Menu, Option, Question

ANSWERS = (Option("", "Not now"), Option("yes", "Start them"))


async def test_a_text_is_agreed_to_once_its_end_was_on_screen_and_declined_at_once() -> None:
    question = Question("Start?", "a harmless server\n" * 25 + "rm -r everything", ANSWERS, must_read=("yes",))
    answers: list[str | None] = []
    async with running(Scenario(), size=(60, 20)) as run:
        run.app.push_screen(QuestionPanel(question), answers.append)
        await run.shows("page down first")
        await run.press("down", "enter")
        assert answers == [] and "rm -r" not in run.text
        while "rm -r everything" not in run.text:
            await run.press("pagedown")
        await run.press("enter")
        await run.until(lambda: answers == ["yes"])
        for text, keys in (("short", ("down", "enter")), ("long\n" * 25, ("enter",))):
            run.app.push_screen(QuestionPanel(Question("Start?", text, ANSWERS, must_read=("yes",))), answers.append)
            await run.shows("Start?", "Not now")
            await run.press(*keys)
        assert answers == ["yes", "yes", ""]


async def test_answers_are_aligned_where_a_wider_terminal_has_room() -> None:
    answers = (Option("a", "Switch", "now"), Option("b", "Summarise first", "then switch"))
    async with running(Scenario(), size=(60, 20)) as run:
        run.app.push_screen(QuestionPanel(Question("Which?", "text", answers)))
        await run.shows("Switch  now")
        await run.resize(100, 20)
        await run.shows("Switch           now", "Summarise first  then switch")


@pytest.mark.slow
async def test_a_text_of_megabytes_is_shown_by_its_ends() -> None:
    text = "begin\n" + "x" * 3_000_000 + "\nthe end"
    async with running(Scenario(), size=(60, 20)) as run:
        panel = QuestionPanel(Question("Start?", text, ANSWERS, must_read=("yes",)))
        run.app.push_screen(panel)
        await run.shows("begin")
        panel.query_one(LongText).scroll_end(animate=False)
        await run.shows("the end", "page down more")
        assert panel.query_one(LongText).virtual_size.height < 2_500


MARKUP = "[b]x[/b] [@click=app.quit]y[/] [/] [$z \\[ ["


async def nothing(_query: str) -> Sequence[Option]:
    return ()


@pytest.mark.slow
async def test_names_on_the_edge_of_a_panel_are_no_markup() -> None:
    panels: tuple[Panel[Any], ...] = (
        QuestionPanel(Question(MARKUP, MARKUP, (Option("", MARKUP, MARKUP),))),
        FormPanel(Form(MARKUP, MARKUP, (Field("a", MARKUP, MARKUP, MARKUP),), "send", ""), lambda _text: None),
        Picker(Menu(MARKUP, nothing, "")),
        Pager(((MARKUP, MARKUP),)),
    )
    async with running(Scenario(), size=(100, 30)) as run:
        for panel in panels:
            run.app.push_screen(panel)
            await run.shows(MARKUP)
            assert run.text.split("\n")[0].count(MARKUP) or run.text.split("\n")[2].count(MARKUP)
            await run.press("escape")
