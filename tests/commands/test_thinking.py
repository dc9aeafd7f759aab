"""`/thinking`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands


async def test_the_effort_is_shown_and_changed(commands: Commands) -> None:
    assert await commands.said("/thinking") == "Reasoning effort: provider default."
    assert await commands.said("/thinking HIGH") == "Reasoning effort: high."
    assert commands.session.reasoning == "high"
    await commands.run("/thinking default")
    assert commands.session.reasoning is None


async def test_what_is_no_effort_is_refused(commands: Commands) -> None:
    assert await commands.refused("/thinking lots") == (
        "/thinking takes off, minimal, low, medium, high, xhigh, max or default, not 'lots'."
    )
    assert "/thinking default" in await commands.completions("/thinking ")
