"""Requests and their answers: JSON, whole or as a stream of events; errors become `ProviderError`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tui.providers.base import ErrorKind, ProviderError
from tui.providers.http.client import Client, encode_json
from tui.providers.http.errors import body_message, body_values, classify_error
from tui.providers.http.proxies import proxy_for
from tui.providers.http.sse import ServerSentEvent, SSEDecoder, TooLargeError, check_json_cost, too_large
from tui.providers.keys import one_line, redact
from tui.providers.wire import Json, object_of
from tui.text.json_text import parse_json

if TYPE_CHECKING:
    import httpx2

    from tui.providers.http.bounds import Pace

CONNECT_TIMEOUT = 10.0  # seconds
LISTING_TIMEOUT = 10.0  # seconds for a model list, or what a server says of a model
DRAIN_TIMEOUT = 0.25  # seconds to read what follows the last event
COUNTING_TIMEOUT = 60.0  # seconds for counting a request; a local server has to process all of it
MAX_THOUGHT = 3600.0  # seconds without an event, even if pings or comments arrive

_NO_STREAM = (b"{", b"[", b"<")  # beginnings of JSON and of web pages, sent with any content type
# Nothing follows these; don't wait for servers that keep the connection open.
_LAST_EVENTS = ("message_stop", "response.completed", "response.incomplete")
# Event names of the dialects; under other names data that is not JSON is ignored.
_OWN_NAMES = re.compile(r"|message|message_\w+|content_block_\w+|response\.[\w.]+|chat\.completion\.chunk")


async def events(client: Client, path: str, body: Json) -> AsyncGenerator[Json, None]:
    """POST `body` and yield the server-sent events as JSON objects. Raises `ProviderError`.

    The stream is stalled if neither a whole line (of an event or a comment) nor a fair piece of one arrives for
    `idle_timeout` seconds, or no event for `MAX_THOUGHT`. Closing the generator closes the connection, which
    makes a server stop generating.
    """
    import httpx2

    from tui.providers.http.bounds import Pace

    provider, idle, limit = client.config.name, client.config.idle_timeout, client.config.max_response
    with _translated_errors(client, idle):
        content = await asyncio.to_thread(client.encoder.encode, body)
        # The read timeout restarts with every byte.
        patience = httpx2.Timeout(idle, connect=CONNECT_TIMEOUT)
        response = await client.ask(path, content, patience=patience, stream=True)
        async with aclosing(response):
            if not response.is_success:
                await response.aread()
                raise _refusal(response, provider)
            pieces, begun = response.aiter_bytes(), False
            decoder, pace = SSEDecoder(limit), Pace(idle, MAX_THOUGHT)
            while (received := await pace.wait_for(pieces)) is not None:
                if not begun and received.strip().startswith(_NO_STREAM):
                    whole = await _whole_body(received, pieces, pace, limit)
                    answer = whole.decode(response.encoding or "utf-8", errors="replace")
                    check_json_cost(answer, limit)
                    for part in await asyncio.to_thread(whole_answer, answer, provider, redact(client.base_url)):
                        yield part
                    return
                begun = begun or bool(received.strip())
                lines = decoder.lines
                for sent in decoder.feed(received):
                    if sent.data.strip() == "[DONE]":
                        await _drain(pieces)
                        return
                    check_json_cost(sent.data, limit)
                    if (event := _json_event(sent, provider)) is None:
                        continue
                    pace.event()
                    yield event
                    if event.get("type") in _LAST_EVENTS:
                        await _drain(pieces)
                        return
                if decoder.lines > lines:
                    pace.progress()
            for sent in decoder.feed(b"\n\n"):  # an event without a blank line behind it
                check_json_cost(sent.data, limit)
                with suppress(ValueError):  # of which a part is missing
                    if (event := _json_event(sent, provider)) is not None:
                        yield event


async def _whole_body(begun: bytes, pieces: AsyncGenerator[bytes, None], pace: Pace, limit: int) -> bytes:
    """The body that has `begun` and goes on with `pieces`. Raises `TooLargeError` and `httpx2.ReadTimeout`."""
    parts, size = [begun], len(begun)
    while (piece := await pace.wait_for(pieces)) is not None:
        parts.append(piece)
        size += len(piece)
        if size > limit:
            raise TooLargeError(limit)
    return b"".join(parts)


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Read the rest after the last event, for a short time, so that the connection can be reused."""
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_TIMEOUT):
            async for _ in pieces:
                pass


def _json_event(sent: ServerSentEvent, provider: str) -> Json | None:
    """The JSON object of an event; None if it is not part of the answer. Raises `ProviderError` for an error in any
    shape.

    Raises ValueError for invalid JSON.
    """
    if sent.name == "ping" or not sent.data.strip():
        return None
    if sent.name == "error":
        raise classify_error(None, sent.data, provider=provider)
    try:
        value: object = parse_json(sent.data)
    except ValueError:
        if _OWN_NAMES.fullmatch(sent.name):
            raise
        return None
    if not isinstance(value, dict):
        return {"message": value}
    if value.get("error") or "error" in (value.get("type"), value.get("object")):
        raise classify_error(None, value, provider=provider)
    if sent.name and "type" not in value:
        value["type"] = sent.name
    return value


def foreign_error(event: Json, provider: str) -> ProviderError | None:
    """What the last event of an answer without an end says, if it has the format of none of the dialects.

    Servers report errors in formats of their own: {"detail": ...}, {"base_resp": {"status_msg": ...}}.
    """
    if event.get("choices") or ("type" in event and _OWN_NAMES.fullmatch(str(event["type"]))):
        return None
    return classify_error(None, event, provider=provider) if body_message(body_values(event)) else None


# -- answers that are not streams ----------------------------------------------------------------------------------


def whole_answer(text: str, provider: str, where: str) -> list[Json]:
    """The events of an answer in any dialect that came whole, from its body. Raises `ProviderError` if it is none.

    Proxies and small servers that do not stream send the answer whole; some report errors as plain JSON under HTTP 200;
    an address other than the API's (a login page, a site's front page) answers with HTML.
    """
    if text.lstrip().startswith("<"):
        raise _page_error(text, provider, where)
    body: Any = parse_json(text)
    match body:
        case {"choices": [_, *_]}:
            return [body]
        case {"type": "message", "content": [*blocks]}:
            inner: list[Json] = []
            for index, block in enumerate(blocks):
                inner.append({"type": "content_block_start", "index": index, "content_block": block})
                inner.append({"type": "content_block_stop", "index": index})
            return [{"type": "message_start", "message": body}, *inner, {"type": "message_delta", "delta": body}]
        case {"output": [*_]}:
            status = body.get("status")
            end = status if status in ("completed", "incomplete", "failed") else "completed"
            return [{"type": f"response.{end}", "response": body}]
    error = classify_error(200, body, provider=provider)
    fields = object_of(body)
    code = fields.get("code") or fields.get("status")
    # In some formats a failed request is {"success": false} or {"code": 500}.
    failed = bool(fields.get("error")) or fields.get("success") is False or (isinstance(code, int) and code >= 400)
    if error.kind == "unknown" and not failed:
        words = one_line(body_message(body_values(body)), 120)
        text = f"{where} answered with JSON that is not an answer{f' ({words})' if words else ''}"
        raise ProviderError("protocol", f"{provider}: {text}. {_check_address(where)}")
    raise error


def _page_error(text: str, provider: str, where: str) -> ProviderError:
    """The error for a web page at `where`, the requested address."""
    title = one_line(body_message([("", text[:4000])]), 60) if "<title" in text[:4000].lower() else ""
    page = f"a web page{f' ({title})' if title else ''}"
    return ProviderError(
        "protocol", f"{provider}: {where} answered with {page}: it is not an API. {_check_address(where)}"
    )


def _check_address(where: str) -> str:
    return "Check base_url." if where.rstrip("/").endswith("/v1") else "Check base_url; most end in /v1."


# -- requests whose answers are not streams -------------------------------------------------------------------------


async def ask_json(
    client: Client, path: str, body: Json | None = None, *, patience: float = LISTING_TIMEOUT, renew: bool = True
) -> object:
    """GET `path` (or an absolute URL), or POST `body` to it. Raises `ProviderError`, also for a web page.

    Returns the answer's JSON; its text where it is neither JSON nor says to be. `patience` (seconds) and `renew` are
    those of `Client.ask`.
    """
    with _translated_errors(client):
        content = None if body is None else await asyncio.to_thread(encode_json, body)
        response = await client.ask(path, content, patience=patience, renew=renew)
        if not response.is_success:
            raise _refusal(response, client.config.name)
        text = response.text
        if text.lstrip().startswith("<"):
            raise _page_error(text, client.config.name, redact(client.base_url))
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            if "json" in response.headers.get("content-type", ""):
                raise
            return text


# -- errors ----------------------------------------------------------------------------------------------------------


def _refusal(response: httpx2.Response, provider: str) -> ProviderError:
    """The error of an answer, read whole, whose HTTP status is none of success."""
    if response.status_code == 407 and proxy_for(str(response.url)):
        kind, text = _refused_by_proxy(f"407 {response.reason_phrase}", str(response.url))
        return ProviderError(kind, f"{provider}: {text}")
    return classify_error(
        response.status_code,
        response.text,
        headers=dict(response.headers),
        provider=provider,
        now=time.time(),
        url=redact(str(response.url).partition("?")[0]),
    )


@contextmanager
def _translated_errors(client: Client, idle: float | None = None) -> Iterator[None]:
    """Raises errors of requests as `ProviderError`. `idle`: seconds of silence allowed for a stream."""
    name = client.config.name
    try:
        yield
    except TooLargeError as error:
        raise too_large(name, error.limit) from error
    except Exception as error:
        if (explained := _explained(error, client.base_url, idle)) is None:
            raise
        kind, text = explained
        raise ProviderError(kind, f"{name}: {text}") from error


def _explained(error: Exception, base_url: str, idle: float | None) -> tuple[ErrorKind, str] | None:
    """What an error of the HTTP library, or of reading an answer, means; None for any other."""
    import httpx2

    from tui.providers.http.bounds import RedirectError

    where = redact(base_url)
    next_step = "Check the server, then try again." if idle is None else "What arrived is kept; /retry goes on."
    match error:
        case RedirectError():
            text = f"{where} redirects to {redact(str(error))}, which is another server: nothing was sent there."
            return "bad_request", f"{text} If it is the right one, set base_url to it."
        case httpx2.TooManyRedirects():
            return "bad_request", f"{where} redirects in a circle. Check base_url."
        case httpx2.RemoteProtocolError() if "location header" in str(error):
            return "bad_request", f"{where} redirects to something that is no web address. Check base_url."
        case httpx2.ReadTimeout() if idle is not None:
            text = f"{where} sent nothing or next to nothing for {idle:g} seconds. What arrived is kept; /retry asks"
            return "stalled", f"{text} again. A slow server gets more time with idle_timeout in the config file."
        case httpx2.TimeoutException():
            return "network", f"{where} did not answer in time. Check the server, then /retry."
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return "bad_request", f"{where} is not a usable address. Check base_url."
        case httpx2.ConnectError():
            return not_reached(_reason(error), base_url)
        case httpx2.ProxyError():
            return _refused_by_proxy(one_line(str(error), 120) or _reason(error), base_url)
        case httpx2.HTTPError():
            return "network", f"the connection to {where} broke ({_reason(error)}). {next_step}"
        case ValueError() | RecursionError():  # includes numbers of thousands of digits, and deep nesting
            return "protocol", f"the server sent broken JSON. {next_step}"
        case _:
            return None


def _reason(error: httpx2.HTTPError) -> str:
    """Why a connection failed: in the system's words, or ours, but never in the HTTP library's."""
    import httpx2

    cause: BaseException | None = error
    while cause is not None and not (isinstance(cause, OSError) and cause.errno):
        # A group has an error for each address of a name.
        deeper = cause.__cause__ or cause.__context__
        cause = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else deeper
    if isinstance(cause, OSError) and cause.errno:
        own = isinstance(cause, ssl.SSLError | socket.gaierror)  # with numbers of their own
        return one_line(cause.strerror or "", 120) if own else os.strerror(cause.errno)
    if "without sending a response" in str(error) or "peer closed" in str(error):
        return "it was closed before the answer was complete"
    unreadable = isinstance(error, httpx2.RemoteProtocolError | httpx2.DecodingError)
    return "what came can't be read" if unreadable else "no reason was given"


def _refused_by_proxy(reason: str, url: str) -> tuple[ErrorKind, str]:
    """`reason` begins with the HTTP status of the proxy's answer."""
    text = f"the proxy {proxy_for(url)} refused the connection ({reason}). Check HTTPS_PROXY, ALL_PROXY and NO_PROXY."
    return "network" if reason.startswith("5") else "bad_request", text


def not_reached(reason: str, base_url: str) -> tuple[ErrorKind, str]:
    """Why a server could not be connected to, from the `reason` for a person or OpenSSL's."""
    where = redact(base_url)
    if "certificate verify failed" in reason.lower():  # waiting does not help
        text = f"{where} shows a certificate that is not trusted here ({reason}). Set SSL_CERT_FILE to the one that is."
        return "protocol", text
    if "wrong version number" in reason.lower() and where.startswith("https:"):  # OpenSSL's, of an answer in plain text
        address = f"http{where.removeprefix('https')}"
        return "bad_request", f"{where} does not speak TLS. Set base_url to {address}, or check the port."
    if proxy := proxy_for(base_url):
        text = f"cannot reach {where} through the proxy {proxy} ({reason}). Check HTTPS_PROXY, ALL_PROXY and NO_PROXY."
        return "network", text
    return "network", f"cannot reach {where} ({reason}). Check that the server runs, and its base_url."
