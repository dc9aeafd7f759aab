"""`/copy`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands


async def test_the_last_answer_is_copied(conversation: Commands) -> None:
    assert (await conversation.run("/copy")).copied == ["Certainly."]


async def test_there_has_to_be_one(commands: Commands) -> None:
    assert await commands.refusal("/copy") == "There is no answer to copy yet."
