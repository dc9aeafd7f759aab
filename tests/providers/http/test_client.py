"""Requests carry the headers that the official SDKs send (openai 3.57, anthropic 2.14), for any server and key.

The table was captured from the SDKs. Theirs besides: `X-Stainless-...`, and their own `User-Agent`.
"""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.providers.collect import collect
from tests.providers.serving import REQUEST, serving
from tui import __version__
from tui.providers.config import Dialect, ProviderConfig
from tui.providers.http.bounds import BoundedTransport
from tui.providers.http.client import ANTHROPIC_VERSION
from tui.providers.registry import make_provider

KEY = "key-123456"
BEARER = {"authorization": f"Bearer {KEY}"}
VERSION = {"anthropic-version": ANTHROPIC_VERSION}
OLDER = {"x-api-key": KEY}
LOCAL, OPENAI, ANTHROPIC = "http://127.0.0.1:9/v1", "https://api.openai.com/v1", "https://api.anthropic.com"
AZURE = "https://x.openai.azure.com/openai/deployments/m?api-version=2024-10-21"
USER = "https://me:pw@gw.example/a"
BETA = "context-management-2025-06-27"

CASES: list[tuple[Dialect, str, str, dict[str, Any], str, dict[str, str]]] = [
    ("openai-chat", LOCAL, KEY, {}, f"{LOCAL}/chat/completions", BEARER),
    ("openai-chat", f"{LOCAL}/", KEY, {}, f"{LOCAL}/chat/completions", BEARER),
    ("openai-chat", LOCAL, "", {}, f"{LOCAL}/chat/completions", {"authorization": "Bearer none"}),
    ("openai-responses", LOCAL, KEY, {}, f"{LOCAL}/responses", BEARER),
    (
        "openai-responses",
        OPENAI,
        KEY,
        {},
        f"{OPENAI}/responses",
        BEARER | {"openai-organization": "org-1", "openai-project": "proj-1"},
    ),
    (
        "openai-chat",
        OPENAI,
        KEY,
        {"OpenAI-Organization": "org-2"},
        f"{OPENAI}/chat/completions",
        BEARER | {"openai-organization": "org-2", "openai-project": "proj-1"},
    ),
    ("openai-chat", AZURE, KEY, {}, AZURE.replace("?", "/chat/completions?"), {"api-key": KEY}),
    ("openai-chat", AZURE, KEY, {"Api-Key": "mine"}, AZURE.replace("?", "/chat/completions?"), {"api-key": "mine"}),
    ("openai-chat", LOCAL, KEY, {"api-key": "mine"}, f"{LOCAL}/chat/completions", {"api-key": "mine"}),
    (
        "openai-chat",
        LOCAL,
        KEY,
        {"authorization": "Basic x"},
        f"{LOCAL}/chat/completions",
        {"authorization": "Basic x"},
    ),
    ("openai-chat", LOCAL, KEY, {"X-Team": "1"}, f"{LOCAL}/chat/completions", BEARER | {"x-team": "1"}),
    ("openai-chat", LOCAL, KEY, {"X-Team": "ÄÖ"}, f"{LOCAL}/chat/completions", BEARER | {"x-team": "ÄÖ"}),
    ("openai-chat", LOCAL, KEY, {"USER-AGENT": "me/1"}, f"{LOCAL}/chat/completions", BEARER | {"user-agent": "me/1"}),
    ("openai-chat", LOCAL, KEY, {"Accept": "*/*"}, f"{LOCAL}/chat/completions", BEARER | {"accept": "*/*"}),
    ("openai-chat", USER, KEY, {}, f"{USER}/chat/completions", {"authorization": "Basic bWU6cHc="}),
    ("anthropic", ANTHROPIC, KEY, {}, f"{ANTHROPIC}/v1/messages", BEARER | VERSION),
    ("anthropic", f"{ANTHROPIC}/v1", KEY, {}, f"{ANTHROPIC}/v1/messages", BEARER | VERSION),
    (
        "anthropic",
        ANTHROPIC,
        KEY,
        {"context_management": True},
        f"{ANTHROPIC}/v1/messages",
        BEARER | VERSION | {"anthropic-beta": BETA},
    ),
    (
        "anthropic",
        ANTHROPIC,
        KEY,
        {"anthropic-beta": "b"},
        f"{ANTHROPIC}/v1/messages",
        BEARER | VERSION | {"anthropic-beta": "b"},
    ),
    ("anthropic", LOCAL, KEY, {}, f"{LOCAL}/messages", BEARER | OLDER | VERSION),
    ("anthropic", LOCAL, "", {}, f"{LOCAL}/messages", {"authorization": "Bearer none"} | VERSION),
    ("anthropic", LOCAL, KEY, {"X-API-KEY": "mine"}, f"{LOCAL}/messages", BEARER | {"x-api-key": "mine"} | VERSION),
    (
        "anthropic",
        LOCAL,
        KEY,
        {"Anthropic-Version": "2023-06-01"},
        f"{LOCAL}/messages",
        BEARER | OLDER | {"anthropic-version": "2023-06-01"},
    ),
]


@pytest.mark.parametrize(("dialect", "base_url", "key", "custom", "url", "expected"), CASES)
async def test_headers(
    dialect: Dialect,
    base_url: str,
    key: str,
    custom: dict[str, Any],
    url: str,
    expected: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[httpx2.Request] = []

    async def answer(_transport: BoundedTransport, request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=b"data: [DONE]\n\n")

    monkeypatch.setattr(BoundedTransport, "handle_async_request", answer)
    monkeypatch.setenv("MY_KEY", key)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    manages = "context_management" in custom
    config = ProviderConfig(
        "p", dialect, base_url, key_env=("MY_KEY",), headers={} if manages else custom, context_management=manages
    )
    provider = make_provider("p", config)
    async for _ in provider.stream(REQUEST):
        pass
    await provider.models()
    await provider.close()
    message, question = sent
    assert (message.method, str(message.url).replace("[secure]", "pw"), question.method) == ("POST", url, "GET")
    every = {
        "host": message.url.netloc.decode(),
        "accept": "application/json",
        "accept-encoding": "gzip, deflate",
        "connection": "keep-alive",
        "user-agent": f"chatctx/{__version__}",
    }
    body = {"content-type": "application/json", "content-length": str(len(message.content))}
    assert _read(message) == every | body | expected
    assert _read(question) == every | expected
    assert message.extensions["timeout"] == {"connect": 10.0, "read": 300.0, "write": 300.0, "pool": 300.0}


@pytest.mark.parametrize("name", ["X-Token", "X Token", "X-Tökén"])
async def test_a_header_that_cannot_be_sent_is_no_fault_of_the_server(name: str) -> None:
    async with serving("openai-chat", headers={name: "hush\nhush"}) as (server, provider):
        got = await collect(provider, REQUEST)
    assert got.error is not None and got.error.kind == "bad_request" and not server.asked
    assert "headers in [providers.p]" in str(got.error) and "hush" not in str(got.error)


def _read(request: httpx2.Request) -> dict[str, str]:
    return {name.decode().lower(): value.decode() for name, value in request.headers.raw}


@pytest.mark.slow  # the SDK is loaded
def test_the_version_is_the_one_of_the_sdk() -> None:
    from anthropic import Anthropic

    assert Anthropic(api_key=KEY).default_headers["anthropic-version"] == ANTHROPIC_VERSION
