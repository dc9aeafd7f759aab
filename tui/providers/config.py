"""What is needed to reach one provider, as plain values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from tui.providers.base import Capabilities, ProviderError
from tui.providers.capabilities import Family
from tui.providers.keys import hold_secret, key_from_command, key_from_env

Dialect: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "local", "demo"]
ReasoningField: TypeAlias = Literal["reasoning_content", "reasoning"]
EffortStyle: TypeAlias = Literal["effort", "openrouter", "thinking"]


IDLE_TIMEOUT = 300.0
"""Seconds. A local model reads a long prompt, and a hosted one thinks, for minutes without a sign of life."""


@dataclass(frozen=True, slots=True)
class ChatStyle:
    """How a server's Chat Completions differ from OpenAI's.

    `reasoning_field`: where an assistant message carries its reasoning back. `effort`: how the wanted reasoning is
    said: `reasoning_effort`, OpenRouter's `reasoning` object, or a `thinking` switch with one of few efforts beside it.
    `needs_reasoning`: with tools each answer has to carry the field, also where it came from another model or without a
    thought (DeepSeek V4, Kimi).
    """

    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    include_usage: bool = True
    reasoning_field: ReasoningField = "reasoning_content"
    needs_reasoning: bool = False
    effort: EffortStyle = "effort"
    short_tool_ids: bool = False
    plain_schemas: bool = False  # refuses tools for words in their schemas
    cache_key: bool = False  # takes `prompt_cache_key`
    extra_body: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """One provider: where it is, what it speaks, where its key comes from.

    `key_env` are environment variables, the first that is set wins; `api_key_command` wins over them. `needs_key`
    providers are not asked without one. `default_model` is used when nothing else names a model; empty: the first one
    the server lists. `window` (tokens), `gguf` and `template` are for the embedded server.
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
    headers: Mapping[str, str] = field(default_factory=dict)
    extra_body: Mapping[str, object] = field(default_factory=dict)
    official: bool = False  # OpenAI's or Anthropic's own servers
    gguf: Path | None = None
    window: int | None = None
    template: Path | None = None
    context_management: bool = False  # Anthropic clears old tool results by itself
    idle_timeout: float = IDLE_TIMEOUT  # seconds of silence after which an answer counts as stalled

    @property
    def label(self) -> str:
        """The name for a person."""
        return self.title or self.name

    def has_key(self, env: Mapping[str, str] | None = None) -> bool:
        """True if a key is at hand, or can be asked for with the command. Runs nothing."""
        return bool(self.api_key_command) or key_from_env(self.key_env, os.environ if env is None else env) is not None

    async def key(self) -> str | None:
        """The API key; None for servers that need none. Raises `ProviderError` of kind "auth" where it is missing."""
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
        if not (key.isascii() and key.isprintable()) or " " in key:  # an HTTP library would quote it in its complaint
            raise ProviderError(
                "auth",
                f"{self.name}: the API key holds a line break, a blank, curly quotes or the like, which no key has. "
                f"Look at {'api_key_command' if self.api_key_command else ' or '.join(self.key_env)}.",
            )
        return key

    def chat_style(self) -> ChatStyle:
        """How this server's Chat Completions differ."""
        openai = self.family == "openai"
        return ChatStyle(
            max_tokens_field="max_completion_tokens" if openai else "max_tokens",
            reasoning_field=self.reasoning_field,
            needs_reasoning=self.family in ("deepseek", "kimi"),
            effort=_EFFORT.get(self.name, "effort"),
            short_tool_ids=self.name == "mistral",
            cache_key=openai and self.official,
            extra_body=self.extra_body,
        )

    def adjust(self, known: Capabilities) -> Capabilities:
        """`known` corrected by what this server is known to lack."""
        return replace(known, images=False) if self.name in ("local", "cerebras") else known


_EFFORT: Mapping[str, Literal["effort", "openrouter", "thinking"]] = {
    "openrouter": "openrouter",
    "deepseek": "thinking",
    "moonshot": "thinking",
    "zai": "thinking",
}
