"""Every screen as it looks, at three sizes, dark and light. After a wanted change: --snapshot-update, then look."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.fakes import FakeSession, FakeWorkspace, make_usage
from tests.screens import mcp_scene, scenes, tool_scene
from tests.screens.pictures import Pictures
from tui.chat.conversation.events import ContextTrimmed
from tui.context.reduction.deferral import ToolPlan


@pytest.fixture
def pictures(snapshot: SnapshotAssertion) -> Pictures:
    """Compares a screen with its six pictures."""
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
    workspace, event = scenes.workspace(rolling=True), ContextTrimmed(2, 492, ("a1", "a2"))
    await pictures(workspace, event=event, until="492")


@pytest.mark.slow
async def test_context(pictures: Pictures) -> None:
    await pictures(scenes.workspace(), "f2", until="52,100")


@pytest.mark.slow
async def test_context_at_the_ends(pictures: Pictures) -> None:
    ends = {"nearly_empty": scenes.nearly_empty(), "full": scenes.full(), "unknown": scenes.typical(None)}
    for end, usage in ends.items():
        await pictures(scenes.workspace(usage), "f2", until=f"{usage.total:,}", name=end)


@pytest.mark.slow
async def test_context_messages(pictures: Pictures) -> None:
    await pictures(scenes.workspace(), "f2", "m", "up", until="◆")


@pytest.mark.slow
async def test_context_history(pictures: Pictures) -> None:
    workspace = scenes.workspace(messages=scenes.long_talk())
    await pictures(workspace, "f2", "h", until="40 calls")


@pytest.mark.slow
async def test_context_fits_where(pictures: Pictures) -> None:
    await pictures(scenes.workspace(), "f2", "f", until="Counted for the present model")


@pytest.mark.slow
async def test_usage(pictures: Pictures) -> None:
    await pictures(scenes.workspace(), command="usage", until="calls")


@pytest.mark.slow
async def test_conversations(pictures: Pictures) -> None:
    await pictures(scenes.workspace(), "down", command="sessions", until="↳")


@pytest.mark.slow
async def test_models(pictures: Pictures) -> None:
    await pictures(scenes.workspace(), command="model", until="qwen3")


@pytest.mark.slow
async def test_mcp(pictures: Pictures) -> None:
    await pictures(mcp_scene.workspace(), "down", "enter", command="mcp", until="log, all")


@pytest.mark.slow
async def test_tools(pictures: Pictures) -> None:
    await pictures(tool_scene.workspace(), "down", command="tools", until="old__tool")


@pytest.mark.slow
async def test_an_approval(pictures: Pictures) -> None:
    await pictures(scenes.workspace(), event=tool_scene.ASKED, until="Run github__create_issue?")


@pytest.mark.slow
async def test_help(pictures: Pictures) -> None:
    await pictures(scenes.workspace(), command="help", until="/context")


@pytest.mark.slow
async def test_themes(pictures: Pictures) -> None:
    await pictures(scenes.workspace(), "down", command="theme", until="chatctx-contrast")


@pytest.mark.slow
async def test_palette(pictures: Pictures) -> None:
    await pictures(scenes.workspace(), "ctrl+p", until="/export [FILE.md|.html|.jsonl]")


@pytest.mark.slow
async def test_welcome(pictures: Pictures) -> None:
    session = FakeSession(provider="local", model="SmolLM2-135M-Instruct", usage=make_usage(24, 8_192, rows=()))
    await pictures(FakeWorkspace(session=session), "/", until="/context")


@pytest.mark.slow
async def test_an_edit(pictures: Pictures) -> None:
    await pictures(scenes.workspace(), "alt+up", "alt+up", "alt+up", "e", until="sets aside")


@pytest.mark.slow
async def test_a_text(pictures: Pictures) -> None:
    workspace = scenes.workspace()
    workspace.session.tools.plan = ToolPlan((scenes.SEARCH,))
    keys = ("f2", "down", "down", "down", "right", "down", "down", "down", "enter")
    await pictures(workspace, *keys, until="search_files · built-in")


@pytest.mark.slow
async def test_a_question(pictures: Pictures) -> None:
    await pictures(scenes.workspace(), command="import twice.jsonl", until="Import it again")


@pytest.mark.slow
async def test_a_summary(pictures: Pictures) -> None:
    workspace = scenes.workspace()
    workspace.session.summaries.texts = [scenes.SUMMARY]
    await pictures(workspace, command="compact --preview", until="not made yet")


@pytest.mark.slow
async def test_providers(pictures: Pictures) -> None:
    await pictures(scenes.workspace(), command="provider", until="needs a key")


@pytest.mark.slow
async def test_a_provider(pictures: Pictures) -> None:
    await pictures(scenes.workspace(), command="provider anthropic", until="keeps no keys")


@pytest.mark.slow
async def test_memory(pictures: Pictures) -> None:
    workspace = scenes.workspace()
    workspace.session.memory = scenes.MEMORY
    await pictures(workspace, command="memory", until="Enter switches one")
