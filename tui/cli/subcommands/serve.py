"""`chatctx serve`: the chat in a browser, through textual-serve.

Every tab runs a chat with this person's keys and sessions. So the printed address contains a secret, which becomes a
cookie: without it access is denied, even on this machine, where every user can reach the port. Browsers send cookies to
every port of a host, so the cookie is limited to a path that no other server can guess. Requests for another host (DNS
rebinding) and connections from other sites' pages and frames are refused, and the number of chats is limited.
"""

from __future__ import annotations

import errno
import hmac
import os
import secrets
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tui.cli import FAILED, complain, write
from tui.commands import RESTRICTED
from tui.config.settings import Settings
from tui.config.values import parse_url
from tui.errors import UsageError
from tui.providers.http.proxies import is_loopback

TEMPLATES = Path(__file__).parent / "web"  # textual-serve's own page fetches a font from elsewhere
MAX_CHATS = 8  # open at the same time: each is a process
HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
Handler = Callable[[Any], Awaitable[Any]]


def run(
    settings: Settings,
    *,
    host: str,
    port: int,
    public_url: str | None,
    unrestricted: bool,
    **chat_options: Any,
) -> int:
    """Serve until interrupted, with `chat_command` for each chat. Returns 1 without the extra, or for a used port."""
    try:
        server_module = import_module("textual_serve.server")
    except ImportError:
        return complain("chatctx serve needs the extra \"serve\": pip install 'chatctx[serve]'", FAILED)
    web = import_module("aiohttp.web")
    name = _reachable(host)
    url = public_url or f"http://{f'[{name}]' if ':' in name else name}:{port}"
    try:
        parse_url(url)
    except ValueError as error:
        raise UsageError(f"{'--public-url' if public_url else '--host'}: {error}") from None
    secret, folder = secrets.token_urlsafe(24), f"/{secrets.token_urlsafe(12)}"
    url = url.rstrip("/")
    if not unrestricted:
        os.environ[RESTRICTED] = "1"
    server = server_module.Server(
        chat_command(**chat_options),
        host,
        port,
        "chatctx",
        url,
        templates_path=TEMPLATES,
    )

    def announce(_running_on: str) -> None:
        """Called once the port is open."""
        write(f"chatctx is at {url}{folder}/?key={secret}   (Ctrl+C ends it)")
        if public_url or not is_loopback(host):
            write("Anyone who has this address can use your keys and sessions; http is not encrypted.")
        sys.stdout.flush()

    async def silent(_app: object) -> None:
        """Replaces textual-serve's banner."""

    async def application() -> Any:
        server.on_startup = silent
        chat = await server._make_app()
        path = urlsplit(url).path + folder
        app = web.Application(middlewares=[_guard(web, secret, f"chatctx-{port}", path, allowed_origins(url, port))])
        app.add_subapp(folder, chat)
        app.on_response_prepare.append(_harden)
        return app

    try:
        web.run_app(application(), host=host, port=port, print=announce, access_log=None, shutdown_timeout=2)
    except OSError as error:
        other = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        reason = error.strerror or type(error).__name__
        return complain(f"{host}:{port} can't be used ({reason}); choose another with {other}", FAILED)
    return 0


def chat_command(*, resume: str | None, model: str | None, gguf: Path | None, theme: str | None) -> str:
    """The shell command for one chat, with the options given before `serve`."""
    words = [sys.executable, "-m", "tui"]
    for flag, value in (("--model", model), ("--gguf", gguf), ("--theme", theme)):
        if value is not None:
            words += [flag, str(value)]
    if resume is not None:
        words += ["--resume", resume] if resume else ["--continue"]
    return shlex.join(words)


def allowed_origins(url: str, port: int) -> frozenset[str]:
    """The origins of our own pages: the public address, and this machine's names for it."""
    parts = urlsplit(url)
    local = {f"http://{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]")}
    return frozenset({f"{parts.scheme}://{parts.netloc}", *local})


def _reachable(host: str) -> str:
    """The address to print for `host`: this machine's in its network if it listens at every address."""
    if host not in ("0.0.0.0", "::"):
        return host
    family, elsewhere = (socket.AF_INET, "192.0.2.1") if host == "0.0.0.0" else (socket.AF_INET6, "2001:db8::1")
    with socket.socket(family, socket.SOCK_DGRAM) as probe:  # for documentation only (RFC 5737): nothing is sent
        try:
            probe.connect((elsewhere, 9))
        except OSError:
            return "127.0.0.1" if host == "0.0.0.0" else "::1"
        return str(probe.getsockname()[0])


async def _harden(_request: Any, response: Any) -> None:
    """No other page may frame this one or learn its address."""
    response.headers.update(HEADERS)


def _guard(web: Any, secret: str, cookie: str, path: str, origins: frozenset[str]) -> Any:
    """A middleware that refuses other hosts and other origins' pages, requires the secret, and limits the chats.

    The cookie is for what is below `path`.
    """
    hosts = {urlsplit(origin).netloc for origin in origins}
    chats = 0

    async def guard(request: Any, handler: Handler) -> Any:
        nonlocal chats
        origin, opens_chat = request.headers.get("Origin"), request.path.endswith("/ws")
        if request.host not in hosts or (origin is not None and origin not in origins):
            raise web.HTTPForbidden(text="This address serves chatctx to its own pages only.\n")
        if opens_chat and origin is None:
            raise web.HTTPForbidden(text="The Origin header is missing.\n")
        key = request.query.get("key")
        if not hmac.compare_digest((key or request.cookies.get(cookie, "")).encode(), secret.encode()):
            raise web.HTTPForbidden(text="Open the whole address that chatctx serve printed.\n")
        if key is not None:  # keep it out of the address bar and the history
            response = web.HTTPSeeOther("./")
            response.set_cookie(cookie, secret, path=f"{path}/", httponly=True, samesite="Strict")
            raise response
        if not opens_chat:
            return await handler(request)
        if chats >= MAX_CHATS:
            raise web.HTTPServiceUnavailable(text=f"{MAX_CHATS} chats are open: close one first.\n")
        chats += 1
        try:
            return await handler(request)
        finally:
            chats -= 1

    return web.middleware(guard)
