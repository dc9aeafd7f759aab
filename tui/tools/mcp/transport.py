"""Transports of an MCP server by the official SDK (a local program, or HTTP), and a look at what comes over them.

The SDK (2.3) rejects an answer as a whole: one invalid tool would take the other fifty with it, one content block of an
unknown type the text beside it, and an unreadable answer would leave its request waiting until the timeout. Here each
tool, resource, prompt and block is checked by itself. Unusable ones are left out and reported.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Self

import httpx2
import mcp.types as types
from anyio.abc import ByteReceiveStream
from httpx2 import AsyncClient, Auth, Timeout
from mcp.client import stdio
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter
from mcp_types.methods import validate_server_result
from pydantic import BaseModel, ValidationError

from tui.config.files import at_home
from tui.providers.http.proxies import client_options
from tui.providers.http.sse import TooLargeError, check_json_cost
from tui.text.numbers import size_text
from tui.tools.mcp.config import ServerConfig
from tui.tools.mcp.status import Issue, ServerLog, TransportStatus

_PASSED_ON = re.compile(
    r"LANG|LC_\w+|TZ|TMPDIR|XDG_\w+|\w*_PROXY|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS|PIP_CERT",
    re.IGNORECASE,
)
"""Variables passed to a server besides those of its configuration and the SDK's short list (PATH, HOME, ...): for
locale and network. API keys are not among them."""


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
    with_mark = "utf-8-sig" if encoding == "utf-8" else encoding  # which PowerShell writes
    decoder = codecs.getincrementaldecoder(with_mark)(errors)
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
        options["event_hooks"] = {}
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


# -- messages, before the SDK reads them -------------------------------------------------------------------------------

NOT_READABLE = -32700  # parse error (JSON-RPC 2.0, section 5.1)
CLOSED = -32000
"""The SDK's code for a closed connection. Servers use it too, for other errors."""

SERVER_ERROR = -32099
"""Replaces that in errors from servers, which would be taken for a closed connection. JSON-RPC reserves it for them."""

_MADE_BY_SDK = "SSE stream "  # prefix of errors with that code that come from the SDK's HTTP transport
_MAX_PENDING = 10_000  # requests whose method is remembered
_MAX_ISSUES = 100
_LISTS: Mapping[str, tuple[str, str, type[BaseModel]]] = {  # by method: the key of the list, and what is in it
    "tools/list": ("tools", "tool", types.Tool),
    "resources/list": ("resources", "resource", types.Resource),
    "resources/templates/list": ("resourceTemplates", "resource template", types.ResourceTemplate),
    "prompts/list": ("prompts", "prompt", types.Prompt),
}
_UNCACHED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""Fields that the 2026-07-28 protocol requires beside a list; caching is off."""

_CHANGED = "notifications/tools/list_changed"
_NO_CONTENT = ("content", "_meta", "isError", "resultType")
_BLOCKS: Mapping[str, type[BaseModel]] = {
    "text": types.TextContent,
    "image": types.ImageContent,
    "audio": types.AudioContent,
    "resource": types.EmbeddedResource,
    "resource_link": types.ResourceLink,
}


class Normalizer:
    """Sees all messages of one connection, in both directions.

    `stale` is True from the notification that the tools changed until they are listed again.
    """

    def __init__(self) -> None:
        self._pending: dict[int | str, str] = {}
        self._issues: dict[str, list[Issue]] = {}
        self._version = "2025-11-25"  # of the protocol; the SDK checks answers by it
        self.stale = False

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Problems with the latest lists."""
        return tuple(issue for method in _LISTS for issue in self._issues.get(method, ()))

    def sent(self, item: SessionMessage) -> None:
        """Remember the method of a request, which its response does not contain."""
        message = item.message
        if not isinstance(message, JSONRPCRequest):
            return
        self._pending[message.id] = message.method
        if len(self._pending) > _MAX_PENDING:  # cancelled and failed requests get no result
            del self._pending[next(iter(self._pending))]
        if message.method in _LISTS and not (message.params or {}).get("cursor"):
            self._issues[message.method] = []
            if message.method == "tools/list":
                self.stale = False

    def received(self, item: Any) -> Any:
        """Normalize an item of the SDK's stream: a message, or the error of reading one."""
        item = readable(item)
        if isinstance(item, Exception):
            return item
        message = item.message
        match message:
            case JSONRPCNotification(method=method) if method == _CHANGED:
                self.stale = True
            case JSONRPCResponse():
                self._answer(message, self._pending.pop(message.id, ""))
            case JSONRPCError(error=error) if error.code == CLOSED and not error.message.startswith(_MADE_BY_SDK):
                message.error = error.model_copy(update={"code": SERVER_ERROR})
        return item

    def _answer(self, message: JSONRPCResponse, method: str) -> None:
        result = message.result
        match method:
            case "initialize":
                self._version = str(result.get("protocolVersion", self._version))
                message.result = _introduction(result)
            case "server/discover":
                self._version = "2026-07-28"
            case "tools/call":
                message.result = _call_result(result)
            case "prompts/get" if isinstance(result.get("messages"), list):
                for each in result["messages"]:
                    if isinstance(each, dict) and "content" in each:
                        each["content"] = known_block(each["content"])
            case _ if method in _LISTS:
                message.result = self._list(method, result)

    def _list(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """A list without the items for which the SDK would reject it."""
        key, kind, model = _LISTS[method]
        issues, items = self._issues.setdefault(method, []), result.get(key)
        if not isinstance(items, list):
            issues.append(Issue(f"{method} was answered without a list of {key}"))
            items = []
        usable: list[object] = []
        for number, item in enumerate(items, 1):
            label = f"{kind} {_name(item) or f'number {number}'}"
            if model is types.Tool and isinstance(item, dict):
                match item:  # MCP 2025-11-25, tasks: tool-level negotiation
                    case {"execution": {"taskSupport": "required"}}:
                        why = "it runs only as a task, which chatctx does not do"
                        issues.append(Issue(f"{label} is not offered: {why}", fault=False))
                        continue
                item, oddity = _plain_tool(item)
                issues += [Issue(f"{label}: {oddity}")] if oddity else []
            try:
                model.model_validate(item, by_name=False)
                validate_server_result(method, self._version, {key: [item], **_UNCACHED})
            except ValidationError as error:
                issues.append(Issue(f"{label} is left out: {_first(error).removeprefix(f'{key}.0.')}"))
            else:
                usable.append(item)
        del issues[_MAX_ISSUES:]
        cursor = result.get("nextCursor")
        return {key: usable, **({"nextCursor": cursor} if isinstance(cursor, str) else {}), **_UNCACHED}


def _introduction(result: dict[str, Any]) -> dict[str, Any]:
    """The result of `initialize` without invalid parts; none of them is needed to call tools."""
    info, capabilities = result.get("serverInfo"), result.get("capabilities")
    named = isinstance(info, dict) and isinstance(info.get("name"), str)
    whole = result | {
        "serverInfo": {"version": "", **info} if isinstance(info, dict) and named else {"name": "", "version": ""},
        "capabilities": capabilities if isinstance(capabilities, dict) else {"tools": {}},
    }
    if not isinstance(whole.get("instructions", ""), str):
        del whole["instructions"]
    return whole


def _name(item: object) -> str:
    name = item.get("name") or item.get("uri") if isinstance(item, dict) else None
    return repr(name)[:80] if isinstance(name, str) else ""


def _plain_tool(tool: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The parts of a tool that are used, with a valid input schema; and what was wrong, "" for nothing.

    `outputSchema` is left out: a model can read any result, and the SDK rejects results that violate it, and lists with
    an invalid one.
    """
    plain = {key: tool[key] for key in ("name", "description", "title") if tool.get(key) is not None}
    plain |= {key: tool[key] for key in ("annotations", "_meta") if isinstance(tool.get(key), dict)}
    for key in ("description", "title"):
        if not isinstance(plain.get(key, ""), str):
            plain[key] = json.dumps(plain[key], ensure_ascii=False)
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict):
        problem = "it has no input schema" if schema is None else "its input schema is not an object"
        plain["inputSchema"] = {"type": "object", "properties": {}}
        return plain, f"{problem}; it is offered without parameters"
    return plain | {"inputSchema": schema if schema.get("type") == "object" else schema | {"type": "object"}}, ""


def _call_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """A valid result of a tool call. Unknown content blocks become text that names them."""
    whole = {"resultType": "complete", **result}  # required by the 2026-07-28 protocol
    if whole["resultType"] != "complete":
        return whole
    match result.get("content"):
        case list() as blocks:
            whole["content"] = [known_block(block) for block in blocks]
        case str() | dict() as block:
            whole["content"] = [known_block(block)]
        case None if result.get("structuredContent") is not None:
            whole["content"] = []
        case None:  # such as {"toolResult": ...} of the first servers
            rest = {key: value for key, value in result.items() if key not in _NO_CONTENT}
            whole["content"] = [_text(rest)] if rest else []
        case other:
            whole["content"] = [_text(other)]
    structured = result.get("structuredContent")
    if structured is not None and not isinstance(structured, dict):  # only the 2026-07-28 protocol allows it
        whole["structuredContent"] = {"result": structured}
    if not isinstance(result.get("_meta", {}), dict):
        del whole["_meta"]
    if not isinstance(result.get("isError", False), bool):
        whole["isError"] = bool(result["isError"])
    return whole


def known_block(block: object) -> dict[str, Any]:
    """`block`, or a text block that names it if it is invalid or of an unknown type."""
    if not isinstance(block, dict):
        return _text(block)
    kind = block.get("type")
    text = block.get("text")
    plain = text if isinstance(text, str) else ""
    if not isinstance(kind, str) or kind not in _BLOCKS:
        size = size_text(len(json.dumps(block, ensure_ascii=False).encode("utf-8", "replace")))
        mark = f"[content of an unknown type {json.dumps(kind)[:80]}, {size}{'' if plain else ', left out'}]"
        return _text(f"{mark}\n{plain}" if plain else mark)
    try:
        _BLOCKS[kind].model_validate(block, by_name=False)
    except ValidationError as error:
        if kind == "text" and isinstance(text, str):
            return _text(plain)
        mark = f"[{kind}: not as MCP has it ({_first(error)}), left out]"
        return _text(f"{mark}\n{plain}" if plain else mark)
    return block


def _text(value: object) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    return {"type": "text", "text": text}


def _first(error: ValidationError) -> str:
    """The first problem, with its path."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]


def readable(item: Any) -> Any:
    """Turn a validation error back into the message it was about, or into an error response to its request.

    Programs in Python and JavaScript escape lone surrogates (from file names that are not UTF-8), which strict parsers
    reject. And an invalid response may at least have a valid id.
    """
    if not isinstance(item, ValidationError):
        return item
    looked_at = [error["input"] for error in item.errors(include_url=False, include_context=False)]  # all, or a part
    value = _whole(next((part for part in looked_at if isinstance(part, dict) and "id" in part), looked_at[0]))
    for attempt in (value, _refusal(value)):
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_python(attempt, by_name=False))
        except ValidationError:
            continue
    return item


def _whole(written: object) -> object:
    """The JSON value of a line, with lone surrogates replaced; `written` itself if it is not JSON."""
    if not isinstance(written, str):
        return written
    try:
        text = json.dumps(json.loads(written), ensure_ascii=False)
        return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except (ValueError, RecursionError):
        return written


def _refusal(value: object) -> object:
    match value:
        case {"id": int() | str() as request, **rest} if "method" not in rest:
            error = {"code": NOT_READABLE, "message": "the server's answer is not one that MCP knows"}
            return {"jsonrpc": "2.0", "id": request, "error": error}
        case _:
            return None
