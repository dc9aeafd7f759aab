"""`/rename`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands


async def test_the_conversation_gets_a_title(conversation: Commands) -> None:
    ui = await conversation.run("/rename All about boats")
    assert ui.output == ["This conversation is called All about boats."] and ui.changes == 1
    assert conversation.session.conversation.info.title == "All about boats"


async def test_without_a_title_it_is_refused(conversation: Commands) -> None:
    assert await conversation.refusal("/rename") == "/rename needs a title."


async def test_a_pasted_text_becomes_a_short_title(conversation: Commands) -> None:
    ui = await conversation.run("/rename " + "boats " * 200_000)
    assert len(conversation.session.conversation.info.title) == 200 and len(ui.output[0]) < 300
