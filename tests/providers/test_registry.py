"""Names, tables of the config file, and the order in which a first model is chosen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.providers.replay import Answer, replay_server
from tui.config.settings import ProviderSettings
from tui.providers import registry
from tui.providers.base import Capabilities, Provider
from tui.providers.config import IDLE_TIMEOUT, LOCAL_SERVERS, PRESETS, ProviderConfig
from tui.providers.registry import (
    all_configs,
    answering,
    choose_default,
    ignored_settings,
    make_provider,
    parse_model,
    provider_config,
)

NOWHERE = "http://127.0.0.1:9/v1"  # nobody listens at the discard port


@pytest.fixture
def configs() -> dict[str, ProviderConfig]:
    """All presets, with the local servers at ports where nobody is."""
    presets = all_configs()
    return presets | {name: replace(presets[name], base_url=NOWHERE) for name in LOCAL_SERVERS}


@pytest.mark.parametrize(
    ("full", "parts"),
    [
        ("anthropic/claude-x", ("anthropic", "claude-x")),
        ("openrouter/openai/gpt-5", ("openrouter", "openai/gpt-5")),
        (" Ollama/qwen3:8b ", ("ollama", "qwen3:8b")),
    ],
)
def test_parse_model(full: str, parts: tuple[str, str]) -> None:
    assert parse_model(full) == parts


@pytest.mark.parametrize("full", ["", "gpt-5", "/gpt-5", "openai/", "/"])
def test_a_name_that_is_none(full: str) -> None:
    with pytest.raises(ValueError, match="write provider/model"):
        parse_model(full)


class TestTables:
    def test_a_server_of_ones_own(self) -> None:
        config = provider_config("box", ProviderSettings(base_url="http://box:8000/v1", api_key_env="BOX_KEY"))
        assert (config.dialect, config.base_url, config.key_env) == ("openai-chat", "http://box:8000/v1", ("BOX_KEY",))
        assert config.needs_key and not config.official

    def test_a_preset_with_another_key(self) -> None:
        config = provider_config("groq", ProviderSettings(api_key_command="pass show groq"))
        assert (config.base_url, config.api_key_command) == (PRESETS["groq"].base_url, "pass show groq")

    def test_a_preset_at_another_address_needs_no_key(self) -> None:
        config = provider_config("openai", ProviderSettings(kind="openai", base_url="http://127.0.0.1:1/v1"))
        assert (config.dialect, config.official, config.needs_key) == ("openai-responses", False, False)

    def test_patience_and_context_management(self) -> None:
        assert provider_config("anthropic").context_management is False
        config = provider_config("anthropic", ProviderSettings(context_management=True, idle_timeout=60.0))
        assert (config.context_management, config.idle_timeout, config.official) == (True, 60.0, True)
        assert provider_config("box", ProviderSettings(base_url=NOWHERE)).idle_timeout == IDLE_TIMEOUT

    def test_the_anthropic_dialect_elsewhere(self) -> None:
        config = provider_config("mine", ProviderSettings(kind="anthropic", base_url="http://127.0.0.1:1"))
        assert (config.dialect, config.official) == ("anthropic", False)
        config = provider_config("work", ProviderSettings(kind="anthropic", api_key_env="WORK_KEY"))
        assert (config.base_url, config.official, config.key_env) == ("https://api.anthropic.com", True, ("WORK_KEY",))

    @pytest.mark.parametrize(
        ("name", "table", "words"),
        [
            ("box", ProviderSettings(), "base_url"),
            ("antropic", None, "did you mean anthropic"),
            ("qqq", None, r"add \[providers.qqq\]"),
        ],
    )
    def test_what_cannot_be(self, name: str, table: ProviderSettings | None, words: str) -> None:
        with pytest.raises(ValueError, match=words) as caught:
            provider_config(name, table)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("name", "table", "ignored"),
        [
            ("anthropic", ProviderSettings(context_management=True, api_key_env="KEY"), []),
            ("groq", ProviderSettings(context_management=True), ["context_management"]),
            ("mine", ProviderSettings("openai", NOWHERE, context_management=True), ["context_management"]),
            ("anthropic", ProviderSettings("openai", NOWHERE, context_management=True), ["context_management"]),
            ("box", ProviderSettings(base_url=NOWHERE, api_key_command="pass x"), []),
            ("local", ProviderSettings(base_url=NOWHERE, api_key_env="KEY"), ["base_url", "api_key_env"]),
            ("demo", ProviderSettings(api_key_command="pass x"), ["api_key_command"]),
        ],
    )
    def test_what_a_provider_lacks_is_ignored_and_said(
        self, name: str, table: ProviderSettings, ignored: list[str]
    ) -> None:
        lines = list(ignored_settings(name, table))
        assert [line.split()[1] for line in lines] == ignored
        assert all(line.startswith(f"[providers.{name}] ") for line in lines)
        without: dict[str, Any] = dict.fromkeys(ignored) | {"context_management": False} if ignored else {}
        assert provider_config(name, table) == provider_config(name, replace(table, **without))

    def test_ones_own_come_first_and_the_gguf_names_the_model(self) -> None:
        configs = all_configs(
            {"box": ProviderSettings(base_url=NOWHERE)}, gguf=Path("/m/My Model Q4.gguf"), window=4096
        )
        assert next(iter(configs)) == "box"
        local = configs["local"]
        assert (local.default_model, local.window) == ("my-model-q4", 4096)


@pytest.mark.parametrize("name", PRESETS)
async def test_every_preset_makes_a_provider(name: str) -> None:
    provider = make_provider(name)
    assert isinstance(provider, Provider)
    assert provider.name == name
    assert isinstance(provider.capabilities(PRESETS[name].default_model or "x"), Capabilities)
    await provider.close()


class TestFirstModel:
    async def test_what_is_asked_for_wins(self, configs: dict[str, ProviderConfig]) -> None:
        choice = await choose_default(
            configs, explicit="groq/llama", last_used="openai/gpt-5", env={"OPENAI_API_KEY": "k"}
        )
        assert choice.full_name == "groq/llama"

    async def test_a_provider_alone_means_its_last_model(self, configs: dict[str, ProviderConfig]) -> None:
        last = {"openai": "gpt-5-mini"}
        assert (await choose_default(configs, explicit="openai", last_by_provider=last, env={})).model == "gpt-5-mini"
        assert (await choose_default(configs, explicit="openai", env={})).model == PRESETS["openai"].default_model

    @pytest.mark.parametrize("name", ["gpt-5", "nobody/x", ""])
    async def test_an_unknown_name_is_an_error_or_nothing(self, configs: dict[str, ProviderConfig], name: str) -> None:
        if name:
            with pytest.raises(ValueError):
                await choose_default(configs, explicit=name, env={})
        else:
            assert (await choose_default(configs, explicit=name, env={})).provider in ("local", "demo")

    async def test_then_the_last_used(self, configs: dict[str, ProviderConfig]) -> None:
        env = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
        assert (await choose_default(configs, last_used="openai/gpt-5", env=env)).full_name == "openai/gpt-5"

    @pytest.mark.parametrize("last", ["openai/gpt-5", "demo/guide", "gone/model", "nonsense", "local/other-file"])
    async def test_unless_it_cannot_be_used_any_more(self, configs: dict[str, ProviderConfig], last: str) -> None:
        choice = await choose_default(configs, last_used=last, env={"GROQ_API_KEY": "k"})
        assert choice.provider == "groq"

    async def test_then_a_key_in_the_environment(self, configs: dict[str, ProviderConfig]) -> None:
        choice = await choose_default(configs, env={"MISTRAL_API_KEY": "k", "DEEPSEEK_API_KEY": " "})
        assert (choice.provider, choice.model) == ("mistral", PRESETS["mistral"].default_model)

    async def test_then_a_local_server_that_answers(self, configs: dict[str, ProviderConfig]) -> None:
        async with replay_server() as server:
            server.json({"object": "list", "data": [{"id": "qwen"}]}, path="/v1/models")
            configs["lmstudio"] = replace(configs["lmstudio"], base_url=f"{server.url}/v1")
            assert await answering(configs) == ["lmstudio"]
            choice = await choose_default(configs, last_by_provider={"lmstudio": "qwen"}, env={})
            assert (choice.provider, choice.model) == ("lmstudio", "qwen")
            assert server.url in choice.reason

    @pytest.mark.parametrize(
        ("answer", "counts"),
        [
            (Answer([b'{"data": [{"id": "m"}]}']), True),
            (Answer([b'{"error": "key"}'], 401), True),
            (Answer([b'{"data": []}']), False),
            (Answer([b'{"id": 1}'], 404), False),
            (Answer([b"<html>some other program</html>"]), False),
            (Answer([], end="hang"), False),
            (Answer([], end="short"), False),
        ],
    )
    async def test_other_programs_at_these_ports_are_no_models(
        self, configs: dict[str, ProviderConfig], answer: Answer, counts: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if answer.end == "hang":
            monkeypatch.setattr(registry, "PROBE_TIMEOUT", 0.05)
        async with replay_server() as server:
            server.by_path["/v1/models"] = answer
            configs["llamacpp"] = replace(configs["llamacpp"], base_url=f"{server.url}/v1")
            assert await answering(configs) == (["llamacpp"] if counts else [])

    async def test_then_the_embedded_model_then_the_demo(
        self, configs: dict[str, ProviderConfig], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(registry, "missing_part", lambda gguf: None)
        assert (await choose_default(configs, env={})).provider == "local"
        monkeypatch.setattr(registry, "missing_part", lambda gguf: "no package")
        assert (await choose_default(configs, env={})).full_name == "demo/guide"
