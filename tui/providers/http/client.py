"""One server: model lists and counts by the HTTP library, messages by the official SDK over the same connections.

An SDK takes up to a second and 50 MB to import, the HTTP library a twentieth of that. So an SDK is imported when a
message is written, in a worker thread.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from tui import __version__
from tui.providers.config import MAX_RESPONSE
from tui.providers.http.body import BodyEncoder
from tui.providers.http.route import client_options, no_client, split_query
from tui.providers.wire import Json

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

    SDK: TypeAlias = AsyncOpenAI | AsyncAnthropic

# Sent where a server wants no key: the SDKs refuse an empty one.
NO_KEY = "none"
_OPENAI_ACCOUNT = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
ANTHROPIC_VERSION = "2026-10-21"
"""The version of Anthropic's API that its SDK asks for; model lists differ by version."""


class Client:
    """Speaks to the server at `base_url` and nothing else. `query` and `headers` go with every question.

    `make_sdk` imports an SDK and gives it the connections.
    """

    def __init__(
        self,
        http: httpx2.AsyncClient,
        base_url: str,
        key: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        make_sdk: Callable[[httpx2.AsyncClient], SDK],
    ) -> None:
        self.base_url = base_url
        self.encoder = BodyEncoder()
        self.key = key
        self._http = http
        self._query = query
        self._headers = headers
        self._make_sdk = make_sdk
        self._sdk: asyncio.Task[SDK] | None = None

    async def sdk(self) -> SDK:
        """The SDK's client, which is made once."""
        if self._sdk is None:
            self._sdk = asyncio.create_task(asyncio.to_thread(_imported, self._make_sdk, self._http))
        return await asyncio.shield(self._sdk)

    async def ask(
        self, path: str, body: Json | None = None, *, headers: Mapping[str, str] | None = None, seconds: float
    ) -> httpx2.Response:
        """GET `path` or an absolute URL, or POST `body` to it. The answer may have any status.

        Raises `httpx2.HTTPError`, and UnicodeEncodeError for a lone surrogate in `body`.
        """
        import httpx2

        address = path if "://" in path else f"{self.base_url.rstrip('/')}{path}"
        url = httpx2.URL(address).copy_merge_params(self._query)
        sent = httpx2.Headers({"User-Agent": f"chatctx/{__version__}", "Accept": "application/json"})
        for more in (self._headers, headers or {}):
            sent.update(more)
        return await self._http.request(
            "GET" if body is None else "POST", url, json=body, headers=sent, timeout=seconds
        )

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._http.aclose()


async def openai_client(
    base_url: str, key: str | None, headers: Mapping[str, str], limit: int = MAX_RESPONSE
) -> Client:
    """A client for OpenAI's dialects. Its answers may have `limit` bytes. Raises `ProviderError`."""
    http = await _connect(base_url, limit)
    key = key or NO_KEY
    address, query = split_query(base_url)
    custom_headers = dict(headers)
    if key != NO_KEY and "api-version" in query:  # Azure's classic form takes a key under this name only
        custom_headers = {"api-key": key, **custom_headers}
    # Organisation and project of the environment belong to OpenAI; other servers have no business with them.
    official = urlsplit(base_url).hostname == "api.openai.com"
    account = {name: os.environ.get(variable, "") for name, variable in _OPENAI_ACCOUNT.items()} if official else {}

    def make_sdk(http: httpx2.AsyncClient) -> AsyncOpenAI:
        import openai

        absent: dict[str, Any] = dict.fromkeys(() if official else _OPENAI_ACCOUNT, openai.Omit())
        return openai.AsyncOpenAI(
            api_key=key,
            base_url=address,
            max_retries=0,
            default_headers={**absent, **custom_headers},
            default_query=query,
            http_client=http,
        )

    asked = {name: value for name, value in account.items() if value} | _bearer(key)
    return Client(http, address, key, query, _merged(asked, custom_headers), make_sdk)


async def anthropic_client(
    base_url: str, key: str | None, headers: Mapping[str, str], limit: int = MAX_RESPONSE
) -> Client:
    """A client for Anthropic's dialect. Its answers may have `limit` bytes. Raises `ProviderError`."""
    http = await _connect(base_url, limit)
    key = key or NO_KEY
    address, query = split_query(base_url)
    address = address.rstrip("/").removesuffix("/v1")  # the SDK's paths begin with /v1
    # The SDK sends a bearer token; servers that merely speak the dialect often know only the older header.
    official = urlsplit(base_url).hostname == "api.anthropic.com"
    custom_headers = {**({"x-api-key": key} if key != NO_KEY and not official else {}), **headers}

    def make_sdk(http: httpx2.AsyncClient) -> AsyncAnthropic:
        import anthropic

        return anthropic.AsyncAnthropic(
            api_key=key,
            base_url=address,
            default_query=query,
            max_retries=0,
            default_headers=custom_headers,
            http_client=http,
        )

    asked = {"anthropic-version": ANTHROPIC_VERSION} | _bearer(key)
    return Client(http, address, key, query, _merged(asked, custom_headers), make_sdk)


async def _connect(base_url: str, limit: int) -> httpx2.AsyncClient:
    def build() -> httpx2.AsyncClient:
        import httpx2

        return httpx2.AsyncClient(**client_options(base_url, limit), follow_redirects=True)

    try:
        if urlsplit(base_url).port == 0:  # reading it raises for a port that is none
            raise ValueError("no port 0")
        return await asyncio.to_thread(build)
    except Exception as error:
        import httpx2

        explained = no_client(ValueError(str(error)) if isinstance(error, httpx2.InvalidURL) else error, base_url)
        if explained is None:
            raise
        raise explained from error


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _merged(*headers: Mapping[str, str]) -> dict[str, str]:
    """The last of each name counts, however it is capitalised."""
    return {name.lower(): value for each in headers for name, value in each.items()}


def _imported(make_sdk: Callable[[httpx2.AsyncClient], SDK], http: httpx2.AsyncClient) -> SDK:
    """Import an SDK, without the collector: its thousands of classes stay, looking for garbage takes a fifth longer.

    And without `aiohttp`, an alternative HTTP library that the SDKs import if it is there (10 MB, 0.1 s).
    """
    collects, aiohttp = gc.isenabled(), "aiohttp" in sys.modules
    gc.disable()
    if not aiohttp:
        sys.modules["aiohttp"] = None  # type: ignore[assignment]  # importing it fails: docs.python.org, sys.modules
    try:
        return make_sdk(http)
    finally:
        if not aiohttp:
            del sys.modules["aiohttp"]
        if collects:
            gc.enable()
