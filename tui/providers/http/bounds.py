"""Limits for what a server may send: the size of an answer, its pace, and the target of redirects."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import aclosing, asynccontextmanager
from math import inf
from threading import Thread
from typing import Any

import httpx2

from tui.providers.http.sse import TooLargeError, check_json_cost

MIN_PROGRESS = 1024
"""Bytes by which a body has to grow within one read timeout."""


class RedirectError(httpx2.RequestError):
    """A server redirects to another one, which must get neither the key nor the conversation."""


async def check_redirect(home: httpx2.URL, request: httpx2.Request) -> None:
    """Raise `RedirectError` unless `request` is for the server of `home`, or the same one by TLS on the usual ports."""
    target = request.url
    same = (target.scheme, target.host, target.port) == (home.scheme, home.host, home.port)
    upgrade = target.host == home.host and (home.scheme, target.scheme) == ("http", "https")
    if not same and not (upgrade and home.port is None and target.port is None):
        raise RedirectError(f"{target.scheme}://{target.netloc.decode('ascii', 'replace')}")


# Socket options that detect a dead connection within minutes, as the SDKs of OpenAI and Anthropic set them.
_KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPINTVL", 60), ("TCP_KEEPCNT", 5), ("TCP_KEEPIDLE", 60))
        if hasattr(socket, name)
    ),
]


LATE = 1.0
"""Seconds by which a timer is late only if the program did not run."""


@asynccontextmanager
async def time_limit(seconds: float | None) -> AsyncGenerator[Callable[[float | None], None], None]:
    """`asyncio.timeout` for a program that may be stopped (SIGSTOP, ctrl+z, a suspended machine).

    What arrived while it was stopped is read before the limit applies. Yields a function that sets the limit anew.
    """
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None
    async with asyncio.timeout(None) as limit:

        def apply(due: float) -> None:
            limit.reschedule(loop.time() + (LATE if loop.time() > due + LATE else 0.0))

        def start(seconds: float | None) -> None:
            nonlocal timer
            if limit.expired():
                return
            limit.reschedule(None)
            if timer is not None:
                timer.cancel()
            due = loop.time() + (seconds or 0.0)
            timer = None if seconds is None else loop.call_at(due, apply, due)

        start(seconds)
        try:
            yield start
        finally:
            if timer is not None:
                timer.cancel()


async def _look_up(host: str, port: int, seconds: float | None) -> None:
    """Look a name up in a thread that nothing waits for. Raises `httpx2.ConnectError` and `httpx2.ConnectTimeout`.

    A name server that does not answer keeps a look-up for half a minute. In asyncio's threads, where the HTTP library
    looks the name up again, it would delay the end of the program as long.
    """
    answer: Future[object] = Future()
    answer.set_running_or_notify_cancel()

    def look_up() -> None:
        try:
            answer.set_result(socket.getaddrinfo(host.encode(), port))
        except Exception as error:
            answer.set_exception(error)

    Thread(target=look_up, name="look-up", daemon=True).start()
    try:
        async with time_limit(seconds):
            await asyncio.wrap_future(answer)
    except TimeoutError as error:
        raise httpx2.ConnectTimeout("the name server did not answer") from error
    except OSError as error:
        raise httpx2.ConnectError(str(error)) from error


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """A transport whose answers are at most `limit` bytes, decompressed, and must not trickle.

    Event streams are bounded event by event by their reader. Raises `TooLargeError` in addition to the transport's
    errors.
    """

    def __init__(self, limit: int, **options: Any) -> None:
        super().__init__(socket_options=_KEEPALIVE, **options)
        self._limit = limit

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request` and wait for the response headers, at most one read timeout after it is sent."""
        extensions = request.extensions
        timeouts = extensions.get("timeout", {})
        patience: float | None = timeouts.get("read")
        try:
            async with time_limit(None) as limit:

                async def trace(name: str, info: dict[str, Any]) -> None:
                    if name.endswith("connect_tcp.started"):
                        await _look_up(info["host"], info["port"], timeouts.get("connect"))
                    elif name.endswith("receive_response_headers.started") and patience is not None:
                        limit(patience)

                # The limit here, and `Pace`, replace the read timeout, which a stopped program would exceed.
                request.extensions = {**extensions, "trace": trace, "timeout": {**timeouts, "read": None}}
                response = await super().handle_async_request(request)
        except TimeoutError as error:
            raise httpx2.ReadTimeout("the head of the answer did not end", request=request) from error
        finally:
            request.extensions = extensions  # redirected requests inherit them
        return BoundedResponse(response, self._limit, patience)


class BoundedResponse(httpx2.Response):
    """A response whose body is at most `limit` bytes, decompressed; event streams only if read whole."""

    def __init__(self, response: httpx2.Response, limit: int, patience: float | None) -> None:
        super().__init__(
            response.status_code, headers=response.headers, stream=response.stream, extensions=response.extensions
        )
        self._limit = limit
        self._patience = patience
        self._bounded = not response.headers.get("content-type", "").lower().startswith("text/event-stream")

    async def aread(self) -> bytes:
        """The whole body. Raises `TooLargeError`, also if its JSON would take too much memory once parsed."""
        self._bounded = True
        content = await super().aread()
        check_json_cost(content, self._limit)
        return content

    async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
        """The body in pieces. Raises `TooLargeError` and `httpx2.ReadTimeout`."""
        pace, size = Pace(self._patience if self._bounded else None), 0
        async with aclosing(super().aiter_bytes(chunk_size)) as pieces:
            while (piece := await pace.wait_for(pieces)) is not None:
                size += len(piece)
                if self._bounded and size > self._limit:
                    raise TooLargeError(self._limit)
                yield piece


class Pace:
    """Waits for the pieces of a body: at most `patience` seconds between two signs of progress.

    And at most `thought` seconds between two events. Not counted is the time that the reader spends between two pieces,
    and for which the program was stopped.
    """

    def __init__(self, patience: float | None, thought: float = inf) -> None:
        self._patience = inf if patience is None else patience
        self._thought = thought
        self._waited = self._waited_event = 0.0
        self._size = 0

    def progress(self) -> None:
        """A whole line has arrived."""
        self._waited, self._size = 0.0, 0

    def event(self) -> None:
        """An event has arrived."""
        self.progress()
        self._waited_event = 0.0

    async def wait_for(self, pieces: AsyncGenerator[bytes, None]) -> bytes | None:
        """The next piece; None at the end. Raises `httpx2.ReadTimeout`."""
        clock = asyncio.get_running_loop().time
        started = clock()
        remaining = min(self._patience - self._waited, self._thought - self._waited_event)
        try:
            async with time_limit(None if remaining == inf else max(0.0, remaining)):
                piece = await anext(pieces, None)
        except TimeoutError as error:
            raise httpx2.ReadTimeout("nothing came, or next to nothing") from error
        seconds = clock() - started
        if seconds > remaining:
            seconds = 0.0  # only a program that was stopped waits longer than the limit
        self._waited += seconds
        self._waited_event += seconds
        self._size += len(piece or b"")
        if self._size >= MIN_PROGRESS:
            self.progress()
        return piece
