"""The fallback provider without any model. It says so, and how to get a real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from tui.context.usage.limits import ModelLimits
from tui.messages import Request
from tui.providers.base import Capabilities, ModelInfo, Provider, StreamEnd, StreamEvent, TextDelta
from tui.providers.config import ProviderConfig

GUIDE = """\
**This is the demo: no language model answers here, only this text.** You wrote {count} characters; they went nowhere.

Three ways to a real model:

1. **A key in the environment**: set `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or another provider's variable, and start \
chatctx again.
2. **A local server**: start Ollama, llama.cpp's `llama-server` or LM Studio. chatctx finds it at its usual port; for \
another address add a `[providers.NAME]` table with `base_url` to the config file.
3. **Inside chatctx**: `pip install 'chatctx[local]'`, then `chatctx --gguf FILE` with any `.gguf` model file.

`chatctx doctor` shows what was found and what was not. Everything else works here as it will later: `/context`, \
`/rolling-context`, sessions. The numbers are estimates, because nobody counts them.
"""
WINDOW = 8192  # tokens; invented, and labelled as such, so that the panel has something to draw
PAUSE = 0.01  # seconds between pieces


class DemoProvider(Provider):
    """Streams the same guide to every request. Reports no usage: nothing was measured."""

    dialect = "demo"

    def __init__(self, config: ProviderConfig) -> None:
        self.name = config.name
        self.config = config

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the guide word by word."""
        users = [message for message in request.messages if message.role == "user"]
        guide = GUIDE.format(count=f"{len(users[-1].text) if users else 0:,}")
        for line in guide.splitlines(keepends=True):
            for word in line.split(" "):
                yield TextDelta(word if word.endswith("\n") else f"{word} ")
                await asyncio.sleep(PAUSE)
        yield StreamEnd("stop", "demo")

    def capabilities(self, model: str) -> Capabilities:
        """It accepts nothing and sends nothing back."""
        return Capabilities(images=False, tools=False)

    async def limits(self, model: str) -> ModelLimits | None:
        """An invented window, labelled as such."""
        return ModelLimits(WINDOW, source="table", detail="the demo's own, made up")

    async def models(self) -> list[ModelInfo]:
        """The guide."""
        return [ModelInfo("guide", "No model: how to get one", await self.limits("guide"))]
