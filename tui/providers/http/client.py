"""One server: its address, the headers it gets, and the one way to ask it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tui import __version__
from tui.providers.config import MAX_RESPONSE
from tui.providers.http.body import BodyEncoder
from tui.providers.http.route import client_options, no_client, split_query

if TYPE_CHECKING:
    import httpx2

NO_KEY = "none"
"""Sent where no key is configured: a server may want any."""

_OPENAI_ACCOUNT = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
ANTHROPIC_VERSION = "2026-10-21"
"""The version of Anthropic's API that its SDK asks for; model lists differ by version."""

_EVERY_REQUEST = {"User-Agent": f"chatctx/{__version__}", "Accept": "application/json"}


class Client:
    """Speaks to the server at `base_url` and nothing else. `query` and `headers` go with every request."""

    def __init__(
        self, http: httpx2.AsyncClient, base_url: str, key: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> None:
        self.base_url = base_url
        self.encoder = BodyEncoder()
        self.key = key
        self._http = http
        self._query = query
        self._headers = headers

    async def ask(
        self,
        path: str,
        content: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        patience: float | httpx2.Timeout,
        stream: bool = False,
    ) -> httpx2.Response:
        """GET `path` or an absolute URL, or POST `content`, which is JSON. The answer may have any status.

        `patience` is in seconds. With `stream` the body is not read, and the caller closes the answer. Repeated once if
        the connection was closed before any answer: servers close idle connections after some seconds, or after a
        stream (llama.cpp), possibly at this moment. Raises `httpx2.HTTPError`.
        """
        import httpx2

        address = path if "://" in path else f"{self.base_url.rstrip('/')}{path}"
        kind = {} if content is None else {"Content-Type": "application/json"}
        request = self._http.build_request(
            "GET" if content is None else "POST",
            httpx2.URL(address).copy_merge_params(self._query),
            content=content,
            headers=httpx2.Headers(_merged(_EVERY_REQUEST, kind, self._headers, headers or {}), encoding="utf-8"),
            timeout=patience,
        )
        try:
            return await self._http.send(request, stream=stream)
        except httpx2.RemoteProtocolError as error:
            if "without sending a response" not in str(error):
                raise
        return await self._http.send(request, stream=stream)

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._http.aclose()


async def openai_client(
    base_url: str, key: str | None, headers: Mapping[str, str], limit: int = MAX_RESPONSE
) -> Client:
    """A client for OpenAI's dialects. Its answers may have `limit` bytes. Raises `ProviderError`."""
    http = await _connect(base_url, limit)
    address, query = split_query(base_url)
    # Azure's classic form takes a key under this name only.
    azure = {"api-key": key} if key and "api-version" in query else {}
    # Organisation and project of the environment belong to OpenAI; other servers have no business with them.
    official = urlsplit(base_url).hostname == "api.openai.com"
    account = {name: os.environ.get(variable, "") for name, variable in _OPENAI_ACCOUNT.items()} if official else {}
    account = {name: value for name, value in account.items() if value}
    return Client(http, address, key or NO_KEY, query, _merged(_bearer(key), account, azure, headers))


async def anthropic_client(
    base_url: str, key: str | None, headers: Mapping[str, str], limit: int = MAX_RESPONSE
) -> Client:
    """A client for Anthropic's dialect. Its answers may have `limit` bytes. Raises `ProviderError`."""
    http = await _connect(base_url, limit)
    address, query = split_query(base_url)
    address = address.rstrip("/").removesuffix("/v1")  # the paths of its routes begin with /v1
    # Anthropic's SDK sends a bearer token; servers that merely speak the dialect often know only the older header.
    official = urlsplit(base_url).hostname == "api.anthropic.com"
    older = {"x-api-key": key} if key and not official else {}
    version = {"anthropic-version": ANTHROPIC_VERSION}
    return Client(http, address, key or NO_KEY, query, _merged(version, _bearer(key), older, headers))


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


def _bearer(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key or NO_KEY}"}


def _merged(*headers: Mapping[str, str]) -> dict[str, str]:
    """The last of each name counts, however it is capitalised. A key in Azure's header replaces the bearer token."""
    merged = {name.lower(): value for each in headers for name, value in each.items()}
    if "api-key" in merged:
        merged.pop("authorization", None)
    return merged
