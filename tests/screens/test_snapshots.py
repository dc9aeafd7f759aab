"""Every screen at three sizes, the largest in light colours too. After a change: --snapshot-update, then look."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.screens import mcp_scene, scenes, tool_scene
from tests.screens.pictures import Pictures
from tests.screens.scenarios import Scenario, ident
from tests.screens.tooling import Listed, not_run
from tests.usages import make_usage
from tui.chat.conversation.events import ContextTrimmed
from tui.screens.question import QuestionPanel
from tui.tools.base import Tool
from tui.views.view import Option, Question


@pytest.fixture
def pictures(snapshot: SnapshotAssertion) -> Pictures:
    """Compares a screen with its four pictures."""
    return Pictures(snapshot)


@pytest.fixture(autouse=True)
def same_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """One clock, one time zone, an empty folder, no colours of this terminal."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(time, "time", lambda: scenes.NOW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.slow
async def test_chat(pictures: Pictures) -> None:
    workspace, event = scenes.scenario(rolling=True), ContextTrimmed(2, 492, (ident("a1"), ident("a2")))
    await pictures(workspace, event=event, until="492")


@pytest.mark.slow
async def test_context(pictures: Pictures) -> None:
    await pictures(scenes.scenario(), "f2", until="52,100")


@pytest.mark.slow
async def test_context_at_the_ends(pictures: Pictures) -> None:
    ends = {"nearly_empty": scenes.nearly_empty(), "full": scenes.full(), "unknown": scenes.typical(None)}
    for end, usage in ends.items():
        await pictures(scenes.scenario(usage), "f2", until=f"{usage.total:,}", name=end)


@pytest.mark.slow
async def test_context_messages(pictures: Pictures) -> None:
    await pictures(scenes.scenario(), "f2", "m", "up", until="◆")


@pytest.mark.slow
async def test_context_history(pictures: Pictures) -> None:
    workspace = scenes.scenario(conversation=scenes.long_conversation())
    await pictures(workspace, "f2", "h", until="40 calls")


@pytest.mark.slow
async def test_context_fits_where(pictures: Pictures) -> None:
    await pictures(scenes.scenario(), "f2", "f", until="Counted for the current model")


@pytest.mark.slow
async def test_usage(pictures: Pictures) -> None:
    await pictures(scenes.scenario(), command="usage", until="calls")


@pytest.mark.slow
async def test_conversations(pictures: Pictures) -> None:
    await pictures(scenes.scenario(), "down", command="sessions", until="↳")


@pytest.mark.slow
async def test_models(pictures: Pictures) -> None:
    await pictures(scenes.scenario(), command="model", until="qwen3")


@pytest.mark.slow
async def test_mcp(pictures: Pictures) -> None:
    await pictures(mcp_scene.scenario(), "down", "enter", command="mcp", until="log, all")


@pytest.mark.slow
async def test_tools(pictures: Pictures) -> None:
    await pictures(tool_scene.scenario(), "down", command="tools", until="old__tool")


@pytest.mark.slow
async def test_an_approval(pictures: Pictures) -> None:
    await pictures(scenes.scenario(), event=tool_scene.ASKED, until="Run github__create_issue?")


@pytest.mark.slow
async def test_help(pictures: Pictures) -> None:
    await pictures(scenes.scenario(), command="help", until="/context")


@pytest.mark.slow
async def test_themes(pictures: Pictures) -> None:
    await pictures(scenes.scenario(), "down", command="theme", until="chatctx-contrast")


@pytest.mark.slow
async def test_palette(pictures: Pictures) -> None:
    await pictures(scenes.scenario(), "ctrl+p", until="/export [FILE.md|.html|.jsonl]")


@pytest.mark.slow
async def test_welcome(pictures: Pictures) -> None:
    usage = make_usage(24, 8_192, rows=())
    scenario = Scenario(provider="local", model="SmolLM2-135M-Instruct", usage=usage, spent=0.42)
    await pictures(scenario, "/", until="/context")


@pytest.mark.slow
async def test_an_edit(pictures: Pictures) -> None:
    scenario = replace(scenes.scenario(), begin=scenes.set_draft_tokens)
    await pictures(scenario, "alt+up", "alt+up", "alt+up", "e", until="sets aside")


@pytest.mark.slow
async def test_a_text(pictures: Pictures) -> None:
    scenario = replace(scenes.scenario(), tools=[Listed([Tool(scenes.SEARCH, True, not_run)])])
    keys = ("f2", "down", "down", "down", "right", "down", "down", "down", "enter")
    await pictures(scenario, *keys, until="search_files · built-in")


@pytest.mark.slow
async def test_a_question(pictures: Pictures) -> None:
    answers = (
        Option("open", "Open what is here", "an old talk"),
        Option("import", "Import it again", "as another conversation; its calls count once more in /usage"),
    )
    question = Question("Imported before", "All 4 messages of this file are here already.", answers)
    await pictures(scenes.scenario(), panel=QuestionPanel(question), until="Import it again")


@pytest.mark.slow
async def test_a_summary(pictures: Pictures) -> None:
    scenario = replace(scenes.scenario(), begin=scenes.set_summary)
    await pictures(scenario, command="compact --preview", until="next request 121,400")


@pytest.mark.slow
async def test_providers(pictures: Pictures) -> None:
    await pictures(scenes.scenario(), command="provider", until="needs a key")


@pytest.mark.slow
async def test_a_provider(pictures: Pictures) -> None:
    await pictures(scenes.scenario(), command="provider anthropic", until="Keys are not stored")


@pytest.mark.slow
async def test_memory(pictures: Pictures) -> None:
    scenario = replace(scenes.scenario(), memory=scenes.MEMORY, begin=scenes.set_draft_tokens)
    await pictures(scenario, command="memory", until="Enter switches one")
