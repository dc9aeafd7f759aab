"""The route to a server: proxies and certificates from the environment, and explanations when they fail."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from tui.providers.base import ProviderError
from tui.providers.http.error_text import one_line
from tui.providers.keys import redact

if TYPE_CHECKING:
    import ssl

# Texts of servers and frameworks for a missing path, as opposed to a missing model.
_NO_PATH = re.compile(
    r"\W*(?:404\W*)?(?:(?:file|page|path|route|resource|endpoint|url) )?not found\W*|.*\b404 page not found.*"
    r"|.*\binvalid url\b.*|.*\bunknown request url\b.*|.*\bunexpected endpoint\b.*|.*\bno route\b.*"
    r"|.*\bcannot (?:get|post) /.*",
    re.IGNORECASE | re.DOTALL,
)
# The routes of the dialects, which people copy along with the address.
_ROUTES = ("/chat/completions", "/completions", "/responses", "/messages")

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")


def without_route(base_url: str) -> str:
    """`base_url` without a dialect's route at its end."""
    address, mark, query = base_url.partition("?")
    bare = address.rstrip("/")
    route = next((route for route in _ROUTES if bare.endswith(route)), "")
    return f"{bare.removesuffix(route)}{mark}{query}" if route else base_url


def split_query(base_url: str) -> tuple[str, dict[str, str]]:
    """`base_url` without its query, and the query, which is sent with every request (Azure: `?api-version=...`)."""
    address, _, query = base_url.partition("?")
    return address, dict(parse_qsl(query))


def nothing_there(status: int | None, reason: str, url: str) -> str:
    """A hint for a server that has no such path, or "".

    Judged by the `reason` it gave. 405 also follows a redirect, after which HTTP uses GET. `url` is the address after
    redirects.
    """
    if not url or status not in (404, 405) or (status == 404 and reason and _NO_PATH.fullmatch(reason) is None):
        return ""
    if status == 404 and not reason:  # may still be about the model
        return f"Check the model's name with /model, and base_url: {url} was asked."
    return f"Nothing answers at {url}: check base_url, which for most servers ends in /v1."


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_here(url: str) -> bool:
    return is_loopback((urlsplit(url).hostname or "").lower())


def client_options(url: str, limit: int) -> dict[str, Any]:
    """Options of an HTTP client for the server at `url`, with answers of at most `limit` bytes.

    Proxies (not for this machine) and certificates come from the environment. Redirects to another server are not
    followed (`bounds.RedirectError`). Raises OSError if certificates can't be loaded.
    """
    import httpx2

    from tui.providers.http.bounds import BoundedTransport, check_redirect

    home = httpx2.URL(url)

    async def check(request: httpx2.Request) -> None:
        check_redirect(home, request.url)

    transport = BoundedTransport(
        limit,
        trust_env=False,  # the HTTP library reads fewer variables, and NO_PROXY only in part
        proxy=_proxy(url) or None,
        verify=_ssl_context() if home.scheme == "https" else False,
    )
    return {"trust_env": False, "transport": transport, "event_hooks": {"request": [check]}}


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


def bypasses_proxy(host: str, port: int | None, no_proxy: str) -> bool:
    """Whether `no_proxy` exempts `host` (a name or an address, without brackets) from the proxy.

    Entries are separated by commas or blanks: "*", a host including all hosts below it, with or without a leading dot,
    a pattern with `*`, an address or a network ("10.0.0.0/8"), each with or without a port.
    """
    host = host.lower().rstrip(".")
    return any(_excepts(entry, host, port) for entry in re.split(r"[\s,]+", no_proxy.strip().lower()) if entry)


def _excepts(entry: str, host: str, port: int | None) -> bool:
    bare = entry.removeprefix("[").replace("]", "")
    try:
        return ip_address(host) in ip_network(bare, strict=False)
    except ValueError:
        pass  # a name on one side
    name, colon, number = entry.rpartition(":")
    if colon and number.isdigit():
        if int(number) != port:
            return False
        entry = name.strip("[]")
    if "*" in entry or "?" in entry:
        return fnmatchcase(host, entry) or (entry.startswith("*.") and host == entry[2:])
    entry = entry.lstrip(".")
    return bool(entry) and (host == entry or host.endswith(f".{entry}"))


def _proxy(url: str) -> str:
    """The proxy set in the environment for `url`; "" for none."""
    from urllib.request import getproxies, proxy_bypass

    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy or _is_here(url):
        return ""
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    excepted = proxies.get("no")  # set: the system's own exceptions (macOS, Windows) don't count
    if proxy_bypass(parts.netloc) if excepted is None else bypasses_proxy(parts.hostname or "", port, excepted):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def proxy_for(url: str) -> str:
    """The proxy set in the environment for `url`, without its password; "" for none."""
    return one_line(redact(_proxy(url)), 100)


def no_client(error: Exception, base_url: str) -> ProviderError | None:
    """Why no client can be made for `base_url`; None for bugs."""
    where, proxy = redact(base_url), proxy_for(base_url) if _usable(base_url) else ""
    match error:
        case ImportError() if "socks" in str(error).lower():
            text = f"the proxy {proxy} is a SOCKS proxy, for which a part is missing: pip install socksio."
        case ValueError() if proxy:
            text = f"{proxy} is no usable address of a proxy. Check HTTPS_PROXY and ALL_PROXY."
        case ValueError():
            text = f"{where} is no usable address. Check base_url."
        case OSError():  # includes errors of the ssl module
            reason = one_line(str(error), 100)
            text = f"no certificates to check {where} with ({reason}). Check {_certificate_variables()}."
        case _:
            return None
    return ProviderError("bad_request", text)


def _certificate_variables() -> str:
    """The variables that name certificates here; if none is set, those that could."""
    named = [name for name in _CERTIFICATES if os.environ.get(name)]
    return " and ".join(named or _CERTIFICATES[:2])


def not_reached(reason: str, provider: str, base_url: str) -> ProviderError:
    """The error for a server that could not be connected to because of `reason`."""
    where = redact(base_url)
    if "certificate verify failed" in reason.lower():
        text = f"{where} shows a certificate that is not trusted here ({reason}). Set SSL_CERT_FILE to the one that is."
        return ProviderError("protocol", f"{provider}: {text}")  # waiting does not help
    if "wrong version number" in reason.lower() and where.startswith("https:"):  # OpenSSL's, of an answer in plain text
        text = f"{where} does not speak TLS. Set base_url to http{where.removeprefix('https')}, or check the port."
        return ProviderError("bad_request", f"{provider}: {text}")
    if proxy := proxy_for(base_url):
        text = f"cannot reach {where} through the proxy {proxy} ({reason}). Check HTTPS_PROXY, ALL_PROXY and NO_PROXY."
    else:
        text = f"cannot reach {where} ({reason}). Check that the server runs, and its base_url."
    return ProviderError("network", f"{provider}: {text}")


def _usable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
