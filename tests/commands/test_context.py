"""`/context`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands, printed


async def test_it_shows_the_next_request(talk: Commands) -> None:
    [view] = (await talk.run("/context")).views
    text = await printed(view)
    usage = await talk.session.refresh_usage()
    assert f"{usage.total:,} / 8,000 tokens" in text
    assert "next request, as it would be sent" in text and "basis" in text


async def test_looking_changes_nothing(talk: Commands) -> None:
    before = (list(talk.session.messages), talk.session.usage)
    ui = await talk.run("/ctx")
    await printed(ui.views[0])
    assert (list(talk.session.messages), talk.session.usage) == before
    assert ui.changes == 0
