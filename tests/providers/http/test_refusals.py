"""What servers say of tools, and how they refuse them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.providers.http.refusal_sentences import SENTENCES
from tests.providers.replay import ReplayServer, replay_server
from tui.chat.runtime.model_facts import ModelFacts
from tui.chat.store.store import SessionStore
from tui.config.settings import Settings
from tui.providers.base import ErrorKind, Provider, ProviderError
from tui.providers.config import Dialect, ProviderConfig
from tui.providers.http.errors import classify_error
from tui.providers.http.refusals import Cause, refused
from tui.providers.registry import make_provider

ROUTES = ("/api/show", "/props", "/v1/models")


def serve(server: ReplayServer, answers: dict[str, Any]) -> None:
    for path in ROUTES:
        server.json(answers.get(path, {"error": {"message": "not found"}}), 200 if path in answers else 404, path=path)


def provider(url: str, dialect: Dialect = "openai-chat", **more: Any) -> Provider:
    base = url if dialect == "anthropic" else f"{url}/v1"
    return make_provider("mine", ProviderConfig("mine", dialect, base, **more))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "takes"),
    [
        ({"/api/show": {"capabilities": ["completion", "tools"]}}, True),
        ({"/api/show": {"capabilities": ["completion"]}}, False),
        ({"/props": {"chat_template_caps": {"supports_tools": True}}}, True),
        ({"/props": {"chat_template_caps": {"supports_tools": False}}}, False),
        ({"/v1/models": {"data": [{"id": "m", "capabilities": {"trained_for_tool_use": False}}]}}, False),
        ({"/v1/models": {"data": [{"id": "m"}]}}, None),
        ({"/props": ["odd"], "/api/show": {"capabilities": "odd"}}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic"])
async def test_what_servers_say(answers: dict[str, Any], takes: bool | None, dialect: Dialect) -> None:
    async with replay_server() as server:
        serve(server, answers)
        asking = provider(server.url, dialect)
        assert (await asking.describe("m")).tools is takes
        await asking.close()


async def test_a_hosted_server_and_one_that_is_away_are_not_asked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTED_KEY", "k-123456")
    monkeypatch.setattr("tui.providers.config.is_private", lambda _host: False)
    async with replay_server() as server:
        hosted = provider(server.url, needs_key=True, key_env=("HOSTED_KEY",))
        serve(server, {"/v1/models": {"data": [{"id": "m", "context_length": 9_000, "supported_parameters": []}]}})
        assert (await hosted.describe("m")).tools is None
        assert [request.path for request in server.requests] == ["/v1/models"]
        await hosted.close()
    gone = provider(server.url)
    with pytest.raises(ProviderError, match="cannot reach"):
        await gone.describe("m")
    await gone.close()


async def test_a_server_is_asked_once_in_a_run_and_its_word_is_kept(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "a.db")
    async with replay_server() as server:
        serve(server, {"/api/show": {"capabilities": ["completion"]}})
        mine = provider(server.url)
        models = ModelFacts(store, Settings(), lambda name: mine)
        assert models.takes_tools("mine", "m") is None
        await models.find("mine", "m")
        assert models.takes_tools("mine", "m") is False
        count = len(server.requests)
        await models.find("mine", "m")
        assert len(server.requests) == count
        await mine.close()
    gone = provider(server.url)
    later = ModelFacts(store, Settings(), lambda name: gone)
    assert later.takes_tools("mine", "m") is False
    await later.find("mine", "m")  # nobody answers
    assert later.takes_tools("mine", "m") is False
    await gone.close()
    store.close()


@pytest.mark.parametrize(("sentence", "cause"), SENTENCES)
def test_a_sentence_means_one_thing_and_none_that_its_neighbour_means(sentence: str, cause: Cause | None) -> None:
    error = classify_error(400, {"error": {"message": sentence, "type": "invalid_request_error"}}, provider="p")
    assert refused(error) == cause
    kinds: tuple[ErrorKind, ...] = ("overloaded", "rate_limit", "auth")
    for kind in kinds:
        assert refused(ProviderError(kind, sentence)) is None
