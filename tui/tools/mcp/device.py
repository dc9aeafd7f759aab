"""The OAuth device flow (RFC 8628), for machines without a browser.

Discovery and client registration are the SDK's; it does not implement this grant.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui.tools.mcp.config import Launch, ServerConfig
from tui.tools.mcp.sign_in import SignInError, TokenStore, check_page, refusal
from tui.tools.mcp.transport import http_options

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from mcp.client.auth.oauth2 import OAuthContext

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
        from mcp.shared.auth import OAuthToken

        context, endpoint = await _discovered(client, config, launch.url)
        if endpoint is None:
            self.code.set_result(None)
            self.done.set_result(None)
            return
        data = await asyncio.to_thread(store.read)
        await _register(client, context, config, launch, data)
        answer = await _posted(client, context, endpoint, {"scope": context.client_metadata.scope or ""})
        code = Code(_text(answer, "user_code")[:LONGEST_CODE], _text(answer, "verification_uri"))
        check_page(code.address)
        with contextlib.suppress(InvalidStateError):
            self.code.set_result(code)
        grant = {"grant_type": GRANT, "device_code": _text(answer, "device_code")}
        token = OAuthToken.model_validate(await self._polled(client, context, grant, answer))
        assert context.client_info is not None and context.oauth_metadata is not None
        context.update_token_expiry(token)
        stored = {
            "tokens": token.model_dump(mode="json", exclude_none=True),
            "client": context.client_info.model_dump(mode="json", exclude_none=True),
            "metadata": context.oauth_metadata.model_dump(mode="json", exclude_none=True),
            "expires_at": context.token_expiry_time,
        }
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


async def _discovered(client: AsyncClient, config: ServerConfig, url: str) -> tuple[OAuthContext, str | None]:
    """The authorization server's metadata, and its device authorization endpoint, None if it has none."""
    from mcp.client.auth import utils
    from mcp.client.auth.oauth2 import OAuthContext
    from mcp.shared.auth import OAuthClientMetadata
    from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url

    metadata = OAuthClientMetadata.model_validate(
        {
            "client_name": "chatctx",
            "redirect_uris": ["http://127.0.0.1/callback"],  # required, and not used
            "grant_types": [GRANT, "refresh_token"],
            "response_types": [],
        }
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
            if context.auth_server_url is not None:
                utils.validate_metadata_issuer(server, context.auth_server_url)
            context.oauth_metadata = server
            endpoint = response.json().get("device_authorization_endpoint")
            context.client_metadata.scope = (config.oauth.scope if config.oauth else "") or (
                utils.get_client_metadata_scopes(
                    utils.extract_scope_from_www_auth(refused),
                    context.protected_resource_metadata,
                    server,
                    metadata.grant_types,
                )
            )
            return context, endpoint if isinstance(endpoint, str) else None
    return context, None


async def _register(
    client: AsyncClient, context: OAuthContext, config: ServerConfig, launch: Launch, data: dict[str, Any]
) -> None:
    """Use the configured client, the one registered earlier, or register one."""
    from mcp.client.auth import utils
    from mcp.shared.auth import OAuthClientInformationFull

    earlier = data.get("client") or {}
    if config.oauth is not None and config.oauth.client_id:
        earlier = {"client_id": config.oauth.client_id, "client_secret": launch.client_secret or None}
    elif GRANT not in (earlier.get("grant_types") or ()):
        base = context.get_authorization_base_url(context.server_url)
        request = utils.create_client_registration_request(context.oauth_metadata, context.client_metadata, base)
        context.client_info = await utils.handle_registration_response(await client.send(request))
        return
    context.client_info = OAuthClientInformationFull.model_validate(earlier)


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
