"""`/undo`."""

from __future__ import annotations

from tests.chat.fakes import ScriptedProvider, answer
from tests.commands.scripted_ui import Commands


async def test_a_compaction_is_taken_back(long_conversation: Commands, provider: ScriptedProvider) -> None:
    provider.script.append(answer("Goal: learn about boats."))
    await long_conversation.run("/compact")
    assert long_conversation.session.conversation.not_sent()
    ui = await long_conversation.run("/undo")
    assert len(ui.output) == 1 and ui.changes == 1
    assert long_conversation.session.compactor.current_summary() is None


async def test_without_one_it_says_so(conversation: Commands) -> None:
    assert await conversation.refusal("/undo") == "There is no compaction to undo."
