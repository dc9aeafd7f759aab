"""A provider is tried out before anything is written, and the key is written nowhere."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.providers.replay import Answer, ReplayServer, model_server
from tui.chat.provider_setup import ProviderSetup, SetupError
from tui.config.settings import ProviderSettings, load_settings
from tui.providers import keys
from tui.providers.base import ProviderError
from tui.providers.registry import all_configs

SECRET = "sk-test-4711-do-not-tell"
GOOD = f"{sys.executable} -c \"print('{SECRET}')\""
REFUSED = {"error": {"message": f"Incorrect API key provided: {SECRET}", "code": "invalid_api_key"}}


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ReplayServer]:
    monkeypatch.setenv("WORK_KEY", SECRET)
    async with model_server("one", "two") as running:
        yield running


def setup(folder: Path, tables: dict[str, ProviderSettings] | None = None) -> tuple[ProviderSetup, list[str]]:
    dropped: list[str] = []

    async def drop(name: str) -> None:
        dropped.append(name)

    return ProviderSetup(all_configs(tables), drop, folder / "config.toml", tables or {}), dropped


def own_server(
    server: ReplayServer, api_key_env: str | None = None, api_key_command: str | None = None
) -> tuple[str, ProviderSettings]:
    return "work", ProviderSettings("openai-compatible", f"{server.url}/v1", api_key_env, api_key_command)


@pytest.mark.parametrize("source", ["variable", "command", "none"])
async def test_it_is_tried_out_then_written_and_used(server: ReplayServer, tmp_path: Path, source: str) -> None:
    key_source = {"variable": {"api_key_env": "WORK_KEY"}, "command": {"api_key_command": GOOD}, "none": {}}[source]
    provider_setup, dropped = setup(tmp_path)
    draft = own_server(server, **key_source)
    assert [model.id for model in await provider_setup.test(*draft)] == ["one", "two"]
    assert not (tmp_path / "config.toml").exists() and dropped == []  # trying changes nothing
    sent = server.requests[-1].headers["authorization"]
    assert sent == ("Bearer none" if source == "none" else f"Bearer {SECRET}")
    line = await provider_setup.use(*draft)
    assert str(tmp_path / "config.toml") in line and dropped == ["work"]
    written = load_settings({"CHATCTX_CONFIG": str(tmp_path / "config.toml")}).providers["work"]
    assert written.base_url == f"{server.url}/v1"
    assert (written.api_key_env, written.api_key_command) == (
        key_source.get("api_key_env"),
        key_source.get("api_key_command"),
    )
    if source == "variable":
        assert SECRET not in (tmp_path / "config.toml").read_text()


@pytest.mark.parametrize(
    ("command", "words"), [("false", "exit code 1"), ("true", "printed nothing"), ("sleep 5", "within")]
)
async def test_a_command_that_gives_no_key(
    server: ReplayServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, words: str
) -> None:
    monkeypatch.setattr(keys, "COMMAND_TIMEOUT", 0.2)
    provider_setup, _ = setup(tmp_path)
    with pytest.raises(ProviderError, match=words):
        await provider_setup.test(*own_server(server, api_key_command=command))
    assert server.requests == []


async def test_what_is_wrong_is_said_without_the_key(server: ReplayServer, tmp_path: Path) -> None:
    provider_setup, _ = setup(tmp_path)
    server.by_path["/v1/models"] = Answer([json.dumps(REFUSED).encode()], 401, content_type="application/json")
    with pytest.raises(ProviderError) as refused:
        await provider_setup.test(*own_server(server, api_key_env="WORK_KEY"))
    assert refused.value.kind == "auth" and "401" in str(refused.value) and SECRET not in str(refused.value)
    with pytest.raises(ProviderError, match="cannot reach"):
        await provider_setup.test("work", ProviderSettings(base_url="http://127.0.0.1:9/v1"))
    for draft, words in (
        (own_server(server, api_key_env=SECRET), "not stored"),  # the key itself, in the wrong field
        (own_server(server, api_key_env="AIzaSyA1234567890abcdefghij"), "not stored"),
        (own_server(server, api_key_env="NOT_SET_HERE"), "NOT_SET_HERE is not set"),
        (("groq", ProviderSettings(base_url="http://x")), "your own"),
        (("My Box", ProviderSettings(base_url="http://x")), "your own"),
        (("work", ProviderSettings(base_url="localhost:80")), "http://"),
    ):
        with pytest.raises(SetupError, match=words) as caught:
            await provider_setup.test(*draft)
        assert "\n" not in str(caught.value) and SECRET not in str(caught.value) and "AIza" not in str(caught.value)
    server.by_path["/v1/models"] = Answer([b'{"data": []}'], content_type="application/json")
    with pytest.raises(SetupError, match="no model"):
        await provider_setup.test(*own_server(server))
    assert not (tmp_path / "config.toml").exists()


async def test_a_preset_writes_only_what_is_not_usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", SECRET)
    monkeypatch.setenv("GROQ_2", SECRET)
    provider_setup, _ = setup(tmp_path)
    assert "Nothing had to be written" in await provider_setup.use(
        *("groq", ProviderSettings(api_key_env="GROQ_API_KEY"))
    )
    assert not (tmp_path / "config.toml").exists()
    await provider_setup.use("groq", ProviderSettings(api_key_env="GROQ_2"))
    assert (tmp_path / "config.toml").read_text() == '[providers.groq]\napi_key_env = "GROQ_2"\n'
    await provider_setup.use("groq", ProviderSettings(api_key_env="GROQ_API_KEY"))  # and back
    assert (tmp_path / "config.toml").read_text() == '[providers.groq]\napi_key_env = "GROQ_API_KEY"\n'
    # A command from before would win over the variable: it goes, and what else is set there stays.
    tables = {"anthropic": ProviderSettings("anthropic", api_key_command="pass x", context_management=True)}
    (tmp_path / "config.toml").write_text(
        '[providers.anthropic]\nkind = "anthropic"\napi_key_command = "pass x"\ncontext_management = true\n'
    )
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    provider_setup, _ = setup(tmp_path, tables)
    await provider_setup.use("anthropic", ProviderSettings(api_key_env="ANTHROPIC_API_KEY"))
    settings = load_settings({"CHATCTX_CONFIG": str(tmp_path / "config.toml")}).providers["anthropic"]
    assert (settings.api_key_command, settings.context_management) == (None, True)


async def test_a_file_that_cannot_be_written_costs_nothing_but_the_file(server: ReplayServer, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("providers = 3\n")
    provider_setup, dropped = setup(tmp_path)
    line = await provider_setup.use(*own_server(server, api_key_env="WORK_KEY"))
    assert "for this run" in line and "[providers.work]" in line and 'api_key_env = "WORK_KEY"' in line
    assert dropped == ["work"] and (tmp_path / "config.toml").read_text() == "providers = 3\n"


async def test_openrouter_is_asked_in_a_way_that_wants_the_key(
    server: ReplayServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lists its models to everybody."""
    monkeypatch.setenv("OPENROUTER_API_KEY", SECRET)
    server.json(REFUSED, 401, path="/v1/key")
    provider_setup, _ = setup(
        tmp_path, {"openrouter": ProviderSettings(base_url=f"{server.url}/v1", api_key_env="WORK_KEY")}
    )
    with pytest.raises(ProviderError) as caught:
        await provider_setup.test("openrouter", ProviderSettings(api_key_env="WORK_KEY"))
    assert caught.value.kind == "auth"


@pytest.mark.parametrize(("status", "passes"), [(401, False), (404, True), (500, True)])
async def test_openrouter_shows_its_list_to_everybody_so_the_key_is_asked_about(
    server: ReplayServer, tmp_path: Path, status: int, passes: bool
) -> None:
    """Only a refusal counts: a route that is not there must not lock anybody out."""
    server.json({"error": {"message": "no"}}, status, path="/v1/key")
    provider_setup, _ = setup(
        tmp_path, {"openrouter": ProviderSettings(base_url=f"{server.url}/v1", api_key_env="WORK_KEY")}
    )
    draft = ("openrouter", ProviderSettings(api_key_env="WORK_KEY"))
    if passes:
        assert len(await provider_setup.test(*draft)) == 2
    else:
        with pytest.raises(ProviderError) as caught:
            await provider_setup.test(*draft)
        assert caught.value.kind == "auth"
    assert [request.path for request in server.requests] == ["/v1/models", "/v1/key"]


def test_a_password_in_an_address_is_not_shown(tmp_path: Path) -> None:
    provider_setup, _ = setup(
        tmp_path, {"work": ProviderSettings(base_url="https://me:hunter2@llm.example.com:8443/v1")}
    )
    assert [choice.host for choice in provider_setup.choices() if choice.name == "work"] == ["llm.example.com:8443"]
