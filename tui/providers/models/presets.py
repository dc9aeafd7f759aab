"""Presets of the usual providers: address, key variable, dialect. Data only."""

from __future__ import annotations

from typing import Any

from tui.providers.config import Dialect, ProviderConfig


def _hosted(
    name: str, title: str, base_url: str, *key_env: str, dialect: Dialect = "openai-chat", **more: Any
) -> ProviderConfig:
    """A provider that needs a key, from the first of the variables `key_env` that is set."""
    return ProviderConfig(name, dialect, base_url, title, key_env, needs_key=True, **more)


# Default models are the middle of each family; after the first turn the model last used is the default.
_ALL = (
    _hosted(
        "anthropic",
        "Anthropic",
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
        dialect="anthropic",
        default_model="claude-sonnet-5-5",
        official=True,
    ),
    _hosted(
        "openai",
        "OpenAI",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        dialect="openai-responses",
        default_model="gpt-5.6",
        official=True,
    ),
    _hosted(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        default_model="openrouter/auto",
        family="openrouter",
        reasoning_field="reasoning",
        effort_style="openrouter",
    ),
    _hosted(
        "gemini",
        "Google Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        default_model="gemini-flash-latest",
        family="gemini",
    ),
    _hosted(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com",
        "DEEPSEEK_API_KEY",
        default_model="deepseek-flash",
        family="deepseek",
        effort_style="thinking",
    ),
    _hosted(
        "mistral",
        "Mistral",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        default_model="mistral-medium-latest",
        short_tool_ids=True,
    ),
    _hosted("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", default_model="openai/gpt-oss-120b"),
    _hosted("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY", default_model="grok-4.7"),
    _hosted("together", "Together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    _hosted("fireworks", "Fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    _hosted("cerebras", "Cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", images=False),
    _hosted(
        "moonshot",
        "Moonshot (Kimi)",
        "https://api.moonshot.ai/v1",
        "MOONSHOT_API_KEY",
        default_model="kimi-k3",
        family="kimi",
        effort_style="thinking",
    ),
    _hosted(
        "zai",
        "Z.ai (GLM)",
        "https://api.z.ai/api/paas/v4",
        "ZAI_API_KEY",
        default_model="glm-5.3",
        family="loop",
        effort_style="thinking",
    ),
    ProviderConfig(
        "ollama", base_url="http://127.0.0.1:11434/v1", title="Ollama", family="loop", reasoning_field="reasoning"
    ),
    ProviderConfig("lmstudio", base_url="http://127.0.0.1:1234/v1", title="LM Studio", family="loop"),
    ProviderConfig("llamacpp", base_url="http://127.0.0.1:8080/v1", title="llama.cpp", family="llamacpp"),
    ProviderConfig(
        "vllm", base_url="http://127.0.0.1:8000/v1", title="vLLM", family="loop", reasoning_field="reasoning"
    ),
    ProviderConfig(
        "local",
        "local",
        title="Embedded (llama.cpp)",
        default_model="smollm2-135m",
        family="llamacpp",
        images=False,
    ),
    ProviderConfig("demo", "demo", title="Demo, no model", default_model="guide"),
)

PRESETS = {config.name: config for config in _ALL}
"""The usual providers by name, in the order in which they are chosen by a key in the environment."""

LOCAL_SERVERS = ("ollama", "lmstudio", "llamacpp", "vllm")
"""Servers without a key, probed at their usual ports in this order."""
