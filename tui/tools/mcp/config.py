"""MCP servers as people configure them, in `mcpServers` tables and the forms of other clients.

A value may contain environment variables, `${NAME}` or `${NAME:-default}`. They are filled in just before a server
starts (`launch`), so that no object that lives longer, is shown or is written holds a secret.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from tui.config.files import at_home
from tui.messages import BUILT_IN
from tui.providers.keys import redact
from tui.text.clean import clean_text
from tui.text.json_text import parse_jsonc

Transport: TypeAlias = Literal["stdio", "http", "sse"]

NAME = re.compile(r"""[^\s:"'`\\](?:[^\n:"'`\\]{0,98}[^\s:"'`\\])?""")
"""READMEs have blanks and slashes in names; a colon would end it in `@server:resource`."""

TABLES = ("mcpServers", "servers", "mcp", "context_servers")
TIMEOUT = 60.0  # seconds a call may take without a message from the server
MAX_RESPONSE = 64_000_000  # bytes of one answer or event
LARGEST_ENV_FILE = 1_000_000  # characters

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{(input:[^}]*)\}")
_ENV_LINE = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.]*)[ \t]*=[ \t]*('[^'\n]*'|"[^"\n]*"|.*?)(?:[ \t]+\#.*|[ \t]*)$""", re.M
)
_OPENCODE_VARIABLE = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_CRUSH_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_RUN_BY_CRUSH = re.compile(r"\$\(|\{file:")
_TYPES: Mapping[str, Transport] = {
    "stdio": "stdio", "local": "stdio", "http": "http", "streamable-http": "http", "streamablehttp": "http",
    "streamable_http": "http", "remote": "http", "sse": "sse",
}  # fmt: skip
_SECRET_FLAG = re.compile(r"(?i)(key|token|secret|passw|auth|credential)")
_NO_SECRET = re.compile(r"(?i)[~./\\].*|[a-z]:\\.*|https?://[^@?]*|[a-z]{1,12}|[0-9.:,-]+")
_SCHEMES = ("bearer", "basic", "token")
_HIDDEN = "***"


class McpConfigError(Exception):
    """An unusable server. `str()` is one line: file, key, and what to do."""


class NotInstalledError(Exception):
    """The SDK is missing. `str()` says what to install."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A server's values with all variables filled in. It lives only while the server is being started."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    client_secret: str = field(default="", repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must not be shown or written.

        Headers, credentials in a URL, hidden arguments, and values of `env` that are more than a plain word, a number
        or a path.
        """
        parts = urlsplit(self.url)
        values = {parts.password or "", parts.query, self.client_secret, *self.headers.values()}
        values |= {word for value in self.headers.values() for word in value.split() if word.lower() not in _SCHEMES}
        values |= {v for name, v in self.env.items() if _SECRET_FLAG.search(name) or not _NO_SECRET.fullmatch(v)}
        values |= {arg for arg, shown in zip(self.args, hidden_args(self.args), strict=True) if arg != shown}
        return tuple(sorted(values - {""}))


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

    def launch(self, environ: Mapping[str, str]) -> Launch:
        """The values for a start, with the current environment. Raises `McpConfigError` for a missing variable."""

        def fill(key: str, text: str) -> str:
            return expand(text, environ, f"{self.where}: {self.key}.{key}")

        if url := fill("url", self.url):
            _check_url(url, f"{self.where}: {self.key}.url")
        if self.oauth is not None and self.oauth.client_secret:
            secret = fill("oauth.clientSecret", self.oauth.client_secret)
        else:
            secret = ""
        from_file = read_env_file(fill("envFile", self.env_file), f"{self.where}: {self.key}.envFile")
        return Launch(
            fill("command", self.command),
            tuple(fill(f"args[{index}]", arg) for index, arg in enumerate(self.args)),
            from_file | {name: fill(f"env.{name}", value) for name, value in self.env.items()},
            None if self.cwd is None else fill("cwd", self.cwd),
            url,
            {name: fill(f"headers.{name}", value) for name, value in self.headers.items()},
            secret,
        )

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the environment variables it uses."""
        program = (self.command, *self.args, *self.env.values(), self.env_file, self.cwd or "")
        texts = (*program, self.url, *self.headers.values(), self.oauth.client_secret if self.oauth else "")
        return tuple(dict.fromkeys(name for text in texts for name, _, _ in _VARIABLE.findall(text) if name))

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
            shown.append(redact(arg))
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
            text = file.read(LARGEST_ENV_FILE)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise McpConfigError(f"{key}: {path} can't be read ({why})") from None
    return {name: value[1:-1] if value[:1] in ("'", '"') else value for name, value in _ENV_LINE.findall(text)}


def content_hash(text: str) -> str:
    """SHA-256 (hex) under which the answer for a project's file is stored: new content asks again."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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
    if tables and all(isinstance(value, dict) and _begins(value) for value in tables.values()):
        return read_servers(tables, where, "")  # the servers alone
    raise McpConfigError(f'{where} has no "mcpServers"; write {{"mcpServers": {{"NAME": {{"command": "…"}}}}}}')


def _begins(value: Mapping[str, Any]) -> bool:
    """Whether this looks like a server."""
    return any(name in value for name in ("command", "url", "httpUrl", "serverUrl"))


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
            servers.append(
                _server(str(name), _translated(value, f"{where}: {place}") if key == "mcp" else value, where, place)
            )
        except McpConfigError as error:
            texts = (str(name), place, str(error))
            shown, place, problem = (clean_text(text).replace("\n", " ")[:200] for text in texts)
            servers.append(ServerConfig(shown, where, key=place, error=problem))
    return tuple(servers)


def _translated(value: object, key: str) -> object:
    """A server of opencode or crush, whose variables are written `{env:NAME}` and `$NAME`."""

    def translate(name: str, inner: object) -> object:
        match inner:
            case str() if _RUN_BY_CRUSH.search(inner):
                raise McpConfigError(
                    f"{key}.{name} runs a command or reads a file; write ${{NAME}} and set that variable"
                )
            case str():
                return _CRUSH_VARIABLE.sub(r"${\1}", _OPENCODE_VARIABLE.sub(r"${\1}", inner))
            case list():
                return [translate(name, each) for each in inner]
            case dict():
                return {entry: translate(f"{name}.{entry}", each) for entry, each in inner.items()}
            case _:
                return inner

    if not isinstance(value, dict):
        return value
    return {name: translate(name, inner) for name, inner in value.items()}


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
    url = _first_of(value, "url", "httpUrl", "serverUrl")
    command, first = value.get("command"), []
    if isinstance(command, list) and command:
        command, *first = command
    elif isinstance(command, dict):  # Zed's first form
        value = value | command
        command = value.get("path")
    if url is None and command is None:
        import difflib  # needed for mistyped names only

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
        args=_texts([*first, *_list(value.get("args"), f"{key}.args")], f"{key}.args"),
        env=_table(_first_of(value, "env", "environment") or {}, f"{key}.env"),
        env_file=_text(value.get("envFile") or "", f"{key}.envFile") if url is None else "",
        cwd=None if value.get("cwd") is None else _text(value["cwd"], f"{key}.cwd"),
        url=_text(url or "", f"{key}.url"),
        headers=_table(value.get("headers") or {}, f"{key}.headers"),
        disabled=_flag(value, "disabled", key) or not _flag(value, "enabled", key, default=True),
        timeout=_timeout(value.get("timeout", TIMEOUT), key),
        max_response=_size(value.get("maxResponse", MAX_RESPONSE), key),
        trust_read_only=_flag(value, "trustReadOnly", key),
        disabled_tools=_texts(
            _first_of(value, "disabledTools", "disabled_tools", "excludeTools") or [], f"{key}.disabledTools"
        ),
        roots=None if value.get("roots") is None else _texts(value["roots"], f"{key}.roots"),
        oauth=_oauth(value, f"{key}.oauth") if url is not None else None,
        sampling=_flag(value, "sampling", key, default=True),
        instructions=_flag(value, "instructions", key, default=True),
        key=place,
    )


def _oauth(value: Mapping[str, Any], key: str) -> OAuthConfig | None:
    """None where it is switched off, or the server gets its own authorization in a header."""
    table = value.get("oauth")
    has_header = any(str(name).lower() == "authorization" for name in value.get("headers") or {})
    if table is False or (table is None and has_header):
        return None
    if table is None or table is True:
        return OAuthConfig()
    if not isinstance(table, dict):
        raise McpConfigError(f"{key} has to be false, or a table with clientId, clientSecret, scope, callbackPort")
    port = _first_of(table, "callbackPort", "redirectPort") or 0
    if not isinstance(port, int) or not 0 <= port < 65_536:
        raise McpConfigError(f"{key}.callbackPort has to be a port")
    scope = _first_of(table, "scope", "scopes") or ""
    return OAuthConfig(
        _text(_first_of(table, "clientId", "client_id") or "", f"{key}.clientId"),
        _text(_first_of(table, "clientSecret", "client_secret") or "", f"{key}.clientSecret"),
        " ".join(_texts(scope, f"{key}.scope")) if isinstance(scope, list) else _text(scope, f"{key}.scope"),
        port,
    )


def _transport(value: Mapping[str, Any], key: str, *, remote: bool) -> Transport:
    name = _first_of(value, "type", "transport", "transportType")
    if name is None:
        return "http" if remote else "stdio"
    transport = _TYPES.get(str(name).lower())
    if transport is None:
        raise McpConfigError(f"{key}.type is {name!r}; use stdio, http or sse")
    if (transport == "stdio") == remote:
        raise McpConfigError(f"{key}.type is {name!r}, which {'has no url' if remote else 'needs a url'}")
    return transport


def _first_of(value: Mapping[str, Any], *names: str) -> Any:
    """The value of the first of these keys that is there and not null."""
    return next((value[name] for name in names if value.get(name) is not None), None)


def _list(value: object, key: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise McpConfigError(f'{key} has to be a list of texts, like ["-y", "name"]')
    return value


def _text(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise McpConfigError(f"{key} has to be text")
    if "\0" in value:
        raise McpConfigError(f"{key} has a zero byte in it")
    return value


def _texts(value: object, key: str) -> tuple[str, ...]:
    return tuple(_text(entry, f"{key}[{index}]") for index, entry in enumerate(_list(value, key)))


def _table(value: object, key: str) -> Mapping[str, str]:
    """A table of strings; numbers and booleans are converted. Invalid values are not quoted: they may be secrets."""
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
    """Seconds; values from 1,000 on are milliseconds, as most clients write them."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise McpConfigError(f"{key}.timeout has to be a number of seconds")
    return value / 1000 if value >= 1000 else float(value)


def _size(value: object, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1000:
        raise McpConfigError(f"{key}.maxResponse has to be a number of bytes, 1000 or more")
    return value
