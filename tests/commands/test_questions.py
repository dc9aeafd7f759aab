"""What MCP servers ask, asked through the `UI` port."""

from __future__ import annotations

from typing import Any

import pytest

from tests.commands.scripted_ui import ScriptedUI
from tui.commands.questions import ask
from tui.tools.mcp.questions import Field, FormQuestion, LinkQuestion, Question, Reply
from tui.views import view

NAME, AGE = Field("name", "Your name", required=True), Field("age", "Your age", "integer")
COLOUR = Field("colour", "A colour", options=(("r", "Red"), ("g", "Green")), required=True)


def form(*fields: Field) -> FormQuestion:
    return FormQuestion("s", "Please say", fields)


LINK = LinkQuestion("s", "Pay here", "https://pay.example/x?y=1")


@pytest.mark.parametrize(
    ("question", "answers", "reply"),
    [
        (form(NAME, AGE), ["answer", {"name": "Ann", "age": "7"}], Reply("accept", {"name": "Ann", "age": 7})),
        (form(NAME), ["answer", {"name": "Ann"}], Reply("accept", {"name": "Ann"})),
        (form(NAME), ["answer", None], Reply("cancel")),
        (form(NAME), [""], Reply("cancel")),
        (form(NAME), [None], Reply("cancel")),
        (form(NAME), ["decline"], Reply("decline")),
        (form(COLOUR), ["2"], Reply("accept", {"colour": "g"})),
        (form(COLOUR), ["decline"], Reply("decline")),
        (form(COLOUR), [None], Reply("cancel")),
        (form(Field("sure", "Sure?", "boolean", required=True)), ["no"], Reply("accept", {"sure": False})),
        (form(), ["yes"], Reply("accept", {})),
        (LINK, ["done"], Reply("accept")),
        (LINK, ["decline"], Reply("decline")),
        (LINK, [""], Reply("cancel")),
    ],
)
async def test_the_answer_is_the_persons(question: Question, answers: list[Any], reply: Reply) -> None:
    ui = ScriptedUI(*answers)
    assert await ask(ui, question) == reply
    first = ui.asked[0]
    assert isinstance(first, view.Question)
    assert first.title == "The MCP server s asks"
    assert first.answers[0].key == "" and first.default is None  # doing nothing comes first, and is what a pipe gets


async def test_a_form_says_what_is_wrong_and_where_the_answer_goes() -> None:
    ui = ScriptedUI("answer", {"name": "Ann", "age": ""})
    await ask(ui, form(NAME, AGE))
    question, asked = ui.asked
    assert isinstance(question, view.Question) and isinstance(asked, view.Form)
    assert "- Your name\n- Your age" in question.text and "Don't write passwords or keys" in question.text
    assert asked.submit is not None
    with pytest.raises(view.RejectedError, match="Your age: write a whole number"):
        await asked.submit({"name": "Ann", "age": "old"})


async def test_an_address_is_opened_only_when_the_person_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def there_is_none(url: str) -> bool:
        opened.append(url)
        return False

    monkeypatch.setattr("tui.commands.questions.open_in_browser", there_is_none)
    ui = ScriptedUI("open")
    assert await ask(ui, LINK) == Reply("accept")
    assert opened == [LINK.url]
    assert "The address: https://pay.example/x?y=1" in ui.refused[0]  # there is no browser
    (question,) = ui.asked
    assert isinstance(question, view.Question)
    assert "a page of pay.example:\nhttps://pay.example/x?y=1" in question.text
