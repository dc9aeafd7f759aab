"""`/window`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands


async def test_it_is_shown_set_and_reset(commands: Commands) -> None:
    assert await commands.output("/window") == (
        "The window of this model is 8,000 tokens."
        " /window 128k sets it, /window reset forgets what was set and learned."
    )
    assert await commands.output("/window 16k") == "The window of this model is 16,000 tokens (set by you)."
    assert await commands.output("/window RESET") == "The window of this model is 8,000 tokens."


async def test_what_is_no_size_is_refused(commands: Commands) -> None:
    assert "'lots' is not a number of tokens" in await commands.refusal("/window lots")
    assert "12 would be 12 tokens; write 12k" in await commands.refusal("/window 12")
    assert await commands.completions("/window r") == ["/window reset"]
