"""`/delete`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands


async def test_it_leaves_the_list_and_comes_back(conversation: Commands) -> None:
    old = conversation.session.id
    assert await conversation.completions("/delete u") == []
    assert await conversation.output("/delete") == "'What is a boat?' is deleted. /delete undo restores it."
    assert conversation.session.id != old and await conversation.workspace.sessions() == []
    assert await conversation.completions("/delete u") == ["/delete undo"]
    assert await conversation.output("/delete undo") == "'What is a boat?' is restored."
    assert conversation.session.id == old
    assert [info.id for info in await conversation.workspace.sessions()] == [old]


async def test_there_has_to_be_something_to_delete_and_to_bring_back(commands: Commands) -> None:
    assert await commands.refusal("/delete") == "This conversation is empty."
    assert await commands.refusal("/delete undo") == "No conversation was deleted since chatctx started."
    assert "/delete undo" in await commands.refusal("/delete everything")
