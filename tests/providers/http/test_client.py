"""Requests carry the headers that the official SDKs send (openai 3.57, anthropic 2.14), for any server and key.

The table was captured from the SDKs. Theirs besides: `X-Stainless-...`, and their own `User-Agent`.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import httpx2
import pytest

from tests.providers.collect import collect
from tests.providers.serving import REQUEST
from tui import __version__
from tui.providers.config import Dialect, ProviderConfig
from tui.providers.http.bounds import BoundedTransport
from tui.providers.http.client import ANTHROPIC_VERSION, CONTEXT_EDITING, BodyEncoder, encode_json
from tui.providers.registry import make_provider
from tui.providers.text_repairs import whole_texts

KEY = "key-123456"
BEARER = {"authorization": f"Bearer {KEY}"}
VERSION = {"anthropic-version": ANTHROPIC_VERSION}
OLDER = {"x-api-key": KEY}
EDITING = {"anthropic-beta": CONTEXT_EDITING}
LOCAL, OPENAI, ANTHROPIC = "http://127.0.0.1:9/v1", "https://api.openai.com/v1", "https://api.anthropic.com"
AZURE = "https://x.openai.azure.com/openai/deployments/m?api-version=2024-10-21"
USER = "https://me:pw@gw.example/a"

# dialect, base_url, key, whether it manages the context, the address, and what is sent besides what every request has
CASES: list[tuple[Dialect, str, str, bool, str, dict[str, str]]] = [
    ("openai-chat", LOCAL, KEY, False, f"{LOCAL}/chat/completions", BEARER),
    ("openai-chat", f"{LOCAL}/", KEY, False, f"{LOCAL}/chat/completions", BEARER),
    ("openai-chat", LOCAL, "", False, f"{LOCAL}/chat/completions", {"authorization": "Bearer none"}),
    ("openai-responses", LOCAL, KEY, False, f"{LOCAL}/responses", BEARER),
    (
        "openai-responses",
        OPENAI,
        KEY,
        False,
        f"{OPENAI}/responses",
        BEARER | {"openai-organization": "org-1", "openai-project": "proj-1"},
    ),
    ("openai-chat", AZURE, KEY, False, AZURE.replace("?", "/chat/completions?"), {"api-key": KEY}),
    ("openai-chat", USER, KEY, False, f"{USER}/chat/completions", {"authorization": "Basic bWU6cHc="}),
    ("anthropic", ANTHROPIC, KEY, False, f"{ANTHROPIC}/v1/messages", BEARER | VERSION),
    ("anthropic", f"{ANTHROPIC}/v1", KEY, False, f"{ANTHROPIC}/v1/messages", BEARER | VERSION),
    (
        "anthropic",
        ANTHROPIC,
        KEY,
        True,
        f"{ANTHROPIC}/v1/messages",
        BEARER | VERSION | {"anthropic-beta": CONTEXT_EDITING},
    ),
    ("anthropic", LOCAL, KEY, False, f"{LOCAL}/messages", BEARER | OLDER | VERSION),
    ("anthropic", LOCAL, "", False, f"{LOCAL}/messages", {"authorization": "Bearer none"} | VERSION),
]


@pytest.mark.parametrize(("dialect", "base_url", "key", "manages", "url", "expected"), CASES)
async def test_headers(
    dialect: Dialect,
    base_url: str,
    key: str,
    manages: bool,
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
    config = ProviderConfig("p", dialect, base_url, key_env=("MY_KEY",), context_management=manages)
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
        "accept-encoding": httpx2.Client().headers["accept-encoding"],  # with zstd from Python 3.14 on
        "connection": "keep-alive",
        "user-agent": f"chatctx/{__version__}",
    }
    body = {"content-type": "application/json", "content-length": str(len(message.content))}
    assert _read(message) == every | body | expected
    assert _read(question) == every | expected
    assert message.extensions["timeout"] == {"connect": 10.0, "read": 300.0, "write": 300.0, "pool": 300.0}


@pytest.mark.parametrize("value", ["hush\nhush", "hush\u2019"])
async def test_a_header_that_cannot_be_sent_is_no_fault_of_the_server(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", value)
    provider = make_provider("p", ProviderConfig("p", "openai-chat", OPENAI))
    got = await collect(provider, REQUEST)
    await provider.close()
    assert got.error is not None and got.error.kind == "bad_request"
    assert "OPENAI_ORG_ID" in str(got.error) and "hush" not in str(got.error)


def test_a_lone_surrogate_does_not_stop_a_request() -> None:
    body = {"model": "m", "messages": [{"content": text} for text in ("plain", "naïve 漢字 🎉", "a\ud83d")]}
    assert json.loads(encode_json(body)) == whole_texts(body)


def test_nor_does_a_number_that_is_no_json() -> None:
    assert encode_json({"default": float("nan"), "most": [float("inf"), 1.5]}) == b'{"default":null,"most":[null,1.5]}'


TEXTS = ("plain", "naïve 漢字 🎉", "\ud83d", "a\ud83d", '"quoted"\n', "")


def any_message(chance: Random) -> dict[str, Any]:
    content: Any = chance.choice(TEXTS)
    if chance.random() < 0.4:
        content = [{"type": "text", "text": chance.choice(TEXTS)}, {"type": "x", "n": chance.choice((1, 1.5, None))}]
    return {"role": chance.choice(("user", "assistant")), "content": content}


@pytest.mark.parametrize("field", ["messages", "input", "other"])
@pytest.mark.parametrize("seed", range(5))
def test_a_request_that_repeats_another_is_the_json_of_its_own(seed: int, field: str) -> None:
    chance, encoder = Random(seed), BodyEncoder()
    messages: list[dict[str, Any]] = []
    for _ in range(40):
        match chance.choice(("add", "add", "cut", "edit", "equal")):
            case "add":
                messages = [*messages, any_message(chance)]
            case "cut":
                messages = messages[: chance.randrange(len(messages) + 1)]
            case "edit" if messages:
                index = chance.randrange(len(messages))
                messages = [*messages[:index], any_message(chance), *messages[index + 1 :]]
            case _:  # other objects, the same values
                messages = [dict(message) for message in messages]
        body = {"model": "m", field: list(messages), "stream": True, "note": chance.choice(TEXTS)}
        encoded = encoder.encode(body)
        assert json.loads(encoded) == whole_texts(body)
        expected = json.dumps(whole_texts(body), ensure_ascii=False, separators=(",", ":"))
        assert encoded == expected.encode()


def _read(request: httpx2.Request) -> dict[str, str]:
    return {name.decode().lower(): value.decode() for name, value in request.headers.raw}


@pytest.mark.slow  # the SDK is loaded
def test_the_version_is_the_one_of_the_sdk() -> None:
    from anthropic import Anthropic

    assert Anthropic(api_key=KEY).default_headers["anthropic-version"] == ANTHROPIC_VERSION
