"""One server: its address, the headers it gets, and the one way to ask it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from tui import __version__
from tui.providers.base import ProviderError
from tui.providers.config import ProviderConfig
from tui.providers.http.proxies import CERTIFICATES, client_options, proxy_for
from tui.providers.keys import one_line, redact
from tui.providers.text_repairs import whole_texts
from tui.providers.wire import Json

if TYPE_CHECKING:
    import httpx2

NO_KEY = "none"
"""Sent where no key is configured: a server may want any."""

# Headers of OpenAI's own servers and the variables they come from.
_OPENAI_ACCOUNT = {"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"}

ANTHROPIC_VERSION = "2026-10-21"
"""The version of Anthropic's API that its SDK asks for; model lists differ by version."""

CONTEXT_EDITING = "context-management-2025-06-27"
"""Anthropic's beta feature that lets the provider clear old tool results by itself."""


class Client:
    """Speaks to the server of `config` and nothing else. `headers` go with every request.

    `base_url` is its address without a query; a query goes with every request (Azure: `?api-version=...`).
    """

    def __init__(
        self, config: ProviderConfig, http: httpx2.AsyncClient, key: str | None, headers: Mapping[str, str]
    ) -> None:
        self.config = config
        self.key = key or NO_KEY
        self.base_url, _, query = config.base_url.partition("?")
        self.encoder = BodyEncoder()
        self.missing_routes: set[str] = set()  # below `root`, which this server turned out not to have
        self.probing = asyncio.Lock()  # held while one is asked for
        self._http = http
        self._query = dict(parse_qsl(query))
        self._headers = {"user-agent": f"chatctx/{__version__}", "accept": "application/json", **headers}

    @property
    def root(self) -> str:
        """The address for routes that are not of the dialect."""
        return self.base_url.rstrip("/").removesuffix("/v1")

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
        kind = {} if content is None else {"content-type": "application/json"}
        request = self._http.build_request(
            "GET" if content is None else "POST",
            httpx2.URL(address).copy_merge_params(self._query),
            content=content,
            headers={**self._headers, **kind, **(headers or {})},
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


async def openai_client(config: ProviderConfig, key: str | None) -> Client:
    """A client for OpenAI's dialects. Raises `ProviderError`."""
    http = await _connect(config)
    headers = {"authorization": f"Bearer {key or NO_KEY}"}
    if key and "api-version=" in config.base_url:
        headers = {"api-key": key}  # Azure's classic form takes a key under this name only
    if urlsplit(config.base_url).hostname == "api.openai.com":  # other servers have no business with the account
        for name, variable in _OPENAI_ACCOUNT.items():
            if value := os.environ.get(variable, "").strip():
                if not (value.isascii() and value.isprintable()):  # an HTTP library would quote it in an error
                    raise ProviderError("bad_request", f"{variable} has characters that no header may have.")
                headers[name] = value
    return Client(config, http, key, headers)


async def anthropic_client(config: ProviderConfig, key: str | None) -> Client:
    """A client for Anthropic's dialect. Raises `ProviderError`."""
    http = await _connect(config)
    headers = {"anthropic-version": ANTHROPIC_VERSION, "authorization": f"Bearer {key or NO_KEY}"}
    # Anthropic's SDK sends a bearer token; servers that merely speak the dialect often know only the older header.
    if key and urlsplit(config.base_url).hostname != "api.anthropic.com":
        headers["x-api-key"] = key
    if config.context_management:
        headers["anthropic-beta"] = CONTEXT_EDITING
    client = Client(config, http, key, headers)
    client.base_url = client.base_url.rstrip("/").removesuffix("/v1")  # the paths of its routes begin with /v1
    return client


async def _connect(config: ProviderConfig) -> httpx2.AsyncClient:
    base_url = config.base_url

    def build() -> httpx2.AsyncClient:
        import httpx2

        return httpx2.AsyncClient(**client_options(base_url, config.max_response), follow_redirects=True)

    if not _is_address(base_url):
        raise ProviderError("bad_request", _BAD_ADDRESS.format(redact(base_url)))
    try:
        return await asyncio.to_thread(build)
    except Exception as error:
        explained = _no_client(error, base_url)
        if explained is None:
            raise
        raise explained from error


_BAD_ADDRESS = "{} is no usable address. Check base_url."


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        return False


def _no_client(error: Exception, base_url: str) -> ProviderError | None:
    """Why no client can be made for `base_url`; None for bugs."""
    import httpx2

    where, proxy = redact(base_url), proxy_for(base_url)
    match error:
        case ImportError() if "socks" in str(error).lower():
            text = f"the proxy {proxy} is a SOCKS proxy, for which a part is missing: pip install socksio."
        case ValueError() | httpx2.InvalidURL() if proxy:
            text = f"{proxy} is no usable address of a proxy. Check HTTPS_PROXY and ALL_PROXY."
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
        self._items: list[Any] = []
        self._encoded: list[bytes] = []

    def encode(self, body: Json) -> bytes:
        """`body` as `encode_json` would write it."""
        fields = []
        for name, value in body.items():
            is_conversation = name in ("messages", "input") and isinstance(value, list)
            encoded = b"[" + b",".join(self._items_of(value)) + b"]" if is_conversation else encode_json(value)
            fields.append(encode_json(name) + b":" + encoded)
        return b"{" + b",".join(fields) + b"}"

    def _items_of(self, items: list[Any]) -> list[bytes]:
        shared = 0
        for before, now in zip(self._items, items, strict=False):  # mostly the same texts: their identity is compared
            if before != now:
                break
            shared += 1
        encoded = [*self._encoded[:shared], *map(encode_json, items[shared:])]
        self._items, self._encoded = items, encoded
        return encoded


def encode_json(value: Any) -> bytes:
    """`value` as JSON in UTF-8. A lone surrogate (from a paste, a file, a server) must not stop it."""
    try:
        return _dumps(value).encode()
    except UnicodeEncodeError:
        return _dumps(whole_texts(value)).encode()


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
