"""MCP servers as people configure them, in `mcpServers` tables and the forms of other clients.

A value may contain environment variables, `${NAME}` or `${NAME:-default}`. They are filled in just before a server
starts (`filled`), so that no object that lives longer, is shown or is written holds a secret.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from tui.config.files import at_home
from tui.config.values import parse_url
from tui.errors import ExpectedError
from tui.messages import BUILT_IN
from tui.providers.keys import redact
from tui.text.clean import clean_text
from tui.text.json_text import parse_jsonc
from tui.text.labels import did_you_mean

T = TypeVar("T")
Transport: TypeAlias = Literal["stdio", "http", "sse"]

NAME = re.compile(r"""[^\s:"'`\\](?:[^\n:"'`\\]{0,98}[^\s:"'`\\])?""")
"""READMEs have blanks and slashes in names; a colon would end it in `@server:resource`."""

TABLES = ("mcpServers", "servers", "mcp", "context_servers")
TIMEOUT = 60.0  # seconds a call may take without a message from the server
MAX_RESPONSE = 64_000_000  # bytes of one answer or event
MAX_ENV_FILE = 1_000_000  # characters

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{(input:[^}]*)\}")
_ENV_LINE = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.]*)[ \t]*=[ \t]*"
    r"""(?:'([^'\n]*)'|"([^"\n]*)"|(.*?))(?:[ \t]+#.*|[ \t]*)$""",
    re.M,
)
_OPENCODE_VARIABLE = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_CRUSH_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_RUN_BY_CRUSH = re.compile(r"\$\(|\{file:")
_TYPES: Mapping[str, Transport] = {
    "stdio": "stdio", "local": "stdio", "http": "http", "streamable-http": "http", "streamablehttp": "http",
    "streamable_http": "http", "remote": "http", "sse": "sse",
}  # fmt: skip
_SECRET_NAME = r"key|token|secret|passw|passphrase|(?<![a-z])pass(?![a-z])|pwd|auth|credential"
_SECRET_FLAG = re.compile(f"(?i){_SECRET_NAME}")
_SECRET_PAIR = re.compile(rf"(?i)((?:{_SECRET_NAME})[\w.-]{{0,40}}=)[^\s;&]+")  # within an argument
_NO_SECRET = re.compile(r"(?i)[~./\\].*|[a-z]:\\.*|https?://[^@?]*|[a-z]{1,12}|[0-9.:,-]+")
_SCHEMES = ("bearer", "basic", "token")
_HIDDEN = "***"


class McpConfigError(ExpectedError):
    """An unusable server. `str()` is one line: file, key, and what to do."""


@dataclass(frozen=True, slots=True)
class OAuthConfig:
    """How to sign in to a server, if it asks for that. Without `client_id` this program registers itself.

    `port` is the loopback port that the browser comes back to, 0 for any.
    """

    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server, variables not filled in. `timeout` is in seconds, `max_response` in bytes.

    `key` is its place in that file, such as "mcpServers.git". `error` says why it is unusable, "" if it is not.
    `instructions` says whether the server's own go to the model. `roots` are the folders that it is told to work in,
    None for the working directory. `trust_read_only` lets a tool run without asking if the server marks it as
    read-only; only the person can set it.
    """

    name: str
    where: str  # the file it comes from, for a person
    transport: Transport = "stdio"
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    env_file: str = ""
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    disabled: bool = False
    timeout: float = TIMEOUT
    max_response: int = MAX_RESPONSE
    trust_read_only: bool = False
    disabled_tools: tuple[str, ...] = ()
    instructions: bool = True
    roots: tuple[str, ...] | None = None
    oauth: OAuthConfig | None = None
    sampling: bool = True
    key: str = ""
    error: str = ""

    def mapped(self, change: Callable[[str, str], str]) -> ServerConfig:
        """With `change(key, text)` in place of each text that may contain variables."""

        def changed(key: str, texts: Mapping[str, str]) -> Mapping[str, str]:
            return {name: change(f"{key}.{name}", text) for name, text in texts.items()}

        return replace(
            self,
            command=change("command", self.command),
            args=tuple(change(f"args[{index}]", arg) for index, arg in enumerate(self.args)),
            env=changed("env", self.env),
            env_file=change("envFile", self.env_file),
            cwd=None if self.cwd is None else change("cwd", self.cwd),
            url=change("url", self.url),
            headers=changed("headers", self.headers),
            oauth=self.oauth
            and replace(self.oauth, client_secret=change("oauth.clientSecret", self.oauth.client_secret)),
        )

    def filled(self, environ: Mapping[str, str]) -> ServerConfig:
        """With the variables filled in, to be kept only while the server starts, and those of its file in `env`.

        Raises `McpConfigError` for a missing variable.
        """
        place = f"{self.where}: {self.key}"
        server = self.mapped(lambda key, text: expand(text, environ, f"{place}.{key}"))
        if server.url:
            _check_url(server.url, f"{place}.url")
        return replace(server, env=read_env_file(server.env_file, f"{place}.envFile") | dict(server.env))

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values of a `filled` server that must not be shown or written.

        Headers, credentials in a URL, hidden arguments, and values of `env` that are more than a plain word, a number
        or a path.
        """
        parts = urlsplit(self.url)
        values = {parts.password or "", parts.query, self.oauth.client_secret if self.oauth else ""}
        for header in self.headers.values():
            values |= {header, *(word for word in header.split() if word.lower() not in _SCHEMES)}
        values |= {v for name, v in self.env.items() if _SECRET_FLAG.search(name) or not _NO_SECRET.fullmatch(v)}
        values |= {arg for arg, shown in zip(self.args, hidden_args(self.args), strict=True) if arg != shown}
        return tuple(sorted(values - {""}))

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the environment variables it uses."""
        names: dict[str, None] = {}

        def collect(_key: str, text: str) -> str:
            names.update((name, None) for name, _, _ in _VARIABLE.findall(text) if name)
            return text

        self.mapped(collect)
        return tuple(names)

    @property
    def shown(self) -> str:
        """The command, or the URL without possible secrets, for a person; variables are not filled in."""
        if self.transport == "stdio":
            return " ".join((self.command, *hidden_args(self.args)))
        parts = urlsplit(self.url)
        begin = f"{parts.scheme}://" if parts.scheme else ""
        return f"{begin}{parts.netloc.rpartition('@')[2]}{parts.path}" + ("?…" if parts.query else "")


def start_environment() -> Mapping[str, str]:
    """The environment's variables, with the two places that VS Code has names for."""
    return {"workspaceFolder": str(Path.cwd()), "userHome": str(Path.home()), **os.environ}


def _check_url(url: str, key: str) -> None:
    """Raises `McpConfigError` for an invalid address, without quoting it: it may contain a key."""
    try:
        if "${" not in url:
            parse_url(url)
        elif not url.startswith(("http://", "https://", "${")):  # the variable may be any part of it
            raise ValueError
    except ValueError:
        raise McpConfigError(f"{key} is not an address; write it like https://mcp.example.com/mcp") from None


def hidden_args(args: tuple[str, ...]) -> tuple[str, ...]:
    """Arguments to show: values of `--token x`, `--api-key=x` and everything that looks like a key are hidden."""
    shown: list[str] = []
    after_flag = False
    for arg in args:
        flag, equals, _ = arg.partition("=")
        if after_flag and not arg.startswith("-") and not _VARIABLE.fullmatch(arg):
            shown.append(_HIDDEN)
        elif equals and _SECRET_FLAG.search(flag):
            shown.append(f"{flag}={_HIDDEN}")
        else:
            shown.append(_SECRET_PAIR.sub(rf"\1{_HIDDEN}", redact(arg)))
        after_flag = arg.startswith("-") and not equals and bool(_SECRET_FLAG.search(arg))
    return tuple(shown)


def expand(text: str, environ: Mapping[str, str], where: str) -> str:
    """`text` with its variables filled in. Raises `McpConfigError` for one that is not set and has no default."""

    def value(match: re.Match[str]) -> str:
        name, default, asked = match.groups()
        if asked:
            raise McpConfigError(
                f"{where}: ${{{asked}}} is something that VS Code asks for; write ${{NAME}} and set that variable"
            )
        if environ.get(name):
            return environ[name]
        if default is not None:
            return default
        raise McpConfigError(f"{where}: the variable {name} is not set; set it, or write ${{{name}:-default}}")

    return _VARIABLE.sub(value, text)


def read_env_file(path: str, key: str) -> dict[str, str]:
    """The variables in a file of lines NAME=VALUE; none without `path`. Raises `McpConfigError` if it can't be read.

    Values may be quoted; `export`, empty lines and comments are skipped.
    """
    if not path:
        return {}
    try:
        with at_home(path).open(encoding="utf-8-sig") as file:
            text = file.read(MAX_ENV_FILE)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise McpConfigError(f"{key}: {path} can't be read ({why})") from None
    return {name: "".join(value) for name, *value in _ENV_LINE.findall(text)}  # in one form of quotes, or in none


def servers_of_json(text: str, where: str) -> tuple[ServerConfig, ...]:
    """The servers of an `mcp.json`. Raises `McpConfigError` if the file as a whole is unusable."""
    try:
        data = parse_jsonc(text)
    except ValueError as error:
        raise McpConfigError(f"{where} is not valid JSON: {error}; correct it") from None
    tables = data if isinstance(data, dict) else {}
    key = next((key for key in TABLES if key in tables), None)
    if key == "mcp" and isinstance(tables["mcp"], dict) and isinstance(tables["mcp"].get("servers"), dict):
        return read_servers(tables["mcp"]["servers"], where, "mcp.servers")  # VS Code's settings
    if key is not None:
        return read_servers(tables[key], where, key)
    begins = {"command", "url", "httpUrl", "serverUrl"}
    if tables and all(isinstance(value, dict) and begins & value.keys() for value in tables.values()):
        return read_servers(tables, where, "")  # the servers alone
    raise McpConfigError(f'{where} has no "mcpServers"; write {{"mcpServers": {{"NAME": {{"command": "…"}}}}}}')


def read_servers(table: object, where: str, key: str = "mcpServers") -> tuple[ServerConfig, ...]:
    """The servers of an `mcpServers` table. An unusable one has its `error`; the others are not affected.

    Raises `McpConfigError` if it is not a table.
    """
    if not isinstance(table, dict):
        raise McpConfigError(f"{where}: {key} is a table of servers: {key}.NAME with command or url")
    servers = []
    for name, value in table.items():
        place = f"{key}.{name}".lstrip(".")
        try:
            server = _server(str(name), value, where, place)
            server = server.mapped(partial(_translated, f"{where}: {place}")) if key == "mcp" else server
            if server.url:
                _check_url(server.url, f"{where}: {place}.url")
            servers.append(server)
        except McpConfigError as error:
            texts = (str(name), place, str(error))
            shown, place, problem = (clean_text(text).replace("\n", " ")[:200] for text in texts)
            servers.append(ServerConfig(shown, where, key=place, error=problem))
    return tuple(servers)


def _translated(place: str, key: str, text: str) -> str:
    """A text of opencode or crush, where variables are written `{env:NAME}` and `$NAME`."""
    if _RUN_BY_CRUSH.search(text):
        raise McpConfigError(f"{place}.{key} runs a command or reads a file; write ${{NAME}} and set that variable")
    return _CRUSH_VARIABLE.sub(r"${\1}", _OPENCODE_VARIABLE.sub(r"${\1}", text))


class _Table:
    """A table of a file. Values are read by the first of their names that is there and not null.

    The methods raise `McpConfigError`, without quoting values of tables: they may be secrets.
    """

    def __init__(self, values: Mapping[str, Any], key: str) -> None:
        self.values = values
        self.key = key

    def get(self, *names: str, default: Any = None) -> Any:
        return next((self.values[name] for name in names if self.values.get(name) is not None), default)

    def flag(self, name: str, *, default: bool = False) -> bool:
        return self._checked(self.get(name, default=default), bool, name, "true or false")

    def text(self, *names: str) -> str:
        return self._text(self.get(*names, default=""), names[0])

    def texts(self, *names: str) -> tuple[str, ...]:
        entries = self._checked(self.get(*names, default=[]), list, names[0], 'a list of texts, like ["-y", "name"]')
        return tuple(self._text(entry, f"{names[0]}[{index}]") for index, entry in enumerate(entries))

    def table(self, *names: str) -> Mapping[str, str]:
        """A table of texts; numbers and booleans are converted."""
        entries = self._checked(self.get(*names) or {}, dict, names[0], "a table of texts")  # PHP writes {} as []
        return {
            str(name): self._text(json.dumps(entry) if isinstance(entry, int | float) else entry, f"{names[0]}.{name}")
            for name, entry in entries.items()
        }

    def number(self, *names: str, default: float, above: float, below: float, expected: str) -> Any:
        value = self.get(*names, default=default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not above < value < below:
            raise McpConfigError(f"{self.key}.{names[0]} has to be {expected}")
        return value

    def _text(self, value: object, name: str) -> str:
        text = self._checked(value, str, name, "text")
        if "\0" in text:
            raise McpConfigError(f"{self.key}.{name} has a zero byte in it")
        return text

    def _checked(self, value: object, kind: type[T], name: str, expected: str) -> T:
        if not isinstance(value, kind):
            raise McpConfigError(f"{self.key}.{name} has to be {expected}")
        return value


def _server(name: str, value: object, where: str, place: str) -> ServerConfig:
    key = f"{where}: {place}"
    if not NAME.fullmatch(name) or not name.isprintable():
        raise McpConfigError(
            f"{where}: {name[:80]!r} can't be a server's name; leave out quotes, colons and backslashes"
        )
    if name.lower() == BUILT_IN:
        raise McpConfigError(f"{key}: the tools that come with chatctx are called that; use another name")
    if not isinstance(value, dict):
        raise McpConfigError(f"{key} is a table: with command and args, or with url")
    match value.get("command"):
        case [first, *args]:
            more = value.get("args") or []
            value = value | {"command": first, "args": [*args, *more] if isinstance(more, list) else more}
        case dict() as program:  # Zed's first form
            value = value | program | {"command": program.get("path")}
    table = _Table(value, key)
    command, url = table.text("command"), table.text("url", "httpUrl", "serverUrl")
    if not url and not command:
        hints = filter(None, (did_you_mean(str(other), ("command", "url")) for other in value))
        hint = next(hints, "a program needs command, a server on the network url")
        raise McpConfigError(f"{key} has neither command nor url; {hint}")
    if url and command:
        raise McpConfigError(f"{key} has both command and url; leave one out")
    size = table.number(
        "maxResponse", default=MAX_RESPONSE, above=999, below=1e18, expected="a number of bytes, 1000 or more"
    )
    timeout = table.number("timeout", default=TIMEOUT, above=0, below=1e9, expected="a number of seconds")
    return ServerConfig(
        name,
        where,
        _transport(table, remote=bool(url)),
        command=command,
        args=table.texts("args"),
        env=table.table("env", "environment"),
        env_file=table.text("envFile") if command else "",
        cwd=table.text("cwd") or None,
        url=url,
        headers=table.table("headers"),
        disabled=table.flag("disabled") or not table.flag("enabled", default=True),
        timeout=timeout / 1000 if timeout >= 1000 else float(timeout),  # most clients write milliseconds
        max_response=int(size),
        trust_read_only=table.flag("trustReadOnly"),
        disabled_tools=table.texts("disabledTools", "disabled_tools", "excludeTools"),
        roots=None if table.get("roots") is None else table.texts("roots"),
        oauth=_oauth(table) if url else None,
        sampling=table.flag("sampling", default=True),
        instructions=table.flag("instructions", default=True),
        key=place,
    )


def _oauth(server: _Table) -> OAuthConfig | None:
    """None where it is switched off, or the server gets its own authorization in a header."""
    value, key = server.get("oauth"), f"{server.key}.oauth"
    has_header = any(name.lower() == "authorization" for name in server.table("headers"))
    if value is False or (value is None and has_header):
        return None
    if value is None or value is True:
        return OAuthConfig()
    if not isinstance(value, dict):
        raise McpConfigError(f"{key} has to be false, or a table with clientId, clientSecret, scope, callbackPort")
    table = _Table(value, key)
    scope = table.get("scope", "scopes")
    return OAuthConfig(
        table.text("clientId", "client_id"),
        table.text("clientSecret", "client_secret"),
        " ".join(table.texts("scope", "scopes")) if isinstance(scope, list) else table.text("scope", "scopes"),
        int(table.number("callbackPort", "redirectPort", default=0, above=-1, below=65_536, expected="a port")),
    )


def _transport(table: _Table, *, remote: bool) -> Transport:
    name = table.get("type", "transport", "transportType", default="http" if remote else "stdio")
    transport = _TYPES.get(str(name).lower())
    if transport is None:
        raise McpConfigError(f"{table.key}.type is {name!r}; use stdio, http or sse")
    if (transport == "stdio") == remote:
        raise McpConfigError(f"{table.key}.type is {name!r}, which {'has no url' if remote else 'needs a url'}")
    return transport
