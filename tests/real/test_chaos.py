"""A thousand turns, 500 of them in one conversation, through a proxy that breaks one answer in five at a random byte.

The server behind it is a small one of our own that counts tokens exactly, so that every prediction can be checked.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import tokens_of
from tests.providers.replay import sse
from tui.chat.turn import recovery
from tui.chat.workspace import Workspace
from tui.config.settings import ModelSettings, ProviderSettings, Settings

TURNS = 250
KINDS = ("openai-compatible", "anthropic", "openai")
BREAK_ONE_IN = 5
WORDS = ("the", "of", "and", "to", "in", "is", "you", "that", "it", "he", "was", "for", "on", "are", "as", "with")


class CountingServer:
    """Chat Completions, Messages or Responses: answers a few words, counts exactly, remembers what it refused.

    Every body passes through `breaker`, which may cut it anywhere.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = tokens_of
        self.refused: list[str] = []
        self.broken = 0
        self.answered = 0
        self.url = ""

    def size(self, messages: list[dict[str, Any]]) -> int:
        """4 tokens a message, 3 a request, as the real dialect."""
        total = 3
        for message in messages:
            content = message["content"]
            text = content if isinstance(content, str) else "\n\n".join(block["text"] for block in content)
            total += 4 + self.count(text)
        return total

    def complaint(self, path: str, messages: list[dict[str, Any]]) -> str | None:
        """What a strict server would refuse."""
        roles = [message["role"] for message in messages]
        if not roles or roles[-1] != "user":
            return "the last message is not the person's"
        if any(one == other for one, other in pairwise(roles)) and not path.endswith("/responses"):
            return f"roles do not alternate: {roles}"
        if any(not message["content"] for message in messages):
            return "empty content"
        return None

    def answer(self, path: str, body: dict[str, Any]) -> bytes:
        words = " ".join(self.random.choice(WORDS) for _ in range(self.random.randint(1, 12)))
        tokens, output = self.size(conversation(body)), self.count(words)
        pieces = [f"{word} " for word in words.split()[:-1]] + words.split()[-1:]
        if path.endswith("/messages"):
            events: list[dict[str, Any]] = [
                {"type": "message_start", "message": {"usage": {"input_tokens": tokens, "output_tokens": 1}}},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                *(
                    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
                    for piece in pieces
                ),
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": output}},
                {"type": "message_stop"},
            ]
            return b"".join(sse(event, named=True) for event in events)
        if path.endswith("/responses"):
            events = [
                {"type": "response.created", "response": {}},
                {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m1"}},
                *({"type": "response.output_text.delta", "output_index": 0, "delta": piece} for piece in pieces),
                {
                    "type": "response.completed",
                    "response": {"usage": {"input_tokens": tokens, "output_tokens": output}},
                },
            ]
            return b"".join(sse(event, named=True) for event in events)
        chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        chunks.append({"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": output}})
        return b"".join(sse(chunk) for chunk in chunks) + b"data: [DONE]\n\n"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split(" ", 2)[1]
            lengths = [line.split(":")[1] for line in head.split("\r\n") if line.lower().startswith("content-length")]
            body = json.loads(await reader.readexactly(int(lengths[0]))) if lengths else {}
            await self.send(path, body, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client, or the test, is gone
        finally:
            writer.close()

    async def send(self, path: str, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if not body:  # the model list
            payload = json.dumps({"data": [{"id": "gpt-4o", "context_length": 2_000_000}]}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n" + payload)
            return
        if not path.endswith(("/completions", "/messages", "/responses")):  # is this Ollama?
            writer.write(b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            return
        if complaint := self.complaint(path, conversation(body)):
            self.refused.append(complaint)
            writer.write(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n" + complaint.encode())
            return
        self.answered += 1
        whole = self.answer(path, body)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
        if self.random.randrange(BREAK_ONE_IN):
            writer.write(head + b"\r\n" + whole)
            return
        self.broken += 1
        part = whole[: self.random.randrange(len(whole))]
        if self.random.random() < 0.5:  # a body that merely ends, or a connection that breaks
            writer.write(head + b"\r\n" + part)
        else:
            writer.write(head + b"content-length: %d\r\n\r\n" % len(whole) + part)


def conversation(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages of a request, under the name its dialect has for them."""
    return list(body.get("messages") or body.get("input") or [])


@asynccontextmanager
async def counting_server(seed: int) -> AsyncIterator[CountingServer]:
    counting = CountingServer(seed)
    server = await asyncio.start_server(counting.handle, "127.0.0.1", 0)
    counting.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield counting
    finally:
        server.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
async def test_hundreds_of_turns_through_a_breaking_proxy(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "FIRST_WAIT", 0.0)  # answers that broke before their first word are asked for again
    async with counting_server(seed=7) as server:
        settings = Settings(
            config_file=tmp_path / "config.toml",
            data_dir=tmp_path,
            log_dir=tmp_path,
            providers={"box": ProviderSettings(kind, f"{server.url}/v1")},
            models={"box/gpt-4o": ModelSettings(window=2_000_000)},
        )
        workspace = await Workspace.open(settings)
        try:
            session = await workspace.new_session("box/gpt-4o")
            written, retried = [], 0
            for turn in range(TURNS):
                text = f"{turn}: " + " ".join(server.random.choice(WORDS) for _ in range(server.random.randint(1, 30)))
                written.append(text)
                async for _ in session.send(text):
                    pass
                last = session.messages[-1]
                if last.role == "assistant" and last.status != "complete" and server.random.random() < 0.5:
                    retried += 1
                    async for _ in session.retry():
                        pass
            questions = [message.text for message in session.messages if message.role == "user"]
            calls = workspace.services.calls.rows(session.id)
        finally:
            await workspace.close()

    assert questions == written  # no message of the person is lost
    assert server.refused == []  # and the conversation stayed sendable throughout
    assert server.broken > TURNS / BREAK_ONE_IN / 2 and retried > 10
    states = {message.status for message in session.messages if message.role == "assistant"}
    assert states <= {"complete", "interrupted", "failed"} and {"complete", "interrupted"} <= states

    measured = [call for call in calls if call.usage_source == "provider" and call.input_total and call.predicted]
    assert len(measured) > TURNS / 2
    wrong = []
    for call in measured[20:]:  # the first calls teach
        assert call.input_total is not None and call.predicted is not None
        if abs(call.predicted - call.input_total) > max(8, 0.02 * call.input_total):
            wrong.append((call.source, call.predicted, call.input_total))
    assert wrong == []
