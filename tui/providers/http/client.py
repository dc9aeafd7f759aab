"""One server: its address, its key and headers, and the one way to ask it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from tui import __version__
from tui.config.values import parse_url
from tui.providers.base import ProviderError
from tui.providers.config import ProviderConfig
from tui.providers.http.proxies import CERTIFICATES, client_options, proxy_for
from tui.providers.keys import one_line, redact
from tui.providers.text_repairs import whole_texts

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

NO_KEY = "none"
"""Sent where no key is configured: a server may want any."""

# Headers of OpenAI's own servers and the variables they come from.
_OPENAI_ACCOUNT = {"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"}

ANTHROPIC_VERSION = "2026-10-21"
"""The version of Anthropic's API that its SDK asks for; model lists differ by version."""

CONTEXT_EDITING = "context-management-2025-06-27"
"""Anthropic's beta feature that lets the provider clear old tool results by itself."""


class Client:
    """Speaks to the server of `config` and nothing else.

    `base_url` is its address without a query; a query goes with every request (Azure: `?api-version=...`). A key that a
    command printed is renewed when the server refuses it: tokens of cloud providers (`gcloud auth print-access-token`)
    are valid for an hour, a conversation may last longer.
    """

    def __init__(self, config: ProviderConfig, http: httpx2.AsyncClient, key: str | None) -> None:
        self.config = config
        address, _, query = config.base_url.partition("?")
        self.base_url = address.rstrip("/")
        self.root = self.base_url.removesuffix("/v1")  # for routes that are not of the dialect
        if config.dialect == "anthropic":
            self.base_url = self.root  # the paths of its routes begin with /v1
        self.encoder = BodyEncoder()
        self.missing_routes: set[tuple[object, ...]] = set()  # with what they were asked for
        self._http = http
        self._query = dict(parse_qsl(query))
        self._key = key
        self._renewing = asyncio.Lock()

    async def ask(
        self,
        path: str,
        content: bytes | None = None,
        *,
        patience: float | httpx2.Timeout,
        stream: bool = False,
        renew: bool = True,
    ) -> httpx2.Response:
        """GET `path` or an absolute URL, or POST `content`, which is JSON. The answer may have any status.

        `patience` is in seconds. With `stream` the body is not read, and the caller closes the answer. Without `renew`
        a refused key is not renewed: a server may have routes for other keys only. Raises `httpx2.HTTPError`, and
        `ProviderError` if there is no key any more.
        """
        key = self._key
        response = await self._send(path, content, patience, stream)
        if response.status_code != 401 or not (renew and self.config.api_key_command):
            return response
        await response.aread()  # the command takes time, and may fail: no connection waits for it
        return await self._send(path, content, patience, stream) if await self._renew(key) else response

    async def _send(
        self, path: str, content: bytes | None, patience: float | httpx2.Timeout, stream: bool
    ) -> httpx2.Response:
        """Send a request, twice if the connection was closed before any answer.

        Servers close idle connections after some seconds, or after a stream (llama.cpp), possibly at this moment.
        """
        import httpx2

        headers = {"user-agent": f"chatctx/{__version__}", "accept": "application/json"}
        headers |= _headers(self.config, self._key)
        if content is not None:
            headers["content-type"] = "application/json"
        elsewhere = "://" in path
        if elsewhere and self.config.family == "gemini":  # a route of Gemini's own API
            headers["x-goog-api-key"] = self._key or NO_KEY
        request = self._http.build_request(
            "GET" if content is None else "POST",
            httpx2.URL(path if elsewhere else self.base_url + path).copy_merge_params(self._query),
            content=content,
            headers=headers,
            timeout=patience,
        )
        try:
            return await self._http.send(request, stream=stream)
        except httpx2.RemoteProtocolError as error:
            if "without sending a response" not in str(error):
                raise
        return await self._http.send(request, stream=stream)

    async def _renew(self, refused: str | None) -> bool:
        """Whether there is another key than the one that was `refused`. Raises `ProviderError`."""
        async with self._renewing:
            if self._key == refused:  # else it was done for another request
                self._key = await self.config.key()
                log.info("%s refused the key; its command was asked for another one", self.config.name)
            return self._key != refused

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._http.aclose()


def _headers(config: ProviderConfig, key: str | None) -> dict[str, str]:
    """The headers with the key and the account. Raises `ProviderError`."""
    host = urlsplit(config.base_url).hostname
    headers = {"authorization": f"Bearer {key or NO_KEY}"}
    if config.dialect == "anthropic":
        headers["anthropic-version"] = ANTHROPIC_VERSION
        # Anthropic's SDK sends a bearer token; servers that merely speak the dialect often know only the older header.
        if key and host != "api.anthropic.com":
            headers["x-api-key"] = key
        if config.context_management:
            headers["anthropic-beta"] = CONTEXT_EDITING
    elif key and "api-version=" in config.base_url:
        headers = {"api-key": key}  # Azure's classic form takes a key under this name only
    if host == "api.openai.com":  # other servers have no business with the account
        for name, variable in _OPENAI_ACCOUNT.items():
            if value := os.environ.get(variable, "").strip():
                if not (value.isascii() and value.isprintable()):  # an HTTP library would quote it in an error
                    raise ProviderError("bad_request", f"{variable} has characters that no header may have.")
                headers[name] = value
    return headers


async def connect(config: ProviderConfig, key: str | None) -> Client:
    """A client of the server of `config`. Raises `ProviderError`."""
    base_url = config.base_url

    def build() -> httpx2.AsyncClient:
        import httpx2

        return httpx2.AsyncClient(**client_options(base_url, config.max_response), follow_redirects=True)

    try:
        parse_url(base_url)
    except ValueError:
        raise ProviderError("bad_request", _BAD_ADDRESS.format(redact(base_url))) from None
    try:
        return Client(config, await asyncio.to_thread(build), key)
    except Exception as error:
        explained = _no_client(error, base_url)
        if explained is None:
            raise
        raise explained from error


_BAD_ADDRESS = "{} is not a usable address. Check base_url."


def _no_client(error: Exception, base_url: str) -> ProviderError | None:
    """Why no client can be made for `base_url`; None for bugs."""
    import httpx2

    where, proxy = redact(base_url), proxy_for(base_url)
    match error:
        case ImportError() if "socks" in str(error).lower():
            text = f"the proxy {proxy} is a SOCKS proxy, for which a part is missing: pip install socksio."
        case ValueError() | httpx2.InvalidURL() if proxy:
            text = f"{proxy} is not a usable address of a proxy. Check HTTPS_PROXY and ALL_PROXY."
        case ValueError() | httpx2.InvalidURL():
            text = _BAD_ADDRESS.format(where)
        case OSError():  # includes errors of the ssl module
            reason = one_line(str(error), 100)
            named = [name for name in CERTIFICATES if os.environ.get(name)] or CERTIFICATES[:2]
            text = f"no certificates to check {where} with ({reason}). Check {' and '.join(named)}."
        case _:
            return None
    return ProviderError("bad_request", text)


class BodyEncoder:
    """Writes the requests of one server as JSON, off the event loop.

    A request begins with the messages of the one before, whose JSON is kept: encoding all of it again takes 20 ms for
    10,000 messages (`tests/bench/growth.py`), during which Python's encoder lets no other thread run.
    """

    def __init__(self) -> None:
        self._last: tuple[list[Any], list[bytes]] = [], []  # replaced as one: requests may be encoded at the same time

    def encode(self, body: dict[str, Any]) -> bytes:
        """`body` as `encode_json` would write it."""
        fields = []
        for name, value in body.items():
            is_conversation = name in ("messages", "input") and isinstance(value, list)
            encoded = b"[" + b",".join(self._items_of(value)) + b"]" if is_conversation else encode_json(value)
            fields.append(encode_json(name) + b":" + encoded)
        return b"{" + b",".join(fields) + b"}"

    def _items_of(self, items: list[Any]) -> list[bytes]:
        last, last_encoded = self._last
        shared = 0
        for before, now in zip(last, items, strict=False):  # mostly the same texts: their identity is compared
            if before != now:
                break
            shared += 1
        encoded = [*last_encoded[:shared], *map(encode_json, items[shared:])]
        self._last = items, encoded
        return encoded


def encode_json(value: Any) -> bytes:
    """`value` as JSON in UTF-8. A lone surrogate or NaN (from a paste, a file, a server) must not stop it."""
    try:
        return _dumps(value).encode()
    except ValueError:
        return _dumps(whole_texts(value)).encode()


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
