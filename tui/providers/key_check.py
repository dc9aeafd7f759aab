"""Whether a provider can be used: a call for its models that a wrong key does not survive."""

from __future__ import annotations

from tui.providers.base import ModelInfo, Provider
from tui.providers.openai_chat import OpenAIChat
from tui.providers.transport import get_json


async def models_with_key(provider: Provider) -> list[ModelInfo]:
    """The models `provider` offers to this key. Raises `ProviderError`."""
    models = await provider.models()
    if isinstance(provider, OpenAIChat) and provider.name == "openrouter":
        await get_json(await provider.client(), "/key", provider.name)  # it shows its list to everybody
    return models
