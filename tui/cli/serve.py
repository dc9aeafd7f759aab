"""`chatctx serve`: the chat in a browser, through textual-serve.

Every tab runs a chat with this person's keys and sessions. So only pages that came from here may open one: requests for
another host (a rebound name) and connections from other sites' pages are refused, and where other machines can reach
the address it takes the secret that is printed with it.
"""

from __future__ import annotations

import errno
import hmac
import secrets
import shlex
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tui.chat.store.store import UsageError
from tui.cli import FAILED, complain
from tui.cli.listing import write
from tui.config.settings import Settings
from tui.config.values import parse_url
from tui.providers.http.route import is_loopback

TEMPLATES = Path(__file__).parent / "web"  # textual-serve's own page fetches a font from elsewhere
COOKIE = "chatctx"
Handler = Callable[[Any], Awaitable[Any]]


def run(
    settings: Settings,
    *,
    host: str,
    port: int,
    public_url: str | None,
    resume: str | None,
    model: str | None,
    gguf: Path | None,
    theme: str | None,
) -> int:
    """Serve until interrupted. 1 where the extra is missing or the port is taken."""
    try:
        server_module = import_module("textual_serve.server")
    except ImportError:
        return complain("chatctx serve needs the extra \"serve\": pip install 'chatctx[serve]'", FAILED)
    web = import_module("aiohttp.web")
    url = public_url or f"http://{_bracketed(host)}:{port}"
    try:
        parse_url(url)
    except ValueError as error:
        raise UsageError(f"{'--public-url' if public_url else '--host'}: {error}") from None
    secret = "" if is_loopback(host) and not public_url else secrets.token_urlsafe(24)
    server = server_module.Server(
        chat_command(resume=resume, model=model, gguf=gguf, theme=theme),
        host,
        port,
        "chatctx",
        url.rstrip("/"),
        templates_path=TEMPLATES,
    )

    def announce(_running_on: str) -> None:
        """Said once the port is open."""
        key = f"/?key={secret}" if secret else ""
        write(f"chatctx is at {url.rstrip('/')}{key}   (Ctrl+C ends it)")
        sys.stdout.flush()

    async def silent(_app: object) -> None:
        """In place of textual-serve's banner."""

    async def application() -> Any:
        server.on_startup = silent
        app = await server._make_app()
        app.middlewares.append(_guard(web, allowed_origins(url, port), secret))
        return app

    try:
        web.run_app(application(), host=host, port=port, print=announce, access_log=None, shutdown_timeout=2)
    except OSError as error:
        other = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        reason = error.strerror or type(error).__name__
        return complain(f"{host}:{port} can't be used ({reason}); choose another with {other}", FAILED)
    return 0


def chat_command(*, resume: str | None, model: str | None, gguf: Path | None, theme: str | None) -> str:
    """The shell command of one chat, with what was given before `serve`."""
    words = [sys.executable, "-m", "tui"]
    for flag, value in (("--model", model), ("--gguf", gguf), ("--theme", theme)):
        if value is not None:
            words += [flag, str(value)]
    if resume is not None:
        words += ["--resume", resume] if resume else ["--continue"]
    return shlex.join(words)


def allowed_origins(url: str, port: int) -> frozenset[str]:
    """The origins of pages that are ours: the public address, and this machine's own names for it."""
    parts = urlsplit(url)
    local = {f"http://{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]")}
    return frozenset({f"{parts.scheme}://{parts.netloc}", *local})


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _guard(web: Any, origins: frozenset[str], secret: str) -> Any:
    """A middleware that lets in only what this module's first lines say."""
    hosts = {urlsplit(origin).netloc for origin in origins}

    async def guard(request: Any, handler: Handler) -> Any:
        origin = request.headers.get("Origin")
        if request.host not in hosts or (origin is not None and origin not in origins):
            raise web.HTTPForbidden(text="This address serves chatctx to its own pages only.\n")
        if request.path == "/ws" and origin is None:
            raise web.HTTPForbidden(text="A browser says where it comes from.\n")
        given = request.query.get("key", request.cookies.get(COOKIE, ""))
        if secret and not hmac.compare_digest(given.encode(), secret.encode()):
            raise web.HTTPForbidden(text="Open the whole address that chatctx serve printed.\n")
        response = await handler(request)
        if secret and "key" in request.query:
            response.set_cookie(COOKIE, secret, httponly=True, samesite="Strict")
        return response

    return web.middleware(guard)
