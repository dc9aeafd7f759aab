"""`/retry`."""

from __future__ import annotations

from tests.chat.fakes import ScriptedProvider, answer, of
from tests.commands.scripted_ui import Commands
from tui.chat.conversation.events import ReplyFinished, TurnFailed


async def test_the_last_answer_is_asked_for_again(conversation: Commands, provider: ScriptedProvider) -> None:
    provider.script.append(answer("A floating thing."))
    [reply] = of(ReplyFinished, (await conversation.run("/retry")).events)
    assert reply.message.text == "A floating thing."


async def test_without_a_question_it_says_so(commands: Commands) -> None:
    [failed] = of(TurnFailed, (await commands.run("/retry")).events)
    assert "nothing to retry" in failed.text
