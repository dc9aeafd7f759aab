"""`/summary`."""

from __future__ import annotations

import pytest

from tests.chat.fakes import ScriptedProvider, answer, of
from tests.commands.scripted_ui import Commands, ScriptedUI
from tui import commands as slash
from tui.chat.conversation.events import MessageAdded, Notice


@pytest.fixture
async def compacted(long_conversation: Commands, provider: ScriptedProvider) -> Commands:
    """A conversation with a summary in force."""
    provider.script.append(answer("Goal: learn about boats."))
    await long_conversation.run("/compact")
    return long_conversation


async def test_the_summary_in_force_is_changed(compacted: Commands) -> None:
    ui = await compacted.run("/summary", "Boats and gulls.")
    [added] = of(MessageAdded, ui.events)
    assert added.message.text.endswith("Boats and gulls.")
    [notice] = of(Notice, ui.events)
    assert notice.text.startswith("Edited the summary:")
    current = compacted.session.compactor.current_summary()
    assert current is not None and current.text == "Boats and gulls."


async def test_left_as_it_is_nothing_is_said(compacted: Commands) -> None:
    for answered in (None, "Goal: learn about boats."):
        ui = await compacted.run("/summary", answered)
        assert ui.events == [] and ui.output == [] and ui.refusals == []


async def test_without_one_it_says_how_to_make_one(conversation: Commands) -> None:
    assert "/compact makes one" in await conversation.refusal("/summary")
    ui = ScriptedUI()
    await slash.run(slash.parse("/summary")[0], ui, conversation.chat, conversation.session.messages[0].id)
    assert ui.refusals == ["This summary was replaced or undone."]
    with pytest.raises(slash.CommandError, match="takes no argument"):
        slash.parse("/summary it")
