"""Pages of strangers in a real browser that has the chat open: no frame, no connection, no rebound name, no cookie."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.subcommands.test_serve import serving
from tests.e2e.test_browser import Page, browsing, page_at, program

__all__ = ["program"]  # a fixture
pytestmark = [pytest.mark.slow, pytest.mark.real, pytest.mark.timeout(180)]

ATTACK = """<body><script>
const victim = location.hash.slice(1), done = {};
const frame = document.createElement("iframe");
frame.src = victim;
document.body.append(frame);
const socket = new WebSocket(victim.replace("http", "ws") + "ws?width=80&height=24");
socket.onopen = () => { done.socket = "open" };
socket.onerror = () => { done.socket = "refused" };
fetch(victim, {credentials: "include"}).then(() => { done.read = "read" }, () => { done.read = "refused" });
fetch(victim, {credentials: "include", mode: "no-cors"}).finally(() => { done.sent = true });
</script>"""


@contextmanager
def stranger() -> Iterator[tuple[int, list[str]]]:
    """A server of somebody else: its port, and the headers of what it was asked."""
    headers: list[str] = []

    class Stranger(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers.append(str(self.headers))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(ATTACK.encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, headers
    finally:
        server.shutdown()
        server.server_close()


async def go(page: Page, url: str) -> None:
    await page.call("Page.navigate", url="about:blank")
    await page.call("Page.navigate", url=url)
    await page.until("location.href !== 'about:blank' && document.readyState === 'complete'")


async def test_no_page_of_a_stranger_gets_into_the_chat(program: str, tmp_path: Path) -> None:
    rules = "--host-resolver-rules=MAP *.example 127.0.0.1"
    with (
        serving(tmp_path) as (url, port),
        stranger() as (other, visits),
        browsing(program, url, tmp_path, rules) as tool,
    ):
        async with page_at(tool) as page:
            await page.until("document.querySelector('.xterm-helper-textarea') !== null")
            here = await page.value("location.href")
            for host in ("127.0.0.1", "evil.example"):
                await go(page, f"http://{host}:{other}/#{here}")
                await page.until("Boolean(done.socket && done.read && done.sent)")
                assert await page.value("JSON.stringify([done.socket, done.read])") == '["refused","refused"]'
                frames = (await page.call("Page.getFrameTree"))["frameTree"].get("childFrames", [])  # of this process
                assert all(frame["frame"]["url"] == "chrome-error://chromewebdata/" for frame in frames)
            await go(page, f"http://evil.example:{port}/")
            assert "its own pages only" in await page.value("document.body.textContent")
            await go(page, here)
            await page.until("document.querySelector('.xterm-helper-textarea') !== null")  # it still works
    assert len(visits) >= 2
    assert not [headers for headers in visits if "chatctx" in headers]
