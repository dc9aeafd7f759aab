"""What each current model is asked: the fields that differ by model, held against the SDKs' own request types."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.messages import user
from tests.providers.test_sdk_types import check, full
from tests.providers.wire_values import request
from tui.messages import EFFORTS
from tui.providers.config import PRESETS
from tui.providers.dialects import anthropic as anthropic_provider
from tui.providers.dialects import openai_chat as chat_provider
from tui.providers.dialects import openai_responses as responses_provider

MODELS: dict[str, tuple[str, ...]] = {
    "anthropic": (
        *("claude-fable-5", "claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-1", "claude-haiku-4-5"),
        *("claude-haiku-5-5", "claude-opus-4-1", "claude-opus-4-5", "claude-opus-4-6", "claude-opus-4-7"),
        *("claude-opus-4-8", "claude-opus-5", "claude-opus-5-5", "claude-sonnet-4-5", "claude-sonnet-4-6"),
        *("claude-sonnet-5", "claude-sonnet-5-5", "claude-3-5-haiku-latest"),
    ),
    "openai": (
        *("gpt-4o", "gpt-4.1", "gpt-5", "gpt-5-mini", "gpt-5-pro", "gpt-5-chat-latest", "gpt-5.1", "gpt-5.1-codex-max"),
        *("gpt-5.2", "gpt-5.3-codex", "gpt-5.4", "gpt-5.4-pro", "gpt-5.5", "gpt-5.6", "gpt-5.6-luna", "gpt-6-astra"),
        *("gpt-6-sol", "gpt-6.1-terra", "gpt-6.2-sol", "o3", "o4-mini"),
    ),
    "openrouter": ("openrouter/auto", "anthropic/claude-opus-5.5", "z-ai/glm-5.3"),
    "gemini": ("gemini-3.1-pro-preview", "gemini-flash-latest"),
    "deepseek": ("deepseek-flash", "deepseek-v4-pro"),
    "moonshot": ("kimi-k3",),
    "zai": ("glm-5.3",),
}
ALL = [(provider, model) for provider, models in MODELS.items() for model in models]
# Fields that are the same for every model of a dialect.
SAME = {"model", "messages", "input", "stream", "store", "tools", "system", "instructions", "stream_options", "include"}


def body(provider: str, model: str, effort: str | None, *, whole: bool = False) -> dict[str, Any]:
    config = PRESETS[provider]
    made = full(model) if whole else request(user("Hi"), model=model, max_output=8_000)
    question = replace(made, provider=provider, reasoning=effort)
    match config.dialect:
        case "anthropic":
            return anthropic_provider.to_wire(question, anthropic_provider.AnthropicMessages(config).style(model))
        case "openai-responses":
            return responses_provider.to_wire(question, responses_provider.OpenAIResponses(config).style(model))
        case _:
            return chat_provider.to_wire(question, chat_provider.OpenAIChat(config).style(model))


def test_there_are_48_of_them() -> None:
    assert len(ALL) == len(set(ALL)) == 48


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "model"), ALL)
def test_a_body_is_what_the_sdk_describes(provider: str, model: str) -> None:
    from anthropic.types import message_create_params
    from openai.types.chat import completion_create_params
    from openai.types.responses import response_create_params

    params: Any = {
        "anthropic": message_create_params.MessageCreateParamsStreaming,
        "openai-responses": response_create_params.ResponseCreateParamsStreaming,
        "openai-chat": completion_create_params.CompletionCreateParamsStreaming,
    }[PRESETS[provider].dialect]
    for effort in (None, *EFFORTS):
        sent = body(provider, model, effort, whole=True)
        for extension in ("thinking", "reasoning") if PRESETS[provider].dialect == "openai-chat" else ():
            sent.pop(extension, None)  # fields of other servers
        if sent.get("reasoning_effort") == "max" and PRESETS[provider].dialect == "openai-chat":
            sent["reasoning_effort"] = "high"  # DeepSeek's, Kimi's and GLM's word
        check(sent, params)


def test_what_differs_by_model_is_as_recorded() -> None:
    """To record anew: `python -m tests.providers.test_model_bodies` and look at every line that changed."""
    assert record() == json.loads(RECORDED.read_text(encoding="utf-8"))


def record() -> dict[str, dict[str, Any]]:
    """Model -> wanted effort -> what differs."""
    return {
        f"{provider}/{model}": {
            str(effort): {key: value for key, value in body(provider, model, effort).items() if key not in SAME}
            for effort in (None, *EFFORTS)
        }
        for provider, model in ALL
    }


RECORDED = Path(__file__).with_name("model_bodies.json")

if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(bodies, sort_keys=True)}" for name, bodies in record().items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
