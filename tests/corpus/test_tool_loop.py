"""Every recorded stream that calls tools, through the whole loop: adapter, tools, and a second, paired request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import drain
from tests.corpus import corpus_root, recordings
from tests.corpus.test_streams import files
from tests.providers.replay import Answer, ReplayServer, replay_server, sse
from tui.chat.workspace import Workspace
from tui.config.settings import ProviderSettings, Settings
from tui.messages import ToolResult, ToolSchema
from tui.tools.base import Tool, ToolOutput

pytestmark = pytest.mark.corpus

KINDS = {"openai-chat": "openai-compatible", "openai-responses": "openai", "anthropic": "anthropic"}
NOT_THERE = (
    "/v1/models", "/v1/models?limit=1000", "/api/ps", "/api/show", "/props", "/api/v0/models", "/api/v1/models",
    "/model/info", "/v1/responses/input_tokens", "/v1/messages/count_tokens", "/v1/chat/completions/input_tokens",
)  # fmt: skip


class Named:
    """Tools of these names that take anything."""

    name = "built-in"

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def tools(self) -> Sequence[Tool]:
        return [Tool(ToolSchema(name, "A tool.", '{"type":"object"}'), True, self.run) for name in self._names]

    async def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
        return ToolOutput(f"answer to {json.dumps(dict(arguments), sort_keys=True)}")


def last_word(dialect: str) -> Answer:
    """A short answer without calls, in the words of the dialect."""
    usage = {"input_tokens": 9, "output_tokens": 1}
    match dialect:
        case "anthropic":
            events: list[dict[str, Any]] = [
                {"type": "message_start", "message": {"usage": usage}},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
                {"type": "message_stop"},
            ]
        case "openai-responses":
            response = {
                "id": "r",
                "status": "completed",
                "output": [],
                "usage": {"input_tokens": 9, "output_tokens": 1},
            }
            events = [
                {"type": "response.output_text.delta", "delta": "Done.", "item_id": "m", "output_index": 0},
                {"type": "response.completed", "response": response},
            ]
        case _:
            events = [{"choices": [{"index": 0, "delta": {"content": "Done."}, "finish_reason": "stop"}]}]
    return Answer([sse(event, named=True) for event in events])


def pairs(dialect: str, body: Any) -> tuple[list[str], list[str], list[str]]:
    """Of a request: ids of calls, ids of results, texts of results, in their order."""
    match dialect:
        case "anthropic":
            blocks = [block for message in body["messages"] for block in message["content"]]
            calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
            answers = [block for block in blocks if block["type"] == "tool_result"]
            return calls, [block["tool_use_id"] for block in answers], [block["content"] for block in answers]
        case "openai-responses":
            calls = [item["call_id"] for item in body["input"] if item["type"] == "function_call"]
            answers = [item for item in body["input"] if item["type"] == "function_call_output"]
            return calls, [item["call_id"] for item in answers], [item["output"] for item in answers]
        case _:
            calls = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or ()]
            answers = [message for message in body["messages"] if message["role"] == "tool"]
            return calls, [item["tool_call_id"] for item in answers], [item["content"] for item in answers]


async def play(folder: Path, server: ReplayServer, body: bytes, want: recordings.Recording) -> list[ToolResult]:
    """One turn that begins with the recorded answer; the results as they are stored."""
    for path in NOT_THERE:
        server.json({"error": {"message": "not found"}}, 404, path=path)
    server.answers += [Answer([body]), last_word(want.dialect)]
    base = server.url if want.dialect == "anthropic" else f"{server.url}/v1"
    providers = {"replay": ProviderSettings(kind=KINDS[want.dialect], base_url=base)}
    settings = Settings(model="replay/recorded", providers=providers, data_dir=folder, log_dir=folder)
    workspace = await Workspace.open(settings)
    try:
        workspace.services.tools.sources = {"built-in": Named(sorted({name for name, _ in want.calls}))}
        session = await workspace.new_session()
        await drain(session.send("hello"))
        assert session.messages[-1].text == "Done."
        return [part for message in session.messages for part in message.parts if isinstance(part, ToolResult)]
    finally:
        await workspace.close()


def broken_json(text: str) -> bool:
    """Whether arguments were cut off on their way: a recording holds such a call."""
    try:
        json.loads(text or "{}")
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("dialect", sorted(KINDS))
async def test_recorded_calls_are_run_and_answered(dialect: str, tmp_path: Path, say: Callable[[str], None]) -> None:
    played = 0
    for name in files():
        for number, (body, want) in enumerate(recordings.answers(corpus_root() / "streams" / name)):
            if want.dialect != dialect or not want.calls or want.failed or want.ended is None:
                continue
            async with replay_server() as server:
                results = await play(tmp_path / f"{name.replace('/', '-')}-{number}", server, body, want)
                posted = [request.body for request in server.requests if request.path not in NOT_THERE]
            played += 1
            assert [result.name for result in results] == [called for called, _ in want.calls]
            assert [broken_json(text) for _, text in want.calls] == [result.is_error for result in results]
            for result, (_, text) in zip(results, want.calls, strict=True):
                whole = json.dumps(json.loads(text or "{}"), sort_keys=True) if not result.is_error else ""
                assert result.text == f"answer to {whole}" if whole else "not valid JSON" in result.text
            calls, answered, sent = pairs(dialect, posted[-1])
            assert calls == answered
            assert len(set(calls)) == len(want.calls)
            assert sent == [result.text for result in results]
    say(f"{dialect}: {played} recorded answers with calls went through the loop")
    assert played >= 5
