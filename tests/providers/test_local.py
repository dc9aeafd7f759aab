"""The embedded server's child process, without a model; and the demo."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from threading import Timer

import pytest

from tests.messages import user
from tests.providers.collect import collect
from tui.messages import Request
from tui.providers import local
from tui.providers.local import LocalServer
from tui.providers.registry import make_provider


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
async def test_a_start_that_is_cancelled_ends_the_child_while_it_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited for the model, with the event loop stopped. Here the file comes slowly, and is no model."""
    monkeypatch.setattr(local, "missing_part", lambda gguf: None)
    os.mkfifo(tmp_path / "m.gguf")
    pipe = os.open(tmp_path / "m.gguf", os.O_RDWR)
    late = Timer(2, os.write, (pipe, b"none"))
    late.start()
    server = LocalServer(tmp_path / "m.gguf")
    starting = asyncio.create_task(server.start())
    await asyncio.sleep(0)
    process = server._process
    assert process is not None
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    late.cancel()
    late.join()
    os.close(pipe)
    assert process.returncode == -signal.SIGKILL and not server.running


async def test_the_demo_says_that_it_is_no_model_and_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "PAUSE", 0)
    provider = make_provider("demo")
    got = await collect(provider, Request("demo", "guide", (user("Hello"),)))
    assert "no language model" in got.text
    assert "5 characters" in got.text
    for way in ("ANTHROPIC_API_KEY", "Ollama", "pip install 'chatctx[local]'", "--gguf"):
        assert way in got.text
    assert got.usage is None  # nothing was measured
    assert got.end is not None and got.end.kind == "stop"
    assert await provider.count_tokens(Request("demo", "guide", ())) is None
    limits = (await provider.describe("guide")).limits
    assert limits is not None and "made up" in limits.detail
