"""What is loaded before the first frame: the screen and nothing that belongs to providers, tokenizers or the store."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HEAVY = (
    "openai", "anthropic", "tiktoken", "genai_prices", "mcp", "httpx2", "httpcore2", "xllamacpp", "sqlite3", "pydantic",
)  # fmt: skip

PROGRAM = """
import asyncio, json, sys
from tui.app import ChatApp
from tui.config.settings import Settings

seen = {}

async def open_workspace():
    # Called after the first frame: what the driver has written by now was painted without a workspace.
    seen["modules"] = sorted(sys.modules)
    seen["painted"] = any("ask, or / for commands" in strip.text for strip in app.screen._compositor.render_strips())
    seen["focused"] = type(app.focused).__name__
    from tests.fakes import FakeWorkspace

    return FakeWorkspace()

app = ChatApp(Settings(), open_workspace)

async def main():
    async with app.run_test(size=(120, 40)) as pilot:
        async with asyncio.timeout(20):
            while "modules" not in seen:
                await pilot.pause(0.01)

asyncio.run(main())
print(json.dumps(seen))
"""


def test_nothing_heavy_is_loaded_before_the_first_frame() -> None:
    root = Path(__file__).parent.parent.parent
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=root, timeout=60)
    assert result.returncode == 0, result.stderr
    seen = json.loads(result.stdout)
    assert seen["focused"] == "PromptArea"
    assert seen["painted"]
    loaded = {name.split(".")[0] for name in seen["modules"]}
    assert not loaded & set(HEAVY)
    assert "tui.chat.store.store" not in seen["modules"]
    assert "tui.context.counting.tokenizers" not in seen["modules"]
