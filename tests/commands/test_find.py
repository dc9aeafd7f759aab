"""`/find`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands


async def test_on_a_screen_it_goes_from_match_to_match(talk: Commands) -> None:
    assert talk.screen is not None
    talk.screen.matches = (2, 3)
    assert await talk.output("/find boat") == "2 of 3   /find for the next one"
    await talk.run("/search")
    assert talk.screen.searched == ["boat", ""]


async def test_what_is_not_there_is_said(talk: Commands) -> None:
    assert await talk.refusal("/find gulls") == "'gulls' is not in this conversation."
    assert await talk.refusal("/find") == "/find needs words to look for."


async def test_in_lines_the_matches_are_listed(talk: Commands) -> None:
    talk.screen = None
    assert await talk.output("/find BOAT") == "user: What is a boat?\n1 line."
    assert await talk.refusal("/find gulls") == "'gulls' is not in this conversation."
    assert await talk.refusal("/find") == "/find needs words to look for."
