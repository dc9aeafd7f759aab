"""`/new`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands


async def test_an_empty_conversation_is_opened_and_the_old_one_kept(talk: Commands) -> None:
    old = talk.session
    ui = await talk.run("/clear")
    assert ui.attached == [talk.session]
    assert talk.session.id != old.id and not talk.session.messages
    assert [info.id for info in await talk.workspace.sessions()] == [old.id]
