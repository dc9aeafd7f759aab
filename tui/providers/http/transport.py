"""The official SDKs as transport: connections and keys; retries off, raw JSON events out, errors translated.

Events are read below the SDKs (`sse`) and parsed as plain JSON: the SDKs' event classes coerce unknown events into a
wrong class, and each SDK treats odd events in its own way. The SDKs are imported in a worker thread at the first
request: importing one takes up to a second.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar

from tui.providers.base import ProviderError
from tui.providers.config import ProviderConfig
from tui.providers.http.client import Client
from tui.providers.http.error_text import one_line
from tui.providers.http.errors import classify_error
from tui.providers.http.route import not_reached
from tui.providers.http.sizes import TooLargeError, check_json_cost, too_large
from tui.providers.http.sse import ServerSentEvent, SSEDecoder
from tui.providers.http.unstreamed import is_page, page_error, whole_answer
from tui.providers.keys import redact
from tui.providers.wire import Json, whole_texts
from tui.text.json_text import parse_json

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

T = TypeVar("T")

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
    try:
        async with aclosing(_raw_events(client, path, body, config)) as stream:
            async for event in stream:
                yield event
    except ProviderError:
        raise
    except Exception as error:
        translated = translate(error, config.name, client.base_url, config.idle_timeout)
        if translated is None:
            raise
        raise translated from error


async def _raw_events(client: Client, path: str, body: Json, config: ProviderConfig) -> AsyncGenerator[Json, None]:
    import httpx2

    from tui.providers.http.bounds import Pace

    provider, idle, limit = config.name, config.idle_timeout, config.max_response
    # The read timeout restarts with every byte.
    patience: Any = {"timeout": httpx2.Timeout(idle, connect=CONNECT_TIMEOUT)}
    kind: Any
    sdk = await client.sdk()
    if type(sdk).__module__.startswith("anthropic"):
        from anthropic import AsyncStream as AnthropicStream

        kind = AnthropicStream[object]
    else:
        from openai import AsyncStream as OpenAIStream

        kind = OpenAIStream[object]
    data = await asyncio.to_thread(client.encoder.encode, body)
    stream: Any = await _again_if_hung_up(
        lambda: sdk.post(path, cast_to=object, content=data, options=patience, stream=True, stream_cls=kind)
    )
    response = stream.response
    try:
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
    finally:
        await stream.close()


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


async def _post(send: Callable[[Json], Awaitable[T]], body: Json) -> T:
    """Send `body`. Half a character in it (a lone surrogate, from a paste, a file, a server) must not stop it."""
    try:
        return await _again_if_hung_up(lambda: send(body))
    except UnicodeEncodeError:
        return await send(await asyncio.to_thread(whole_texts, body))


async def _again_if_hung_up(call: Callable[[], Awaitable[T]]) -> T:
    """`call()`, repeated once if the connection was closed before any answer.

    Servers close idle connections after some seconds, or after a stream (llama.cpp), possibly at this moment.
    """
    import httpx2

    try:
        return await call()
    except Exception as error:
        cause = error if isinstance(error, httpx2.HTTPError) else error.__cause__  # the SDKs wrap it
        if not isinstance(cause, httpx2.RemoteProtocolError) or "without sending a response" not in str(cause):
            raise
    return await call()


async def get_json(client: Client, path: str, provider: str, *, headers: Mapping[str, str] | None = None) -> object:
    """GET `path` (or an absolute URL) as JSON. Raises `ProviderError`, also for a web page."""

    async def ask() -> httpx2.Response:
        return await _again_if_hung_up(lambda: client.ask(path, headers=headers, seconds=LISTING_TIMEOUT))

    return await _answer(ask, client, provider)


async def post_json(
    client: Client, path: str, body: Json, provider: str, headers: Mapping[str, str] | None = None
) -> object:
    """POST `body` and return the answer as JSON. Raises `ProviderError`, also for a web page."""

    async def ask() -> httpx2.Response:
        return await _post(lambda sent: client.ask(path, sent, headers=headers, seconds=COUNTING_TIMEOUT), body)

    return await _answer(ask, client, provider)


async def _answer(ask: Callable[[], Awaitable[httpx2.Response]], client: Client, provider: str) -> object:
    """The answer to a question as JSON; as text where it is neither JSON nor says to be."""
    try:
        response = await ask()
        text = response.text
        if not response.is_success:
            raise _refusal(response, [None, text], provider)
        if is_page(text):
            raise page_error(text, provider, redact(client.base_url))
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            if "json" in response.headers.get("content-type", ""):
                raise
            return text
    except ProviderError:
        raise
    except Exception as error:
        translated = translate(error, provider, client.base_url)
        if translated is None:
            raise
        raise translated from error


def _refusal(response: httpx2.Response, body: object, provider: str, message: str = "") -> ProviderError:
    """The error of an answer with an HTTP status that says so."""
    return classify_error(
        response.status_code,
        body,
        message=message,
        headers=dict(response.headers),
        provider=provider,
        now=time.time(),
        asked=redact(str(response.url).partition("?")[0]),
    )


def translate(error: Exception, provider: str, base_url: str, idle: float | None = None) -> ProviderError | None:
    """`error` of an SDK or its HTTP library as a `ProviderError`; None if it is not a failed request.

    `idle`: seconds of silence allowed for a stream.
    """
    import httpx2

    from tui.providers.http.bounds import RedirectError, TrickleError

    for origin in (error, error.__cause__):
        if isinstance(origin, TooLargeError):
            return too_large(provider, origin.limit)
    response = getattr(error, "response", None)
    if isinstance(response, httpx2.Response):
        return _refusal(response, _body(error, response), provider, str(error))
    where, lead = redact(base_url), f"{provider}: "
    cause: BaseException = error.__cause__ if isinstance(error.__cause__, httpx2.HTTPError) else error
    reason = one_line(str(cause), 120) or type(cause).__name__
    match cause:
        case RedirectError():
            text = f"{where} redirects to {redact(str(cause))}, which is another server: nothing was sent there."
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
        case httpx2.ConnectError():
            return not_reached(reason, provider, base_url)
        case httpx2.HTTPError():
            text = f"the connection to {where} broke ({reason}). What arrived is kept; /retry goes on."
        case ValueError() | RecursionError():  # includes numbers of thousands of digits, and deep nesting
            return ProviderError(
                "protocol", f"{lead}the server sent broken JSON. What arrived is kept; /retry goes on."
            )
        case _ if type(error).__name__ in ("APITimeoutError", "APIConnectionError"):
            text = f"cannot reach {where}. Check that the server runs, and its base_url."
        case _:
            text = ""
    return ProviderError("network", lead + text) if text else None


def _body(error: Exception, response: Any) -> object:
    """The decoded body; the raw text if the SDK kept only a part of it."""
    body = getattr(error, "body", None)
    if response.is_closed and response.is_stream_consumed:
        try:
            text = response.text
        except RuntimeError:
            text = ""
        return [body, text] if text else body
    return body
