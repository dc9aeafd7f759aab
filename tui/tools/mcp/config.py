"""MCP servers as people configure them: the `mcpServers` tables that other clients read too. Pure.

A value may name variables of the environment, `${NAME}` or `${NAME:-default}`. What they stand for is filled in just
before a server starts (`launch`), so that a secret is in no object that lives longer, is shown or is written.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from tui.context.reduction.deferral import BUILT_IN
from tui.providers.keys import redact
from tui.text.json_text import parse_json

Transport: TypeAlias = Literal["stdio", "http", "sse"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
TIMEOUT = 60.0
"""Seconds a call may take without a word from the server."""

MAX_RESPONSE = 64_000_000
"""Bytes of one answer or event over HTTP."""

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_TYPES: Mapping[str, Transport] = {
    "stdio": "stdio", "local": "stdio", "http": "http", "streamable-http": "http", "streamablehttp": "http",
    "streamable_http": "http", "remote": "http", "sse": "sse",
}  # fmt: skip
_SECRET_FLAG = re.compile(r"(?i)(key|token|secret|passw|auth|credential)")
_NO_SECRET = re.compile(r"(?i)[~./\\].*|[a-z]:\\.*|https?://[^@?]*|[a-z]{1,12}|[0-9.:,-]+")
_SCHEMES = ("bearer", "basic", "token")
_HIDDEN = "***"


class McpConfigError(Exception):
    """A server that can't be used. `str()` is one line: file, key, and what to do."""


class NotInstalledError(Exception):
    """The SDK is not there. `str()` says what to install."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A server's values with all variables filled in: kept only while it is being started."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown or written: headers, what a URL carries besides its place, hidden arguments, values of
        `env` that are more than a plain word, a number or a path."""
        parts = urlsplit(self.url)
        values = {parts.password or "", parts.query, *self.headers.values()}
        values |= {word for value in self.headers.values() for word in value.split() if word.lower() not in _SCHEMES}
        values |= {v for name, v in self.env.items() if _SECRET_FLAG.search(name) or not _NO_SECRET.fullmatch(v)}
        values |= {arg for arg, shown in zip(self.args, hidden_args(self.args), strict=True) if arg != shown}
        return tuple(sorted(values - {""}))


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server, variables not filled in. `timeout` is in seconds, `max_response` in bytes.

    `error` says why it can't be used, "" if it can.
    `trust_read_only` lets a tool run unasked where the server marks it as read-only: the person says so, no server.
    """

    name: str
    where: str  # the file that names it, for a person
    transport: Transport = "stdio"
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    disabled: bool = False
    timeout: float = TIMEOUT
    max_response: int = MAX_RESPONSE
    trust_read_only: bool = False
    disabled_tools: tuple[str, ...] = ()
    error: str = ""

    def launch(self, environ: Mapping[str, str]) -> Launch:
        """All that a start needs, from the environment as it is now. Raises `McpConfigError` for a missing variable."""

        def fill(key: str, text: str) -> str:
            return expand(text, environ, f"{self.where}: mcpServers.{self.name}.{key}")

        if url := fill("url", self.url):
            _check_url(url, f"{self.where}: mcpServers.{self.name}.url")
        return Launch(
            fill("command", self.command),
            tuple(fill(f"args[{index}]", arg) for index, arg in enumerate(self.args)),
            {name: fill(f"env.{name}", value) for name, value in self.env.items()},
            None if self.cwd is None else fill("cwd", self.cwd),
            url,
            {name: fill(f"headers.{name}", value) for name, value in self.headers.items()},
        )

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the environment's variables that it is given."""
        texts = (self.command, *self.args, *self.env.values(), self.cwd or "", self.url, *self.headers.values())
        return tuple(dict.fromkeys(match.group(1) for text in texts for match in _VARIABLE.finditer(text)))

    @property
    def shown(self) -> str:
        """The command, or the URL without what may be secret in it, for a person; variables are not filled in."""
        if self.transport == "stdio":
            return " ".join((self.command, *hidden_args(self.args)))
        parts = urlsplit(self.url)
        begin = f"{parts.scheme}://" if parts.scheme else ""
        return f"{begin}{parts.netloc.rpartition('@')[2]}{parts.path}" + ("?…" if parts.query else "")


def _check_url(url: str, key: str) -> None:
    """Raises `McpConfigError` for what is no address. Its own text is not quoted: it may hold a key."""
    if not url.startswith(("http://", "https://", "${")):
        raise McpConfigError(f"{key}: it starts with http:// or https://")
    try:
        parts = urlsplit(url)
        usable = "${" in url or (bool(parts.hostname) and parts.port != 0)  # a variable may be any part of it
    except ValueError:  # of its brackets or its port
        usable = False
    if not usable:
        raise McpConfigError(f"{key} is no address; write it like https://mcp.example.com/mcp")


def hidden_args(args: tuple[str, ...]) -> tuple[str, ...]:
    """Arguments to show: the value of `--token x`, `--api-key=x` and whatever looks like a key is hidden."""
    shown: list[str] = []
    after_flag = False
    for arg in args:
        flag, equals, _ = arg.partition("=")
        if after_flag and not arg.startswith("-") and not _VARIABLE.fullmatch(arg):
            shown.append(_HIDDEN)
        elif equals and _SECRET_FLAG.search(flag):
            shown.append(f"{flag}={_HIDDEN}")
        else:
            shown.append(redact(arg))
        after_flag = arg.startswith("-") and not equals and bool(_SECRET_FLAG.search(arg))
    return tuple(shown)


def expand(text: str, environ: Mapping[str, str], where: str) -> str:
    """`text` with its variables filled in. Raises `McpConfigError` for one that is not set and has no default."""

    def value(match: re.Match[str]) -> str:
        name, default = match.group(1), match.group(2)
        if environ.get(name):
            return environ[name]
        if default is not None:
            return default
        raise McpConfigError(f"{where}: the variable {name} is not set; set it, or write ${{{name}:-default}}")

    return _VARIABLE.sub(value, text)


def content_hash(text: str) -> str:
    """What the person's word on a project's file is remembered by: SHA-256, hex. New content is a new question."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def servers_of_json(text: str, where: str) -> tuple[ServerConfig, ...]:
    """The servers of a `.mcp.json`. Raises `McpConfigError` where the file as a whole can't be read."""
    try:
        data = parse_json(text)
    except ValueError as error:
        raise McpConfigError(f"{where} is not valid JSON: {error}; correct it") from None
    table = data.get("mcpServers", data.get("servers")) if isinstance(data, dict) else None  # VS Code says "servers"
    if table is None:
        raise McpConfigError(f'{where} has no "mcpServers"; write {{"mcpServers": {{"NAME": {{"command": "…"}}}}}}')
    return read_servers(table, where)


def read_servers(table: object, where: str) -> tuple[ServerConfig, ...]:
    """The servers of one `mcpServers` table. One that is wrong has its `error`; the others work all the same.

    Raises `McpConfigError` where it is no table at all.
    """
    if not isinstance(table, dict):
        raise McpConfigError(f"{where}: mcpServers is a table of servers: mcpServers.NAME with command or url")
    servers = []
    for name, value in table.items():
        try:
            servers.append(_server(str(name), value, where))
        except McpConfigError as error:
            servers.append(ServerConfig(_printable(str(name)), where, error=_printable(str(error))))
    return tuple(servers)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)[:200]


def _server(name: str, value: object, where: str) -> ServerConfig:
    key = f"{where}: mcpServers.{name}"
    if not NAME.fullmatch(name):
        raise McpConfigError(f"{where}: {name[:80]!r} can't be a server's name; use letters, digits, - and _")
    if name.lower() == BUILT_IN:
        raise McpConfigError(f"{key}: the tools that come with chatctx are called that; use another name")
    if not isinstance(value, dict):
        raise McpConfigError(f"{key} is a table: with command and args, or with url")
    url = value.get("url", value.get("httpUrl", value.get("serverUrl")))
    command = value.get("command")
    if url is None and command is None:
        near = [match for other in value for match in difflib.get_close_matches(str(other), ("command", "url"), n=1)]
        hint = f"; did you mean {near[0]}?" if near else "; a program needs command, a server on the network url"
        raise McpConfigError(f"{key} has neither command nor url{hint}")
    if url is not None and command is not None:
        raise McpConfigError(f"{key} has both command and url; leave one out")
    transport = _transport(value, key, remote=url is not None)
    if url is not None:
        _check_url(str(url), f"{key}.url")
    return ServerConfig(
        name,
        where,
        transport,
        command=_text(command or "", f"{key}.command"),
        args=_texts(value.get("args", []), f"{key}.args"),
        env=_table(value.get("env", {}), f"{key}.env"),
        cwd=None if value.get("cwd") is None else _text(value["cwd"], f"{key}.cwd"),
        url=_text(url or "", f"{key}.url"),
        headers=_table(value.get("headers", {}), f"{key}.headers"),
        disabled=_flag(value, "disabled", key) or not _flag(value, "enabled", key, default=True),
        timeout=_timeout(value.get("timeout", TIMEOUT), key),
        max_response=_size(value.get("maxResponse", MAX_RESPONSE), key),
        trust_read_only=_flag(value, "trustReadOnly", key),
        disabled_tools=_texts(value.get("disabledTools", []), f"{key}.disabledTools"),
    )


def _transport(value: Mapping[str, Any], key: str, *, remote: bool) -> Transport:
    value_type = value.get("type", value.get("transport"))
    if value_type is None:
        return "http" if remote else "stdio"
    transport = _TYPES.get(str(value_type).lower())
    if transport is None:
        raise McpConfigError(f"{key}.type is {value_type!r}; use stdio, http or sse")
    if (transport == "stdio") == remote:
        raise McpConfigError(f"{key}.type is {value_type!r}, which {'has no url' if remote else 'needs a url'}")
    return transport


def _text(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise McpConfigError(f"{key} has to be text")
    if "\0" in value:
        raise McpConfigError(f"{key} has a zero byte in it")
    return value


def _texts(value: object, key: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise McpConfigError(f'{key} has to be a list of texts, like ["-y", "name"]')
    return tuple(_text(entry, f"{key}[{index}]") for index, entry in enumerate(value))


def _table(value: object, key: str) -> Mapping[str, str]:
    """A table of texts; numbers and switches are taken as they are written. A wrong value is not repeated: it may be a
    secret."""
    if not isinstance(value, dict):
        raise McpConfigError(f"{key} has to be a table of texts")
    texts = {}
    for name, entry in value.items():
        if isinstance(entry, bool | int | float):
            entry = json.dumps(entry)
        texts[str(name)] = _text(entry, f"{key}.{name}")
    return texts


def _flag(value: Mapping[str, Any], name: str, key: str, *, default: bool = False) -> bool:
    flag = value.get(name, default)
    if not isinstance(flag, bool):
        raise McpConfigError(f"{key}.{name} has to be true or false")
    return flag


def _timeout(value: object, key: str) -> float:
    """Seconds; from 1,000 on they are milliseconds, as most clients write them."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise McpConfigError(f"{key}.timeout has to be a number of seconds")
    return value / 1000 if value >= 1000 else float(value)


def _size(value: object, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1000:
        raise McpConfigError(f"{key}.maxResponse has to be a number of bytes, 1000 or more")
    return value
