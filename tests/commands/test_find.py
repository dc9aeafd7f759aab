"""`/find`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands


async def test_on_a_screen_it_goes_from_match_to_match(conversation: Commands) -> None:
    assert conversation.screen is not None
    conversation.screen.matches = (2, 3)
    assert await conversation.output("/find boat") == "2 of 3   /find for the next one"
    await conversation.run("/search")
    assert conversation.screen.searched == ["boat", ""]


async def test_what_is_not_there_is_said(conversation: Commands) -> None:
    assert await conversation.refusal("/find gulls") == "'gulls' is not in this conversation."
    assert await conversation.refusal("/find") == "/find needs words to look for."


async def test_in_lines_the_matches_are_listed(conversation: Commands) -> None:
    conversation.screen = None
    assert await conversation.output("/find BOAT") == "user: What is a boat?\n1 line."
    assert await conversation.refusal("/find gulls") == "'gulls' is not in this conversation."
    assert await conversation.refusal("/find") == "/find needs words to look for."
