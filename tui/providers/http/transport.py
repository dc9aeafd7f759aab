"""Requests and their answers: JSON, whole or as a stream of events; errors become `ProviderError`."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any

from tui.providers.base import ProviderError
from tui.providers.config import ProviderConfig
from tui.providers.http.body import encode_json
from tui.providers.http.client import Client
from tui.providers.http.error_text import one_line
from tui.providers.http.errors import classify_error
from tui.providers.http.route import not_reached
from tui.providers.http.sizes import TooLargeError, check_json_cost, too_large
from tui.providers.http.sse import ServerSentEvent, SSEDecoder
from tui.providers.http.unstreamed import is_page, page_error, whole_answer
from tui.providers.keys import redact
from tui.providers.wire import Json
from tui.text.json_text import parse_json

if TYPE_CHECKING:
    import httpx2

CONNECT_TIMEOUT = 10.0  # seconds
LISTING_TIMEOUT = 10.0  # seconds for a model list
DRAIN_TIMEOUT = 0.25  # seconds to read what follows the last event
COUNTING_TIMEOUT = 60.0  # seconds for counting a request; a local server has to process all of it
LONGEST_THOUGHT = 3600.0  # seconds without an event, even if pings or comments arrive

# Content types of responses that may not be a stream although one was requested.
_WHOLE = ("application/json", "text/html")


async def events(client: Client, path: str, body: Json, config: ProviderConfig) -> AsyncGenerator[Json, None]:
    """POST `body` and yield the server-sent events as JSON objects. Raises `ProviderError`.

    The stream is stalled if neither a whole line (of an event or a comment) nor a fair piece of one arrives for
    `config.idle_timeout` seconds, or no event for `LONGEST_THOUGHT`. Closing the generator closes the connection, which
    makes a server stop generating.
    """
    import httpx2

    from tui.providers.http.bounds import Pace

    provider, idle, limit = config.name, config.idle_timeout, config.max_response
    with _translated_errors(client, provider, idle):
        content = await asyncio.to_thread(client.encoder.encode, body)
        # The read timeout restarts with every byte.
        patience = httpx2.Timeout(idle, connect=CONNECT_TIMEOUT)
        response = await client.ask(path, content, patience=patience, stream=True)
        async with aclosing(response):
            if not response.is_success:
                await response.aread()
                raise _refusal(response, provider)
            if (text := await _unstreamed(response)) is not None:
                check_json_cost(text, limit)
                for event in await asyncio.to_thread(whole_answer, text, provider, redact(client.base_url)):
                    yield event
                return
            decoder = SSEDecoder(limit)
            pieces = response.aiter_bytes()
            pace = Pace(idle, LONGEST_THOUGHT)
            while (piece := await pace.wait_for(pieces)) is not None:
                lines = decoder.lines
                for sent in decoder.feed(piece):
                    if sent.data.strip() == "[DONE]":
                        await _drain(pieces)
                        return
                    check_json_cost(sent.data, limit)
                    if (read := _json_event(sent, provider)) is None:
                        continue
                    pace.event()
                    yield read
                    if read.get("type") in _LAST_EVENTS:
                        await _drain(pieces)
                        return
                if decoder.lines > lines:
                    pace.progress()


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Read the rest after the last event, for a short time, so that the connection can be reused."""
    try:
        async with asyncio.timeout(DRAIN_TIMEOUT):
            async for _ in pieces:
                pass
    except TimeoutError:
        pass


# Nothing follows these; don't wait for servers that keep the connection open.
_LAST_EVENTS = ("message_stop", "response.completed", "response.incomplete")
# Event names of the dialects; under other names data that is not JSON is ignored.
_OWN_NAMES = re.compile(r"|message|error|message_\w+|content_block_\w+|response\.[\w.]+|chat\.completion\.chunk")


def _json_event(sent: ServerSentEvent, provider: str) -> Json | None:
    """The JSON object of an event; None if it is not part of the answer. Raises `ProviderError` for an error in any
    shape.

    Raises ValueError for invalid JSON.
    """
    if sent.name == "ping" or not sent.data.strip():
        return None
    try:
        value: object = parse_json(sent.data)
    except ValueError:
        if sent.name == "error":
            raise classify_error(None, sent.data, provider=provider) from None
        if _OWN_NAMES.fullmatch(sent.name):
            raise
        return None
    if sent.name == "error":
        raise classify_error(None, value, provider=provider)
    if not isinstance(value, dict):
        return None
    if value.get("error") or "error" in (value.get("type"), value.get("object")):
        raise classify_error(None, value, provider=provider)
    if sent.name and "type" not in value:
        value["type"] = sent.name
    return value


async def _unstreamed(response: Any) -> str | None:
    """The text of an answer that is not an event stream, whatever its headers say; None for a stream, which is not
    read.

    The first character decides: a stream with a wrong content type has to arrive piece by piece like any other.
    """
    if response.headers.get("content-type", "").partition(";")[0].strip().lower() not in _WHOLE:
        return None
    pieces, begun = response.aiter_bytes(), b""
    async for piece in pieces:
        begun += piece
        if begun.strip():
            break
    if begun.strip()[:1] not in (b"{", b"[", b"<"):
        response.aiter_bytes = lambda: _joined(begun, pieces)
        return None
    whole = b"".join([begun, *[piece async for piece in pieces]])
    return whole.decode(response.encoding, errors="replace")


async def _joined(begun: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(rest):
        yield begun
        async for piece in rest:
            yield piece


async def get_json(client: Client, path: str, provider: str, *, headers: Mapping[str, str] | None = None) -> object:
    """GET `path` (or an absolute URL) as JSON. Raises `ProviderError`, also for a web page."""

    with _translated_errors(client, provider):
        return _whole(await client.ask(path, headers=headers, patience=LISTING_TIMEOUT), client, provider)


async def post_json(
    client: Client, path: str, body: Json, provider: str, headers: Mapping[str, str] | None = None
) -> object:
    """POST `body` and return the answer as JSON. Raises `ProviderError`, also for a web page."""

    with _translated_errors(client, provider):
        content = await asyncio.to_thread(encode_json, body)
        answer = await client.ask(path, content, headers=headers, patience=COUNTING_TIMEOUT)
        return _whole(answer, client, provider)


def _whole(response: httpx2.Response, client: Client, provider: str) -> object:
    """A whole answer as JSON; as text where it is neither JSON nor says to be."""
    if not response.is_success:
        raise _refusal(response, provider)
    text = response.text
    if is_page(text):
        raise page_error(text, provider, redact(client.base_url))
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if "json" in response.headers.get("content-type", ""):
            raise
        return text


def _refusal(response: httpx2.Response, provider: str) -> ProviderError:
    """The error of an answer, read whole, whose HTTP status is none of success."""
    return classify_error(
        response.status_code,
        response.text,
        headers=dict(response.headers),
        provider=provider,
        now=time.time(),
        asked=redact(str(response.url).partition("?")[0]),
    )


@contextmanager
def _translated_errors(client: Client, provider: str, idle: float | None = None) -> Iterator[None]:
    """Raises errors of requests as `ProviderError`. `idle`: seconds of silence allowed for a stream."""
    try:
        yield
    except Exception as error:
        translated = _translated(error, provider, client.base_url, idle)
        if translated is None:
            raise
        raise translated from error


def _translated(error: Exception, provider: str, base_url: str, idle: float | None) -> ProviderError | None:
    """`error` of the HTTP library or of reading an answer as a `ProviderError`; None for any other."""
    import httpx2

    from tui.providers.http.bounds import RedirectError, TrickleError

    if isinstance(error, TooLargeError):
        return too_large(provider, error.limit)
    where, lead, table = redact(base_url), f"{provider}: ", f"headers in [providers.{provider}]"
    reason = one_line(str(error), 120) or type(error).__name__
    match error:
        case RedirectError():
            text = f"{where} redirects to {redact(str(error))}, which is another server: nothing was sent there."
            return ProviderError("bad_request", f"{lead}{text} If it is the right one, set base_url to it.")
        case TrickleError() if idle is not None:
            return ProviderError(
                "stalled",
                f"{lead}{where} sent next to nothing for {idle:g} seconds. What arrived is kept; /retry asks again. "
                "A slow server gets more time with idle_timeout in the config file.",
            )
        case httpx2.ReadTimeout() if idle is not None:
            return ProviderError(
                "stalled",
                f"{lead}{where} sent nothing for {idle:g} seconds. What arrived is kept; /retry asks again. "
                "A slow server gets more time with idle_timeout in the config file.",
            )
        case httpx2.TimeoutException():
            text = f"{where} did not answer in time. Check the server, then /retry."
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return ProviderError("bad_request", f"{lead}{where} is no usable address. Check base_url.")
        case httpx2.LocalProtocolError() | UnicodeEncodeError():  # the text would quote the header's value
            text = f"a header can't be sent: its name or value has characters that none may have. Check {table}."
            return ProviderError("bad_request", f"{lead}{text}")
        case httpx2.ConnectError():
            return not_reached(reason, provider, base_url)
        case httpx2.HTTPError():
            text = f"the connection to {where} broke ({reason}). What arrived is kept; /retry goes on."
        case ValueError() | RecursionError():  # includes numbers of thousands of digits, and deep nesting
            return ProviderError(
                "protocol", f"{lead}the server sent broken JSON. What arrived is kept; /retry goes on."
            )
        case _:
            return None
    return ProviderError("network", lead + text)
