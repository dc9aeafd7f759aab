"""Presets of the usual providers: address, key variable, dialect. Data only."""

from __future__ import annotations

from tui.providers.config import ProviderConfig

# Default models are the middle of each family; after the first turn the model last used is the default.
_ALL = (
    ProviderConfig(
        "anthropic",
        "anthropic",
        "https://api.anthropic.com",
        "Anthropic",
        ("ANTHROPIC_API_KEY",),
        needs_key=True,
        default_model="claude-sonnet-5-5",
        official=True,
    ),
    ProviderConfig(
        "openai",
        "openai-responses",
        "https://api.openai.com/v1",
        "OpenAI",
        ("OPENAI_API_KEY",),
        needs_key=True,
        default_model="gpt-5.6",
        family="openai",
        official=True,
    ),
    ProviderConfig(
        "openrouter",
        base_url="https://openrouter.ai/api/v1",
        title="OpenRouter",
        key_env=("OPENROUTER_API_KEY",),
        needs_key=True,
        default_model="openrouter/auto",
        family="openrouter",
        reasoning_field="reasoning",
        effort_style="openrouter",
    ),
    ProviderConfig(
        "gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        title="Google Gemini",
        key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        needs_key=True,
        default_model="gemini-flash-latest",
        family="gemini",
    ),
    ProviderConfig(
        "deepseek",
        base_url="https://api.deepseek.com",
        title="DeepSeek",
        key_env=("DEEPSEEK_API_KEY",),
        needs_key=True,
        default_model="deepseek-flash",
        family="deepseek",
        effort_style="thinking",
    ),
    ProviderConfig(
        "mistral",
        base_url="https://api.mistral.ai/v1",
        title="Mistral",
        key_env=("MISTRAL_API_KEY",),
        needs_key=True,
        default_model="mistral-medium-latest",
        short_tool_ids=True,
    ),
    ProviderConfig(
        "groq",
        base_url="https://api.groq.com/openai/v1",
        title="Groq",
        key_env=("GROQ_API_KEY",),
        needs_key=True,
        default_model="openai/gpt-oss-120b",
    ),
    ProviderConfig(
        "xai",
        base_url="https://api.x.ai/v1",
        title="xAI",
        key_env=("XAI_API_KEY",),
        needs_key=True,
        default_model="grok-4.7",
    ),
    ProviderConfig(
        "together",
        base_url="https://api.together.xyz/v1",
        title="Together",
        key_env=("TOGETHER_API_KEY",),
        needs_key=True,
    ),
    ProviderConfig(
        "fireworks",
        base_url="https://api.fireworks.ai/inference/v1",
        title="Fireworks",
        key_env=("FIREWORKS_API_KEY",),
        needs_key=True,
    ),
    ProviderConfig(
        "cerebras",
        base_url="https://api.cerebras.ai/v1",
        title="Cerebras",
        key_env=("CEREBRAS_API_KEY",),
        needs_key=True,
        images=False,
    ),
    ProviderConfig(
        "moonshot",
        base_url="https://api.moonshot.ai/v1",
        title="Moonshot (Kimi)",
        key_env=("MOONSHOT_API_KEY",),
        needs_key=True,
        default_model="kimi-k3",
        family="kimi",
        effort_style="thinking",
    ),
    ProviderConfig(
        "zai",
        base_url="https://api.z.ai/api/paas/v4",
        title="Z.ai (GLM)",
        key_env=("ZAI_API_KEY",),
        needs_key=True,
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
