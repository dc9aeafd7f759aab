"""The OAuth device flow (RFC 8628), for machines without a browser.

Discovery and client registration are the SDK's; it does not implement this grant.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui.tools.mcp.config import Launch, OAuthConfig, ServerConfig
from tui.tools.mcp.oauth import (
    SignInError,
    TokenStore,
    check_page,
    choose_auth_method,
    client_metadata,
    configured_client,
    refusal,
    registered_client,
)
from tui.tools.mcp.transport import http_options

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from mcp.client.auth.oauth2 import OAuthContext
    from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
INTERVAL = 5.0  # seconds between polls unless the server sets another (RFC 8628, section 3.5)
LONGEST_CODE = 64  # characters


@dataclass(frozen=True, slots=True)
class Code:
    """The code to enter, and where."""

    code: str
    address: str


class DeviceSignIn:
    """One attempt. `code` is set from the MCP thread: None if the server does not support the flow.

    `done` ends when the person has signed in. Both may end with `SignInError`.
    """

    def __init__(self) -> None:
        self.code: Future[Code | None] = Future()
        self.done: Future[None] = Future()

    def give_up(self) -> None:
        """Cancel the attempt."""
        self.fail(SignInError("it was cancelled"))

    def fail(self, error: SignInError) -> None:
        """End the attempt with an error, unless it has ended."""
        for future in (self.code, self.done):
            with contextlib.suppress(InvalidStateError):
                future.set_exception(error)

    async def run(self, config: ServerConfig, launch: Launch, store: TokenStore) -> None:
        """Request a code, wait for the person, and store the tokens. In the MCP thread; raises nothing."""
        import httpx2

        try:
            options = http_options(launch.url, config.max_response, elsewhere=True)
            async with httpx2.AsyncClient(timeout=30.0, **options) as client:
                await self._sign_in(client, config, launch, store)
        except SignInError as error:
            self.fail(error)
        except Exception as error:  # the SDK's, the network's, the disk's
            self.fail(SignInError(str(error) or type(error).__name__))

    async def _sign_in(self, client: AsyncClient, config: ServerConfig, launch: Launch, store: TokenStore) -> None:
        from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

        oauth = config.oauth or OAuthConfig()
        context, endpoint = await _discovered(client, oauth, launch.url)
        if endpoint is None or context.oauth_metadata is None:
            self.code.set_result(None)
            self.done.set_result(None)
            return
        stored = await asyncio.to_thread(store.read)
        if configured := configured_client(oauth, launch):
            context.client_info = OAuthClientInformationFull.model_validate(configured)
        else:
            context.client_info = await _registered(client, context, context.oauth_metadata, stored)
            stored["client"] = context.client_info.model_dump(mode="json", exclude_none=True)
        choose_auth_method(context.client_info, context.oauth_metadata)
        answer = await _posted(client, context, endpoint, {"scope": context.client_metadata.scope or ""})
        code = Code(_text(answer, "user_code")[:LONGEST_CODE], _text(answer, "verification_uri"))
        check_page(code.address)
        with contextlib.suppress(InvalidStateError):
            self.code.set_result(code)
        grant = {"grant_type": GRANT, "device_code": _text(answer, "device_code")}
        token = OAuthToken.model_validate(await self._polled(client, context, grant, answer))
        context.update_token_expiry(token)
        stored["tokens"] = token.model_dump(mode="json", exclude_none=True)
        stored["metadata"] = context.oauth_metadata.model_dump(mode="json", exclude_none=True)
        stored["expires_at"] = context.token_expiry_time
        await asyncio.to_thread(store.write, stored)
        with contextlib.suppress(InvalidStateError):
            self.done.set_result(None)

    async def _polled(
        self, client: AsyncClient, context: OAuthContext, grant: dict[str, str], answer: dict[str, Any]
    ) -> dict[str, Any]:
        """Poll the token endpoint until the person has signed in."""
        assert context.oauth_metadata is not None
        wait, until = _seconds(answer, "interval", INTERVAL), time.monotonic() + _seconds(answer, "expires_in", 600.0)
        while time.monotonic() < until and not self.done.done():
            await asyncio.sleep(wait)
            result = await _posted(client, context, str(context.oauth_metadata.token_endpoint), grant)
            match result.get("error"):
                case None:
                    return result
                case "authorization_pending":
                    pass
                case "slow_down":
                    wait += INTERVAL
                case _:
                    raise refusal(result)
        raise SignInError("the code has expired")


async def _discovered(client: AsyncClient, oauth: OAuthConfig, url: str) -> tuple[OAuthContext, str | None]:
    """The authorization server's metadata, and its device authorization endpoint, None if it has none."""
    from mcp.client.auth import utils
    from mcp.client.auth.oauth2 import OAuthContext
    from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url

    metadata = client_metadata(
        oauth,
        redirect_uris=["http://127.0.0.1/callback"],  # required, and not used
        grant_types=[GRANT, "refresh_token"],
        response_types=[],
    )
    storage: Any = None  # tokens are kept by this module
    context = OAuthContext(url, metadata, storage, None, None)
    refused = await client.post(url, json={})
    place = utils.extract_resource_metadata_from_www_auth(refused)
    for address in utils.build_protected_resource_metadata_discovery_urls(place, url):
        resource = await utils.handle_protected_resource_response(await client.get(address))
        if resource is not None:
            asked = resource_url_from_server_url(url)
            if not check_resource_allowed(requested_resource=asked, configured_resource=str(resource.resource)):
                raise SignInError(f"the server says that it is another one: {resource.resource}")
            context.protected_resource_metadata = resource
            context.auth_server_url = str(resource.authorization_servers[0])
            break
    for address in utils.build_oauth_authorization_server_metadata_discovery_urls(context.auth_server_url, url):
        response = await client.get(address)
        _, server = await utils.handle_auth_metadata_response(response)
        if server is not None:
            issuer, origin = context.auth_server_url, context.get_authorization_base_url(url)
            if issuer is None and utils.issuers_match(str(server.issuer), origin):
                issuer = str(server.issuer)
            utils.validate_metadata_issuer(server, issuer or origin)
            context.oauth_metadata = server
            endpoint = response.json().get("device_authorization_endpoint")
            metadata.scope = utils.get_client_metadata_scopes(
                utils.extract_scope_from_www_auth(refused),
                context.protected_resource_metadata,
                server,
                metadata.grant_types,
            )
            return context, endpoint if isinstance(endpoint, str) else None
    return context, None


async def _registered(
    client: AsyncClient, context: OAuthContext, metadata: OAuthMetadata, stored: Mapping[str, Any]
) -> OAuthClientInformationFull:
    """The client registered earlier with this authorization server, or a new one."""
    from mcp.client.auth import utils
    from mcp.client.auth.oauth2 import check_registration_usable
    from mcp.shared.auth import OAuthClientInformationFull

    issuer = str(metadata.issuer)
    if earlier := registered_client(stored, GRANT):
        registered = OAuthClientInformationFull.model_validate(earlier)
        if utils.credentials_match_issuer(registered, issuer, None):
            return registered
    base = context.get_authorization_base_url(context.server_url)
    request = utils.create_client_registration_request(metadata, context.client_metadata, base)
    registered = await utils.handle_registration_response(await client.send(request))
    check_registration_usable(registered)
    registered.issuer = issuer if metadata.registration_endpoint else None
    return registered


async def _posted(client: AsyncClient, context: OAuthContext, endpoint: str, form: dict[str, str]) -> dict[str, Any]:
    """POST a form; the JSON object of the response. Raises `SignInError`."""
    assert context.client_info is not None
    form = {"client_id": context.client_info.client_id, **{name: value for name, value in form.items() if value}}
    if context.should_include_resource_param():
        form["resource"] = context.get_resource_url()
    form, headers = context.prepare_token_auth(form, {})
    response = await client.post(endpoint, data=form, headers=headers)
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or (response.status_code >= 400 and "error" not in answer):
        raise SignInError(f"the authorization server answered {response.status_code}")
    return answer


def _text(answer: dict[str, Any], name: str) -> str:
    if "error" in answer:
        raise refusal(answer)
    if not isinstance(answer.get(name), str):
        raise SignInError(f"the authorization server gave no {name}")
    return str(answer[name])


def _seconds(answer: dict[str, Any], name: str, default: float) -> float:
    value = answer.get(name)
    return float(value) if isinstance(value, int | float) and value > 0 else default
