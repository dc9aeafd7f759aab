"""aimock, a fake server that others wrote: reasoning and its way back in all three dialects, Responses above all.

`CHATCTX_AIMOCK` holds the command that starts it (.ci/run). Its name is also another project's, so the PATH is not
searched for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import required
from tests.machine import free_port
from tests.real.test_fakes import http, running
from tui.chat.conversation.events import RetryScheduled
from tui.chat.workspace import Workspace
from tui.config.settings import ProviderSettings, Settings
from tui.messages import Reasoning, Text

THOUGHT, ANSWER = "Let me count the dogs first. Lazy ones too.", "There are forty-two dogs, all of them lazy."
FIXTURES = {
    "fixtures": [
        {
            "match": {"userMessage": "how many dogs"},
            "response": {
                "content": ANSWER,
                "reasoning": THOUGHT,
                "reasoningSignature": "c2lnbmF0dXJl",
                "usage": {"prompt_tokens": 31, "completion_tokens": 47, "input_tokens": 31, "output_tokens": 47},
            },
        },
        {"match": {"userMessage": "and cats"}, "response": {"content": "None."}},
    ]
}
MODELS = {"chat": "gpt-4o", "messages": "claude-sonnet-4-6", "responses": "gpt-5.6"}


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not os.environ.get("CHATCTX_AIMOCK"):
        required("aimock is not here: set CHATCTX_AIMOCK to the command that starts it")
    fixtures = tmp_path_factory.mktemp("aimock") / "fixtures.json"
    fixtures.write_text(json.dumps(FIXTURES))
    port = free_port()
    arguments = ("--port", str(port), "--fixtures", str(fixtures), "--log-level", "silent", "--chunk-size", "7")
    yield from running("CHATCTX_AIMOCK", "", f"http://127.0.0.1:{port}", *arguments)


def settings(url: str, folder: Path) -> Settings:
    return Settings(
        config_file=folder / "config.toml",
        data_dir=folder,
        log_dir=folder,
        providers={
            "chat": ProviderSettings("openai-compatible", f"{url}/v1"),
            "messages": ProviderSettings("anthropic", url),
            "responses": ProviderSettings("openai", f"{url}/v1"),
        },
    )


def last_request(url: str) -> dict[str, Any]:
    bodies: list[dict[str, Any]] = [entry["body"] for entry in http(f"{url}/__aimock/journal") if entry.get("body")]
    return bodies[-1]


@pytest.mark.parametrize("name", MODELS)
async def test_reasoning_and_its_way_back(aimock: str, tmp_path: Path, name: str) -> None:
    workspace = await Workspace.open(settings(aimock, tmp_path))
    try:
        session = await workspace.new_session(f"{name}/{MODELS[name]}")
        async for _ in session.send("Please: how many dogs are there?"):
            pass
        reply = session.messages[-1]
        assert reply.status == "complete", reply.error
        thoughts = [part for part in reply.parts if isinstance(part, Reasoning)]
        assert [part.text for part in thoughts] == [THOUGHT]
        assert [part.text for part in reply.parts if isinstance(part, Text)] == [ANSWER]
        assert reply.usage is not None and reply.usage.source == "provider" and reply.usage.input_total
        if name == "messages":
            assert thoughts[0].signature == "c2lnbmF0dXJl"
        if name == "responses":
            assert thoughts[0].encrypted  # a stateless request gets its reasoning to keep
        async for _ in session.send("and cats?"):
            pass
        assert session.messages[-1].text == "None."  # the history with its thought was taken
        if name != "messages":  # whose requests it notes in another form
            assert THOUGHT not in json.dumps(last_request(aimock))
        assert sum(message.role == "user" for message in session.messages) == 2
    finally:
        await workspace.close()


async def test_its_rate_limit_is_waited_out(aimock: str, tmp_path: Path) -> None:
    """By its own word, Retry-After, in each dialect; then a person stops it."""
    workspace = await Workspace.open(settings(aimock, tmp_path))
    try:
        for name, model in MODELS.items():
            http(f"{aimock}/__aimock/chaos", {"rateLimitRate": 1.0})
            session = await workspace.new_session(f"{name}/{model}")
            waits = []
            async for event in session.send("and cats?"):
                if isinstance(event, RetryScheduled):
                    waits.append(event)
                    session.cancel()
            assert len(waits) == 1 and "429" in waits[0].reason and waits[0].seconds > 0
    finally:
        http(f"{aimock}/__aimock/chaos", {"rateLimitRate": 0.0})
        await workspace.close()
