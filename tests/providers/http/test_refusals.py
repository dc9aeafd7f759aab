"""What servers say of tools, and how they refuse them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.providers.replay import ReplayServer, replay_server
from tui.chat.runtime.tool_support import ToolSupport
from tui.chat.store.store import SessionStore
from tui.providers.base import Provider, ProviderError
from tui.providers.config import Dialect, ProviderConfig
from tui.providers.http.refusals import cannot_read, refuses_images, refuses_tools
from tui.providers.registry import make_provider

ROUTES = ("/api/show", "/props", "/v1/models")


def serve(server: ReplayServer, known: dict[str, Any]) -> None:
    for path in ROUTES:
        server.json(known.get(path, {"error": {"message": "not found"}}), 200 if path in known else 404, path=path)


def provider(url: str, dialect: Dialect = "openai-chat", **more: Any) -> Provider:
    base = url if dialect == "anthropic" else f"{url}/v1"
    return make_provider("mine", ProviderConfig("mine", dialect, base, **more))


@pytest.mark.parametrize(
    ("known", "said"),
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
async def test_what_servers_say(known: dict[str, Any], said: bool | None, dialect: Dialect) -> None:
    async with replay_server() as server:
        serve(server, known)
        found = provider(server.url, dialect)
        assert await found.takes_tools("m") is said
        asked = [request.path for request in server.asked]
        await found.takes_tools("m")
        again = [request.path for request in server.asked[len(asked) :]]
        assert not [path for path in again if path not in known and path != "/v1/models"]  # not there: not asked again
        await found.close()


async def test_a_hosted_server_and_one_that_is_away_are_not_asked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTED_KEY", "k-123456")
    async with replay_server() as server:
        hosted = provider(server.url, needs_key=True, key_env=("HOSTED_KEY",))
        assert await hosted.takes_tools("m") is None
        assert not server.asked
        await hosted.close()
    gone = provider(server.url)
    assert await gone.takes_tools("m") is None
    await gone.close()


async def test_a_server_is_asked_once_in_a_run_and_its_word_is_kept(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "a.db")
    async with replay_server() as server:
        serve(server, {"/api/show": {"capabilities": ["completion"]}})
        found, support = provider(server.url), ToolSupport(store)
        assert support.known("mine", "m") is None
        await support.find(found, "m")
        assert support.known("mine", "m") is False
        asked = len(server.asked)
        await support.find(found, "m")
        assert len(server.asked) == asked
        await found.close()
    later = ToolSupport(store)
    assert later.known("mine", "m") is False
    gone = provider(server.url)
    await later.find(gone, "m")  # nobody answers: what was known stays
    assert later.known("mine", "m") is False
    await gone.close()
    store.close()


@pytest.mark.parametrize(
    ("kind", "text", "tools", "images"),
    [
        ("bad_request", "gemma:2b does not support tools", True, False),
        ("not_found", "No endpoints found that support tool use. To learn more about provider routing, …", True, False),
        ("bad_request", '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser', True, False),
        ("server", "tools param requires --jinja flag", True, False),
        ("bad_request", "Function calling is not enabled for models/gemma-3", True, False),
        ("bad_request", "image input is not supported - hint: mmproj", False, True),
        ("not_found", "No endpoints found that support image input", False, True),
        ("bad_request", "llama-3 is not a multimodal model", False, True),
        ("bad_request", "tool_use ids were found without tool_result blocks", False, False),
        ("bad_request", "Invalid schema for function 'x': not supported keyword", False, False),
        ("rate_limit", "does not support tools", False, False),
    ],
)
def test_which_refusals_mean_what(kind: Any, text: str, tools: bool, images: bool) -> None:
    error = ProviderError(kind, text)
    assert (refuses_tools(error), refuses_images(error)) == (tools, images)


@pytest.mark.parametrize(
    ("text", "unreadable"),
    [
        ("Could not process image", True),
        ("messages.0.content.1.image: At least one of the image dimensions exceed max allowed size: 8000 pixels", True),
        ("Image does not match the provided media type image/png", True),
        ("You uploaded an unsupported image. Please make sure your image has of one the following formats", True),
        ("The image data you provided does not represent a valid image", True),
        ("Unable to process input image. Please retry", True),
        ("Failed to load image or audio file", True),
        ("The PDF specified was not valid.", True),
        ("A maximum of 100 PDF pages may be provided.", True),
        ("image input is not supported", False),
        ("roles must alternate", False),
    ],
)
def test_which_refusals_mean_a_file(text: str, unreadable: bool) -> None:
    assert cannot_read(ProviderError("bad_request", text)) is unreadable
    assert not cannot_read(ProviderError("overloaded", text))
