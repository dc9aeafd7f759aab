"""The demo says that it is no model, and how to get one."""

from __future__ import annotations

import pytest

from tests.providers.collect import collect
from tui.messages import Message, Request, Text
from tui.providers.local import demo
from tui.providers.registry import make_provider


async def test_it_is_honest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PAUSE", 0)
    provider = make_provider("demo")
    got = await collect(provider, Request("demo", "guide", (Message("user", (Text("Hello"),)),)))
    assert "no language model" in got.text
    assert "5 characters" in got.text
    for way in ("ANTHROPIC_API_KEY", "Ollama", "pip install 'chatctx[local]'", "--gguf"):
        assert way in got.text
    assert got.usage is None  # nothing was measured
    assert got.end is not None and got.end.kind == "stop"
    assert await provider.count_tokens(Request("demo", "guide", ())) is None
    limits = await provider.limits("guide")
    assert limits is not None and "made up" in limits.detail
