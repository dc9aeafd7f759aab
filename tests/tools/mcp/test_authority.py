"""Signing in at an authorization server that others wrote, and that is not the MCP server itself."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")
pytest.importorskip("oauth2_provider")

from tests.machine import free_port
from tests.tools.mcp.guarded import serving
from tests.tools.mcp.mcp_running import START, call, until
from tests.tools.mcp.test_oauth import NEEDED, by_code, hub_for, stored
from tui.tools.base import ToolError
from tui.tools.mcp.hub import McpHub
from tui.tools.mcp.oauth import SignIn

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_keyring")]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address."""
    port, folder = free_port(), tmp_path_factory.mktemp("authority")
    program = Path(__file__).with_name("django_authority.py")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(program), str(port), str(folder)], stdout=subprocess.PIPE, stderr=log, text=True
        )
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "introspecting\n", (folder / "log").read_text()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


class Introspection:
    """What the MCP server knows of a token: what the authority says of it (RFC 7662)."""

    def __init__(self, authority: str) -> None:
        self.authority = authority

    async def verify_token(self, token: str) -> Any:
        import httpx2
        from mcp.server.auth.provider import AccessToken

        async with httpx2.AsyncClient(trust_env=False) as client:
            answer = await client.post(
                f"{self.authority}/introspect/",
                data={"token": token},
                headers={"Authorization": "Bearer introspecting"},
            )
        about = answer.json()
        if not about["active"]:
            return None
        audience = about.get("aud") or [None]
        return AccessToken(
            token=token, client_id=about["client_id"], scopes=about["scope"].split(), resource=audience[0]
        )


@asynccontextmanager
async def resource_server(authority: str) -> AsyncIterator[str]:
    """The address of an MCP server that wants tokens of `authority`, issued for it."""
    from mcp.server.auth.settings import AuthSettings
    from mcp.server.lowlevel import Server
    from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

    async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="whoami", input_schema={"type": "object"})])

    async def call_tool(_context: Any, _params: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text="you")])

    port = free_port()
    settings = AuthSettings.model_validate(
        {
            "issuer_url": authority,
            "resource_server_url": f"http://127.0.0.1:{port}/mcp",
            "required_scopes": ["use"],
            "validate_token_resource": True,
        }
    )
    server: Any = Server("resource", on_list_tools=list_tools, on_call_tool=call_tool)
    app = server.streamable_http_app(auth=settings, token_verifier=Introspection(authority))
    async with serving(app, port):
        yield f"http://127.0.0.1:{port}/mcp"


class Form(HTMLParser):
    """The fields of a page's form, as they are filled in."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "input" and named.get("type") != "submit" and (name := named.get("name")):
            self.fields[name] = named.get("value") or ""


class Browser:
    """A person's browser, with cookies; the person is Ada."""

    def __init__(self) -> None:
        import httpx2

        self.client = httpx2.AsyncClient(follow_redirects=True, trust_env=False)

    async def submit(self, page: Any, **fields: str) -> Any:
        return await self.client.post(str(page.url), data={**Form(page.text).fields, **fields})

    async def open(self, address: str) -> Any:
        """Open a page, past the log-in."""
        page = await self.client.get(address)
        if "password" in Form(page.text).fields:
            page = await self.submit(page, username="ada", password="enchantress")
        return page


async def signed_in(hub: McpHub, *, allow: bool = True) -> str:
    """Ada allows it, or doesn't. What the last page says."""
    attempt, browser = SignIn(), Browser()
    await hub.servers["g"].restart(attempt)
    async with browser.client:
        page = await browser.open((await asyncio.wrap_future(attempt.page)).address)
        assert "Authorize chatctx?" in page.text
        page = await browser.submit(page, **({"allow": "Authorize"} if allow else {}))
        await hub.wait_until_started(START)
        return str(page.text)


async def revoke(authority: str, data: dict[str, Any]) -> None:
    """Revoke what was stored, as its owner does at the authority (RFC 7009)."""
    import httpx2

    client = {name: data["client"][name] for name in ("client_id", "client_secret")}
    async with httpx2.AsyncClient(trust_env=False) as http:
        for kind in ("refresh_token", "access_token"):
            form = {**client, "token": data["tokens"][kind], "token_type_hint": kind}
            assert (await http.post(f"{authority}/revoke_token/", data=form)).status_code == 200


async def test_tokens_are_issued_used_renewed_and_asked_for_again_once_revoked(authority: str, tmp_path: Path) -> None:
    async with resource_server(authority) as url:
        async with hub_for(url, tmp_path) as hub:
            assert hub.servers["g"].status.reason == NEEDED
            assert "You are signed in" in await signed_in(hub)
            assert hub.servers["g"].status.state == "ready", hub.servers["g"].status.reason
            assert (await call(hub.servers["g"], "whoami")).text == "you"
        (file,) = stored(tmp_path)
        first = json.loads(file.read_text())
        file.write_text(json.dumps({**first, "expires_at": 1.0}))
        async with hub_for(url, tmp_path) as hub:  # the next run, long after
            assert hub.servers["g"].status.state == "ready", hub.servers["g"].status.reason
            second = json.loads(file.read_text())
            assert second["client"] == first["client"]
            assert second["tokens"]["access_token"] != first["tokens"]["access_token"]
            assert second["tokens"]["refresh_token"] != first["tokens"]["refresh_token"]
            await revoke(authority, second)
            with pytest.raises(ToolError, match="wants you to sign in: /mcp login g"):
                await call(hub.servers["g"], "whoami")
            await until(lambda: hub.servers["g"].status.reason == NEEDED)
            await signed_in(hub)  # with the client that is registered
            assert (await call(hub.servers["g"], "whoami")).text == "you"
            last = json.loads(file.read_text())
            assert last["client"] == first["client"]
            assert await hub.servers["g"].sign_out() == ""
            assert await Introspection(authority).verify_token(last["tokens"]["access_token"]) is None
            assert not stored(tmp_path)


async def test_a_person_who_says_no_is_not_signed_in(authority: str, tmp_path: Path) -> None:
    async with resource_server(authority) as url, hub_for(url, tmp_path) as hub:
        assert "did not work" in await signed_in(hub, allow=False)
        assert hub.servers["g"].status.reason == "signing in did not work: it was refused: access_denied"


async def test_a_code_is_entered_in_a_browser_elsewhere(authority: str, tmp_path: Path) -> None:
    async with resource_server(authority) as url, hub_for(url, tmp_path) as hub:
        attempt, browser = await by_code(hub), Browser()
        code = await asyncio.wrap_future(attempt.page)
        assert code.address == f"{authority}/device/"
        async with browser.client:
            page = await browser.submit(await browser.open(code.address), user_code=code.code)
            assert re.search(r"[Aa]ccept", page.text)
            await browser.submit(page, action="accept")
        await hub.wait_until_started(START)
        assert (await call(hub.servers["g"], "whoami")).text == "you"
        await signed_in(hub)  # in the browser: the client registered for codes is not registered for that
        assert (await call(hub.servers["g"], "whoami")).text == "you"
