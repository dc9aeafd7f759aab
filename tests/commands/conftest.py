"""`commands`: slash commands on the real workspace, with a provider that answers from a script."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.chat.fakes import ScriptedProvider, Tools, drain, open_workspace
from tests.commands.scripted_ui import Commands
from tui.context.usage.limits import ModelLimits


@dataclass
class Provider(ScriptedProvider):
    """Its model "small" has a window of 2,000 tokens."""

    async def limits(self, model: str) -> ModelLimits | None:
        return ModelLimits(2_000, source="probe") if model == "small" else await super().limits(model)


@pytest.fixture
def provider() -> ScriptedProvider:
    """What answers."""
    return Provider()


@pytest.fixture
async def commands(
    tmp_path: Path, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Commands]:
    """An empty conversation."""
    monkeypatch.chdir(tmp_path)
    async with open_workspace(tmp_path / "data", provider, tools=Tools(read_only=False)) as workspace:
        yield Commands(workspace, await workspace.new_session())


@pytest.fixture
async def conversation(commands: Commands) -> Commands:
    """A conversation of one question and its answer."""
    await drain(commands.session.send("What is a boat?"))
    return commands


@pytest.fixture
async def long_conversation(conversation: Commands) -> Commands:
    """A conversation with enough in it to be compacted."""
    for number in range(12):
        await drain(conversation.session.send(f"Tell me about boat {number}. " + "It floats on water. " * 60))
    return conversation
