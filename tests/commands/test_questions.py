"""What MCP servers ask, asked through the `UI` port."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import ScriptedProvider, answer, open_workspace
from tests.commands.scripted_ui import ScriptedUI
from tui.commands import Chat
from tui.commands.questions import ask
from tui.providers.base import ProviderError
from tui.tools.mcp.questions import Field, FormQuestion, LinkQuestion, Question, Reply, Sampled, SampleQuestion
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
    assert await ask(ui, Chat(), question) == reply
    first = ui.questions[0]
    assert isinstance(first, view.Question)
    assert first.title == "The MCP server s asks"
    assert first.answers[0].key == "" and first.default is None  # doing nothing comes first, and is what a pipe gets


async def test_a_form_says_what_is_wrong_and_where_the_answer_goes() -> None:
    ui = ScriptedUI("answer", {"name": "Ann", "age": ""})
    await ask(ui, Chat(), form(NAME, AGE))
    question, shown = ui.questions
    assert isinstance(question, view.Question) and isinstance(shown, view.Form)
    assert "- Your name\n- Your age" in question.text and "Don't write passwords or keys" in question.text
    assert shown.submit is not None
    with pytest.raises(view.RejectedError, match="Your age: write a whole number"):
        await shown.submit({"name": "Ann", "age": "old"})


async def test_an_address_is_opened_only_when_the_person_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def there_is_none(url: str) -> bool:
        opened.append(url)
        return False

    monkeypatch.setattr("tui.commands.questions.open_in_browser", there_is_none)
    ui = ScriptedUI("open")
    assert await ask(ui, Chat(), LINK) == Reply("accept")
    assert opened == [LINK.url]
    assert "The address: https://pay.example/x?y=1" in ui.refusals[0]  # there is no browser
    (question,) = ui.questions
    assert isinstance(question, view.Question)
    assert "a page of pay.example:\nhttps://pay.example/x?y=1" in question.text


ASKED = SampleQuestion("s", "Be brief.", (("user", "What is it?"), ("assistant", "A thing."), ("user", "Which?")), 500)


async def test_sampling_is_an_approval_with_its_cost_and_is_billed(tmp_path: Path) -> None:
    provider = ScriptedProvider([answer("This one.")])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        ui = ScriptedUI("send")
        reply = await ask(ui, Chat(workspace, session), ASKED)
        assert reply == Reply("accept", sampled=Sampled("This one.", "m", "endTurn"))
        (question,) = ui.questions
        assert isinstance(question, view.Question)
        assert re.search(r"wants scripted/m to answer .* ~\d+ tokens in, at most 500 out", question.text)
        for part in ("unknown price", "system: Be brief.", "user: What is it?", "assistant: A thing."):
            assert part in question.text
        (request,) = provider.requests
        assert [message.text for message in request.messages] == ["What is it?", "A thing.", "Which?"]
        assert (request.tools, request.max_output) == ((), 500)
        (call,) = workspace.services.calls.rows(session.id)
        assert (call.kind, call.status, call.input_total is not None) == ("sampling", "success", True)
        assert session.messages == []


@pytest.mark.parametrize(("answered", "action"), [("", "cancel"), (None, "cancel"), ("decline", "decline")])
async def test_nothing_is_sampled_that_was_not_allowed(tmp_path: Path, answered: str | None, action: str) -> None:
    provider = ScriptedProvider([answer("never")])
    async with open_workspace(tmp_path, provider) as workspace:
        chat = Chat(workspace, await workspace.new_session())
        assert (await ask(ScriptedUI(answered), chat, ASKED)).action == action
    assert provider.requests == []


async def test_what_does_not_fit_is_never_sent_and_an_error_is_said(tmp_path: Path) -> None:
    provider = ScriptedProvider([[ProviderError("overloaded", "Try later.")]], window=8_000)
    async with open_workspace(tmp_path, provider) as workspace:
        chat = Chat(workspace, await workspace.new_session())
        await chat.session.set_window(8_000)
        ui = ScriptedUI()
        large = SampleQuestion("s", "", (("user", "a few words " * 5_000),), 500)
        reply = await ask(ui, chat, large)
        assert reply.sampled is None and " fit" in reply.problem
        assert ui.questions == [] and provider.requests == []
        ui = ScriptedUI("send")
        reply = await ask(ui, chat, ASKED)
        assert reply.problem == "the model's provider failed"
        assert "Try later." in ui.refusals[0]
