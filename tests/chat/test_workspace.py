"""What the first screen says of where a model runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.fakes import ScriptedProvider, open_workspace
from tui.chat.workspace import where_it_runs
from tui.providers.config import PRESETS, ProviderConfig


@pytest.mark.parametrize(
    ("name", "base_url", "line"),
    [
        ("local", None, "It runs on this machine: nothing you write leaves it."),
        ("demo", None, "It runs on this machine: nothing you write leaves it."),
        # Ollama answers some models from its cloud, and a gateway sends all of it on.
        ("ollama", None, "Its server is on this machine, at 127.0.0.1:11434."),
        ("gateway", "http://me:secret@localhost:4000/v1", "Its server is on this machine, at localhost:4000."),
        ("six", "http://[::1]:8080/v1", "Its server is on this machine, at [::1]:8080."),
        ("far", "https://127.evil.example/v1", "It runs at 127.evil.example: what you write is sent there."),
        ("openai", None, "It runs at api.openai.com: what you write is sent there."),
    ],
)
def test_where_it_runs(name: str, base_url: str | None, line: str) -> None:
    config = PRESETS[name] if base_url is None else ProviderConfig(name, base_url=base_url)
    assert where_it_runs(name, {name: config}) == line


async def test_a_working_directory_that_is_deleted_meanwhile_costs_no_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    async with open_workspace(tmp_path, ScriptedProvider([])) as workspace:
        folder.rmdir()
        session = await workspace.new_session()
    assert not session.conversation.memory.files
