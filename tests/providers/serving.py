"""A provider before a replay server, and a whole answer in each dialect."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.messages import user
from tests.providers.replay import ReplayServer, replay_server, sse
from tui.messages import Request
from tui.providers.base import Provider
from tui.providers.config import Dialect, ProviderConfig
from tui.providers.registry import make_provider

DIALECTS: tuple[Dialect, ...] = ("openai-chat", "anthropic", "openai-responses")
REQUEST = Request("p", "m", (user("Hi"),), max_output=100)


@asynccontextmanager
async def serving(dialect: Dialect, **config: Any) -> AsyncIterator[tuple[ReplayServer, Provider]]:
    async with replay_server() as server:
        provider = make_provider("p", ProviderConfig("p", dialect, f"{server.url}/v1", **config))
        try:
            yield server, provider
        finally:
            await provider.close()


def chunk(text: str | None = None, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    return {
        "object": "chat.completion.chunk",
        "model": REQUEST.model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **fields,
    }


USAGE = {"object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}

CHAT = [chunk("Hel"), chunk("lo"), chunk(finish="stop"), USAGE]
ANTHROPIC: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"model": REQUEST.model, "usage": {"input_tokens": 9, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]
RESPONSES: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"model": REQUEST.model}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m1"}},
    {"type": "response.output_text.delta", "output_index": 0, "item_id": "m1", "delta": "Hel"},
    {"type": "response.output_text.delta", "output_index": 0, "item_id": "m1", "delta": "lo"},
    {"type": "response.completed", "response": {"usage": {"input_tokens": 9, "output_tokens": 2}}},
]
WHOLE: dict[str, list[dict[str, Any]]] = {"openai-chat": CHAT, "anthropic": ANTHROPIC, "openai-responses": RESPONSES}


def pieces(dialect: Dialect, count: int | None = None) -> list[bytes]:
    return [sse(payload, named=True) for payload in WHOLE[dialect][:count]]
