"""Configuration of one provider, as plain values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tui.messages import EFFORTS, ToolSchema
from tui.providers.base import ProviderError
from tui.providers.capabilities import Family, claude, openai_efforts
from tui.providers.keys import hold_secret, key_from_command, key_from_env
from tui.providers.tool_schemas import tool_sent

Dialect: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "local", "demo"]
ReasoningField: TypeAlias = Literal["reasoning_content", "reasoning"]
EffortStyle: TypeAlias = Literal["effort", "openrouter", "thinking"]


IDLE_TIMEOUT = 300.0
"""Seconds. Local models process long prompts, and hosted ones think, for minutes without sending anything."""

MAX_RESPONSE = 32_000_000
"""Default limit of one answer in bytes: its body, one of its events, all of its text.

The longest answers of 2026 (384k output tokens) are under 2 MB of text, the largest images about 10 MB of base64.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a server takes requests for one model, from its documentation, its model list, and what it refused.

    `efforts`: those of reasoning that it accepts (of `EFFORTS`); None is unknown.
    """

    efforts: tuple[str, ...] | None = None
    plain_schemas: bool = False  # refuses tools for keywords in their schemas
    short_descriptions: bool = False  # refuses tool descriptions of more than 1,024 characters

    def effort(self, wish: str | None) -> str | None:
        """The effort sent for `wish`: itself, the next higher one that is accepted, or the highest; None sends none."""
        if wish is None or self.efforts is None or wish in self.efforts:
            return wish
        accepted = [effort for effort in EFFORTS if effort in self.efforts]
        higher = [effort for effort in accepted if EFFORTS.index(effort) > EFFORTS.index(wish)]
        return higher[0] if higher else accepted[-1] if accepted else None

    def tool(self, tool: ToolSchema) -> ToolSchema:
        """`tool` with the schema and the description that are sent."""
        return tool_sent(tool, self.plain_schemas, self.short_descriptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatStyle(Style):
    """How a server's Chat Completions differ from OpenAI's.

    `reasoning_field`: the field in which an assistant message carries its reasoning back. `effort_style`: how an
    effort is written: as `reasoning_effort`, in OpenRouter's `reasoning` object, or as a `thinking` switch with an
    effort beside it. `needs_reasoning`: with tools every answer must have that field, even if it came from another
    model or without reasoning (DeepSeek V4, Kimi). `reasons_with_tools`: False if tools are accepted only with
    reasoning off.
    """

    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    include_usage: bool = True
    reasoning_field: ReasoningField = "reasoning_content"
    needs_reasoning: bool = False
    reasons_with_tools: bool = True
    effort_style: EffortStyle = "effort"
    short_tool_ids: bool = False
    cache_key: bool = False  # takes `prompt_cache_key`


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesStyle(Style):
    """How a server's Responses API differs. `official`: OpenAI's own servers; others support fewer fields."""

    official: bool = True
    summaries: bool = True  # reasoning summaries may be asked for
    streams: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicStyle(Style):
    """How a server takes `thinking`: the values of its `type`, None if unknown."""

    thinking: frozenset[str] | None = None
    thinks_by_default: bool = False


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """One provider: its address, its dialect, and the source of its key.

    `key_env` are environment variables, the first one set is used; `api_key_command` takes precedence over them.
    `needs_key` providers are not asked without one. `default_model` is used if nothing else names a model; empty: the
    first one listed by the server. `window` (tokens) and `gguf` are for the embedded server. `family` and the four
    fields below it tell how its Chat Completions differ (see `ChatStyle`).
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

    def chat_style(self, model: str) -> ChatStyle:
        """The style of `model` over Chat Completions, before any request."""
        openai = self.family == "openai"
        return ChatStyle(
            efforts=_EFFORTS[self.effort_style] or openai_efforts(model, chat=True),
            max_tokens_field="max_completion_tokens" if openai else "max_tokens",
            reasoning_field=self.reasoning_field,
            needs_reasoning=self.family in ("deepseek", "kimi"),
            effort_style=self.effort_style,
            short_tool_ids=self.short_tool_ids,
            cache_key=openai and self.official,
        )

    def responses_style(self, model: str) -> ResponsesStyle:
        """The style of `model` over the Responses API, before any request."""
        efforts = openai_efforts(model)
        if efforts is None and self.official:
            efforts = ()  # not a reasoning model of OpenAI
        return ResponsesStyle(official=self.official, efforts=efforts)

    def anthropic_style(self, model: str, types: frozenset[str] | None = None) -> AnthropicStyle:
        """The style of `model` over the Messages API, before any request.

        `types` are the values of `thinking.type` in the server's model list; without them they follow from the model's
        name.
        """
        kind = claude(model)
        if kind is None:
            return AnthropicStyle(thinking=types, thinks_by_default=types is not None and "disabled" not in types)
        return AnthropicStyle(
            thinking=kind.thinking_types if types is None else types,
            thinks_by_default=kind.thinks_by_default,
            efforts=kind.efforts if types is None else None,
        )


_EFFORTS: Mapping[EffortStyle, tuple[str, ...] | None] = {
    "effort": None,
    "openrouter": EFFORTS,  # maps those that a model lacks to the nearest one
    # DeepSeek V4, Kimi K3 and GLM-5.3; Kimi treats any other value as "max" (their guides to thinking, autumn 2026).
    "thinking": ("off", "low", "high", "max"),
}
