"""Signing in to remote MCP servers: what the person does, and where the tokens are stored.

Tokens are in the system's keyring if the package `keyring` is installed and has one, else in a file for their owner
alone. They are never logged: `keys.redact` knows each of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from tui.config.files import open_private, private_folder
from tui.context.counting.digests import text_digest
from tui.errors import ExpectedError
from tui.providers.keys import hold_secret

if TYPE_CHECKING:
    from mcp.client.auth import AuthorizationCodeResult

log = logging.getLogger(__name__)

T = TypeVar("T")

SERVICE = "chatctx-mcp"  # in the keyring
PATH = "/callback"
MAX_REQUEST = 16_384  # bytes of the browser's request to the callback
PAGE = "<!doctype html><meta charset=utf-8><title>chatctx</title><p>{}</p>"


class SignInError(ExpectedError):
    """Signing in failed. `str()` is one line: why."""


def refusal(answer: Mapping[str, Any]) -> SignInError:
    """An authorization server's error (RFC 6749, section 5.2)."""
    return SignInError(f"it was refused: {str(answer.get('error_description') or answer['error'])[:200]}")


class StrayCallbackError(SignInError):
    """An address that doesn't answer this attempt to sign in."""


def read_callback(address: str, state: str) -> AuthorizationCodeResult:
    """The answer in the address of the redirect. Raises `SignInError`.

    `state` is that of the request: an answer to another one is refused (RFC 6749, section 10.12).
    """
    from mcp.client.auth import AuthorizationCodeResult

    query = {name: values[0] for name, values in parse_qs(urlsplit(address.strip()).query).items()}
    if not query.get("code") and "error" not in query:
        raise StrayCallbackError("that address has no code in it: paste the whole address of the last page")
    if query.get("state") != state:
        raise StrayCallbackError("that address is of another sign-in: paste that of the last page of this one")
    if "error" in query:
        raise refusal(query)
    return AuthorizationCodeResult(code=query["code"], state=state, iss=query.get("iss"))


@dataclass(frozen=True, slots=True)
class SignInPage:
    """The page to sign in at. `code` is to be entered there, on any device; "" where the browser has to come back."""

    address: str
    code: str = ""


class SignIn:
    """One attempt to sign in: with a browser, or `by_code` if the authorization server has codes.

    `page` is set from the MCP thread. `done` ends when the browser has come back, an address was pasted, or the code
    was accepted.
    """

    def __init__(self, *, by_code: bool = False) -> None:
        self.by_code = by_code
        self.page: Future[SignInPage] = Future()
        self.done: Future[AuthorizationCodeResult | None] = Future()
        self._state = ""

    def paste(self, address: str) -> None:
        """Finish with the address that a browser on another machine was redirected to. Raises `SignInError`."""
        callback = read_callback(address, self._state)
        with contextlib.suppress(InvalidStateError):  # the first of browser and paste counts
            self.done.set_result(callback)

    def give_up(self) -> None:
        """Cancel the attempt."""
        self._fail(SignInError("it was cancelled"))

    def _fail(self, error: SignInError) -> None:
        with contextlib.suppress(InvalidStateError):
            self.done.set_exception(error)

    # -- in the MCP thread -----------------------------------------------------------------------------------------

    def show(self, page: SignInPage) -> None:
        """Set `page`. Raises `SignInError` if it is not on the web."""
        if not page.address.startswith(("https://", "http://")):
            raise SignInError("the sign-in page has no http or https address")
        with contextlib.suppress(InvalidStateError):
            self.page.set_result(page)

    async def pause(self, seconds: float) -> None:
        """Wait. Raises `SignInError` if the attempt is cancelled meanwhile."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self.done)), seconds)

    def accept(self) -> None:
        """The code was entered."""
        with contextlib.suppress(InvalidStateError):
            self.done.set_result(None)

    async def redirect(self, url: str) -> None:
        """The SDK's redirect handler."""
        self._state = parse_qs(urlsplit(url).query).get("state", [""])[0]
        self.show(SignInPage(url))

    async def callback(self) -> AuthorizationCodeResult:
        """The SDK's callback handler: waits for the redirect."""
        result = await asyncio.wrap_future(self.done)
        assert result is not None  # no code was shown
        return result

    @contextlib.asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[str]:
        """Listen for the redirect on the loopback interface, at `port` (0: any). Yields the redirect URI.

        Raises OSError where the port is in use.
        """
        server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=MAX_REQUEST)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATH}"
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        status, message = "404 Not Found", "Nothing is here."
        with contextlib.suppress(
            OSError, ValueError, asyncio.LimitOverrunError, asyncio.IncompleteReadError, TimeoutError
        ):
            async with asyncio.timeout(10):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, target, *_ = head.split(" ", 2)
            if method == "GET" and urlsplit(target).path == PATH:
                try:
                    self.paste(target)
                    status, message = "200 OK", "You are signed in: go back to chatctx. This page can be closed."
                except StrayCallbackError as error:
                    log.info("a request to the callback that does not answer the sign-in: %s", error)
                except SignInError as error:
                    self._fail(error)
                    status, message = "200 OK", "That did not work: chatctx says why."
            body = PAGE.format(message).encode()
            headers = f"Content-Type: text/html\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
            writer.write(f"HTTP/1.1 {status}\r\n{headers}\r\n".encode() + body)
            await writer.drain()
        writer.close()


class TokenStore:
    """Stores the sign-in to one server: tokens, client registration, and the metadata for renewal."""

    def __init__(self, folder: Path | None, url: str) -> None:
        self._name = text_digest(url)[:24]
        self._path = None if folder is None else folder / f"{self._name}.json"

    def read(self) -> dict[str, Any]:
        """The stored data, empty if missing or unreadable. Not on the event loop."""
        # A file is there only if the keyring did not take the data.
        text = self._from_file() or self._in_keyring(lambda keyring, *place: keyring.get_password(*place) or "", "")
        try:
            data = json.loads(text) if text else {}
        except ValueError:
            data = {}
        stored: dict[str, Any] = data if isinstance(data, dict) else {}
        _hold(stored)
        return stored

    def write(self, data: Mapping[str, Any]) -> None:
        """Store `data`. Raises OSError. Not on the event loop."""
        _hold(data)
        text = json.dumps(data)

        def put(keyring: Any, *place: str) -> bool:
            keyring.set_password(*place, text)
            return True

        if self._in_keyring(put, False):
            self._remove_file()
        elif self._path is not None:
            private_folder(self._path.parent)
            with open_private(temporary := self._path.with_suffix(".new"), "w", encoding="utf-8") as file:
                file.write(text)
            temporary.replace(self._path)

    def forget(self) -> None:
        """Delete the stored data. Not on the event loop."""
        self._in_keyring(lambda keyring, *place: keyring.delete_password(*place), None)
        self._remove_file()

    def _remove_file(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _from_file(self) -> str:
        try:
            return "" if self._path is None else self._path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            log.warning("the sign-in of an MCP server can't be read: %s", error.strerror)
            return ""

    def _in_keyring(self, work: Callable[..., T], otherwise: T) -> T:
        """`work` with the keyring and the place of the data in it; `otherwise` if that fails, or there is none."""
        if (keyring := _keyring()) is None:
            return otherwise
        try:
            return work(keyring, SERVICE, self._name)
        except Exception as error:  # backends raise errors of their own
            log.info("the keyring failed: %s", type(error).__name__)
            return otherwise


def _keyring() -> Any:
    """The system's keyring; None if `keyring` is not installed or has no secure backend."""
    import importlib

    try:
        backend = importlib.import_module("keyring").get_keyring()
        return backend if backend.priority >= 1 else None
    except Exception:  # not installed, or its backend failed to load
        return None


def _hold(data: Mapping[str, Any]) -> None:
    """Keep the secrets in `data` out of logs and the screen."""
    for part, names in (("tokens", ("access_token", "refresh_token")), ("client", ("client_secret",))):
        for name in names:
            if isinstance(secret := (data.get(part) or {}).get(name), str):
                hold_secret(secret)
