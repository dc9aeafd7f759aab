"""Whether a provider can be used: a call for its models that a wrong key does not survive."""

from __future__ import annotations

import logging

from tui.providers.base import ModelInfo, Provider, ProviderError
from tui.providers.http.transport import get_json
from tui.providers.openai_chat.provider import OpenAIChat

log = logging.getLogger(__name__)


async def models_with_key(provider: Provider) -> list[ModelInfo]:
    """The models `provider` offers to this key. Raises `ProviderError`."""
    models = await provider.models()
    if isinstance(provider, OpenAIChat) and provider.name == "openrouter":  # it shows its list to everybody
        try:
            await get_json(await provider.client(), "/key", provider.name)
        except ProviderError as error:
            if error.kind == "auth":
                raise
            log.info("openrouter's /key says nothing of the key: %s", error)  # the first message will tell
    return models
