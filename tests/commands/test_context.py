"""`/context`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands, printed


async def test_it_shows_the_next_request(conversation: Commands) -> None:
    [view] = (await conversation.run("/context")).views
    text = await printed(view)
    usage = await conversation.session.refresh_usage()
    assert f"{usage.total:,} / 8,000 tokens" in text
    assert "next request, as it would be sent" in text and "basis" in text


async def test_looking_changes_nothing(conversation: Commands) -> None:
    before = (list(conversation.session.messages), conversation.session.usage)
    ui = await conversation.run("/ctx")
    await printed(ui.views[0])
    assert (list(conversation.session.messages), conversation.session.usage) == before
    assert ui.changes == 0
