"""Transports of an MCP server by the official SDK: a local program, or HTTP."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, Self

import httpx2
from anyio.abc import ByteReceiveStream
from httpx2 import AsyncClient, Auth, Timeout
from mcp.client import stdio
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from tui.config.files import at_home
from tui.providers.http.proxies import client_options
from tui.providers.http.sse import TooLargeError, check_json_cost
from tui.tools.mcp.config import ServerConfig
from tui.tools.mcp.normalize import Normalizer
from tui.tools.mcp.status import ServerLog, TransportStatus

_PASSED_ON = re.compile(
    r"LANG|LC_\w+|TZ|TMPDIR|XDG_\w+|\w*_PROXY|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS|PIP_CERT",
    re.IGNORECASE,
)
"""Variables passed to a server besides those of its configuration and the SDK's short list (PATH, HOME, ...): for
locale and network. API keys are not among them."""

MOST_AUTH_REQUESTS = 2_000
"""Requests for authorizing one: httpx2 counts them as redirects, and whether a code was entered is asked many times."""


def open_transport(
    config: ServerConfig, log: ServerLog, status: TransportStatus, auth: Auth | None = None
) -> contextlib.AbstractAsyncContextManager[Any]:
    """The SDK's transport for a server, variables filled in, to be entered. `auth` authorizes HTTP requests."""
    match config.transport:
        case "stdio":
            return _stdio(config, log, status)
        case "sse":
            client_of = partial(_client, config, status)
            return sse_client(config.url, headers=dict(config.headers), httpx_client_factory=client_of, auth=auth)
        case "http":
            return _http(config, status, auth)


@contextlib.asynccontextmanager
async def _stdio(config: ServerConfig, log: ServerLog, status: TransportStatus) -> AsyncIterator[Any]:
    setattr(stdio, "TextReceiveStream", bounded_lines)  # noqa: B010  the SDK (2.3) has no setting for that
    line_limit.set((config.max_response, status))
    passed_on = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
    parameters = stdio.StdioServerParameters(
        command=_home(config.command),
        args=list(config.args),
        env=passed_on | dict(config.env),
        cwd=None if config.cwd is None else _home(config.cwd),
        encoding_error_handler="replace",
    )
    with log.pipe() as end:
        async with stdio.stdio_client(parameters, errlog=end) as streams:
            end.close()  # the program has its own end: when that is closed, the output is complete
            yield streams


def _home(path: str) -> str:
    return str(at_home(path)) if path.startswith("~") else path


line_limit: ContextVar[tuple[int, TransportStatus]] = ContextVar("line_limit")
"""For the transport being opened: the limit of a line in bytes, and where it is noted that one exceeded it."""


async def bounded_lines(stream: ByteReceiveStream, encoding: str, errors: str) -> AsyncIterator[str]:
    """Whole lines of a program's output, in place of the SDK's `TextReceiveStream`.

    Raises `TooLargeError` for a line over the limit, in bytes or in memory once parsed: the SDK (2.3) joins the pieces
    of a line without limit, in quadratic time.
    """
    limit, status = line_limit.get()
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    begun: list[str] = []  # pieces of a line without its end
    size = 0
    async for data in stream:
        head, newline, tail = decoder.decode(data).rpartition("\n")
        lines = "".join((*begun, head)) if newline else ""
        if newline:
            begun, size = [], 0
        begun.append(tail)
        size += len(tail)
        if size > limit or _has_too_large_line(lines, limit):
            status.exceeded = limit
            await stream.aclose()  # the SDK would go on reading until the program ends
            raise TooLargeError(limit)
        if newline:
            yield lines + newline


def _has_too_large_line(lines: str, limit: int) -> bool:
    if len(lines) <= limit // 200:
        return False  # too short for either
    try:
        for line in lines.split("\n"):
            if len(line) > limit:
                return True
            check_json_cost(line, limit)
    except TooLargeError:
        return True
    return False


@contextlib.asynccontextmanager
async def _http(config: ServerConfig, status: TransportStatus, auth: Auth | None) -> AsyncIterator[Any]:
    timeout = httpx2.Timeout(30.0, read=None)  # the call has its own
    async with (
        _client(config, status, headers=dict(config.headers), timeout=timeout, auth=auth) as client,
        streamable_http_client(config.url, http_client=client, max_sse_event_size=config.max_response) as streams,
    ):
        yield streams


def _client(
    config: ServerConfig,
    status: TransportStatus,
    *,
    headers: dict[str, str] | None = None,
    timeout: Timeout | None = None,
    auth: Auth | None = None,
) -> AsyncClient:
    """A client that notes in `status` how the server refuses a request."""

    async def note(response: httpx2.Response) -> None:
        code = response.status_code
        status.code = code if code >= 400 and code not in (404, 405) else 0  # these two mean a refusal
        status.text = f"{code} {response.reason_phrase}".strip()
        status.by_oauth = code == 401 and "resource_metadata" in response.headers.get("www-authenticate", "")

    options = client_options(config.url, config.max_response)
    if auth is not None:  # asks an authorization server too; the SDK follows no redirect to another server either way
        options |= {"event_hooks": {}, "max_redirects": MOST_AUTH_REQUESTS}
        if not config.url.startswith("https:"):  # the options are those for the server: here it has no certificate
            options["mounts"] = {
                "https://": client_options("https://elsewhere.invalid", config.max_response)["transport"]
            }
    options["event_hooks"]["response"] = [note]
    return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, **options)


@contextlib.asynccontextmanager
async def watched(
    transport: contextlib.AbstractAsyncContextManager[Any], normalizer: Normalizer, ended: Callable[[], None]
) -> AsyncIterator[Any]:
    """`transport`, whose messages `normalizer` sees.

    `ended` is called when the server has nothing more to say: the SDK (2.3) tells only pending requests.
    """
    async with transport as (reading, writing):
        yield _WatchedStream(reading, normalizer, ended), _WatchedStream(writing, normalizer, ended)


class _WatchedStream:
    """One of the SDK's streams, with the part of its interface that the SDK's client uses."""

    def __init__(self, stream: Any, normalizer: Normalizer, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._normalizer = normalizer
        self._ended = ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stream.__aexit__(*error)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return self._normalizer.received(await self._stream.__anext__())
        except Exception:
            self._ended()
            raise

    async def send(self, item: Any) -> None:
        """Send a message."""
        self._normalizer.sent(item)
        await self._stream.send(item)
