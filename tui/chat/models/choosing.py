"""The choice of a conversation's model, and where a model runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from tui.chat.store.store import SessionStore, UsageError
from tui.config.settings import Settings
from tui.providers.base import Provider
from tui.providers.config import ProviderConfig
from tui.providers.http.route import is_loopback
from tui.providers.registry import Choice, choose_default

Configs = Mapping[str, ProviderConfig]

LAST_MODELS = "last_models"  # key in the store's state: provider -> model, and "" -> the full name of the last one


async def choose_model(
    explicit: str | None, settings: Settings, store: SessionStore, configs: Configs, provider: Callable[[str], Provider]
) -> Choice:
    """The requested model, the configured one, the last used, one with a key, a local one, the embedded one; see
    `Choice`.

    If only its server can name a model, it is asked. Raises `UsageError` and `ProviderError`.
    """
    last = await asyncio.to_thread(store.get_state, LAST_MODELS)
    used: dict[str, str] = json.loads(last) if last else {}
    latest = used.pop("", None)
    explicit_model = explicit or settings.model or ("local" if settings.gguf else None)
    try:
        choice = await choose_default(configs, explicit=explicit_model, last_used=latest, last_by_provider=used)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if choice.model:
        return choice
    offered = await provider(choice.provider).models()
    if not offered:
        raise UsageError(f"{choice.provider} offers no model; load one there, or name one with -m provider/model")
    return replace(choice, model=offered[0].id)


def remember_model(store: SessionStore, provider: str, model: str) -> None:
    """Use this model for the next conversation, since it has answered. Not on the event loop. Raises `StoreError`."""
    text = store.get_state(LAST_MODELS)
    last = json.loads(text) if text else {}
    answered = {provider: model, "": f"{provider}/{model}"}
    if {**last, **answered} != last:
        store.change_state(LAST_MODELS, lambda models: {**models, **answered})


def where_it_runs(provider: str, configs: Configs) -> str:
    """Where a provider's models run, in one sentence for the welcome text.

    A server on this machine may be a gateway, or use a cloud for some models (like Ollama): the sentence says no more
    than where the server is.
    """
    if provider in ("local", "demo"):
        return "It runs on this machine: nothing you write leaves it."
    config = configs.get(provider)
    address = urlsplit(config.base_url) if config and config.base_url else None
    host = address.hostname if address else None
    if address and host and is_loopback(host):
        return f"Its server is on this machine, at {address.netloc.rpartition('@')[2]}."
    return f"It runs at {host or provider}: what you write is sent there."
