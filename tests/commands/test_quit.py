"""`/quit`."""

from __future__ import annotations

import pytest

from tests.commands.scripted_ui import Commands


@pytest.mark.parametrize("name", ["quit", "exit", "q"])
async def test_it_leaves(commands: Commands, name: str) -> None:
    assert (await commands.run(f"/{name}")).ended
