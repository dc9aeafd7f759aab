"""OAuth for remote MCP servers, with the SDK's client; tokens are stored for the next run.

Tokens are in the system's keyring if the package `keyring` is installed and has one, else in a file for their owner
alone. They are never logged: `keys.redact` knows each of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from tui.config.files import open_private, private_folder
from tui.providers.keys import hold_secret
from tui.tools.mcp.config import Launch, OAuthConfig, ServerConfig

if TYPE_CHECKING:
    from httpx2 import Request, Response
    from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
    from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken

    from tui.tools.mcp.transport import TransportStatus

log = logging.getLogger(__name__)

SERVICE = "chatctx-mcp"  # in the keyring
PATH = "/callback"
LONGEST_REQUEST = 16_384  # bytes of the browser's request to the callback
_BASIC = "client_secret_basic"
PAGE = "<!doctype html><meta charset=utf-8><title>chatctx</title><p>{}</p>"


class SignInNeededError(Exception):
    """The server requires a sign-in."""

    def __init__(self) -> None:
        super().__init__("it wants you to sign in")


class SignInError(Exception):
    """Signing in failed. `str()` is one line: why."""


def check_page(address: str) -> None:
    """Raises `SignInError` for the address of a page that is not on the web."""
    if not address.startswith(("https://", "http://")):
        raise SignInError("the sign-in page has no http or https address")


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


class SignIn:
    """One attempt to sign in with a browser. `address`, the page to open, is set from the MCP thread.

    `done` ends when the browser has come back, or an address was pasted.
    """

    def __init__(self) -> None:
        self.address: Future[str] = Future()
        self.done: Future[AuthorizationCodeResult] = Future()
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

    async def redirect(self, url: str) -> None:
        """The SDK's redirect handler."""
        check_page(url)
        self._state = parse_qs(urlsplit(url).query).get("state", [""])[0]
        with contextlib.suppress(InvalidStateError):
            self.address.set_result(url)

    async def callback(self) -> AuthorizationCodeResult:
        """The SDK's callback handler: waits for the redirect."""
        return await asyncio.wrap_future(self.done)

    @contextlib.asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[str]:
        """Listen for the redirect on the loopback interface, at `port` (0: any). Yields the redirect URI.

        Raises OSError where the port is in use.
        """
        server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=LONGEST_REQUEST)
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
                status, message = self._answer(target)
            body = PAGE.format(message).encode()
            headers = f"Content-Type: text/html\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
            writer.write(f"HTTP/1.1 {status}\r\n{headers}\r\n".encode() + body)
            await writer.drain()
        writer.close()

    def _answer(self, target: str) -> tuple[str, str]:
        """Finish with the redirect's target. The HTTP status, and what the page says."""
        try:
            self.paste(target)
        except StrayCallbackError as error:
            log.info("a request to the callback that is no answer: %s", error)
            return "404 Not Found", "Nothing is here."
        except SignInError as error:
            self._fail(error)
            return "200 OK", "That did not work: chatctx says why."
        return "200 OK", "You are signed in: go back to chatctx. This page can be closed."


class TokenStore:
    """Stores the sign-in to one server: tokens, client registration, and the metadata for renewal."""

    def __init__(self, folder: Path | None, url: str) -> None:
        self._name = hashlib.sha256(url.encode()).hexdigest()[:24]
        self._path = None if folder is None else folder / f"{self._name}.json"

    def read(self) -> dict[str, Any]:
        """The stored data, empty if missing or unreadable. Not on the event loop."""
        text = self._from_file() or self._from_keyring()  # a file is there only if the keyring did not take the data
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
        if self._to_keyring(text):
            self._remove_file()
        elif self._path is not None:
            private_folder(self._path.parent)
            with open_private(temporary := self._path.with_suffix(".new"), "w", encoding="utf-8") as file:
                file.write(text)
            temporary.replace(self._path)

    def forget(self) -> None:
        """Delete the stored data. Not on the event loop."""
        if (keyring := _keyring()) is not None:
            with contextlib.suppress(Exception):  # not there
                keyring.delete_password(SERVICE, self._name)
        self._remove_file()

    def _remove_file(self) -> None:
        if self._path is not None:
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()

    def _from_file(self) -> str:
        try:
            return "" if self._path is None else self._path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            log.warning("the sign-in of an MCP server can't be read: %s", error.strerror)
            return ""

    def _from_keyring(self) -> str:
        keyring = _keyring()
        try:
            return "" if keyring is None else keyring.get_password(SERVICE, self._name) or ""
        except Exception as error:  # backends raise errors of their own
            log.info("the keyring can't be read: %s", type(error).__name__)
            return ""

    def _to_keyring(self, text: str) -> bool:
        keyring = _keyring()
        if keyring is None:
            return False
        try:
            keyring.set_password(SERVICE, self._name, text)
        except Exception as error:
            log.info("the keyring can't be written: %s", type(error).__name__)
            return False
        return True


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


class _Storage:
    """The SDK's `TokenStorage`, backed by a `TokenStore`. A `configured` client is used, and never stored."""

    def __init__(self, store: TokenStore, data: dict[str, Any], configured: Mapping[str, Any] | None) -> None:
        self._store = store
        self._data = data
        self._configured = configured
        self.provider: OAuthClientProvider | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """The stored tokens."""
        from mcp.shared.auth import OAuthToken

        return OAuthToken.model_validate(tokens) if (tokens := self._data.get("tokens")) else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store new tokens, with the metadata for renewing them."""
        self._data["tokens"] = tokens.model_dump(mode="json", exclude_none=True)
        if self.provider is not None:
            context = self.provider.context
            self._data["expires_at"] = context.token_expiry_time
            self._data["metadata"] = (
                context.oauth_metadata.model_dump(mode="json", exclude_none=True) if context.oauth_metadata else None
            )
        await self._write()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The configured client, else the one that was registered."""
        from mcp.shared.auth import OAuthClientInformationFull

        if not (data := self._configured or self._data.get("client")):
            return None
        client = OAuthClientInformationFull.model_validate(data)
        if self._data.get("tokens") and self.provider is not None:  # they may have to be renewed at once
            choose_auth_method(client, self.provider.context.oauth_metadata)
        return client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store a client registration."""
        self._data["client"] = client_info.model_dump(mode="json", exclude_none=True)
        await self._write()

    async def _write(self) -> None:
        try:
            await asyncio.to_thread(self._store.write, self._data)
        except OSError as error:
            log.warning("the sign-in of an MCP server is not stored: %s", error.strerror)


def configured_client(oauth: OAuthConfig, launch: Launch) -> Mapping[str, Any] | None:
    """The client that a person configured, None if this program has to register itself."""
    return {"client_id": oauth.client_id, "client_secret": launch.client_secret or None} if oauth.client_id else None


def registered_client(data: Mapping[str, Any], grant: str) -> Mapping[str, Any] | None:
    """The client registered earlier, None if it was registered for other grants."""
    client: Mapping[str, Any] = data.get("client") or {}
    return client if grant in (client.get("grant_types") or ()) else None


def client_metadata(oauth: OAuthConfig, **fields: object) -> OAuthClientMetadata:
    """What this program says of itself when it registers, and the scope that it asks for.

    A configured scope is asked for exactly, as in Claude Code; the SDK (2.3) would replace it by what the server names.
    """
    from mcp.shared.auth import OAuthClientMetadata

    class FixedScope(OAuthClientMetadata):
        def __setattr__(self, name: str, value: object) -> None:
            if name != "scope":
                super().__setattr__(name, value)

    metadata = FixedScope if oauth.scope else OAuthClientMetadata
    return metadata.model_validate({"client_name": "chatctx", "scope": oauth.scope or None, **fields})


def choose_auth_method(client: OAuthClientInformationFull, metadata: OAuthMetadata | None) -> None:
    """How a client with a secret authenticates itself, if its registration does not say.

    By HTTP Basic, which is the default (RFC 8414, section 2), unless the server's metadata name other methods only.
    Without a method the SDK (2.3) sends no secret.
    """
    if client.client_secret and client.token_endpoint_auth_method is None:
        methods = (metadata.token_endpoint_auth_methods_supported if metadata else None) or [_BASIC]
        client.token_endpoint_auth_method = _BASIC if _BASIC in methods else "client_secret_post"


@contextlib.asynccontextmanager
async def authorization(
    config: ServerConfig, launch: Launch, store: TokenStore, sign_in: SignIn | None, status: TransportStatus
) -> AsyncIterator[OAuthClientProvider | None]:
    """The `httpx2.Auth` for a server; None if there are no tokens and nobody signs in.

    Without `sign_in` tokens are used and renewed; a server that requires more fails with `SignInNeededError`, and
    `status` has that for whoever meets only the closed connection.
    """
    data, oauth = await asyncio.to_thread(store.read), config.oauth
    if oauth is None or (sign_in is None and not data.get("tokens")):
        yield None
        return
    if configured := configured_client(oauth, launch):
        data.pop("client", None)  # its secret is not stored
    storage = _Storage(store, data, configured)
    if sign_in is None:
        yield _provider(oauth, launch.url, storage, data, status)
        return
    data.pop("tokens", None)
    client = registered_client(data, "authorization_code") or {}
    addresses = client.get("redirect_uris") or [f"http://127.0.0.1:{oauth.port}{PATH}"]
    async with contextlib.AsyncExitStack() as stack:
        try:
            redirect = await stack.enter_async_context(sign_in.listening(urlsplit(addresses[0]).port or 0))
        except OSError:  # the port is in use: another one, for which this program has to register again
            client, redirect = {}, await stack.enter_async_context(sign_in.listening(0))
        if not client:
            data.pop("client", None)
        yield _provider(oauth, launch.url, storage, data, status, sign_in, redirect)


def _renewing_provider() -> type[OAuthClientProvider]:
    from mcp.client.auth import OAuthClientProvider

    class RenewingProvider(OAuthClientProvider):
        """Also renews a token that is refused before its end: the SDK (2.3) lets the person sign in then."""

        async def _auth_flow(self, request: Request) -> AsyncGenerator[Request, Response]:
            flow = super()._auth_flow(request)
            try:
                outgoing, renewed = await anext(flow), False
                while True:
                    response = yield outgoing
                    refused = outgoing is request and response.status_code == 401
                    if refused and not renewed and self.context.can_refresh_token():
                        renewed = True
                        if await self._handle_refresh_response((yield await self._refresh_token())):
                            self._add_auth_header(request)
                            response = yield request
                    outgoing = await flow.asend(response)
            except StopAsyncIteration:
                return
            finally:
                await flow.aclose()

    return RenewingProvider


def _provider(
    oauth: OAuthConfig,
    url: str,
    storage: _Storage,
    data: Mapping[str, Any],
    status: TransportStatus,
    sign_in: SignIn | None = None,
    redirect_uri: str = f"http://127.0.0.1{PATH}",
) -> OAuthClientProvider:
    """The SDK's OAuth client, with the stored tokens in `data`."""
    from mcp.shared.auth import OAuthMetadata

    async def redirect(address: str) -> None:
        if sign_in is None or sign_in.done.done():
            status.sign_in_needed = True
            raise SignInNeededError
        context = provider.context
        if context.client_info is not None:
            choose_auth_method(context.client_info, context.oauth_metadata)  # which is known by now
        await sign_in.redirect(address)

    async def callback() -> AuthorizationCodeResult:
        assert sign_in is not None  # `redirect` comes first
        return await sign_in.callback()

    metadata = client_metadata(oauth, redirect_uris=[redirect_uri])
    provider = _renewing_provider()(url, metadata, storage, redirect_handler=redirect, callback_handler=callback)
    storage.provider = provider
    if data.get("tokens"):
        provider.context.token_expiry_time = data.get("expires_at")
        if data.get("metadata"):
            provider.context.oauth_metadata = OAuthMetadata.model_validate(data["metadata"])
    return provider
