"""`/model`."""

from __future__ import annotations

import pytest

from tests.chat.fakes import ScriptedProvider, answer, drain, of
from tests.commands.scripted_ui import Commands
from tui.chat.conversation.events import CompactionFinished
from tui.commands.model import ANYWAY, COMPACT, STAY
from tui.context.estimate.calibration import Calibration
from tui.messages import Attachment
from tui.providers.base import Capabilities, ProviderError
from tui.views.view import Question


async def test_a_model_is_chosen_from_the_list(commands: Commands) -> None:
    ui = await commands.run("/model", "scripted/small")
    assert ui.output == ["scripted/small is the model from now on."]
    assert ui.progress_texts == ["asking about scripted/small", ""] and ui.changes == 1
    assert (await commands.run("/model", None)).output == []


async def test_a_model_is_named_without_its_provider(commands: Commands) -> None:
    assert await commands.output("/m small") == "scripted/small is the model from now on."
    assert (commands.session.provider, commands.session.model) == ("scripted", "small")


async def test_a_name_may_have_two_dashes(commands: Commands) -> None:
    name = "scripted/models--org--name.gguf"
    assert await commands.output(f"/model {name}") == f"{name} is the model from now on."
    assert await commands.output(f"/model --anyway {name}") == f"{name} is the model from now on."
    assert await commands.refusal(f"/model {name} --now") == "/model has the options --compact and --anyway, not --now."


@pytest.mark.parametrize(
    ("command", "words"), [("/model nope/x", "Unknown provider 'nope'"), ("/mcp off zz", "There is no MCP server 'zz'")]
)
async def test_what_does_not_exist_is_refused_not_reported_as_an_error(
    commands: Commands, command: str, words: str
) -> None:
    refusal = await commands.refusal(command)
    assert refusal.startswith(words) and refusal.endswith((".", "?"))


@pytest.fixture
async def tight(long_conversation: Commands) -> Commands:
    """A conversation that does not fit the model "small"."""
    return long_conversation


@pytest.mark.parametrize("answered", [STAY, None])
async def test_a_window_too_small_is_asked_about_first(tight: Commands, answered: str | None) -> None:
    ui = await tight.run("/model small", answered)
    [question] = ui.questions
    assert isinstance(question, Question)
    assert "tokens to scripted/small, whose window of 2,000 takes" in question.text
    assert "/model scripted/small --compact summarises it first, with scripted/m" in question.otherwise
    assert tight.session.model == "m" and ui.output == []


@pytest.mark.parametrize(("line", "answers"), [("/model small", [ANYWAY]), ("/model small --anyway", [])])
async def test_it_switches_anyway(tight: Commands, line: str, answers: list[str]) -> None:
    assert await tight.output(line, *answers) == "scripted/small is the model from now on."
    assert tight.session.model == "small"


@pytest.mark.parametrize(("line", "answers"), [("/model small", [COMPACT]), ("/model small --compact", [])])
async def test_the_present_model_summarises_first(
    tight: Commands, provider: ScriptedProvider, line: str, answers: list[str]
) -> None:
    provider.script.append(answer("Boats."))
    ui = await tight.run(line, *answers)
    assert of(CompactionFinished, ui.events)
    assert provider.requests[-1].model == "m" and tight.session.model == "small"


async def test_what_is_no_option_and_no_model_is_refused(conversation: Commands) -> None:
    assert "--compact and --anyway, not --foo" in await conversation.refusal("/model small --foo")
    assert "Unknown provider 'no'" in await conversation.refusal("/model no/x")
    assert conversation.session.model == "m"


async def test_what_the_model_does_not_take_is_named(commands: Commands, provider: ScriptedProvider) -> None:
    provider.able = Capabilities(images=False)
    picture = Attachment("image", "boat.png", "image/png", "0" * 64, 9, width=3, height=2)
    await drain(commands.session.send("look", [picture]))
    assert "takes no images: boat.png stays here and is not sent to it" in await commands.output(
        "/model small --anyway"
    )


async def test_models_are_completed_as_they_were_listed_last(commands: Commands) -> None:
    await commands.workspace.model_list.ask()
    assert "/model scripted/small" in await commands.completions("/model small")


async def test_what_was_learned_of_a_model_is_told_and_forgotten(
    commands: Commands, provider: ScriptedProvider
) -> None:
    nothing = "Nothing was learned about scripted/m."
    assert await commands.output("/model learned") == nothing
    provider.script += [[ProviderError("bad_request", "m does not support images")], answer("So.")]
    await drain(commands.session.send("look"))
    learned = "It refused images: text is sent in their place"
    assert await commands.output("/model learned") == f"Learned about scripted/m: {learned}. /model forget forgets it."
    assert await commands.output("/model forget") == f"Forgotten about scripted/m: {learned}."
    assert await commands.output("/model learned") == nothing


async def test_how_a_model_is_measured_is_told_and_forgotten(commands: Commands) -> None:
    """What was set stays; the number is an estimate again."""
    await commands.output("/window 32k")
    session = commands.session
    await drain(session.send("look"))
    learned = Calibration().learn_excess(700, sure=True)
    commands.workspace.services.estimator.calibrations.put("scripted", "m", learned)
    adds = "Its server adds about 700 tokens to every request"
    assert await commands.output("/model learned") == f"Learned about scripted/m: {adds}. /model forget forgets it."
    assert await commands.output("/model forget") == f"Forgotten about scripted/m: {adds}."
    assert await commands.output("/model learned") == "Nothing was learned about scripted/m."
    assert session.usage is not None and session.usage.source == "estimated"
    assert session.usage.limits.context == 32_000
