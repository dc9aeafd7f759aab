"""`/undo`."""

from __future__ import annotations

from tests.chat.fakes import ScriptedProvider, answer
from tests.commands.scripted_ui import Commands


async def test_a_compaction_is_taken_back(long_talk: Commands, provider: ScriptedProvider) -> None:
    provider.script.append(answer("Goal: learn about boats."))
    await long_talk.run("/compact")
    assert long_talk.session.conversation.not_sent()
    ui = await long_talk.run("/undo")
    assert len(ui.output) == 1 and ui.changes == 1
    assert long_talk.session.summaries.current() is None


async def test_without_one_it_says_so(talk: Commands) -> None:
    assert await talk.refusal("/undo") == "There is no compaction to undo."
