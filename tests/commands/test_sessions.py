"""`/sessions`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands
from tui.commands.sessions import SessionMenu


async def test_a_conversation_is_chosen(talk: Commands) -> None:
    old = talk.session.id
    await talk.run("/new")
    ui = await talk.run("/sessions", old)
    assert talk.session.id == old
    [menu] = ui.questions
    assert isinstance(menu, SessionMenu)
    [option] = await menu.source("")
    assert option.label == "What is a boat?" and option.name == old[-8:]


async def test_words_are_searched_for_and_an_id_opens_at_once(talk: Commands) -> None:
    old = talk.session.id
    await talk.run("/new")
    [menu] = (await talk.run("/resume nothing of this", None)).questions
    assert isinstance(menu, SessionMenu) and await menu.source("") == [] and menu.empty == "no matches"
    await talk.run(f"/sessions {old[-8:]}")
    assert talk.session.id == old


async def test_an_id_of_several_is_refused(talk: Commands) -> None:
    from tests.chat.fakes import drain

    await talk.run("/new")
    await drain(talk.session.send("again"))
    common = talk.session.id[:2]
    assert f"Several conversations have an id like {common!r}" in await talk.refusal(f"/sessions {common}")
