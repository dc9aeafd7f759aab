"""Configuration of one provider, as plain values; presets of the usual ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from tui.providers.base import ProviderError
from tui.providers.capabilities import Family
from tui.providers.keys import hold_secret, key_from_command, key_from_env

Dialect: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "local", "demo"]
ReasoningField: TypeAlias = Literal["reasoning_content", "reasoning"]
EffortStyle: TypeAlias = Literal["effort", "openrouter", "thinking"]


IDLE_TIMEOUT = 300.0
"""Seconds. Local models process long prompts, and hosted ones think, for minutes without sending anything."""

MAX_RESPONSE = 32_000_000
"""Default limit of one answer in bytes: its body, one of its events, all of its text.

The longest answers of 2026 (384k output tokens) are under 2 MB of text, the largest images about 10 MB of base64.
"""


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """One provider: its address, its dialect, and the source of its key.

    `key_env` are environment variables, the first one set is used; `api_key_command` takes precedence over them.
    `needs_key` providers are not asked without one. `default_model` is used if nothing else names a model; empty: the
    first one listed by the server. `window` (tokens) and `gguf` are for the embedded server. `family` and the four
    fields below it tell how its Chat Completions differ. `reasoning_field`: in which an assistant message carries its
    reasoning back. `effort_style`: how an effort is written: as `reasoning_effort`, in OpenRouter's `reasoning` object,
    or as a `thinking` switch with an effort beside it.
    """

    name: str
    dialect: Dialect = "openai-chat"
    base_url: str = ""
    title: str = ""
    key_env: tuple[str, ...] = ()
    api_key_command: str | None = None
    needs_key: bool = False
    default_model: str = ""
    family: Family = "plain"
    reasoning_field: ReasoningField = "reasoning_content"
    effort_style: EffortStyle = "effort"
    short_tool_ids: bool = False
    images: bool = True  # its models may accept them
    official: bool = False  # OpenAI's or Anthropic's own servers
    gguf: Path | None = None
    window: int | None = None
    context_management: bool = False  # Anthropic clears old tool results by itself
    idle_timeout: float = IDLE_TIMEOUT  # seconds of silence after which an answer is stalled
    max_response: int = MAX_RESPONSE  # bytes of one answer

    @property
    def label(self) -> str:
        """The name shown to a person."""
        return self.title or self.name

    @property
    def host(self) -> str:
        """Host and port of its address."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    @property
    def hosted(self) -> bool:
        """Whether a company runs it for many: it needs a key, and is not in a local network."""
        return self.official or (self.needs_key and not is_private(urlsplit(self.base_url).hostname or ""))

    def has_key(self, env: Mapping[str, str] | None = None) -> bool:
        """Whether there is a key, or a command that prints one. Runs nothing."""
        return bool(self.api_key_command) or key_from_env(self.key_env, os.environ if env is None else env) is not None

    async def key(self) -> str | None:
        """The API key; None for servers that need none. Raises `ProviderError` of kind "auth" if it is missing."""
        key = key_from_env(self.key_env, os.environ)
        if self.api_key_command:
            key = await key_from_command(self.api_key_command, self.name)
        if key is None:
            if self.needs_key:
                names = " or ".join(self.key_env) or "a variable named by api_key_env"
                raise ProviderError(
                    "auth",
                    f"{self.name}: no API key. Set {names}, or api_key_command in the config file; /provider in the "
                    "chat tries it out.",
                )
            return None
        hold_secret(key)
        if not (key.isascii() and key.isprintable()) or " " in key:  # an HTTP library would quote it in an error
            raise ProviderError(
                "auth",
                f"{self.name}: the API key holds a line break, a blank, curly quotes or the like, which no key has. "
                f"Look at {'api_key_command' if self.api_key_command else ' or '.join(self.key_env)}.",
            )
        return key


_LOCAL_NAMES = (".local", ".lan", ".internal", ".localhost", ".home.arpa")  # mDNS, routers, RFC 6761, RFC 8375


def is_private(host: str) -> bool:
    """Whether `host`, a name or an address, is this machine or in a local network (a VPN's included)."""
    try:
        return not ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(_LOCAL_NAMES)


_GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"
# Name, title, address, default model, variables of the key; providers with variables need a key. Default models are the
# middle of each family; after the first turn the model last used is the default.
_USUAL = (
    ("anthropic", "Anthropic", "https://api.anthropic.com", "claude-sonnet-5-5", "ANTHROPIC_API_KEY"),
    ("openai", "OpenAI", "https://api.openai.com/v1", "gpt-5.6", "OPENAI_API_KEY"),
    ("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "openrouter/auto", "OPENROUTER_API_KEY"),
    ("gemini", "Google Gemini", _GEMINI, "gemini-flash-latest", "GEMINI_API_KEY GOOGLE_API_KEY"),
    ("deepseek", "DeepSeek", "https://api.deepseek.com", "deepseek-flash", "DEEPSEEK_API_KEY"),
    ("mistral", "Mistral", "https://api.mistral.ai/v1", "mistral-medium-latest", "MISTRAL_API_KEY"),
    ("groq", "Groq", "https://api.groq.com/openai/v1", "openai/gpt-oss-120b", "GROQ_API_KEY"),
    ("xai", "xAI", "https://api.x.ai/v1", "grok-4.7", "XAI_API_KEY"),
    ("together", "Together", "https://api.together.xyz/v1", "", "TOGETHER_API_KEY"),
    ("fireworks", "Fireworks", "https://api.fireworks.ai/inference/v1", "", "FIREWORKS_API_KEY"),
    ("cerebras", "Cerebras", "https://api.cerebras.ai/v1", "", "CEREBRAS_API_KEY"),
    ("moonshot", "Moonshot (Kimi)", "https://api.moonshot.ai/v1", "kimi-k3", "MOONSHOT_API_KEY"),
    ("zai", "Z.ai (GLM)", "https://api.z.ai/api/paas/v4", "glm-5.3", "ZAI_API_KEY"),
    ("ollama", "Ollama", "http://127.0.0.1:11434/v1", "", ""),
    ("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1", "", ""),
    ("llamacpp", "llama.cpp", "http://127.0.0.1:8080/v1", "", ""),
    ("vllm", "vLLM", "http://127.0.0.1:8000/v1", "", ""),
    ("local", "Embedded (llama.cpp)", "", "smollm2-135m", ""),
    ("demo", "Demo, no model", "", "guide", ""),
)
_DIFFERENCES: Mapping[str, Mapping[str, Any]] = {
    "anthropic": {"dialect": "anthropic", "official": True},
    "openai": {"dialect": "openai-responses", "official": True},
    "openrouter": {"family": "openrouter", "reasoning_field": "reasoning", "effort_style": "openrouter"},
    "gemini": {"family": "gemini"},
    "deepseek": {"family": "deepseek", "effort_style": "thinking"},
    "mistral": {"short_tool_ids": True},
    "cerebras": {"images": False},
    "moonshot": {"family": "kimi", "effort_style": "thinking"},
    "zai": {"family": "loop", "effort_style": "thinking"},
    "ollama": {"family": "loop", "reasoning_field": "reasoning"},
    "lmstudio": {"family": "loop"},
    "llamacpp": {"family": "llamacpp"},
    "vllm": {"family": "loop", "reasoning_field": "reasoning"},
    "local": {"dialect": "local", "family": "llamacpp", "images": False},
    "demo": {"dialect": "demo"},
}

PRESETS = {
    name: ProviderConfig(
        name,
        base_url=base_url,
        title=title,
        key_env=tuple(variables.split()),
        needs_key=bool(variables),
        default_model=model,
        **_DIFFERENCES.get(name, {}),
    )
    for name, title, base_url, model, variables in _USUAL
}
"""The usual providers by name, in the order in which they are chosen by a key in the environment."""

LOCAL_SERVERS = ("ollama", "lmstudio", "llamacpp", "vllm")
"""Servers without a key, probed at their usual ports in this order."""
