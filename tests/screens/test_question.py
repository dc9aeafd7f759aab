"""Questions with answers: what agrees to a text waits for its end."""

from __future__ import annotations

from tests.screens.conftest import running
from tests.screens.talks import Talk
from tui.screens.question import QuestionPanel
from tui.views.view import Option, Question

ANSWERS = (Option("", "Not now"), Option("yes", "Start them"))


async def test_nothing_is_agreed_to_before_the_end_of_its_text_was_on_screen() -> None:
    question = Question("Start?", "a harmless server\n" * 60 + "rm -r everything", ANSWERS, must_read=("yes",))
    answers: list[str | None] = []
    async with running(Talk(), size=(60, 20)) as run:
        run.app.push_screen(QuestionPanel(question), answers.append)
        await run.shows("page down first")
        await run.press("down", "enter")
        assert answers == [] and "rm -r" not in run.text
        while "rm -r everything" not in run.text:
            await run.press("pagedown")
        await run.press("enter")
        await run.until(lambda: answers == ["yes"])


async def test_a_short_text_is_answered_at_once_and_no_text_has_to_be_read_to_decline() -> None:
    answers: list[str | None] = []
    async with running(Talk(), size=(60, 20)) as run:
        for text, keys in (("short", ("down", "enter")), ("long\n" * 60, ("enter",))):
            run.app.push_screen(QuestionPanel(Question("Start?", text, ANSWERS, must_read=("yes",))), answers.append)
            await run.shows("Start?", "Not now")
            await run.press(*keys)
    assert answers == ["yes", ""]
