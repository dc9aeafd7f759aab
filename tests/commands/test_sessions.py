"""`/sessions`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands
from tui.commands.sessions import SessionMenu


async def test_a_conversation_is_chosen(conversation: Commands) -> None:
    old = conversation.session.id
    await conversation.run("/new")
    ui = await conversation.run("/sessions", old)
    assert conversation.session.id == old
    [menu] = ui.questions
    assert isinstance(menu, SessionMenu)
    [option] = await menu.source("")
    assert option.label == "What is a boat?" and option.name == old[-8:]


async def test_words_are_searched_for_and_an_id_opens_at_once(conversation: Commands) -> None:
    old = conversation.session.id
    await conversation.run("/new")
    [menu] = (await conversation.run("/resume nothing of this", None)).questions
    assert isinstance(menu, SessionMenu) and await menu.source("") == [] and menu.empty == "no matches"
    await conversation.run(f"/sessions {old[-8:]}")
    assert conversation.session.id == old


async def test_an_id_of_several_is_refused(conversation: Commands) -> None:
    from tests.chat.fakes import drain

    await conversation.run("/new")
    await drain(conversation.session.send("again"))
    common = conversation.session.id[:2]
    assert f"Several conversations have an id like {common!r}" in await conversation.refusal(f"/sessions {common}")
