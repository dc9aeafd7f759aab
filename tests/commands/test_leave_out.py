"""`/leave-out`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands


async def test_the_last_turn_leaves_what_is_sent_and_comes_back(conversation: Commands) -> None:
    before = await conversation.session.refresh_usage()
    sent = [message.id for message in conversation.session.messages]
    line = await conversation.output("/leave-out")
    after = await conversation.session.refresh_usage()
    assert f": ~{before.total - after.total:,} tokens less" in line  # the difference of two estimates
    assert before.total > after.total
    not_sent = conversation.session.conversation.not_sent()
    assert set(not_sent.values()) == {"excluded"} and not_sent.keys() <= set(sent)
    assert "is sent again" in await conversation.output("/leave-out")
    assert (await conversation.session.refresh_usage()).total == before.total


async def test_of_a_turn_that_is_not_sent_any_more_it_says_why(conversation: Commands) -> None:
    await conversation.session.rewind(conversation.session.messages[0].id)
    before = dict(conversation.session.conversation.not_sent())
    ui = await conversation.run("/leave-out")
    assert "set aside when you went back" in ui.refusals[0]
    assert conversation.session.conversation.not_sent() == before


async def test_without_a_turn_it_says_so(commands: Commands) -> None:
    ui = await commands.run("/leave-out")
    assert "no turn to leave out" in ui.refusals[0]
