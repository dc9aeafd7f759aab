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
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

from tui.providers.base import ProviderError
from tui.providers.config import MAX_RESPONSE, ProviderConfig
from tui.providers.http.error_text import one_line
from tui.providers.http.errors import classify_error
from tui.providers.http.route import client_options, no_client, not_reached, split_query
from tui.providers.http.sizes import TooLargeError, check_json_cost, too_large
from tui.providers.http.sse import ServerSentEvent, SSEDecoder
from tui.providers.http.unstreamed import is_page, page_error, whole_answer
from tui.providers.keys import redact
from tui.providers.wire import Json, whole_texts

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

    Client: TypeAlias = AsyncOpenAI | AsyncAnthropic

log = logging.getLogger(__name__)

ClientT = TypeVar("ClientT")

CONNECT_TIMEOUT = 10.0  # seconds
LISTING_TIMEOUT = 10.0  # seconds for a model list
DRAIN_TIMEOUT = 0.25  # seconds to read what follows the last event
COUNTING_TIMEOUT = 60.0  # seconds for counting a request; a local server has to process all of it
LONGEST_THOUGHT = 3600.0  # seconds without an event, even if pings or comments arrive

# Content types of responses that may not be a stream although one was requested.
_WHOLE = ("application/json", "text/html")

# Sent to servers without a key: the SDKs refuse an empty one.
NO_KEY = "none"


async def openai_client(
    base_url: str, key: str | None, headers: Mapping[str, str], limit: int = MAX_RESPONSE
) -> AsyncOpenAI:
    """A client of the official `openai` SDK for `base_url`.

    Its answers may have `limit` bytes.
    """

    def build() -> AsyncOpenAI:
        import openai

        # Organisation and project in the environment are OpenAI's; they are not sent to other servers.
        official = urlsplit(base_url).hostname == "api.openai.com"
        defaults: dict[str, Any] = (
            {} if official else {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
        )
        address, query = split_query(base_url)
        if key and "api-version" in query:  # Azure's classic API takes a key in this header only
            defaults["api-key"] = key
        return openai.AsyncOpenAI(
            api_key=key or NO_KEY,
            base_url=address,
            max_retries=0,
            default_headers={**defaults, **headers},
            default_query=query,
            http_client=openai.DefaultAsyncHttpxClient(**client_options(base_url, limit)),
        )

    return await _built(build, base_url)


async def anthropic_client(
    base_url: str, key: str | None, headers: Mapping[str, str], limit: int = MAX_RESPONSE
) -> AsyncAnthropic:
    """A client of the official `anthropic` SDK for `base_url`.

    Its answers may have `limit` bytes.
    """

    def build() -> AsyncAnthropic:
        import anthropic

        official = urlsplit(base_url).hostname == "api.anthropic.com"
        address, query = split_query(base_url)
        return anthropic.AsyncAnthropic(
            api_key=key or NO_KEY,
            base_url=address.rstrip("/").removesuffix("/v1"),  # the SDK's paths begin with /v1
            default_query=query,
            max_retries=0,
            # The SDK sends a bearer token; servers that merely speak the dialect often expect the older header.
            default_headers={**({"x-api-key": key} if key and not official else {}), **headers},
            http_client=anthropic.DefaultAsyncHttpxClient(**client_options(base_url, limit)),
        )

    return await _built(build, base_url)


async def _built(build: Callable[[], ClientT], base_url: str) -> ClientT:
    try:
        if urlsplit(base_url).port == 0:  # reading it raises for an invalid port
            raise ValueError("no port 0")
        return await asyncio.to_thread(build)
    except Exception as error:
        import httpx2

        explained = no_client(ValueError(str(error)) if isinstance(error, httpx2.InvalidURL) else error, base_url)
        if explained is None:
            raise
        raise explained from error


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
        translated = translate(error, config.name, str(client.base_url), config.idle_timeout)
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
    if type(client).__module__.startswith("anthropic"):
        from anthropic import AsyncStream as AnthropicStream

        kind = AnthropicStream[object]
    else:
        from openai import AsyncStream as OpenAIStream

        kind = OpenAIStream[object]
    stream: Any = await _post(client, path, body, options=patience, stream=True, stream_cls=kind)
    response = stream.response
    try:
        if (text := await _unstreamed(response)) is not None:
            check_json_cost(text, limit)
            for event in await asyncio.to_thread(whole_answer, text, provider, redact(str(client.base_url))):
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
        value: object = json.loads(sent.data)
    except (ValueError, RecursionError):
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


async def _post(client: Client, path: str, body: Json, **how: Any) -> Any:
    """POST `body`, replacing lone surrogates (from a paste, a file, a server), which can't be encoded."""
    try:
        return await _again_if_hung_up(lambda: client.post(path, cast_to=object, body=body, **how))
    except UnicodeEncodeError:
        return await client.post(path, cast_to=object, body=await asyncio.to_thread(whole_texts, body), **how)


async def _again_if_hung_up(call: Callable[[], Awaitable[Any]]) -> Any:
    """`call()`, repeated once if the connection was closed before any answer.

    Servers close idle connections after some seconds, or after a stream (llama.cpp), possibly at this moment.
    """
    import httpx2

    try:
        return await call()
    except Exception as error:
        cause = error.__cause__ or error
        if not isinstance(cause, httpx2.RemoteProtocolError) or "without sending a response" not in str(cause):
            raise
    return await call()


async def get_json(client: Client, path: str, provider: str, *, headers: Mapping[str, str] | None = None) -> object:
    """GET `path` (or an absolute URL) as JSON. Raises `ProviderError`, also for a web page."""
    answer = await _call(client, "get", path, None, provider, headers)
    if isinstance(answer, str) and is_page(answer):
        raise page_error(answer, provider, redact(str(client.base_url)))
    return answer


async def post_json(
    client: Client, path: str, body: Json, provider: str, headers: Mapping[str, str] | None = None
) -> object:
    """POST `body` and return the answer as JSON. Raises `ProviderError`."""
    return await _call(client, "post", path, body, provider, headers)


async def _call(
    client: Client,
    method: str,
    path: str,
    body: Json | None,
    provider: str,
    headers: Mapping[str, str] | None = None,
) -> object:
    timeout = LISTING_TIMEOUT if method == "get" else COUNTING_TIMEOUT
    options: Any = {"timeout": timeout, "headers": dict(headers or {})}
    try:
        if method == "get":
            return await _again_if_hung_up(lambda: client.get(path, cast_to=object, options=options))
        return await _post(client, path, body or {}, options=options)
    except Exception as error:
        translated = translate(error, provider, str(client.base_url))
        if translated is None:
            raise
        raise translated from error


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
        return classify_error(
            response.status_code,
            _body(error, response),
            message=str(error),
            headers=dict(response.headers),
            provider=provider,
            now=time.time(),
            asked=redact(str(response.url).partition("?")[0]),
        )
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
