"""Fake servers that others wrote, with the whole conversation before them: what they throw, what they think of us.

They are no dependency of the project. `CHATCTX_LLMOCK` and `CHATCTX_MOCK_AI_API` hold the commands that start them,
for example "uvx --from llmock==0.2.2 llmock"; else commands of that name on the PATH are used, else the tests skip.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import required
from tests.machine import free_port
from tests.messages import user
from tests.providers.collect import collect
from tui.chat.turn.session import ChatSession
from tui.chat.workspace import Workspace
from tui.config.settings import ProviderSettings, Settings, ToolSettings
from tui.messages import Message, Request
from tui.providers.base import ErrorKind
from tui.providers.config import ProviderConfig
from tui.providers.registry import make_provider, provider_config

QUESTION = "Tell me something about context windows, please."


def http(url: str, body: object | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.loads(response.read() or b"null")


def running(variable: str, name: str, url: str, *arguments: str) -> Iterator[str]:
    """Run a fake until the caller is done; yields `url`, at which it answers."""
    command = shlex.split(os.environ.get(variable, "")) or [shutil.which(name) or ""]
    if not command[0]:
        required(f"{name} is not here: set {variable} to the command that starts it")
    process = subprocess.Popen(
        [*command, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        for _ in range(600):
            try:
                http(url)
            except urllib.error.HTTPError:
                break
            except OSError:
                time.sleep(0.1)
            else:
                break
        yield url
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def llmock() -> Iterator[str]:
    port = free_port()
    yield from running("CHATCTX_LLMOCK", "llmock", f"http://127.0.0.1:{port}", "serve", "--port", str(port))


@pytest.fixture(scope="module")
def narrow_llmock() -> Iterator[str]:
    port = free_port()
    arguments = ("serve", "--port", str(port), "--context-window", "50")
    yield from running("CHATCTX_LLMOCK", "llmock", f"http://127.0.0.1:{port}", *arguments)


@pytest.fixture(scope="module")
def mock_ai_api() -> Iterator[str]:
    openai, anthropic = free_port(), free_port()
    arguments = ("--openai-port", str(openai), "--anthropic-port", str(anthropic))
    yield from running("CHATCTX_MOCK_AI_API", "mock-ai-api", f"http://127.0.0.1:{anthropic}", *arguments)


def tables(url: str) -> dict[str, ProviderSettings]:
    return {
        "chat": ProviderSettings("openai-compatible", f"{url}/v1"),
        "responses": ProviderSettings("openai", f"{url}/v1"),
        "messages": ProviderSettings("anthropic", f"{url}/anthropic"),
        "mistralish": ProviderSettings("openai-compatible", f"{url}/mistral/v1"),
        "groqish": ProviderSettings("openai-compatible", f"{url}/groq/openai/v1"),
        "xaiish": ProviderSettings("openai-compatible", f"{url}/xai/v1"),
    }


MODELS = {
    "chat": "gpt-4o",
    "responses": "gpt-4o",
    "messages": "claude-sonnet-4-5",
    "mistralish": "mistral-large-latest",
    "groqish": "llama-3.3-70b-versatile",
    "xaiish": "grok-3",
}


@pytest.fixture
async def workspace(llmock: str, tmp_path: Path) -> AsyncIterator[Workspace]:
    settings = Settings(
        config_file=tmp_path / "config.toml",
        data_dir=tmp_path,
        log_dir=tmp_path,
        providers=tables(llmock),
        tools=ToolSettings(off=("*",)),  # llmock calls what it is offered: what is scripted would hit another answer
    )
    opened = await Workspace.open(settings)
    yield opened
    await opened.close()


# Warnings that say nothing here. A stall of a second is sat through on purpose: models think. And where a whole short
# answer was in the socket before we hung up at its broken chunk, llmock takes the chunk for ignored; that the message
# is marked, and asked for again, is asserted.
HARMLESS = {("warning", "no_read_timeout"), ("warning", "malformed_chunk_ignored")}

# Fault mode, what is scripted, and how the first attempt ends.
FAULTS: list[tuple[str, list[dict[str, Any]], set[str]]] = [
    ("none", [], {"complete"}),
    (
        "disconnect",
        [{"type": "stream_fault", "kind": "disconnect", "after_chunks": 3}],
        {"interrupted", "complete"},  # where nothing visible had come yet, the turn asks again by itself
    ),
    ("truncate", [{"type": "stream_fault", "kind": "truncate", "after_chunks": 3}], {"interrupted"}),
    ("malformed", [{"type": "stream_fault", "kind": "malformed", "after_chunks": 3}], {"interrupted", "failed"}),
    ("stall", [{"type": "stream_fault", "kind": "stall", "after_chunks": 3, "stall_seconds": 1.5}], {"complete"}),
    ("slow first token", [{"type": "slow_first_token", "seconds": 1}], {"complete"}),
    (
        "429 with Retry-After",
        [{"type": "fail", "status": 429, "retry_after": 1, "times": 2, "match": {"stream": True}}],
        {"complete"},
    ),
    ("503", [{"type": "fail", "status": 503, "times": 1, "match": {"stream": True}}], {"complete"}),
]


@pytest.mark.parametrize(("mode", "script", "ends"), FAULTS, ids=[fault[0] for fault in FAULTS])
@pytest.mark.parametrize("name", MODELS)
async def test_llmocks_verdict(
    llmock: str, workspace: Workspace, name: str, mode: str, script: list[dict[str, Any]], ends: set[str]
) -> None:
    http(f"{llmock}/_llmock/reset", {})
    if script:
        http(f"{llmock}/_llmock/scenario", {"behaviors": script})
    session = await workspace.new_session(f"{name}/{MODELS[name]}")
    first = await reply(session, session.send(QUESTION))
    assert first.status in ends
    if first.status != "complete":
        await noted(llmock)
        first = await reply(session, session.retry())
    assert first.status == "complete" and first.text
    assert [message.text for message in session.messages if message.role == "user"] == [QUESTION]
    findings = [(item["severity"], item["code"]) for item in http(f"{llmock}/_llmock/verdict")["findings"]]
    assert [finding for finding in findings if finding not in HARMLESS] == []


def requests(llmock: str) -> list[dict[str, Any]]:
    """llmock's journal of what came in."""
    journal = http(f"{llmock}/_llmock/requests")
    return list(journal["requests"] if isinstance(journal, dict) else journal)


async def noted(llmock: str) -> None:
    """Wait until llmock has noted that we hung up: a person who retries is slower than this test."""
    for _ in range(500):
        if any(entry["fault"] for entry in requests(llmock)):
            return
        await asyncio.sleep(0.01)
    pytest.fail("llmock has no faulty answer in its journal")


async def reply(session: ChatSession, events: AsyncIterator[Any]) -> Message:
    async for _ in events:
        pass
    answers = [message for message in session.messages if message.role == "assistant"]
    return answers[-1]


@pytest.mark.parametrize("name", MODELS)
async def test_each_providers_own_words_for_an_overflow(narrow_llmock: str, name: str) -> None:
    provider = make_provider(name, provider_config(name, tables(narrow_llmock)[name]))
    request = Request(name, MODELS[name], (user("word " * 400),), max_output=10)
    try:
        error = (await collect(provider, request)).error
    finally:
        await provider.close()
    expected: ErrorKind = "overflow_input"
    assert error is not None and error.kind == expected, error


async def test_mock_ai_apis_count(mock_ai_api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATCTX_TEST_KEY", "mock-key-123")
    provider = make_provider("fake", ProviderConfig("fake", "anthropic", mock_ai_api, key_env=("CHATCTX_TEST_KEY",)))
    request = Request("fake", "claude-sonnet-4-5", (user("Hello there, how are you?"),), max_output=50)
    try:
        counted = await provider.count_tokens(request)
        got = await collect(provider, request)
    finally:
        await provider.close()
    assert counted is not None and counted > 0
    assert got.error is None and got.end is not None
    assert got.usage is not None and got.usage.input_total == counted
