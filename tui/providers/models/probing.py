"""Asking a server of one's own for what only some kinds of server know: a route that is not there is asked once."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from tui.providers.base import ProviderError
from tui.providers.http.transport import get_json, post_json
from tui.providers.wire import Json

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

_missing: WeakKeyDictionary[AsyncOpenAI | AsyncAnthropic, set[str]] = WeakKeyDictionary()


async def probe(client: AsyncOpenAI | AsyncAnthropic, url: str, provider: str, body: Json | None = None) -> object:
    """GET `url` as JSON, or POST `body` to it. Raises `ProviderError`, at once where the route was not there before."""
    missing = _missing.setdefault(client, set())
    if url in missing:
        raise ProviderError("not_found", f"{provider} has no such route")
    try:
        return await (get_json(client, url, provider) if body is None else post_json(client, url, body, provider))
    except ProviderError as error:
        if error.kind in ("not_found", "protocol") or error.status in (404, 405, 501):
            missing.add(url)
        raise
