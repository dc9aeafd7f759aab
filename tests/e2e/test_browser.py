"""`chatctx serve` in a real browser: typed into, answered, drawn. The browser is driven over its debugging port."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.cli.subcommands.test_serve import serving
from tests.corpus import required
from tests.machine import free_port
from tui.chat.store.store import SessionStore

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture
def program() -> str:
    if find_spec("textual_serve") is None:
        required('the extra "serve" is not installed')
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        required(f"no browser found: {', '.join(BROWSERS)}")
    return browser


@contextmanager
def browsing(program: str, url: str, folder: Path, *options: str) -> Iterator[int]:
    """A browser of its own at `url`: its debugging port."""
    port = free_port()
    process = subprocess.Popen(
        [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'browser'}",
         "--window-size=1100,700", f"--remote-debugging-port={port}", *options, url],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield port
    finally:
        process.terminate()
        process.wait(20)


class Page:
    """A page of the browser, by the Chrome DevTools Protocol."""

    def __init__(self, socket: Any) -> None:
        self._socket, self._number = socket, 0

    async def call(self, method: str, **values: object) -> dict[str, Any]:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": values})
        while True:
            answer: dict[str, Any] = await self._socket.receive_json()
            if answer.get("id") == self._number:
                return dict(answer["result"])

    async def value(self, expression: str) -> Any:
        answer = await self.call("Runtime.evaluate", expression=expression)
        return answer["result"].get("value")

    async def until(self, expression: str) -> None:
        for _ in range(600):
            if await self.value(expression):
                return
            await asyncio.sleep(0.2)
        raise AssertionError(f"never: {expression}")

    async def type(self, text: str) -> None:
        for letter in text:
            await self.call("Input.dispatchKeyEvent", type="keyDown", key=letter, text=letter)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=letter)
        enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
        await self.call("Input.dispatchKeyEvent", type="keyDown", text="\r", **enter)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **enter)


@asynccontextmanager
async def page_at(port: int) -> AsyncIterator[Page]:
    """The page of the browser whose debugging port this is."""
    aiohttp: Any = import_module("aiohttp")
    async with aiohttp.ClientSession() as client, asyncio.timeout(120):
        target = None
        for _ in range(300):
            try:
                async with client.get(f"http://127.0.0.1:{port}/json") as answer:
                    target = next((p["webSocketDebuggerUrl"] for p in await answer.json() if p["type"] == "page"), None)
            except aiohttp.ClientError:
                target = None
            if target is not None:
                break
            await asyncio.sleep(0.2)
        async with client.ws_connect(target, max_msg_size=0) as socket:
            yield Page(socket)


def messages(folder: Path, title: str) -> list[int]:
    """How many messages each session of that title has."""
    store = SessionStore(folder / "chatctx.db")
    try:
        return [info.messages for info in store.sessions(title)]
    finally:
        store.close()


async def test_a_conversation_in_a_browser(program: str, tmp_path: Path) -> None:
    with serving(tmp_path) as (url, port), browsing(program, url, tmp_path) as debugging:
        async with page_at(debugging) as page:
            await page.until("document.body && document.body.classList.contains('-first-byte')")
            await page.until("document.querySelector('.xterm-helper-textarea') !== null")
            await page.value("document.querySelector('.xterm-helper-textarea').focus()")
            hosts = "performance.getEntriesByType('resource').map(entry => new URL(entry.name).host)"
            assert set(json.loads(await page.value(f"JSON.stringify({hosts})"))) == {f"127.0.0.1:{port}"}
            await page.type("hello browser")
            for _ in range(300):
                if messages(tmp_path, "hello browser") == [2]:
                    break
                await asyncio.sleep(0.2)
            assert messages(tmp_path, "hello browser") == [2]
            assert len((await page.call("Page.captureScreenshot", format="png"))["data"]) > 10_000
