"""`/new`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands


async def test_an_empty_conversation_is_opened_and_the_old_one_kept(conversation: Commands) -> None:
    old = conversation.session
    ui = await conversation.run("/clear")
    assert ui.attached == [conversation.session]
    assert conversation.session.id != old.id and not conversation.session.messages
    assert [info.id for info in await conversation.workspace.sessions()] == [old.id]
