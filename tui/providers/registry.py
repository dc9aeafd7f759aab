"""From names to providers: presets and a person's own tables, and the choice of the first model."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from tui.config.settings import ProviderSettings
from tui.providers.base import Provider
from tui.providers.config import LOCAL_SERVERS, PRESETS, Dialect, ProviderConfig
from tui.providers.dialects.openai_chat import OpenAIChat
from tui.providers.local import DemoProvider, LocalProvider, missing_part, model_name
from tui.text.labels import did_you_mean

PROBE_TIMEOUT = 0.8  # seconds for connection and answer; a server on this machine is quick
PROBE_BYTES = 1_000_000  # bytes read of a model list


_DIALECTS: Mapping[str, Dialect] = {"openai": "openai-responses", "anthropic": "anthropic"}  # by `kind` in the file

_WITHOUT_SERVER = ("local", "demo")

# A dialect's route at the end of an address: people copy it along.
_ROUTE = re.compile(r"/(?:chat/completions|completions|responses|messages)/*(?=\?|$)")


def parse_model(full: str) -> tuple[str, str]:
    """("anthropic", "claude-x") for "anthropic/claude-x". Raises ValueError with one line for a person."""
    provider, slash, model = full.strip().partition("/")
    if not slash or not provider or not model:
        raise ValueError(
            f"{full!r} is not a model name; write provider/model, for example openai/gpt-5.6 or ollama/qwen3"
        )
    return provider.lower(), model


def provider_config(name: str, table: ProviderSettings | None = None) -> ProviderConfig:
    """The preset `name` with the person's own table applied. Raises ValueError with one line for a person."""
    preset = PRESETS.get(name)
    if table is None:
        if preset is None:
            hint = did_you_mean(name, PRESETS) or f"add [providers.{name}] with base_url to the config file"
            raise ValueError(f"unknown provider {name!r}; {hint}")
        return preset
    config = preset or ProviderConfig(name)
    dialect = config.dialect if table.kind == "openai-compatible" else _DIALECTS[table.kind]
    if dialect in _WITHOUT_SERVER:
        table = replace(table, base_url=None, api_key_env=None, api_key_command=None)
    base_url = _ROUTE.sub("", table.base_url or "") or config.base_url
    if not base_url and table.kind in ("openai", "anthropic"):
        base_url = PRESETS[table.kind].base_url
    if not base_url and config.dialect not in _WITHOUT_SERVER:
        raise ValueError(f"provider {name!r} has no base_url; add it to [providers.{name}] in the config file")
    official = urlsplit(base_url).hostname in ("api.openai.com", "api.anthropic.com")
    return replace(
        config,
        dialect=dialect,
        base_url=base_url,
        official=official,
        key_env=(table.api_key_env,) if table.api_key_env else config.key_env,
        api_key_command=table.api_key_command,
        context_management=table.context_management and dialect == "anthropic",
        idle_timeout=table.idle_timeout or config.idle_timeout,
        max_response=table.max_response or config.max_response,
        needs_key=official or bool(table.api_key_env) or (config.needs_key and base_url == config.base_url),
    )


def ignored_settings(name: str, table: ProviderSettings) -> Iterator[str]:
    """A line for each setting of a person's table that the provider, which exists, has no use for."""
    dialect = provider_config(name, table).dialect
    if table.context_management and dialect != "anthropic":
        yield f"[providers.{name}] context_management is ignored: only Anthropic's Messages API has it."
    for setting in ("base_url", "api_key_env", "api_key_command") if dialect in _WITHOUT_SERVER else ():
        if getattr(table, setting):
            yield f"[providers.{name}] {setting} is ignored: {name} has no server. Give yours another name."


def all_configs(
    tables: Mapping[str, ProviderSettings] | None = None, *, gguf: Path | None = None, window: int | None = None
) -> dict[str, ProviderConfig]:
    """Every provider: the person's own first, then the presets.

    `gguf` and `window` (tokens) are for the embedded model. Raises ValueError with one line for a person.
    """
    configs = {name: provider_config(name, table) for name, table in (tables or {}).items()}
    configs |= {name: config for name, config in PRESETS.items() if name not in configs}
    configs["local"] = replace(configs["local"], gguf=gguf, window=window, default_model=model_name(gguf))
    return configs


def make_provider(name: str, config: ProviderConfig | None = None) -> Provider:
    """The provider `name`, whose first request loads the HTTP library. Raises ValueError with one line for a person."""
    config = config or provider_config(name)
    match config.dialect:
        case "openai-chat":
            return OpenAIChat(config)
        case "local":
            return LocalProvider(config)
        case "demo":
            return DemoProvider(config)
        case "anthropic":
            from tui.providers.dialects.anthropic import AnthropicMessages  # when it is needed, like the next

            return AnthropicMessages(config)
        case "openai-responses":
            from tui.providers.dialects.openai_responses import OpenAIResponses

            return OpenAIResponses(config)


@dataclass(frozen=True, slots=True)
class Choice:
    """The provider and model to begin with, and why. `model` is empty if only the server can name one."""

    provider: str
    model: str
    reason: str

    @property
    def full_name(self) -> str:
        """ "provider/model"."""
        return f"{self.provider}/{self.model}"


async def choose_default(
    configs: Mapping[str, ProviderConfig],
    *,
    explicit: str | None = None,
    last_used: str | None = None,
    last_by_provider: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
) -> Choice:
    """The model to begin with.

    `explicit`, the last used, one with a key in the environment, a local server that answers, the embedded model, the
    demo. A last used model without a key or file is skipped. Raises ValueError with one line for a person if `explicit`
    cannot be used.
    """
    env = os.environ if env is None else env
    last = last_by_provider or {}
    if explicit and explicit in configs:  # a provider alone
        return Choice(explicit, last.get(explicit) or configs[explicit].default_model, "asked for")
    if explicit:
        provider, model = parse_model(explicit)
        if provider not in configs:
            provider_config(provider)  # raises with the nearest name
        return Choice(provider, model, "asked for")
    if last_used and (choice := _last_used(last_used, configs, env)):
        return choice
    for name, config in configs.items():
        if config.key_env and config.has_key(env):
            return Choice(name, last.get(name) or config.default_model, "its key is in the environment")
    for name in await answering(configs):
        return Choice(name, last.get(name, ""), f"a server answers at {configs[name].base_url}")
    if missing_part(configs["local"].gguf) is None:
        return Choice("local", configs["local"].default_model, "the embedded model")
    return Choice("demo", configs["demo"].default_model, "no model was found")


def _last_used(full: str, configs: Mapping[str, ProviderConfig], env: Mapping[str, str]) -> Choice | None:
    try:
        provider, model = parse_model(full)
    except ValueError:
        return None
    config = configs.get(provider)
    if config is None or config.dialect == "demo" or (config.needs_key and not config.has_key(env)):
        return None
    if config.dialect == "local" and (missing_part(config.gguf) is not None or model != config.default_model):
        return None
    return Choice(provider, model, "used last")


async def answering(configs: Mapping[str, ProviderConfig]) -> list[str]:
    """The local servers that list a model (or want a key); all are asked concurrently."""
    answers = await asyncio.gather(*(_lists_models(configs[name].base_url) for name in LOCAL_SERVERS))
    return [name for name, lists in zip(LOCAL_SERVERS, answers, strict=True) if lists]


async def _lists_models(base_url: str) -> bool:
    """Whether GET /models lists one, or is refused without a key: other programs may listen at these ports.

    Without the HTTP library: this runs before the first frame.
    """
    parts = urlsplit(base_url)
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
            with contextlib.closing(writer):
                ask = f"GET {parts.path}/models HTTP/1.0\r\nHost: {parts.netloc}\r\nAccept: application/json\r\n\r\n"
                writer.write(ask.encode())
                status = (await reader.readline()).split(b" ", 2)[1:2]
                answer = b""
                while status == [b"200"] and b'"id"' not in answer and len(answer) < PROBE_BYTES:
                    if not (more := await reader.read(65536)):
                        break
                    answer += more
    except (OSError, TimeoutError, ValueError):
        return False
    return status == [b"401"] or b'"id"' in answer
