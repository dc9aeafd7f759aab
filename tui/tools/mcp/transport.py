"""Transports of an MCP server by the official SDK: a local program, or HTTP."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Self

from tui.config.paths import at_home
from tui.providers.http.route import client_options
from tui.tools.mcp.config import Launch, ServerConfig
from tui.tools.mcp.log import ServerLog
from tui.tools.mcp.normalize import Normalizer

if TYPE_CHECKING:
    from httpx2 import Auth

_PASSED_ON = re.compile(
    r"LANG|LC_\w+|TZ|TMPDIR|XDG_\w+|\w*_PROXY|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS|PIP_CERT",
    re.IGNORECASE,
)
"""Variables passed to a server besides those of its configuration and the SDK's short list (PATH, HOME, ...): for
locale and network. API keys are not among them."""


class TransportStatus:
    """What the SDK's errors leave out: the last HTTP error status, and the limit in bytes that an answer exceeded."""

    code = 0
    text = ""
    exceeded = 0
    by_oauth = False  # the server says where one signs in (RFC 9728, section 5.1)
    sign_in_needed = False  # the stored sign-in is no longer accepted


def open_transport(
    config: ServerConfig, launch: Launch, log: ServerLog, status: TransportStatus, auth: Auth | None = None
) -> Any:
    """The SDK's transport for a server, to be entered. `auth` authorizes HTTP requests."""
    if config.transport == "stdio":
        from mcp import StdioServerParameters, stdio_client

        passed_on = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
        parameters = StdioServerParameters(
            command=_home(launch.command),
            args=list(launch.args),
            env=passed_on | dict(launch.env),
            cwd=None if launch.cwd is None else _home(launch.cwd),
            encoding_error_handler="replace",
        )
        return _stdio(parameters, log, config.max_response, status, stdio_client)
    if config.transport == "sse":
        from httpx2 import AsyncClient, Timeout
        from mcp.client.sse import sse_client

        def client_of(
            headers: dict[str, str] | None = None, timeout: Timeout | None = None, auth: Auth | None = None
        ) -> AsyncClient:
            options = http_options(launch.url, config.max_response, elsewhere=auth is not None)
            return AsyncClient(headers=headers, timeout=timeout, auth=auth, **options)

        return sse_client(launch.url, headers=dict(launch.headers), httpx_client_factory=client_of, auth=auth)
    from mcp.client.streamable_http import streamable_http_client

    return _http(launch, config.max_response, status, streamable_http_client, auth)


def http_options(url: str, limit: int, *, elsewhere: bool) -> dict[str, Any]:
    """Options of a client. With `elsewhere` it may also ask an authorization server, which is on another host.

    The SDK follows no redirect to another server either way.
    """
    options = client_options(url, limit)
    if elsewhere:
        options["event_hooks"] = {}
        if not url.startswith("https:"):  # the options are those for the server: here it has no certificate
            options["mounts"] = {"https://": client_options("https://elsewhere.invalid", limit)["transport"]}
    return options


def _home(path: str) -> str:
    return str(at_home(path)) if path.startswith("~") else path


@contextlib.asynccontextmanager
async def _stdio(
    parameters: Any, log: ServerLog, limit: int, status: TransportStatus, open_stream: Callable[..., Any]
) -> AsyncIterator[Any]:
    from tui.tools.mcp import lines

    lines.install()
    lines.exceeded.set((limit, lambda: setattr(status, "exceeded", limit)))
    with log.pipe() as end:
        async with open_stream(parameters, errlog=end) as streams:
            end.close()  # the program has its own end: when that is closed, the output is complete
            yield streams


@contextlib.asynccontextmanager
async def _http(
    launch: Launch, limit: int, status: TransportStatus, open_stream: Callable[..., Any], auth: Auth | None
) -> AsyncIterator[Any]:
    import httpx2

    async def note(response: httpx2.Response) -> None:
        code = response.status_code
        status.code = code if code >= 400 and code not in (404, 405) else 0  # these two mean a refusal
        status.text = f"{code} {response.reason_phrase}".strip()
        status.by_oauth = code == 401 and "resource_metadata" in response.headers.get("www-authenticate", "")

    limits = httpx2.Timeout(30.0, read=None)  # the call has its own timeout
    options = http_options(launch.url, limit, elsewhere=auth is not None)
    options["event_hooks"]["response"] = [note]
    async with (
        httpx2.AsyncClient(headers=dict(launch.headers), timeout=limits, auth=auth, **options) as client,
        open_stream(launch.url, http_client=client, max_sse_event_size=limit) as streams,
    ):
        yield streams


@contextlib.asynccontextmanager
async def watched(transport: Any, normalizer: Normalizer, ended: Callable[[], None]) -> AsyncIterator[Any]:
    """`transport`, which calls `ended` when the server closes it: the SDK only tells pending requests.

    `ended` is called when the server has nothing more to say: the SDK tells only those who wait.
    """
    async with transport as (reading, writing):
        yield _Reading(reading, normalizer, ended), _Writing(writing, normalizer)


class _Stream:
    """One of the SDK's streams; what is not here is its own."""

    def __init__(self, stream: Any, normalizer: Normalizer) -> None:
        self._stream = stream
        self._normalizer = normalizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stream.__aexit__(*error)


class _Reading(_Stream):
    """A read stream that normalizes messages and notices its end."""

    def __init__(self, stream: Any, normalizer: Normalizer, ended: Callable[[], None]) -> None:
        super().__init__(stream, normalizer)
        self._ended = ended

    async def receive(self) -> Any:
        """The next message."""
        try:
            return self._normalizer.received(await self._stream.receive())
        except Exception:
            self._ended()
            raise

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return self._normalizer.received(await self._stream.__anext__())
        except Exception:
            self._ended()
            raise

    async def __aexit__(self, *error: Any) -> None:
        self._ended()
        await super().__aexit__(*error)


class _Writing(_Stream):
    """A write stream that shows its messages to the normalizer."""

    async def send(self, item: Any) -> None:
        """Send a message."""
        self._normalizer.sent(item)
        await self._stream.send(item)
