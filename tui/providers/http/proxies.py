"""Options of HTTP clients: proxies and certificates that the environment names, and limits for answers."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tui.providers.keys import one_line

if TYPE_CHECKING:
    import ssl

CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
"""Variables that name certificates."""


def client_options(url: str, limit: int) -> dict[str, Any]:
    """Options of an HTTP client for the server at `url`, with answers of at most `limit` bytes.

    Proxies (not for this machine) and certificates come from the environment. Redirects to another server are not
    followed (`bounds.RedirectError`). Raises OSError if certificates can't be loaded.
    """
    import httpx2

    from tui.providers.http.bounds import BoundedTransport, check_redirect

    home = httpx2.URL(url)

    transport = BoundedTransport(
        limit,
        trust_env=False,  # the HTTP library reads fewer variables, and NO_PROXY only in part
        proxy=_proxy(url) or None,
        verify=_ssl_context() if home.scheme == "https" else False,
    )
    return {"trust_env": False, "transport": transport, "event_hooks": {"request": [partial(check_redirect, home)]}}


def _ssl_context() -> ssl.SSLContext:
    """Certificates named by the environment: instead of the default ones, or (NODE_EXTRA_CA_CERTS) in addition.

    Raises OSError for a file that is missing or has none.
    """
    import ssl

    import httpx2

    context = httpx2.create_ssl_context(trust_env=True)  # SSL_CERT_FILE, SSL_CERT_DIR
    bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    if bundle and not (os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")):
        folder = Path(bundle).is_dir()
        context = ssl.create_default_context(cafile=None if folder else bundle, capath=bundle if folder else None)
    if extra := os.environ.get("NODE_EXTRA_CA_CERTS"):
        context.load_verify_locations(cafile=extra)
    return context


def proxy_for(url: str) -> str:
    """The proxy set in the environment for `url`, without user and password, whatever is in them; "" for none."""
    scheme, separator, place = _proxy(url).partition("://")
    _, user, host = place.rpartition("@")
    return one_line(f"{scheme}{separator}{'[key]@' if user else ''}{host}", 100)


def _proxy(url: str) -> str:
    from urllib.request import getproxies, proxy_bypass

    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy or is_loopback((parts.hostname or "").lower()):
        return ""
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    excepted = proxies.get("no")  # set: the system's own exceptions (macOS, Windows) don't count
    if proxy_bypass(parts.netloc) if excepted is None else bypasses_proxy(parts.hostname or "", port, excepted):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bypasses_proxy(host: str, port: int | None, no_proxy: str) -> bool:
    """Whether `no_proxy` exempts `host` (a name or an address, without brackets) from the proxy.

    Entries are separated by commas or blanks: "*", a host including all hosts below it, with or without a leading dot,
    a pattern with `*`, an address or a network ("10.0.0.0/8"), each with or without a port.
    """
    return any(_excepts(entry, host.lower().rstrip("."), port) for entry in re.split(r"[\s,]+", no_proxy.lower()))


def _excepts(entry: str, host: str, port: int | None) -> bool:
    with suppress(ValueError):  # a name on one side
        return ip_address(host) in ip_network(entry.removeprefix("[").replace("]", ""), strict=False)
    name, colon, number = entry.rpartition(":")
    if colon and number.isdigit():
        if int(number) != port:
            return False
        entry = name.strip("[]")
    domain = entry.removeprefix("*").lstrip(".")
    return any(fnmatchcase(host, pattern) for pattern in (entry, domain, f"*.{domain}"))
