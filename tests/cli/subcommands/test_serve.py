"""`chatctx serve`: the page comes, the chat runs behind it, and nobody else's page gets in."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from email.message import Message
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import pytest

from tests.cli.conftest import Run, one_line
from tests.machine import free_port
from tui.cli.subcommands.serve import MAX_CHATS, allowed_origins, chat_command
from tui.providers.http.proxies import is_loopback

needs_extra = pytest.mark.skipif(
    importlib.util.find_spec("textual_serve") is None, reason='the extra "serve" is not installed'
)


@contextmanager
def serving(folder: Path, *args: str) -> Iterator[tuple[str, int]]:
    """A running `chatctx serve`: the address it printed, and its port."""
    port = free_port()
    (folder / "config.toml").touch()
    folders = {"CHATCTX_CONFIG": folder / "config.toml", "CHATCTX_DATA_DIR": folder, "CHATCTX_LOG_DIR": folder}
    process = subprocess.Popen(
        [sys.executable, "-m", "tui", "-m", "demo", "serve", "--port", str(port), *args],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, **{name: str(value) for name, value in folders.items()}},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        announcement = re.match(r"chatctx is at (\S+)", process.stdout.readline())
        assert announcement is not None
        yield announcement[1], port
    finally:
        process.terminate()
        process.wait(20)
        if process.stdout is not None:
            process.stdout.close()


class NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def fetch(url: str, **headers: str) -> tuple[int, str, Message]:
    """Status, body and headers; redirects are not followed."""
    try:
        with build_opener(NoRedirect).open(Request(url, headers=headers), timeout=20) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers


def folder_of(url: str) -> str:
    """The address without the secret."""
    return url.partition("/?")[0]


def cookie(url: str) -> str:
    """What a browser that opened the printed address sends from then on."""
    status, _, headers = fetch(url)
    assert status == 303
    return headers["Set-Cookie"].split(";")[0]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """One server for what only asks."""
    with serving(tmp_path_factory.mktemp("served")) as address:
        yield address


@pytest.mark.slow
@needs_extra
def test_the_page_comes_and_fetches_nothing_from_elsewhere(served: tuple[str, int]) -> None:
    url, port = served
    assert re.fullmatch(rf"http://127\.0\.0\.1:{port}/\S{{16}}/\?key=\S{{32}}", url)
    here, key = folder_of(url), cookie(url)
    status, page, _ = fetch(f"{here}/", Cookie=key)
    assert status == 200
    assert f"{here.replace('http', 'ws')}/ws" in page
    assert set(re.findall(r"(?:https?|wss?)://([^/\"]+)", page)) == {f"127.0.0.1:{port}"}
    assert fetch(f"{here}/static/js/textual.js", Cookie=key)[0] == 200


@pytest.mark.slow
@needs_extra
def test_without_the_secret_nobody_gets_in_on_this_machine_either(served: tuple[str, int]) -> None:
    url, port = served
    here = folder_of(url)
    assert fetch(f"http://127.0.0.1:{port}/")[0] == 403
    for path in ("/", "/?key=wrong", "/?key=", "/ws", "/static/js/textual.js", "/download/x"):
        assert fetch(here + path, Origin=f"http://127.0.0.1:{port}")[0] == 403, path
    assert fetch(f"{here}/", Cookie=f"chatctx-{port}=wrong")[0] == 403
    _, _, headers = fetch(url)
    assert {"HttpOnly", "SameSite=Strict", f"Path={urlsplit(here).path}/"} <= set(headers["Set-Cookie"].split("; "))
    assert headers["Location"] == "./"


@pytest.mark.slow
@needs_extra
def test_other_sites_are_refused(served: tuple[str, int]) -> None:
    url, port = served
    here, key = folder_of(url), cookie(url)
    assert fetch(url, Host="evil.example")[0] == 403
    assert fetch(f"{here}/ws", Origin="http://evil.example", Cookie=key)[0] == 403
    assert fetch(f"{here}/ws", Cookie=key)[0] == 403
    assert fetch(f"{here}/", Host=f"localhost:{port}", Cookie=key)[0] == 200


@pytest.mark.slow
@needs_extra
def test_no_page_may_frame_it(served: tuple[str, int]) -> None:
    url, port = served
    for address in (url, f"{folder_of(url)}/", f"{folder_of(url)}/none", f"http://127.0.0.1:{port}/"):
        headers = fetch(address, Cookie=cookie(url))[2]
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        assert headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.slow
@needs_extra
def test_behind_a_proxy_the_page_names_the_public_address(tmp_path: Path) -> None:
    with serving(tmp_path, "--public-url", "https://chat.example") as (url, port):
        assert re.match(r"https://chat\.example/\S{16}/\?key=\S{32}", url)
        here = f"http://127.0.0.1:{port}{urlsplit(url).path}"
        page = fetch(here, Cookie=cookie(f"{here}?{urlsplit(url).query}"))[1]
        assert f"wss://chat.example{urlsplit(url).path}ws" in page


@pytest.mark.slow
@needs_extra
async def test_the_chat_draws_itself_and_there_are_only_so_many(tmp_path: Path) -> None:
    aiohttp: Any = import_module("aiohttp")
    with serving(tmp_path) as (url, port):
        here = f"http://127.0.0.1:{port}"
        address = f"{folder_of(url).replace('http', 'ws')}/ws?width=100&height=30"
        headers = {"Cookie": await asyncio.to_thread(cookie, url)}
        async with (
            aiohttp.ClientSession(headers=headers) as client,
            AsyncExitStack() as open_chats,
            client.ws_connect(address, origin=here) as socket,
            asyncio.timeout(60),
        ):
            drawn = ""
            while "ask anything" not in drawn:
                message = await socket.receive()
                if message.type == aiohttp.WSMsgType.BINARY:
                    drawn += message.data.decode("utf-8", "replace")
            for _ in range(MAX_CHATS - 1):
                await open_chats.enter_async_context(client.ws_connect(address, origin=here))
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await client.ws_connect(address, origin=here)
            assert refused.value.status == 503


@pytest.mark.slow
@needs_extra
def test_a_taken_port_is_one_line(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("serve", "--port", str(taken.getsockname()[1]))
    assert "choose another with --port" in one_line(done.stderr)
    assert done.returncode == 1


@pytest.mark.skipif(importlib.util.find_spec("textual_serve") is not None, reason='the extra "serve" is installed')
def test_without_the_extra_it_says_what_to_install(run: Run) -> None:
    done = run("serve")
    assert "pip install 'chatctx[serve]'" in one_line(done.stderr)
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("host", "yes"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("127.evil.example", False)],
)
def test_who_can_reach_it(host: str, yes: bool) -> None:
    assert is_loopback(host) is yes


def test_our_own_pages_and_our_own_command() -> None:
    assert allowed_origins("https://chat.example/x", 8000) == {
        *("https://chat.example", "http://127.0.0.1:8000", "http://localhost:8000", "http://[::1]:8000"),
    }
    assert chat_command(model="a/b c", gguf=None, theme=None, resume="").endswith("-m tui --model 'a/b c' --continue")
    assert chat_command(model=None, gguf=None, theme=None, resume="01; rm").endswith("--resume '01; rm'")
