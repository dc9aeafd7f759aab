"""The state of an MCP server, in words for a person."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tui.config.files import at_home
from tui.providers.http.sse import TooLargeError
from tui.providers.keys import redact
from tui.text.clean import clean_line
from tui.text.numbers import size_text
from tui.tools.mcp.config import McpConfigError, ServerConfig
from tui.tools.mcp.oauth import SignInError, SignInNeededError
from tui.tools.mcp.offer import ResourceTemplate, ServerPrompt, ServerResource, ServerTool

State: TypeAlias = Literal["off", "starting", "ready", "reconnecting", "failed"]

LONGEST_REASON = 300  # characters


class GoneError(Exception):
    """The connection is no more. `str()` is what the SDK says of it."""


@dataclass(slots=True)
class TransportStatus:
    """What the SDK's errors leave out: the last HTTP error status, and the limit in bytes that an answer exceeded."""

    code: int = 0
    text: str = ""
    exceeded: int = 0
    by_oauth: bool = False  # the server says where one signs in (RFC 9728, section 5.1)
    sign_in_needed: bool = False  # the stored sign-in is no longer accepted


@dataclass(frozen=True, slots=True)
class Issue:
    """A problem with something a server lists, in a line. `fault` is False if it is not the server's."""

    text: str
    fault: bool = True


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The state of a server and what it offers.

    `reason` is one line for a person where it is not ready: why, and what to do. `cached` means that the tools are
    those of its last run: it has not listed its current ones yet. `templates` are of resources that it does not list.
    `issues` say what of its lists can't be used. `instructions` are the server's own on how it is to be used.
    `updated` are the URIs of resources that have changed since they were attached.
    """

    name: str
    state: State
    reason: str = ""
    about: str = ""
    tools: tuple[ServerTool, ...] = ()
    resources: tuple[ServerResource, ...] = ()
    prompts: tuple[ServerPrompt, ...] = ()
    cached: bool = False
    templates: tuple[ResourceTemplate, ...] = ()
    issues: tuple[Issue, ...] = ()
    instructions: str = ""
    updated: tuple[str, ...] = ()


def _not_started(config: ServerConfig, error: OSError) -> str:
    """Why a program could not be started, and what to do."""
    where = f"{config.key} in {config.where}"
    folder = config.cwd
    if folder and "${" not in folder and not at_home(folder).is_dir():
        return f"there is no folder {folder}; correct cwd of {where}"
    if isinstance(error, FileNotFoundError):
        return f"there is no program {config.command}; install it, or correct command of {where}"
    return f"{config.command} can't be run ({error.strerror or line(str(error))}); correct command of {where}"


def failure_reason(
    error: BaseException, config: ServerConfig, status: TransportStatus, *, ready: bool = False
) -> tuple[str, bool]:
    """Why a connection ended or failed, in one line, and whether a retry would fail the same way."""
    cause = innermost(error)
    asks = status.sign_in_needed or (status.by_oauth and config.oauth is not None)
    if asks or isinstance(cause, SignInNeededError):
        return sign_in_hint(config), True
    if isinstance(cause, SignInError) or type(cause).__name__.startswith("OAuth"):  # the SDK's, not loaded for this
        return f"signing in did not work: {error_text(cause)}", True
    where = f"{config.key} in {config.where}"
    no_server = f"there is no MCP server at {config.shown}; check url of {where}"
    if status.code in (401, 403):
        sign_in = f", or sign in: /mcp login {config.name}" if status.code == 401 and config.oauth is not None else ""
        return f"it answered {status.text}; check headers of {where}{sign_in}", True
    if status.code:
        return f"it answered {status.text}", 400 <= status.code < 500 and status.code not in (408, 425, 429)
    match cause:
        case McpConfigError():
            return str(cause), True
        case TimeoutError():
            return "it gave no answer in time", False
        case TooLargeError():
            return size_hint(config, cause.limit), True
        case OSError() if config.transport == "stdio":
            return _not_started(config, cause), True
    match type(cause).__name__:  # httpx2's, compared by name so that it need not be loaded
        case "ConnectError" | "ConnectTimeout":
            return f"nothing answers at {config.shown}; is it running?", False
        case "ReadError" | "WriteError" | "RemoteProtocolError" | "ReadTimeout":
            return f"the connection to {config.shown} broke", False
        case "HTTPStatusError" if str(cause).startswith("Client error"):  # 404 or 405: `status` has the others
            return no_server, True
    if limit := exceeded_limit(str(cause)):
        return size_hint(config, limit), True
    match error_text(cause):
        case "Connection closed":
            return "it ended" if ready else "it ended before it was ready", False
        case "Not Found" | "Session terminated":
            return no_server, True
        case text:
            return text, False


def sign_in_hint(config: ServerConfig) -> str:
    """What a server says that requires a sign-in."""
    return f"it wants you to sign in: /mcp login {config.name}"


def size_hint(config: ServerConfig, limit: int) -> str:
    """The error text for an answer over `limit` bytes."""
    where = f"{config.key} in {config.where}"
    sse = config.transport == "sse"
    more = f'type = "http" in {where} has a limit that can be set' if sse else f"maxResponse of {where} allows more"
    return f"it sent more than {size_text(limit)} in one answer; {more}"


def exceeded_limit(text: str) -> int:
    """The limit in bytes that the SDK says an event exceeded, 0 if `text` says something else."""
    match = re.search(r"exceeded the (\d+) byte limit", text)
    return int(match.group(1)) if match else 0


def innermost(error: BaseException) -> BaseException:
    """The innermost error of nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def error_text(error: BaseException) -> str:
    """What went wrong, in one line. For answers refused by the SDK, the first invalid field is named."""
    if type(error).__name__ == "ValidationError" and callable(listed := getattr(error, "errors", None)):  # pydantic's
        first = listed(include_url=False)[0]
        return line(f"its answer is not as MCP has it ({'.'.join(map(str, first['loc']))}: {first['msg']})")
    return line(str(error)) or type(error).__name__


def line(text: str, longest: int = LONGEST_REASON) -> str:
    """Untrusted text on one line of at most `longest` characters, without keys and control characters."""
    return redact(clean_line(text[: 10 * LONGEST_REASON]))[:longest]
