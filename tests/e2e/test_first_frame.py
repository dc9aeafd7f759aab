"""What is loaded before the first frame: the screen, and nothing of providers, tokenizers or the store.

And before the first message: not what only later ones, or commands, need.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HEAVY = (
    "openai", "anthropic", "tiktoken", "genai_prices", "mcp", "httpx2", "httpcore2", "xllamacpp", "sqlite3", "pydantic",
)  # fmt: skip
NOT_FOR_THE_FIRST_MESSAGE = (
    "markdown_it", "pygments.lexer", "tui.chat.model_list", "tui.chat.provider_setup", "tui.commands.help",
    "tui.context.counting.claude", "tui.screens.chat.ui", "tui.tools.mcp.config", "tui.tools.mcp.server",
)  # fmt: skip
"""The message may be typed already, and what is loaded then delays it."""

PANELS = {"tui.screens." + name for name in ("context", "lists", "pager", "question", "summary", "tools")}

PROGRAM = """
import asyncio, json, pathlib, sys
from tui.app import ChatApp
from tui.config.settings import Settings
from tui.screens.chat.screen import ChatScreen

seen = {}

opening = ChatScreen._open

def note(screen):
    # Called after the first frame: what the driver has written by now was painted without a workspace.
    seen["modules"] = sorted(sys.modules)
    seen["painted"] = any("ask, or / for commands" in strip.text for strip in screen._compositor.render_strips())
    seen["focused"] = type(app.focused).__name__
    return opening(screen)

ChatScreen._open = note
attaching = ChatScreen.attach

async def attach(screen, session):
    # Sends what was typed before.
    seen["sending"] = sorted(sys.modules)
    await attaching(screen, session)

ChatScreen.attach = attach

async def open_workspace():
    from tui.chat.workspace import Workspace

    return await Workspace.open(settings)

folder = pathlib.Path(sys.argv[1])
settings = Settings(
    model="demo/guide", config_file=folder / "config.toml", data_dir=folder, log_dir=folder, keys={"chat.context": "f5"}
)
app = ChatApp(settings, open_workspace)

async def main():
    async with app.run_test(size=(120, 40)) as pilot:
        async with asyncio.timeout(20):
            while app.chat.session is None:
                await pilot.pause(0.01)
        await app.chat.leave()

asyncio.run(main())
print(json.dumps(seen))
"""


def test_nothing_heavy_is_loaded_before_the_first_frame_and_the_first_message(tmp_path: Path) -> None:
    root = Path(__file__).parent.parent.parent
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, cwd=root, timeout=60
    )
    assert result.returncode == 0, result.stderr
    state = json.loads(result.stdout)
    assert state["focused"] == "PromptArea"
    assert state["painted"]
    loaded = {name.split(".")[0] for name in state["modules"]}
    assert not loaded & set(HEAVY)
    assert not PANELS & set(state["modules"])  # though a set key may hide one of theirs
    assert "tui.chat.store.store" not in state["modules"]
    assert "tui.context.counting.tokenizers" not in state["modules"]
    assert not set(state["sending"]) & (set(HEAVY) - {"sqlite3"})
    assert sorted(set(state["sending"]) & set(NOT_FOR_THE_FIRST_MESSAGE)) == []
