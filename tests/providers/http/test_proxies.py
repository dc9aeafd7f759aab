"""Proxies and certificates of the environment: what is said where they are in the way."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import trustme

from tests.providers.collect import collect
from tests.providers.replay import Answer, replay_server
from tests.providers.serving import DIALECTS, REQUEST, pieces, serving
from tui.config.settings import ProviderSettings
from tui.providers.base import ErrorKind, ProviderError
from tui.providers.config import Dialect, ProviderConfig
from tui.providers.http.errors import nothing_there
from tui.providers.http.proxies import bypasses_proxy, proxy_for
from tui.providers.http.transport import not_reached
from tui.providers.registry import make_provider, provider_config

AWAY = "http://llm.example.com/v1"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"):
        monkeypatch.delenv(name, raising=False)


async def failure(dialect: Dialect, url: str = AWAY) -> ProviderError:
    provider = make_provider("p", ProviderConfig("p", dialect, url))
    got = await collect(provider, REQUEST)
    await provider.close()
    assert got.error is not None
    return got.error


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("name", "value", "kind", "words"),
    [
        ("ALL_PROXY", "socks5h://127.0.0.1:1", "bad_request", "pip install socksio"),
        ("HTTP_PROXY", "foo://127.0.0.1:1", "bad_request", "foo://127.0.0.1:1 is not a usable address of a proxy"),
        ("HTTP_PROXY", "http://me:hunter2@127.0.0.1:1", "network", "through the proxy http://[key]@127.0.0.1:1"),
    ],
)
async def test_a_proxy_that_is_in_the_way(
    dialect: Dialect, name: str, value: str, kind: ErrorKind, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    error = await failure(dialect)
    assert error.kind == kind and words in str(error) and "hunter2" not in str(error)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("url", ["https://llm.example.com/v1", "https://127.0.0.1:1/v1"])
async def test_certificates_that_are_not_there(
    dialect: Dialect, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    error = await failure(dialect, url)
    assert error.kind == "bad_request" and "Check SSL_CERT_FILE" in str(error)


def test_a_certificate_that_is_not_trusted_is_not_waited_for() -> None:
    kind, text = not_reached("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed", AWAY)
    assert kind == "protocol" and "SSL_CERT_FILE" in text


async def test_a_server_that_does_not_speak_tls() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        error = await failure("openai-chat", f"https://127.0.0.1:{port}/v1")
    assert error.kind == "bad_request" and f"Set base_url to http://127.0.0.1:{port}/v1" in str(error)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_address_that_is_wrong_is_shown(dialect: Dialect) -> None:
    async with serving(dialect) as (server, provider):
        server.json({"detail": "Not Found"}, 404)
        error = (await collect(provider, REQUEST)).error
        address = f"{server.url}{server.requests[0].path}"
    assert error is not None and f"HTTP 404: Not Found. Nothing answers at {address}: check base_url" in str(error)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_query_in_the_address_goes_with_every_request(dialect: Dialect) -> None:
    """Azure's classic form: the deployment in the path, the version behind it, and the key under a name of its own."""
    async with replay_server() as server:
        url = f"{server.url}/openai/deployments/gpt/v1?api-version=2024-10-21&x=a%20b"
        provider = make_provider("p", ProviderConfig("p", dialect, url, api_key_command="echo key-0001"))
        server.answers.append(Answer(pieces(dialect)))
        server.json({"data": []}, path="/openai/deployments/gpt/v1/models")
        assert (await collect(provider, REQUEST)).text == "Hello"
        await provider.models()
        await provider.close()
        sent = [urlsplit(request.path) for request in server.requests]
        headers = server.requests[0].headers
    assert [dict(parse_qsl(one.query))["x"] for one in sent] == ["a b", "a b"]
    assert all("/openai/deployments/gpt/v1/" in one.path for one in sent)
    if dialect != "anthropic":
        assert headers["api-key"] == "key-0001" and "authorization" not in headers


@pytest.mark.parametrize("host", [True, False], ids=["another host", "another port"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_redirect_to_another_server_is_not_followed(dialect: Dialect, host: bool) -> None:
    async with serving(dialect, api_key_command="echo key-0001") as (server, provider), replay_server() as elsewhere:
        other = server.url.replace("127.0.0.1", "localhost") if host else elsewhere.url
        server.answers += [
            Answer(status=307, headers={"location": "/v1/here"}),
            Answer(status=307, headers={"location": f"{other}/v1/there"}),
            Answer([b"{}"], 400),
        ]
        elsewhere.json({}, 400)
        got = await collect(provider, REQUEST)
    assert len(server.requests) == 2 and not elsewhere.requests
    assert got.error is not None and got.error.kind == "bad_request"
    assert f"redirects to {other}, which is another server" in str(got.error) and "base_url" in str(got.error)


async def test_redirects_in_a_circle_are_followed_once() -> None:
    async with serving("openai-chat") as (server, provider):
        server.answers += [Answer(status=307, headers={"location": "/v1/here"})] * 30
        got = await collect(provider, REQUEST)
    assert got.error is not None and got.error.kind == "bad_request"
    assert "redirects in a circle" in str(got.error)


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("404 page not found", "Nothing answers at"),  # Go: Ollama
        ("File Not Found", "Nothing answers at"),  # llama.cpp
        ("Route not found", "Nothing answers at"),
        ("Invalid URL (POST /chat/completions)", "Nothing answers at"),  # OpenAI
        ("Unknown request URL: POST /openai/chat. Please check the URL for typos", "Nothing answers at"),  # Groq
        ("Unexpected endpoint or method. (POST /chat/completions)", "Nothing answers at"),  # LM Studio
        ("no Route matched with those values", "Nothing answers at"),  # Kong: Mistral
        ("Cannot POST /chat/completions", "Nothing answers at"),  # Express
        ("", "Check the model's name with /model, and base_url"),
        ("model 'x' not found", ""),
        ("No endpoints found for x/y.", ""),  # OpenRouter, of a model
        ("The model `x` does not exist", ""),
    ],
)
def test_a_path_that_is_not_there_and_a_model_that_is_not_there(reason: str, hint: str) -> None:
    shown = nothing_there(404, reason, f"{AWAY}/chat/completions")
    assert shown.startswith(hint) and bool(shown) == bool(hint)
    assert nothing_there(404, reason, "") == nothing_there(400, reason, AWAY) == ""
    assert nothing_there(405, reason, AWAY).startswith(f"Nothing answers at {AWAY}")


@pytest.mark.parametrize(
    ("pasted", "meant"),
    [
        ("http://h/v1/chat/completions", "http://h/v1"),
        ("http://h/v1/messages/", "http://h/v1"),
        ("http://h/v1/responses", "http://h/v1"),
        ("http://h/v1/", "http://h/v1/"),
        ("http://h/d/chat/completions?api-version=1", "http://h/d?api-version=1"),
        ("https://x.services.ai.azure.com/models", "https://x.services.ai.azure.com/models"),
    ],
)
def test_a_route_at_the_end_of_the_address_is_left_off(pasted: str, meant: str) -> None:
    assert provider_config("mine", ProviderSettings(base_url=pasted)).base_url == meant


def test_which_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proxy_for(AWAY) == ""
    monkeypatch.setenv("ALL_PROXY", "proxy:3128")
    assert proxy_for(AWAY) == proxy_for("https://llm.example.com/v1") == "http://proxy:3128"
    assert proxy_for("http://127.0.0.1:8080/v1") == ""
    for user in ("me:hunter2", "me:hunt/er2", "me:hunt er2", "me:hunt@er2", "hunter2"):  # nobody quotes them
        monkeypatch.setenv("http_proxy", f"http://{user}@proxy:3128")
        assert proxy_for(AWAY) == "http://[key]@proxy:3128"
    monkeypatch.setenv("NO_PROXY", "other.example.com llm.example.com")
    assert proxy_for(AWAY) == ""


@pytest.mark.parametrize(
    ("entry", "host", "excepted"),
    [
        ("*", "llm.example.com", True),
        ("example.com", "llm.example.com", True),
        ("example.com", "example.com", True),
        ("example.com", "notexample.com", False),
        (".example.com", "llm.example.com", True),
        ("*.example.com", "llm.example.com", True),
        ("*.example.com", "example.com", True),
        ("llm-*.example.com", "llm-7.example.com", True),
        ("llm-*.example.com", "web.example.com", False),
        ("LLM.Example.COM", "llm.example.com", True),
        ("llm.example.com:8443", "llm.example.com", True),
        ("llm.example.com:9999", "llm.example.com", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.*", "10.1.2.3", True),
        ("[fd00::1]", "fd00::1", True),
        ("fd00::/8", "fd00::1", True),
        ("localhost", "llm.example.com", False),
    ],
)
@pytest.mark.parametrize("around", ["{}", "other.org, {}", "other.org {}", " {} ,other.org,"])
def test_what_no_proxy_excepts(entry: str, host: str, excepted: bool, around: str) -> None:
    assert bypasses_proxy(host, 8443, around.format(entry)) is excepted
    assert not bypasses_proxy(host, 8443, "")


@pytest.mark.parametrize("no_proxy", [None, "*.example.com"])
async def test_the_proxy_is_asked_unless_it_is_excepted(no_proxy: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    async with replay_server() as proxy:
        proxy.json({}, 400)
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        if no_proxy:
            monkeypatch.setenv("no_proxy", f"other.org {no_proxy}")
        error = await failure("openai-chat", "http://llm.example.com:1/v1")
        assert [request.path for request in proxy.requests] == (
            [] if no_proxy else ["http://llm.example.com:1/v1/chat/completions"]
        )
    assert error.kind == ("network" if no_proxy else "bad_request")


@pytest.mark.parametrize(
    ("scheme", "status", "kind"),
    [("http", 407, "bad_request"), ("https", 407, "bad_request"), ("https", 502, "network")],
)
async def test_a_proxy_that_refuses_is_named(
    scheme: str, status: int, kind: ErrorKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 %d No\r\ncontent-length: 0\r\n\r\n" % status)
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as proxy:
        address = f"127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        monkeypatch.setenv("ALL_PROXY", f"http://me:hunter2@{address}")
        error = await failure("openai-chat", f"{scheme}://llm.example.com/v1")
    assert f"the proxy http://[key]@{address} refused the connection ({status} No)" in str(error)
    assert error.kind == kind


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"])
async def test_every_usual_variable_may_name_the_certificate(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A server with a certificate of its own, as companies have them."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    body = b"".join(pieces("openai-chat"))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        refused = await failure("openai-chat", url)
        assert refused.kind == "protocol" and "not trusted here" in str(refused)
        monkeypatch.setenv(name, str(tmp_path / "ca.pem"))
        provider = make_provider("p", ProviderConfig("p", "openai-chat", url))
        got = await collect(provider, REQUEST)
        await provider.close()
    assert (got.text, got.error) == ("Hello", None)
    monkeypatch.setenv(name, str(tmp_path / "none.pem"))
    error = await failure("openai-chat", url)
    assert error.kind == "bad_request" and f"Check {name}" in str(error)
