"""An MCP server on loopback that wants its callers to sign in, by the SDK's own authorization server."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.machine import free_port
from tests.tools.mcp.mcp_running import until


class Authority:
    """The authorization server: everybody who opens its page is signed in, unless `refuses`.

    `lifetime` is in seconds; None: tokens that don't end, and can't be renewed.
    """

    def __init__(self, lifetime: int | None = 3600) -> None:
        self.lifetime = lifetime
        self.refuses = False
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.refreshed = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[str(client_info.client_id)] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if self.refuses:
            return construct_redirect_uri(str(params.redirect_uri), error="access_denied", state=params.state)
        code = secrets.token_urlsafe(24)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=str(client.client_id),
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client: object, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    def _issue(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"access-{secrets.token_urlsafe(24)}", f"refresh-{secrets.token_urlsafe(24)}"
        expires = None if self.lifetime is None else int(time.time()) + self.lifetime
        self.access[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, expires_at=expires, resource=resource
        )
        if self.lifetime is None:
            return OAuthToken(access_token=access, scope=" ".join(scopes))
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes, resource=resource)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.lifetime, scope=" ".join(scopes))

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issue(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: object, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        self.refreshed += 1
        del self.refresh[refresh_token.token]
        return self._issue(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        for issued in (self.access, self.refresh):
            issued.pop(token.token, None)

    async def exchange_identity_assertion(self, client: object, params: object) -> OAuthToken:
        raise NotImplementedError


class Devices:
    """Codes for other devices, beside `authority` (RFC 8628). The person enters one as soon as `entered` is set.

    `issuer` is what the metadata say, if that is not the server's own address; `first` the first answer to who waits.
    """

    def __init__(self, authority: Authority) -> None:
        self.authority = authority
        self.entered = False
        self.issuer = ""
        self.first = "authorization_pending"
        self.token_answers: list[str] = []  # what each question for the token was answered with

    def routes(self, origin: str) -> list[Route]:
        """In place of what the SDK's server has there."""

        async def metadata(_request: Request) -> Response:
            return JSONResponse(
                {
                    "issuer": self.issuer or origin,
                    "authorization_endpoint": f"{origin}/authorize",
                    "token_endpoint": f"{origin}/device-token/",
                    "registration_endpoint": f"{origin}/device-register",
                    "device_authorization_endpoint": f"{origin}/device",
                    "response_types_supported": ["code"],
                }
            )

        async def register(request: Request) -> Response:
            client = {**await request.json(), "client_id": "device-client"}
            self.authority.clients["device-client"] = OAuthClientInformationFull.model_validate(client)
            return JSONResponse(client, 201)

        async def device(_request: Request) -> Response:
            page = {"verification_uri": f"{origin}/activate", "expires_in": 60, "interval": 0.01}
            return JSONResponse({"device_code": "device-code", "user_code": "WDJB-MJHT", **page})

        async def token(request: Request) -> Response:
            form = await request.form()
            waiting = "authorization_pending" if self.token_answers else self.first
            refused = "access_denied" if self.authority.refuses else "" if self.entered else waiting
            self.token_answers.append(refused or str(form["grant_type"]))
            if refused:
                return JSONResponse({"error": refused}, 400)
            issued = self.authority._issue(str(form["client_id"]), ["use"], str(form["resource"]))
            return JSONResponse(issued.model_dump(mode="json", exclude_none=True))

        return [
            Route("/.well-known/oauth-authorization-server", metadata),
            Route("/device-register", register, methods=["POST"]),
            Route("/device", device, methods=["POST"]),
            Route("/device-token/", lambda _: RedirectResponse("/device-token", 307), methods=["POST"]),
            Route("/device-token", token, methods=["POST"]),
        ]


def metadata_with(origin: str, auth_methods: Sequence[str]) -> Callable[[Request], Awaitable[Response]]:
    """The authorization server's metadata, with the ways in which clients may authenticate themselves."""

    async def metadata(_request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": origin,
                "authorization_endpoint": f"{origin}/authorize",
                "token_endpoint": f"{origin}/token",
                "registration_endpoint": f"{origin}/register",
                "token_endpoint_auth_methods_supported": list(auth_methods),
            }
        )

    return metadata


@asynccontextmanager
async def guarded_server(
    authority: Authority, devices: Devices | None = None, auth_methods: Sequence[str] = ()
) -> AsyncIterator[str]:
    """Its address. `auth_methods` are those that its metadata name for clients, if any are given."""
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    settings = AuthSettings.model_validate(
        {
            "issuer_url": origin,
            "resource_server_url": f"{origin}/mcp",
            "client_registration_options": {"enabled": True, "valid_scopes": ["use"], "default_scopes": ["use"]},
            "revocation_options": {"enabled": True},
            "validate_token_resource": True,
            "required_scopes": ["use"],
        }
    )
    server: Any = MCPServer("guarded", auth_server_provider=authority, auth=settings)

    def whoami() -> str:
        """Who calls."""
        return "you"

    server.add_tool(whoami)
    app = server.streamable_http_app()
    app.router.routes[:0] = [] if devices is None else devices.routes(origin)
    if auth_methods:
        app.router.routes.insert(
            0, Route("/.well-known/oauth-authorization-server", metadata_with(origin, auth_methods))
        )
    async with serving(app, port):
        yield f"{origin}/mcp"


@asynccontextmanager
async def serving(app: Any, port: int) -> AsyncIterator[None]:
    """Serves an ASGI app at a port of 127.0.0.1."""
    web = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", lifespan="on"))
    task = asyncio.create_task(web.serve())
    await until(lambda: web.started)
    try:
        yield
    finally:
        web.should_exit = web.force_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def browse(address: str) -> tuple[int, str, str]:
    """What a browser does with an address: follows it to the end. Status, text and the last address."""
    import httpx2

    async with httpx2.AsyncClient(follow_redirects=False, trust_env=False) as browser:
        response = await browser.get(address)
        while response.status_code in (302, 303, 307):
            address = response.headers["location"]
            response = await browser.get(address)
        return response.status_code, response.text, address


async def last_address(address: str) -> str:
    """Where a browser on another machine ends: at an address that it can't load."""
    import httpx2

    async with httpx2.AsyncClient(follow_redirects=False, trust_env=False) as browser:
        response = await browser.get(address)
        target = str(response.headers["location"])
        assert urlsplit(target).hostname == "127.0.0.1"
        return target
