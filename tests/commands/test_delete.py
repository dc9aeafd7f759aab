"""`/delete`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands


async def test_it_leaves_the_list_and_comes_back(talk: Commands) -> None:
    old = talk.session.id
    assert await talk.completions("/delete u") == []
    assert await talk.output("/delete") == "'What is a boat?' is deleted. /delete undo restores it."
    assert talk.session.id != old and await talk.workspace.sessions() == []
    assert await talk.completions("/delete u") == ["/delete undo"]
    assert await talk.output("/delete undo") == "'What is a boat?' is restored."
    assert talk.session.id == old
    assert [info.id for info in await talk.workspace.sessions()] == [old]


async def test_there_has_to_be_something_to_delete_and_to_bring_back(commands: Commands) -> None:
    assert await commands.refusal("/delete") == "This conversation is empty."
    assert await commands.refusal("/delete undo") == "No conversation was deleted since chatctx started."
    assert "/delete undo" in await commands.refusal("/delete everything")
