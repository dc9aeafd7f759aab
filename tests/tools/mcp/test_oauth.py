"""Signing in to a remote server by OAuth, against the SDK's own authorization server on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import stat
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp.client.auth import AuthorizationCodeResult
from mcp.shared.auth import OAuthClientInformationFull

from tests.machine import free_port
from tests.tools.mcp.guarded import Authority, Devices, browse, guarded_server, last_address
from tests.tools.mcp.mcp_running import START, call, until
from tui.providers.keys import redact
from tui.tools.base import ToolError
from tui.tools.mcp.config import ServerConfig, servers_of_json
from tui.tools.mcp.hub import McpHub
from tui.tools.mcp.oauth import SignIn, SignInError, SignInPage, TokenStore, read_callback

pytestmark = pytest.mark.usefixtures("no_keyring")


def stored(folder: Path) -> list[Path]:
    """The files of sign-ins."""
    return list(folder.glob("*.json"))


NEEDED = "it wants you to sign in: /mcp login g"
SECRET = "a-secret-of-the-client"


@asynccontextmanager
async def hub_for(url: str, folder: Path, **config: Any) -> AsyncIterator[McpHub]:
    """The program's servers, of which "g" is there."""
    hub = McpHub(lambda _name: None, None, folder)
    (server,) = servers_of_json(json.dumps({"mcpServers": {"g": {"url": url, **config}}}), "f")
    hub.add(server)
    await hub.start()
    await hub.wait_until_started(START)
    try:
        yield hub
    finally:
        await hub.close()


async def signed_in(hub: McpHub) -> tuple[int, str]:
    """Let a browser on this machine do it. What it shows in the end."""
    attempt = SignIn()
    await hub.servers["g"].restart(attempt)
    status, text, _ = await browse((await asyncio.wrap_future(attempt.page)).address)
    await hub.wait_until_started(START)
    return status, text


@pytest.mark.slow
async def test_a_person_signs_in_once_and_the_tokens_serve_the_next_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    authority = Authority()
    async with guarded_server(authority) as url:
        async with hub_for(url, tmp_path) as hub:
            server = hub.servers["g"]
            assert (server.status.state, server.status.reason) == ("failed", NEEDED)
            assert authority.clients == {}  # nothing was registered before the person wanted it
            status, text = await signed_in(hub)
            assert status == 200 and "You are signed in" in text
            assert server.status.state == "ready"
            assert (await call(server, "whoami")).text == "you"
        (file,) = stored(tmp_path)
        assert os.name == "nt" or stat.S_IMODE(file.stat().st_mode) == 0o600
        async with hub_for(url, tmp_path) as hub:  # the next run
            assert hub.servers["g"].status.state == "ready", hub.servers["g"].status.reason
            assert len(authority.clients) == 1
            secrets = [*authority.access, *authority.refresh]
            assert len(secrets) == 2
            assert await hub.servers["g"].sign_out() == ""
            assert (authority.access, authority.refresh) == ({}, {})  # revoked
            await until(lambda: hub.servers["g"].status.reason == NEEDED)
            assert await hub.servers["g"].sign_out() is None
        assert not stored(tmp_path)
    for secret in secrets:
        assert secret not in caplog.text
        assert redact(f"{secret}") == "[key]"


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [("", "no place for that"), ("503", "answered 503"), ("hang", "in time"), ("gone", "the server did not answer")],
)
async def test_tokens_that_can_not_be_revoked_are_forgotten_all_the_same(
    endpoint: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if endpoint == "503":
            writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
        await reader.read()
        writer.close()

    if endpoint == "hang":
        monkeypatch.setattr("tui.tools.mcp.authorization.REVOKE_WAIT", 0.05)
    web = await asyncio.start_server(answer, "127.0.0.1", 0)
    origin = f"http://127.0.0.1:{web.sockets[0].getsockname()[1] if endpoint != 'gone' else free_port()}"
    metadata = {"issuer": origin, "authorization_endpoint": f"{origin}/a", "token_endpoint": f"{origin}/t"}
    metadata |= {"revocation_endpoint": f"{origin}/revoke"} if endpoint else {}
    hub = McpHub(lambda _name: None, None, tmp_path)
    (config,) = servers_of_json(json.dumps({"mcpServers": {"g": {"url": f"{origin}/mcp"}}}), "f")
    server = hub.add(config, on=False)
    tokens = {"access_token": "an-access-token", "token_type": "Bearer"}
    client = {"client_id": "c", "redirect_uris": ["http://127.0.0.1/callback"]}
    TokenStore(tmp_path, config.url).write({"tokens": tokens, "metadata": metadata, "client": client})
    async with web:
        problem = await server.sign_out()
        assert server.status.state == "off"  # as it was
        await hub.close()
    assert problem is not None and why in problem
    assert not stored(tmp_path)


@pytest.mark.slow
async def test_tokens_that_have_expired_are_renewed_without_the_person(tmp_path: Path) -> None:
    authority = Authority()
    async with guarded_server(authority) as url:
        async with hub_for(url, tmp_path) as hub:
            await signed_in(hub)
        (file,) = stored(tmp_path)
        data = json.loads(file.read_text())
        file.write_text(json.dumps({**data, "expires_at": 1.0}))
        authority.access.clear()
        async with hub_for(url, tmp_path) as hub:
            assert hub.servers["g"].status.state == "ready", hub.servers["g"].status.reason
        assert authority.refreshed == 1
        file.write_text(json.dumps({**data, "expires_at": 1.0}))
        authority.refresh.clear()
        authority.access.clear()
        async with hub_for(url, tmp_path) as hub:
            assert hub.servers["g"].status.reason == NEEDED


@pytest.mark.slow
async def test_a_token_that_is_refused_before_its_end_is_renewed_while_that_is_possible(tmp_path: Path) -> None:
    authority = Authority()
    async with guarded_server(authority) as url, hub_for(url, tmp_path) as hub:
        await signed_in(hub)
        server = hub.servers["g"]
        authority.access.clear()
        assert (await call(server, "whoami")).text == "you"
        assert authority.refreshed == 1
        authority.access.clear()
        authority.refresh.clear()
        with pytest.raises(ToolError, match="was not run by the server g: it wants you to sign in"):
            await call(server, "whoami")
        await until(lambda: server.status.state == "failed")
        assert server.status.reason == NEEDED


def registered(authority: Authority, method: str, port: int) -> dict[str, Any]:
    """A client that its owner registered by hand: the `oauth` table for it."""
    authority.clients["me"] = OAuthClientInformationFull.model_validate(
        {
            "client_id": "me",
            "client_secret": SECRET,
            "token_endpoint_auth_method": method,
            "redirect_uris": [f"http://127.0.0.1:{port}/callback"],
            "scope": "use more",
        }
    )
    return {"clientId": "me", "clientSecret": "${CLIENT_SECRET}", "scope": "use more", "callbackPort": port}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_configured_client_signs_in_with_its_secret_and_scope(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setenv("CLIENT_SECRET", SECRET)
    authority = Authority()
    oauth = registered(authority, method, free_port())
    async with guarded_server(authority, auth_methods=[method]) as url:
        async with hub_for(url, tmp_path, oauth=oauth) as hub:
            await signed_in(hub)
            assert hub.servers["g"].status.state == "ready", hub.servers["g"].status.reason
        assert list(authority.clients) == ["me"]
        assert [token.scopes for token in authority.access.values()] == [["use", "more"]]
        (file,) = stored(tmp_path)
        assert SECRET not in file.read_text()
        file.write_text(json.dumps({**json.loads(file.read_text()), "expires_at": 1.0}))
        async with hub_for(url, tmp_path, oauth=oauth) as hub:  # the next run renews the tokens
            assert hub.servers["g"].status.state == "ready", hub.servers["g"].status.reason
        assert authority.refreshed == 1


@pytest.mark.slow
async def test_a_token_without_an_end_serves_the_next_run(tmp_path: Path) -> None:
    authority = Authority(lifetime=None)
    async with guarded_server(authority) as url:
        async with hub_for(url, tmp_path) as hub:
            await signed_in(hub)
        (file,) = stored(tmp_path)
        assert "refresh_token" not in json.loads(file.read_text())["tokens"]
        async with hub_for(url, tmp_path) as hub:
            assert hub.servers["g"].status.state == "ready", hub.servers["g"].status.reason


@pytest.mark.slow
async def test_a_browser_on_another_machine_gives_the_address_that_it_ended_at(tmp_path: Path) -> None:
    async with guarded_server(Authority()) as url, hub_for(url, tmp_path) as hub:
        attempt = SignIn()
        await hub.servers["g"].restart(attempt)
        address = (await asyncio.wrap_future(attempt.page)).address
        with pytest.raises(SignInError, match="no code in it"):
            attempt.paste("http://127.0.0.1/")
        attempt.paste(f"  {await last_address(address)}\n")
        await hub.wait_until_started(START)
        assert hub.servers["g"].status.state == "ready", hub.servers["g"].status.reason


async def by_code(hub: McpHub) -> SignIn:
    """An attempt on another device, under way."""
    attempt = SignIn(by_code=True)
    await hub.servers["g"].restart(attempt)
    return attempt


@pytest.mark.slow
async def test_a_code_is_entered_on_another_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.tools.mcp.authorization.INTERVAL", 0.01)
    authority = Authority()
    devices = Devices(authority)
    devices.first = "slow_down"
    async with guarded_server(authority, devices) as url:
        async with hub_for(url, tmp_path) as hub:
            attempt = await by_code(hub)
            page = await asyncio.wrap_future(attempt.page)
            assert page == SignInPage(url.replace("/mcp", "/activate"), "WDJB-MJHT")
            await until(lambda: len(devices.token_answers) >= 2)
            assert devices.token_answers[:2] == ["slow_down", "authorization_pending"]
            devices.entered = True
            await asyncio.wrap_future(attempt.done)
            await hub.wait_until_started(START)
            assert (await call(hub.servers["g"], "whoami")).text == "you"
        (file,) = stored(tmp_path)
        file.write_text(json.dumps({**json.loads(file.read_text()), "expires_at": 1.0}))
        async with hub_for(url, tmp_path) as hub:  # the next run renews them at the same place
            assert hub.servers["g"].status.state == "ready", hub.servers["g"].status.reason
        assert devices.token_answers[-1] == "refresh_token"


@pytest.mark.slow
async def test_a_code_is_waited_for_beyond_the_limits_for_an_answer_s_time_and_redirects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 1.0)
    authority = Authority()
    devices = Devices(authority)
    async with guarded_server(authority, devices) as url, hub_for(url, tmp_path) as hub:
        attempt = await by_code(hub)
        await asyncio.wrap_future(attempt.page)
        began = time.monotonic()
        await until(lambda: len(devices.token_answers) > 25 and time.monotonic() > began + 1.2)
        devices.entered = True
        await hub.wait_until_started(START)
        assert hub.servers["g"].status.state == "ready", hub.servers["g"].status.reason


@pytest.mark.slow
@pytest.mark.parametrize("given_up", [True, False])
async def test_a_code_that_is_refused_or_given_up_stores_no_tokens(tmp_path: Path, *, given_up: bool) -> None:
    authority = Authority()
    devices = Devices(authority)
    async with guarded_server(authority, devices) as url, hub_for(url, tmp_path) as hub:
        attempt = await by_code(hub)
        await asyncio.wrap_future(attempt.page)
        if given_up:
            attempt.give_up()
        else:
            authority.refuses = True
        await until(lambda: hub.servers["g"].status.state == "failed")
        why = "it was cancelled" if given_up else "it was refused: access_denied"
        assert hub.servers["g"].status.reason == f"signing in did not work: {why}"
    (file,) = stored(tmp_path)
    assert "tokens" not in json.loads(file.read_text())


@pytest.mark.slow
async def test_no_code_comes_from_an_authorization_server_that_says_it_is_another(tmp_path: Path) -> None:
    authority = Authority()
    devices = Devices(authority)
    devices.issuer = "https://authority.example"
    async with guarded_server(authority, devices) as url, hub_for(url, tmp_path) as hub:
        attempt = await by_code(hub)
        await until(lambda: hub.servers["g"].status.state == "failed")
        assert "issuer mismatch" in hub.servers["g"].status.reason
        assert not attempt.page.done()
    assert authority.clients == {}


@pytest.mark.slow
async def test_without_codes_on_the_server_a_browser_elsewhere_signs_in(tmp_path: Path) -> None:
    async with guarded_server(Authority()) as url, hub_for(url, tmp_path) as hub:
        page = await asyncio.wrap_future((await by_code(hub)).page)
        assert page.code == ""
        assert (await browse(page.address))[0] == 200
        await hub.wait_until_started(START)
        assert hub.servers["g"].status.state == "ready", hub.servers["g"].status.reason


@pytest.mark.slow
async def test_a_refusal_is_said_and_leaves_nothing_behind(tmp_path: Path) -> None:
    authority = Authority()
    authority.refuses = True
    async with guarded_server(authority) as url, hub_for(url, tmp_path) as hub:
        _, text = await signed_in(hub)
        assert "did not work" in text
        status = hub.servers["g"].status
        assert (status.state, status.reason) == ("failed", "signing in did not work: it was refused: access_denied")


@pytest.mark.slow
async def test_a_server_with_a_header_of_its_own_is_not_signed_in_to(tmp_path: Path) -> None:
    async with guarded_server(Authority()) as url, hub_for(url, tmp_path, headers={"Authorization": "Bearer x"}) as hub:
        assert hub.servers["g"].status.reason.startswith("it answered 401 Unauthorized; check headers")


@pytest.mark.parametrize(
    ("address", "code", "issuer"),
    [
        ("/callback?code=a&state=b", "a", None),
        ("http://127.0.0.1:7/callback?code=a%2Bb&state=b&iss=https%3A%2F%2Fx", "a+b", "https://x"),
    ],
)
def test_the_address_of_the_last_page_has_the_answer(address: str, code: str, issuer: str | None) -> None:
    assert read_callback(address, "b") == AuthorizationCodeResult(code=code, state="b", iss=issuer)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("/callback?error=access_denied&error_description=You+said+no&state=b", "it was refused: You said no"),
        ("/callback?state=b", "no code in it"),
        ("", "no code in it"),
        ("/callback?code=a&state=c", "another sign-in"),
        ("/callback?code=a", "another sign-in"),
        ("/callback?error=access_denied", "another sign-in"),
    ],
)
def test_an_address_without_an_answer_says_why(address: str, why: str) -> None:
    with pytest.raises(SignInError, match=why):
        read_callback(address, "b")


class Keyring:
    """A keyring that holds what it is given, or none."""

    def __init__(self, *, works: bool = True) -> None:
        self.works = works
        self.secrets: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, name: str) -> str | None:
        if not self.works:
            raise RuntimeError("locked")
        return self.secrets.get((service, name))

    def set_password(self, service: str, name: str, text: str) -> object:
        if not self.works:
            raise RuntimeError("locked")
        self.secrets[service, name] = text
        return "stored"  # `keyring` gives it no meaning

    def delete_password(self, service: str, name: str) -> None:
        del self.secrets[service, name]


@pytest.mark.parametrize("works", [True, False])
def test_tokens_are_in_the_keyring_where_there_is_one_else_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, works: bool
) -> None:
    keyring = Keyring(works=works)
    monkeypatch.setattr("tui.tools.mcp.oauth._keyring", lambda: keyring)
    store = TokenStore(tmp_path / "sign-in", "https://x.example/mcp")
    assert store.read() == {}
    store.write({"tokens": {"access_token": "secret-secret"}})
    assert store.read() == {"tokens": {"access_token": "secret-secret"}}
    assert len(keyring.secrets) == works
    assert len(list(tmp_path.glob("sign-in/*"))) == (not works)
    assert TokenStore(tmp_path / "sign-in", "https://y.example/mcp").read() == {}
    store.forget()
    assert store.read() == {}
    store.forget()  # a second time


def test_tokens_that_a_keyring_did_not_take_are_newer_than_those_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyring = Keyring()
    monkeypatch.setattr("tui.tools.mcp.oauth._keyring", lambda: keyring)
    store = TokenStore(tmp_path, "https://x.example/mcp")
    store.write({"tokens": {"access_token": "first-first"}})
    keyring.works = False  # locked
    store.write({"tokens": {"access_token": "second-second"}})
    keyring.works = True
    assert store.read() == {"tokens": {"access_token": "second-second"}}
    store.write(store.read())
    assert list(tmp_path.glob("*")) == []
    assert store.read() == {"tokens": {"access_token": "second-second"}}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff"])
def test_a_damaged_file_is_no_sign_in(tmp_path: Path, content: bytes) -> None:
    store = TokenStore(tmp_path, "https://x.example/mcp")
    store.write({})
    (file,) = tmp_path.glob("*.json")
    file.write_bytes(content)
    assert store.read() == {}


async def test_the_callback_answers_nobody_else() -> None:
    attempt = SignIn()
    await attempt.redirect("https://authority.example/authorize?state=%3Cb%3E")
    async with attempt.listening(0) as address:
        for path in (
            "/",
            "/callbackx?code=a&state=%3Cb%3E",
            "/favicon.ico",
            "/callback?code=evil&state=c",
            "/callback",
        ):
            status, _, _ = await browse(address.replace("/callback", path))
            assert status == 404
        assert not attempt.done.done()
        assert (await browse(f"{address}?code=a&state=%3Cb%3E"))[0] == 200
        assert attempt.done.result() == AuthorizationCodeResult(code="a", state="<b>")


def config(**more: Any) -> ServerConfig:
    (server,) = servers_of_json(json.dumps({"mcpServers": {"g": {"url": "https://x.example/mcp", **more}}}), "f")
    return server


def test_what_can_be_set_for_it() -> None:
    assert config().oauth is not None
    assert config(oauth=False).oauth is None
    assert config(headers={"authorization": "Bearer x"}).oauth is None
    table = {"clientId": "me", "clientSecret": "${S}", "scopes": ["a", "b"], "callbackPort": 7777}
    server = config(oauth=table)
    assert server.oauth is not None
    assert (server.oauth.client_id, server.oauth.scope, server.oauth.port) == ("me", "a b", 7777)
    filled = server.filled({"S": "hunter2-hunter2"})
    assert "hunter2-hunter2" in filled.secrets
    assert "hunter2" not in repr(filled) + repr(server)
    assert "callbackPort has to be a port" in config(oauth={"callbackPort": 99999}).error
    assert "has to be false, or a table" in config(oauth="yes").error
