"""What commands show and ask, in lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from textual.content import Content

from tests.chat.fakes import ScriptedProvider, answer, drain, open_workspace
from tests.messages import assistant, user
from tui.chat.compaction.compactor import SummaryDraft
from tui.cli.plain import LISTED, PlainChat
from tui.views.view import Field, Form, Menu, Option, Question, RejectedError


class Person(PlainChat):
    """The chat of somebody who answers in turn; with `interactive` False it is a pipe."""

    def __init__(self, *answers: str, interactive: bool = True) -> None:
        nothing: Any = None
        super().__init__(nothing, nothing, nothing, interactive=interactive)
        self.answers = list(answers)
        self.questions: list[str] = []

    async def _answer(self, question: str) -> str:
        self.questions.append(question)
        return self.answers.pop(0)

    _text = _answer


def menu(*options: Option) -> Menu:
    async def source(_query: str) -> Sequence[Option]:
        return options

    return Menu("Boats", source, "/boat NAME", empty="no boats yet")


async def test_a_list_says_how_to_choose_from_it_and_asks_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    ui = Person()
    options = (Option("a", "a", "old", True), Option("b12345678", "Bounty \x1b[2J", name="b1"))
    assert await ui.choose(menu(*options)) is None
    *rows, usage = capsys.readouterr().out.splitlines()
    assert [row.split() for row in rows] == [["*", "a", "old"], ["b1", "Bounty", "[2J"]]
    assert usage == "* in use now. /boat NAME chooses one."
    await ui.choose(menu())
    assert capsys.readouterr().out == "No boats yet.\n"
    await ui.choose(menu(*[Option(str(number), "") for number in range(LISTED + 5)]))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == LISTED + 1 and lines[-1].endswith("5 more are not listed.")


QUESTION = Question(
    "Start them?", "rm -rf \x1b", (Option("", "Not now"), Option("yes", "Start", "now")), "Not started."
)


@pytest.mark.parametrize(("answer", "key"), [("yes", "yes"), ("YES", "yes"), ("", None), ("y", None)])
async def test_a_question_takes_one_of_its_answers(
    capsys: pytest.CaptureFixture[str], answer: str, key: str | None
) -> None:
    person = Person(answer)
    assert await person.confirm(QUESTION) == key
    assert person.questions == ["Start them? (yes, or Enter to cancel)"]
    assert capsys.readouterr().out == "rm -rf ␛\n  yes: Start, now\n"


async def test_a_pipe_agrees_to_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert await Person(interactive=False).confirm(QUESTION) is None
    told = capsys.readouterr()
    assert told.out == "rm -rf ␛\n" and told.err == "chatctx: Not started.\n"
    assert await Person(interactive=False).confirm(Question("Send?", "x", (Option("y", "Send"),), default="y")) == "y"


async def test_a_form_is_asked_line_by_line_and_says_how_it_went(capsys: pytest.CaptureFixture[str]) -> None:
    async def submit(values: Mapping[str, str]) -> str:
        if values["name"] == "bad":
            raise RejectedError("It sank.")
        return "It floats."

    fields = (Field("name", "Name", required=True), Field("key", "Key", "KEY", "none"), Field("x", "More", hint="none"))
    form = Form("A boat", "", fields, "try", "Nobody can be asked.", submit)
    person = Person("Bounty", "", "")
    assert await person.ask(form) == {"name": "Bounty", "key": "KEY", "x": ""}
    assert person.questions == ["Name:", "Key [KEY]:", "More (none):"]
    assert capsys.readouterr().out == "A boat.\nIt floats.\n"
    assert await Person("bad", "", "").ask(form) is None
    assert await Person("").ask(form) is None
    assert await Person(interactive=False).ask(form) is None
    assert capsys.readouterr().err.splitlines() == [
        "chatctx: It sank.", "chatctx: cancelled", "chatctx: Nobody can be asked.",
    ]  # fmt: skip


class Lines:
    """A view that is drawn with signs."""

    title = "Signs"

    async def lines(self, width: int) -> Sequence[Content]:
        return [Content("█ system ▾"), Content("· free")]


async def test_a_view_is_printed_without_the_signs_of_its_picture(capsys: pytest.CaptureFixture[str]) -> None:
    await Person().show(Lines())
    assert capsys.readouterr().out == "  system\n  free\n"


@pytest.fixture
async def preview(tmp_path: Any) -> Any:
    """The summary of a compaction that is not made yet."""
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        for number in range(12):
            await drain(session.send(f"Tell me about boat {number}. " + "It floats on water. " * 60))
        provider.script.append(answer("Goal: \x1b[2Jboats."))
        yield await session.compactor.draft_summary()


async def test_a_summary_is_read_out_and_accepted(preview: SummaryDraft, capsys: pytest.CaptureFixture[str]) -> None:
    person = Person("what?", "y")
    assert await person.edit(preview)
    assert person.questions[0] == "y compact with this, e write another one, n cancel:"
    assert preview.done is not None
    told = capsys.readouterr().out
    assert "Goal: ␛[2Jboats." in told and "The summary replaces" in told and "(next request " in told


async def test_the_persons_own_text_is_measured_before_it_counts(
    preview: SummaryDraft, capsys: pytest.CaptureFixture[str]
) -> None:
    person = Person("e", "far too long " * 4_000, "y", "e", "Boats, 9 gulls.", "y")
    assert await person.edit(preview)
    assert person.questions[2] == "e write another one, n cancel:"  # too long: a y is no answer
    assert preview.done is not None
    assert preview.done[1].text.endswith("Boats, 9 gulls.")
    assert capsys.readouterr().err


@pytest.mark.parametrize(("answers", "interactive"), [(["n"], True), ([""], True), ([], False)])
async def test_without_a_yes_nothing_changes(preview: SummaryDraft, answers: list[str], interactive: bool) -> None:
    assert not await Person(*answers, interactive=interactive).edit(preview)
    assert preview.done is None


def test_a_stored_conversation_is_introduced_by_what_was_said_last(capsys: pytest.CaptureFixture[str]) -> None:
    summary = user("Of boats.", id="m2", kind="summary")
    messages = [assistant("Nine boats.", id="m1"), summary]
    conversation = SimpleNamespace(memory=SimpleNamespace(notices=()), info=SimpleNamespace(title="boats"))
    session: Any = SimpleNamespace(provider="p", model="m", messages=messages, conversation=conversation)
    workspace: Any = SimpleNamespace(place=lambda _: "here")
    lines: Any = None
    PlainChat(workspace, session, lines, interactive=True).introduce()
    told = capsys.readouterr().out
    assert "Nine boats." in told
    assert "Of boats." not in told
