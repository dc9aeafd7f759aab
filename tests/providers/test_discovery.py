"""What servers say about themselves, under whatever key they say it."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.messages import user
from tests.providers.replay import Answer, replay_server
from tests.providers.serving import serving
from tui.messages import Request
from tui.providers import discovery
from tui.providers.base import ModelInfo, ProviderError
from tui.providers.config import Dialect, ProviderConfig
from tui.providers.discovery import entry_info, entry_limits, is_for_chat
from tui.providers.registry import make_provider


@pytest.mark.parametrize(
    ("entry", "limits"),
    [
        ({"id": "m", "max_model_len": 32768}, (32768, None, None)),  # vLLM
        ({"id": "m", "context_window": 131072, "max_completion_tokens": 8192}, (131072, None, 8192)),  # Groq
        ({"id": "m", "max_context_length": 262144}, (262144, None, None)),  # Mistral
        ({"id": "m", "context_length": 131072, "max_model_len": 32768}, (32768, None, None)),  # vLLM behind a gateway
        ({"id": "m", "context_length": 131072}, (131072, None, None)),  # Together
        (
            {
                "id": "m",
                "context_length": 200000,
                "top_provider": {"context_length": 128000, "max_completion_tokens": 4096},
            },
            (128000, None, 4096),
        ),  # OpenRouter: the server that will answer has less
        ({"id": "m", "meta": {"n_ctx": 8192, "n_ctx_train": 131072}}, (8192, None, None)),  # llama.cpp
        ({"id": "m", "meta": {"n_ctx_train": 131072}}, None),  # what it was trained for is not what it runs with
        (
            {
                "id": "m",
                "capabilities": {
                    "limits": {
                        "max_context_window_tokens": 400000,
                        "max_prompt_tokens": 272000,
                        "max_output_tokens": 128000,
                    }
                },
            },
            (400000, 272000, 128000),
        ),  # Copilot
        (
            {"id": "m", "providers": [{"provider": "a", "context_length": 131072}, {"context_length": 65536}]},
            (65536, None, None),
        ),  # Hugging Face's router: any of them may answer
        ({"id": "m", "metadata": {"context_length": 131072, "max_tokens": 16384}}, (131072, None, 16384)),  # DeepInfra
        ({"id": "m", "parameters": {"max_seq_len": 32768}}, (32768, None, None)),  # TabbyAPI
        ({"id": "m", "max_context_length": 131072, "loaded_context_length": 4096}, (4096, None, None)),  # LM Studio
        ({"id": "m", "limits": {"max_context_length": 8192, "max_completion_tokens": 4096}}, (8192, None, 4096)),
        ({"id": "m", "parameters": {"max_seq_len": 32768, "draft": {"max_seq_len": 4096}}}, (32768, None, None)),
        (
            {"id": "m", "context_length": 32768, "meta": {"n_ctx": 8192}},
            (8192, None, None),
        ),  # llama.cpp behind a gateway
        ({"id": "m", "context_length": 32768, "limits": {"max_context_length": 8192}}, (8192, None, None)),
        ({"id": "m", "context_length": 32768, "vision": {"n_ctx": 576}}, (32768, None, None)),
        ({"id": "m", "context_length": 32768, "pricing": [{"context_length": 8192}]}, (32768, None, None)),
        ({"id": "m", "context_length": 32768, "endpoints": [{"context_length": 0}]}, (32768, None, None)),
        ({"id": "m", "a": {"b": {"c": {"d": {"e": {"f": {"context_length": 4096}}}}}}}, None),
        ({"id": "m", "context_length": "32768"}, (32768, None, None)),
        ({"id": "m", "context_length": "131,072"}, (131072, None, None)),
        ({"id": "m", "context_window": "128k"}, (128000, None, None)),
        ({"id": "m", "context_window": "8k,32k"}, None),
        ({"id": "m", "context_window": "1,5M"}, None),
        ({"id": "m", "model_limits": {"max_sequence_length": 131072}}, (131072, None, None)),  # watsonx.ai
        ({"id": "m", "model_spec": {"availableContextTokens": 65536}}, (65536, None, None)),  # Venice
        ({"id": "m", "image": {"context_length": 77}}, None),
        (
            {"id": "m", "config": {"vision_model": {"max_model_len": 577}, "engine": {"max_model_len": 8192}}},
            (8192, None, None),
        ),
        ({"id": "m", "context_length": 0}, None),
        ({"id": "m", "context_length": True}, None),
        ({"id": "m", "limits": None, "context_length": None}, None),
    ],
)
def test_limits_in_a_model_list(entry: dict[str, Any], limits: tuple[int, int | None, int | None] | None) -> None:
    listed = entry_limits(entry)
    assert (listed and (listed.context, listed.input, listed.output)) == limits


async def discovered_window(
    paths: dict[str, Any], model: str = "m", dialect: Dialect = "openai-chat", **config: Any
) -> tuple[int | None, str] | None:
    """Window and its source, as found from a server that answers these paths."""
    async with replay_server() as server:
        for path, body in paths.items():
            server.json(body, path=path)
        provider = make_provider("p", ProviderConfig("p", dialect, f"{server.url}/v1", **config))
        try:
            limits = (await provider.describe(model)).limits
        finally:
            await provider.close()
    return None if limits is None else (limits.context, limits.detail)


async def test_a_suffix_that_chooses_who_answers_is_no_part_of_the_name() -> None:
    paths = {"/v1/models": {"data": [{"id": "org/m", "context_length": 4096}, {"id": "org/n"}]}}
    assert await discovered_window(paths, "org/m:cerebras") == (4096, "the server's model list")
    paths = {"/v1/models": {"data": [{"id": "m:latest", "context_length": 4096}, {"context_length": 8192}]}}
    assert await discovered_window(paths, "m:8b") is None  # another model
    assert await discovered_window(paths, "n") is None


NAMES = {"/v1/models": {"data": [{"id": "m"}, {"id": "n"}]}}


@pytest.mark.parametrize(
    ("paths", "context"),
    [
        ({"/v1/models": {"data": [{"id": "n", "max_model_len": 1}, {"id": "m", "max_model_len": 4096}]}}, 4096),
        ({"/v1/models": [{"id": "m", "context_length": 4096}]}, 4096),
        ({"/v1/models": {"data": [{"id": "models/m", "context_length": 4096}]}}, 4096),
        ({"/v1/models": {"data": [{"id": "m:latest", "context_length": 4096}]}}, 4096),
        ({"/v1/models": {"data": [{"id": "other", "meta": {"n_ctx": 4096}}]}}, 4096),  # one model answers to every name
        (NAMES | {"/api/ps": {"models": [{"model": "m", "context_length": 8192}]}}, 8192),
        (NAMES | {"/api/ps": {"models": []}, "/api/show": {"parameters": "stop x\nnum_ctx   16384"}}, 16384),
        (NAMES | {"/api/ps": {"models": []}, "/api/show": {"model_info": {"llama.context_length": 131072}}}, None),
        (NAMES | {"/props": {"default_generation_settings": {"n_ctx": 2048}}}, 2048),
        (
            NAMES
            | {"/api/v0/models": {"data": [{"id": "m", "max_context_length": 32768, "loaded_context_length": 4096}]}},
            4096,
        ),
        (NAMES | {"/api/v0/models": {"data": [{"id": "m", "max_context_length": 32768}]}}, None),
        (NAMES | {"/api/v1/models": {"models": [{"key": "m", "max_context_length": 9, "loaded_instances": []}]}}, None),
        (
            NAMES
            | {
                "/api/v1/models": {
                    "models": [{"key": "m", "loaded_instances": [{"id": "m", "config": {"context_length": 4096}}]}]
                }
            },
            4096,
        ),
        (
            NAMES
            | {
                "/model/info": {
                    "data": [
                        {"model_name": "m", "model_info": {"max_tokens": 8192, "max_input_tokens": size}}
                        for size in (200_000, 128_000)
                    ]
                }
            },
            128_000,
        ),  # LiteLLM: two deployments
        (NAMES, None),
    ],
)
async def test_a_live_server(paths: dict[str, Any], context: int | None) -> None:
    limits = await discovered_window(paths)
    assert (limits[0] if limits else None) == context


async def test_each_missing_route_is_asked_for_once() -> None:
    async with replay_server() as server:
        server.json({}, 404)
        server.json(NAMES["/v1/models"], path="/v1/models")
        provider = make_provider("p", ProviderConfig("p", "openai-chat", f"{server.url}/v1"))
        try:
            await provider.describe("m")
            await provider.describe("m")  # as after the first answer of a server that does not tell the window
        finally:
            await provider.close()
        paths = [one.path for one in server.requests if not one.path.endswith("/v1/models")]
    assert "/props" in paths and len(paths) == len(set(paths))


async def test_a_gateway_that_drops_connections_for_other_routes_is_known_by_its_list() -> None:
    async with serving("openai-chat") as (server, provider):
        server.by_path["/api/show"] = Answer(end="cut")
        server.json({"data": [{"id": "m", "max_model_len": 32_768}]}, path="/v1/models")
        info = await provider.describe("m")
    assert info.limits is not None and info.limits.context == 32_768


@pytest.mark.parametrize(
    ("listed", "model", "window"),
    [
        ({"id": "m"}, "m", 2048),  # llama.cpp with --api-key
        ({"id": "m", "context_length": 4096}, "m", 4096),
        ({"id": "gpt-4o"}, "gpt-4o", None),  # the built-in table has its window
    ],
)
async def test_a_gateway_that_wants_a_key_is_asked_more_only_for_an_unknown_window(
    monkeypatch: pytest.MonkeyPatch, listed: dict[str, Any], model: str, window: int | None
) -> None:
    monkeypatch.setattr("tui.providers.config.is_private", lambda _host: False)
    paths = {"/v1/models": {"data": [listed]}, "/props": {"default_generation_settings": {"n_ctx": 2048}}}
    discovered = await discovered_window(paths, model, needs_key=True, api_key_command="echo some-key")
    assert (discovered and discovered[0]) == window


async def test_a_server_of_ones_own_is_asked_for_everything_with_a_key_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOX_KEY", "k-123456")
    async with replay_server() as server:
        for path, body in (NAMES | {"/props": {"n_ctx": 2048}, "/api/show": {"capabilities": ["tools"]}}).items():
            server.json(body, path=path)
        config = ProviderConfig("p", base_url=f"{server.url}/v1", needs_key=True, key_env=("BOX_KEY",))
        provider = make_provider("p", config)
        info = await provider.describe("m")
        await provider.close()
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer k-123456"}
    assert info.limits is not None and (info.limits.context, info.tools) == (2048, True)


async def test_routes_that_a_key_does_not_open_are_asked_once_and_renew_no_key(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    async with replay_server() as server:
        server.json(NAMES["/v1/models"], path="/v1/models")
        server.json({"error": "no"}, status=401)  # all others
        command = f"echo x >> {shlex.quote(str(asked))}; echo a-key-123456"
        config = ProviderConfig("p", base_url=f"{server.url}/v1", needs_key=True, api_key_command=command)
        provider = make_provider("p", config)
        for _ in range(2):
            assert (await provider.describe("m")).limits is None
        await provider.close()
        paths = [request.path for request in server.requests if request.path != "/v1/models"]
    assert len(paths) == len(set(paths)) > 4
    assert asked.read_text() == "x\n"


@pytest.mark.parametrize(
    ("host", "private"),
    [
        ("127.0.0.1:8000", True),
        ("localhost", True),
        ("[::1]:8000", True),
        ("192.168.1.7", True),
        ("10.0.0.2", True),
        ("100.64.0.9", True),  # a VPN such as Tailscale
        ("[fd00::1]", True),
        ("box:8000", True),
        ("box.local", True),
        ("host.docker.internal", True),
        ("api.example.com", False),
        ("8.8.8.8", False),
        ("127.0.0.1.example.com", False),
    ],
)
def test_a_server_in_a_local_network_is_not_hosted(host: str, private: bool) -> None:
    config = ProviderConfig("p", base_url=f"http://{host}/v1", needs_key=True)
    assert config.hosted is not private
    assert make_provider("p", config).capabilities("m").count_endpoint is (None if private else False)  # as vLLM does
    assert not ProviderConfig("p", base_url=f"http://{host}/v1").hosted


async def test_anthropics_list_is_the_truth() -> None:
    listing = {"data": [{"id": "m", "display_name": "M", "max_input_tokens": 1_000_000, "max_tokens": 128_000}]}
    async with replay_server() as server:
        server.json(listing, path="/v1/models")
        provider = make_provider("p", ProviderConfig("p", "anthropic", server.url))
        try:
            limits, models = (await provider.describe("m")).limits, await provider.models()
        finally:
            await provider.close()
    assert limits is not None
    assert (limits.context, limits.output, limits.source) == (1_000_000, 128_000, "probe")
    assert [(info.id, info.name) for info in models] == [("m", "M")]


async def test_anthropics_list_says_how_thinking_is_asked_for() -> None:
    def takes(*names: str) -> dict[str, Any]:
        every = ("adaptive", "between_tools", "disabled", "enabled")
        return {"thinking": {"supported": True, "types": {name: {"supported": name in names} for name in every}}}

    listing = {"data": [{"id": "claude-opus-5-5", "capabilities": takes("enabled", "disabled")}, {"id": "silent"}]}
    request = Request("p", "claude-opus-5-5", (user("Hi"),), max_output=4_000, reasoning="high")
    async with replay_server() as server:
        server.json(listing, path="/v1/models")
        server.json({"input_tokens": 37}, path="/v1/messages/count_tokens")
        provider = make_provider("p", ProviderConfig("p", "anthropic", server.url))
        try:
            modes = []
            for _ in range(2):
                await provider.count_tokens(request)
                modes.append("output_config" in (server.requests[-1].body or {}))
                infos = await provider.models()
            assert modes[0] is True  # by its name it is adaptive, with an effort
            assert modes[1] is False  # the server says that it takes a budget
            assert [info.thinking for info in infos] == [("disabled", "enabled"), None]
        finally:
            await provider.close()


@pytest.mark.parametrize(
    ("dialect", "path", "config", "key"),
    [
        ("openai-chat", "/v1/chat/completions/input_tokens", {"family": "llamacpp"}, "input_tokens"),
        ("openai-chat", "/v1/chat/completions/input_tokens", {}, "input_tokens"),
        ("openai-chat", "/tokenize", {}, "count"),
        ("openai-chat", "/models/m:countTokens", {"family": "gemini"}, "totalTokens"),
        ("openai-responses", "/v1/responses/input_tokens", {}, "input_tokens"),
        ("anthropic", "/v1/messages/count_tokens", {}, "input_tokens"),
    ],
)
async def test_counting_endpoints(dialect: Dialect, path: str, config: dict[str, Any], key: str) -> None:
    request = Request("p", "m", (user("Hi"),), max_output=100)
    async with replay_server() as server:
        base = f"{server.url}/openai" if config.get("family") == "gemini" else f"{server.url}/v1"
        provider = make_provider("p", ProviderConfig(**{"name": "p", "dialect": dialect, "base_url": base, **config}))
        try:
            assert await provider.count_tokens(request) is None  # no such route
            server.json({key: 37}, path=path)
            assert await provider.count_tokens(request) == 37
            body = server.requests[-1].body
        finally:
            await provider.close()
    assert "stream" not in body


@pytest.mark.parametrize(
    ("dialect", "paths"),
    [
        ("openai-chat", ("/tokenize", "/v1/chat/completions/input_tokens")),
        ("openai-responses", ("/v1/responses/input_tokens",)),
        ("anthropic", ("/v1/messages/count_tokens",)),
    ],
)
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer([b'{"error": "no route for that URI"}'], 400, {}, "application/json"), False),
        (Answer([b'{"error": "not this path"}'], 403, {}, "application/json"), False),
        (Answer([b"oops"], 500, {}, "text/plain"), False),
        (Answer([b"<!doctype html><title>Studio</title>"], 200, {}, "text/html"), False),
        (Answer([b'{"object": "list"}'], 200, {}, "application/json"), False),
        (Answer([b'{"error": "rate limit"}'], 429, {}, "application/json"), True),
        (Answer([b'{"error": "loading model"}'], 503, {}, "application/json"), True),
        (Answer([b'{"error": "Invalid token"}'], 401, {}, "application/json"), True),
    ],
)
async def test_a_server_that_may_lack_a_counting_route_refuses_it_in_its_own_way(
    dialect: Dialect, paths: tuple[str, ...], answer: Answer, *, told: bool
) -> None:
    """What holds for the moment only, or for this key, is an error; anything else means that it can't count."""
    request = Request("p", "m", (user("Hi"),), max_output=100)
    async with replay_server() as server:
        config = ProviderConfig("p", dialect, f"{server.url}{'' if dialect == 'anthropic' else '/v1'}")
        provider = make_provider("p", config)
        server.by_path[paths[-1]] = answer
        try:
            if told:
                with pytest.raises(ProviderError):
                    await provider.count_tokens(request)
            else:
                assert await provider.count_tokens(request) is None
                server.by_path[paths[0]] = answer
                assert await provider.count_tokens(request) is None
                assert [r.path for r in server.requests[-len(paths) :]] == list(paths)
        finally:
            await provider.close()


async def test_a_server_known_to_count_says_why_it_did_not() -> None:
    request = Request("p", "m", (user("Hi"),), max_output=100)
    async with replay_server() as server:
        server.json({"error": "the template failed"}, 500, path="/v1/chat/completions/input_tokens")
        provider = make_provider("p", ProviderConfig("p", "openai-chat", f"{server.url}/v1", family="llamacpp"))
        try:
            with pytest.raises(ProviderError, match="the template failed"):
                await provider.count_tokens(request)
        finally:
            await provider.close()


@pytest.mark.parametrize(
    ("entry", "local", "hosted"),
    [
        ({"id": "gpt-5.6"}, True, True),
        ({"id": "gpt-4o-search-preview"}, True, True),
        ({"id": "chatgpt-4o-latest"}, True, True),
        ({"id": "text-embedding-3-small"}, False, False),
        ({"id": "text-embedding-nomic-embed-text-v1.5"}, False, False),
        ({"id": "nomic-embed-text:latest"}, False, False),
        ({"id": "BAAI/bge-m3"}, False, False),
        ({"id": "whisper-large-v3"}, False, False),
        ({"id": "dall-e-3"}, True, False),
        ({"id": "gpt-4o-mini-tts"}, True, False),
        ({"id": "gpt-4o-transcribe"}, True, False),
        ({"id": "gpt-realtime-mini"}, True, False),
        ({"id": "omni-moderation-latest"}, True, False),
        ({"id": "mistral-ocr-latest"}, True, False),
        ({"id": "grok-2-image"}, True, False),
        ({"id": "grok-imagine-video"}, True, False),
        ({"id": "grok-4.3"}, True, True),
        ({"id": "my-veo-tune"}, True, True),
        ({"id": "m", "type": "embedding"}, False, False),
        ({"id": "m", "type": "chat"}, True, True),
        ({"id": "m", "capabilities": {"completion_chat": False}}, False, False),
        ({"id": "m", "capabilities": ["completion"]}, True, True),
    ],
)
def test_what_can_be_talked_to(entry: dict[str, Any], local: bool, hosted: bool) -> None:
    name = entry["id"]
    assert (is_for_chat(entry, name, hosted=False), is_for_chat(entry, name, hosted=True)) == (local, hosted)


async def test_a_list_leaves_out_what_cannot_be_talked_to() -> None:
    async with serving("openai-chat") as (server, provider):
        server.json({"data": [{"id": "nomic-embed-text"}, {"id": "qwen3"}]}, path="/v1/models")
        assert [model.id for model in await provider.models()] == ["qwen3"]


async def test_a_list_is_read_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """400 entries take 11 ms."""
    threads: set[int] = set()

    def noted(entry: Mapping[str, Any]) -> ModelInfo:
        threads.add(threading.get_ident())
        return entry_info(entry)

    monkeypatch.setattr("tui.providers.discovery.entry_info", noted)
    async with serving("openai-chat") as (server, provider):
        server.json({"data": [{"id": "qwen3"}]}, path="/v1/models")
        assert [model.id for model in await provider.models()] == ["qwen3"]
    assert threads and threading.get_ident() not in threads


async def test_a_list_is_as_large_as_lists_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name of 100 kB would make the column of `chatctx models` as wide."""
    monkeypatch.setattr(discovery, "MAX_MODELS", 50)
    async with serving("openai-chat") as (server, provider):
        entries = [{"id": "m" * 100_000}, *({"id": f"m{number}"} for number in range(50))]
        server.json({"data": entries}, path="/v1/models")
        models = await provider.models()
    assert len(models) == 49
    assert models[0].id == "m0"


async def test_a_broken_list_does_not_speak_of_an_answer() -> None:
    async with serving("openai-chat") as (server, provider):
        server.by_path["/v1/models"] = Answer([b"{broken"], content_type="application/json")
        with pytest.raises(ProviderError, match=r"broken JSON\. Check the server, then try again\.$"):
            await provider.models()


async def test_geminis_own_list_names_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its list in OpenAI's dialect has names only; the other one takes the key under a name of its own."""
    monkeypatch.setenv("GEMINI_TEST_KEY", "key-0001")
    async with replay_server() as server:
        listed = {"name": "models/gemini-3.1-pro-preview", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536}
        server.json(listed, path="/v1beta/models/gemini-3.1-pro-preview")
        config = ProviderConfig(
            "gemini",
            base_url=f"{server.url}/v1beta/openai",
            family="gemini",
            needs_key=True,
            key_env=("GEMINI_TEST_KEY",),
        )
        provider = make_provider("gemini", config)
        limits = (await provider.describe("gemini-3.1-pro-preview")).limits
        await provider.close()
        assert server.requests[0].headers["x-goog-api-key"] == "key-0001"
    assert limits is not None and (limits.context, limits.output) == (1_048_576, 65_536)


@pytest.mark.parametrize(
    ("entry", "efforts"),
    [
        ({"capabilities": {"effort": {"supported": False}}}, None),
        (
            {
                "capabilities": {
                    "effort": {"supported": True, "low": {"supported": True}, "max": {"supported": True}},
                    "thinking": {"types": {"adaptive": {"supported": True}, "between_tools": {"supported": True}}},
                }
            },
            ("off", "low", "max"),
        ),
        ({"supported_efforts": ["high", "low", "none", "turbo"]}, ("off", "low", "high")),
        (
            {"supported_reasoning_levels": [{"effort": "low", "description": "x"}, {"effort": "xhigh"}]},
            ("low", "xhigh"),
        ),
        ({"reasoning": {"supported_efforts": ["minimal"]}}, ("minimal",)),
        ({}, None),
    ],
)
def test_reasoning_levels_in_a_model_list(entry: dict[str, Any], efforts: tuple[str, ...] | None) -> None:
    assert entry_info({"id": "m", **entry}).efforts == efforts


async def test_the_listed_levels_are_the_ones_that_are_taken() -> None:
    listing = {"data": [{"id": "m", "supported_efforts": ["low", "high"]}]}
    async with serving("openai-chat") as (server, provider):
        server.json(listing, path="/v1/models")
        assert provider.efforts("m") == ("off", "low", "medium", "high")
        await provider.models()
        assert provider.efforts("m") == ("low", "high")
        assert [provider.effort_sent("m", wish) for wish in ("off", "medium", "max", None)] == [
            "low",
            "high",
            "high",
            None,
        ]
