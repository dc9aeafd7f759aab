"""OAuth by the SDK's client (2.3), and a grant that it lacks: a code to enter on another device (RFC 8628)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from httpx2 import AsyncClient, Request, RequestError, Response
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken

from tui.providers.http.proxies import client_options
from tui.providers.keys import redact
from tui.tools.mcp.config import OAuthConfig, ServerConfig
from tui.tools.mcp.oauth import PATH, SignIn, SignInError, SignInPage, TokenStore, refusal
from tui.tools.mcp.status import TransportStatus, error_text

log = logging.getLogger(__name__)

CODE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
INTERVAL = 5.0  # seconds between polls unless the server sets another (RFC 8628, section 3.5)
MAX_CODE = 64  # characters
LOOPBACK = f"http://127.0.0.1{PATH}"
MAX_ANSWER = 100_000  # bytes of an answer
REVOKE_WAIT = 5.0  # seconds for revoking tokens
_CODE = ("user_code", "verification_uri", "device_code")  # what a server answers with (RFC 8628, section 3.2)
_BASIC = "client_secret_basic"


@contextlib.asynccontextmanager
async def authorization(
    config: ServerConfig, store: TokenStore, sign_in: SignIn | None, status: TransportStatus
) -> AsyncIterator[OAuthClientProvider | None]:
    """The `httpx2.Auth` for a server, variables filled in; None if there are no tokens and nobody signs in.

    Without `sign_in` tokens are used and renewed. That a server requires more is in `status`: who waits for an answer
    meets only the closed connection.
    """
    data, oauth = await asyncio.to_thread(store.read), config.oauth
    if oauth is None or (sign_in is None and not data.get("tokens")):
        yield None
        return
    async with contextlib.AsyncExitStack() as stack:
        redirect = LOOPBACK
        if sign_in is not None:
            data.pop("tokens", None)
            client = {} if oauth.client_id else data.get("client") or {}
            if not sign_in.by_code and "authorization_code" not in (client.get("grant_types") or ()):
                data["client"] = client = {}
            addresses = client.get("redirect_uris")
            port = urlsplit(addresses[0]).port if addresses else oauth.port
            try:
                redirect = await stack.enter_async_context(sign_in.listening(port or 0))
            except OSError:  # the port is in use: another one, for which this program has to register again
                data["client"] = {}
                redirect = await stack.enter_async_context(sign_in.listening(0))
        yield Provider(config.url, oauth, redirect, store, data, sign_in, status)


async def revoke(config: ServerConfig, store: TokenStore, data: dict[str, Any]) -> str:
    """Revoke the tokens in `data` at the authorization server that issued them (RFC 7009); why not, "" if it did."""
    assert config.oauth is not None
    provider = Provider(config.url, config.oauth, LOOPBACK, store, data, None, TransportStatus())
    try:
        await provider._initialize()
        metadata, tokens = provider.context.oauth_metadata, provider.context.current_tokens
        if metadata is None or metadata.revocation_endpoint is None or tokens is None:
            return "the server has no place for that"
        url = str(metadata.revocation_endpoint)
        options = client_options(url, MAX_ANSWER)
        async with asyncio.timeout(REVOKE_WAIT), AsyncClient(**options, follow_redirects=True) as client:
            for kind in ("refresh_token", "access_token"):
                if token := getattr(tokens, kind):
                    response = await client.send(provider._form(url, token=token, token_type_hint=kind))
                    if response.status_code != 200:
                        return f"the server answered {response.status_code}"
    except TimeoutError:
        return "the server did not answer in time"
    except RequestError:
        return "the server did not answer"
    except Exception as error:
        log.info("tokens of an MCP server are not revoked: %s", redact(repr(error)))
        return error_text(error)
    return ""


class FixedScope(OAuthClientMetadata):
    """Asks for a configured scope exactly, as Claude Code does; the SDK would ask for what the server names."""

    def __setattr__(self, name: str, value: object) -> None:
        if name != "scope":
            super().__setattr__(name, value)


class Provider(OAuthClientProvider):
    """The SDK's provider, which also renews a token that is refused before it expires: the SDK asks to sign in then.

    Without a browser it asks the authorization server for a code to enter on another device, if the server has codes.

    `data` is what `store` has; a client that a person configured is not stored. `sign_in` is good for one sign-in.
    """

    def __init__(
        self,
        url: str,
        oauth: OAuthConfig,
        redirect_uri: str,
        store: TokenStore,
        data: dict[str, Any],
        sign_in: SignIn | None,
        status: TransportStatus,
    ) -> None:
        about = {"client_name": "chatctx", "scope": oauth.scope or None, "redirect_uris": [redirect_uri]}
        metadata = (FixedScope if oauth.scope else OAuthClientMetadata).model_validate(about)
        storage: Any = self  # has those methods of the SDK's `TokenStorage` that `_initialize` doesn't replace
        handlers = (None, None) if sign_in is None else (sign_in.redirect, sign_in.callback)
        super().__init__(url, metadata, storage, *handlers)
        self._store = store
        self._data = data
        self._configured: Mapping[str, Any] | None = None
        if oauth.client_id:
            self._configured = {"client_id": oauth.client_id, "client_secret": oauth.client_secret or None}
            data["client"] = {}  # its secret is not stored
        self._sign_in = sign_in
        self._status = status
        self._code_endpoint = ""

    async def _initialize(self) -> None:
        data, context = self._data, self.context
        if client := self._configured or data.get("client"):
            context.client_info = OAuthClientInformationFull.model_validate(client)
        if tokens := data.get("tokens"):
            context.current_tokens = OAuthToken.model_validate(tokens)
            context.token_expiry_time = data.get("expires_at")
            if data.get("metadata"):
                context.oauth_metadata = OAuthMetadata.model_validate(data["metadata"])
            self._choose_auth_method()  # the tokens may have to be renewed at once
        self._initialized = True

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store new tokens, with the metadata for renewing them."""
        metadata = self.context.oauth_metadata
        self._data["tokens"] = tokens.model_dump(mode="json", exclude_none=True)
        self._data["expires_at"] = self.context.token_expiry_time
        self._data["metadata"] = metadata.model_dump(mode="json", exclude_none=True) if metadata else None
        await self._write()

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store a client registration."""
        self._data["client"] = client_info.model_dump(mode="json", exclude_none=True)
        await self._write()

    async def _write(self) -> None:
        try:
            await asyncio.to_thread(self._store.write, self._data)
        except OSError as error:
            log.warning("the sign-in of an MCP server is not stored: %s", error.strerror)

    def _choose_auth_method(self) -> None:
        """How a client with a secret authenticates itself, if its registration does not say.

        By HTTP Basic, which is the default (RFC 8414, section 2), unless the server's metadata name other methods only.
        Without a method the SDK sends no secret.
        """
        client, metadata = self.context.client_info, self.context.oauth_metadata
        if client is not None and client.client_secret and client.token_endpoint_auth_method is None:
            methods = (metadata.token_endpoint_auth_methods_supported if metadata else None) or [_BASIC]
            client.token_endpoint_auth_method = _BASIC if _BASIC in methods else "client_secret_post"

    async def _perform_authorization(self) -> Request:
        if self._sign_in is None or self._sign_in.done.done():
            self._status.sign_in_needed = True
            raise SignInError("it wants you to sign in")
        self._choose_auth_method()  # the metadata are there by now
        if not self._code_endpoint:
            return await super()._perform_authorization()
        return self._form(self._code_endpoint, scope=self.context.client_metadata.scope or "")

    async def _handle_token_response(self, response: Response) -> None:
        if self._code_endpoint:
            response = await self._code_entered(response)
        await super()._handle_token_response(response)

    async def _auth_flow(self, request: Request) -> AsyncGenerator[Request, Response]:
        flow = super()._auth_flow(request)
        try:
            outgoing, renewed = await anext(flow), False
            while True:
                response = yield outgoing
                if outgoing is request and response.status_code == 401:
                    if not renewed and self.context.can_refresh_token():
                        renewed = True
                        if await self._handle_refresh_response((yield await self._refresh_token())):
                            self._add_auth_header(request)
                            response = yield request
                elif outgoing is not request and response.status_code == 200:
                    self._choose_grant(await _json(response))
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    # -- by a code (RFC 8628) ----------------------------------------------------------------------------------------

    def _choose_grant(self, metadata: Mapping[str, Any]) -> None:
        """Use codes if these are the metadata of an authorization server that has them."""
        endpoint, context = metadata.get("device_authorization_endpoint"), self.context
        if self._sign_in is not None and self._sign_in.by_code and isinstance(endpoint, str):
            self._code_endpoint = endpoint
            context.client_metadata.grant_types = [CODE_GRANT, "refresh_token"]
            context.client_metadata.response_types = []
            if not self._configured and context.client_info and CODE_GRANT not in context.client_info.grant_types:
                context.client_info = None  # to be registered for this grant

    async def _code_entered(self, response: Response) -> Response:
        """Show the code that the server gave, and wait until it is entered: the answer with the tokens."""
        assert self._sign_in is not None
        answer = await _answer(response)
        code, address, device = (_text(answer, name) for name in _CODE)
        self._sign_in.show(SignInPage(address, code[:MAX_CODE]))
        wished = answer.get("interval")
        interval = float(wished) if isinstance(wished, int | float) and wished > 0 else INTERVAL
        url = self._get_token_endpoint()
        async with AsyncClient(**client_options(url, MAX_ANSWER), follow_redirects=True, timeout=30.0) as client:
            while True:
                await self._sign_in.pause(interval)
                response = await client.send(self._form(url, grant_type=CODE_GRANT, device_code=device))
                answer = await _answer(response)
                match answer.get("error"):
                    case None:
                        self._sign_in.accept()
                        return response
                    case "authorization_pending" | "slow_down" as error:
                        interval += INTERVAL if error == "slow_down" else 0.0
                    case _:
                        raise refusal(answer)

    def _form(self, url: str, **fields: str) -> Request:
        assert self.context.client_info is not None  # registered by now
        form = {name: text for name, text in fields.items() if text} | {"client_id": self.context.client_info.client_id}
        if self.context.should_include_resource_param(self.context.protocol_version):
            form["resource"] = self.context.get_resource_url()
        form, headers = self.context.prepare_token_auth(form, {})
        return Request("POST", url, data=form, headers=headers)


async def _json(response: Response) -> dict[str, Any]:
    """The members of a JSON object; none for anything else."""
    await response.aread()
    try:
        answer = response.json()
    except ValueError:
        answer = None
    return answer if isinstance(answer, dict) else {}


async def _answer(response: Response) -> dict[str, Any]:
    """The answer of an authorization server. Raises `SignInError` if it is none."""
    answer = await _json(response)
    if not answer or (response.status_code >= 400 and "error" not in answer):
        raise SignInError(f"the authorization server answered {response.status_code}")
    return answer


def _text(answer: Mapping[str, Any], name: str) -> str:
    if "error" in answer:
        raise refusal(answer)
    if not isinstance(answer.get(name), str):
        raise SignInError(f"the authorization server gave no {name}")
    return str(answer[name])
