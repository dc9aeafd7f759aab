"""Keys: found, asked for by command, and struck out of everything."""

from __future__ import annotations

import shlex
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.providers.collect import collect
from tests.providers.replay import Answer
from tests.providers.serving import DIALECTS, REQUEST, pieces, serving
from tui.providers import keys
from tui.providers.base import ProviderError
from tui.providers.config import Dialect, ProviderConfig
from tui.providers.dialects.openai_chat import OpenAIChat
from tui.providers.keys import hold_secret, key_from_command, key_from_env, one_line, redact


def python(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def test_the_first_variable_that_is_set() -> None:
    assert key_from_env(("A", "B"), {"A": " ", "B": " key \n"}) == "key"
    assert key_from_env(("A",), {}) is None


async def test_a_command_prints_the_key_on_its_first_line() -> None:
    assert await key_from_command(python("print('the-key'); print('a note')"), "p") == "the-key"
    assert await key_from_command("echo one | tr o 0", "p") == "0ne"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (
            python("import sys; print('leaked-output'); print('leaked-error', file=sys.stderr); sys.exit(3)"),
            "exit code 3",
        ),
        (python("pass"), "printed nothing"),
        ("this-command-does-not-exist-anywhere", "exit code"),
        ("'unbalanced", "exit code"),
    ],
)
async def test_a_command_that_fails_says_so_without_its_output(
    command: str, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ProviderError) as caught:
        await key_from_command(command, "p")
    assert caught.value.kind == "auth"
    assert reason in str(caught.value)
    assert "leaked" not in str(caught.value) + "".join(capfd.readouterr())


async def test_a_command_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "COMMAND_TIMEOUT", 0.2)
    with pytest.raises(ProviderError, match="no key within"):
        await key_from_command(python("import time; time.sleep(60)") + " | cat", "p")


async def test_the_command_wins_over_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P_KEY", "from-env")
    assert await ProviderConfig("p", key_env=("P_KEY",)).key() == "from-env"
    assert await ProviderConfig("p", key_env=("P_KEY",), api_key_command="echo from-command").key() == "from-command"
    assert "from-command" not in redact("a from-command b")


@pytest.mark.parametrize("key", ["sk-one\nsk-two-secret", "“sk-abcdef-secret”", "sk-abc secret", "sk-é-secret"])
async def test_what_can_be_no_key_is_not_sent_and_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP libraries quote such a header in their complaint, or end in an error of their own."""
    monkeypatch.setenv("P_KEY", key)
    with pytest.raises(ProviderError, match="Look at P_KEY") as caught:
        await ProviderConfig("p", key_env=("P_KEY",)).key()
    assert caught.value.kind == "auth" and "secret" not in str(caught.value)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("renewed", "headers"), [(True, ["Bearer key-0001", "Bearer key-0002"]), (False, ["Bearer key-0001"])]
)
async def test_a_key_that_has_run_out_is_asked_for_again(
    dialect: Dialect, renewed: bool, headers: list[str], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("key-0001")
    async with serving(dialect, api_key_command=f"cat {shlex.quote(str(token))}") as (server, provider):
        server.answers += [Answer(pieces(dialect)), Answer([b"{}"], 401), Answer(pieces(dialect))]
        assert (await collect(provider, REQUEST)).text == "Hello"
        if renewed:
            token.write_text("key-0002")
        got = await collect(provider, REQUEST)
        assert [item.headers["authorization"] for item in server.requests[1:]] == headers
    assert (got.text, got.error is None) == (("Hello", True) if renewed else ("", False))
    assert renewed or (got.error is not None and got.error.kind == "auth")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_key_that_has_run_out_is_asked_for_again_while_an_answer_comes(
    dialect: Dialect, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("key-0001")
    async with serving(dialect, api_key_command=f"cat {shlex.quote(str(token))}") as (server, provider):
        server.answers += [Answer(pieces(dialect)[:-2], end="hang"), Answer([b"{}"], 401)]
        server.json({"data": [{"id": "m"}]})
        async with aclosing(provider.stream(REQUEST)) as answer:
            await anext(answer)
            token.write_text("key-0002")
            assert [info.id for info in await provider.models()] == ["m"]
            assert not server.hung_up.is_set()
    assert [item.headers["authorization"] for item in server.requests[-2:]] == ["Bearer key-0001", "Bearer key-0002"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_count_asks_for_the_key_again(dialect: Dialect, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("key-0001")
    async with serving(dialect, api_key_command=f"cat {shlex.quote(str(token))}") as (server, provider):
        server.json({"data": [{"id": "m"}]})
        await provider.models()
        token.write_text("key-0002")
        server.answers[:] = [Answer([b"{}"], 401)]
        server.json({"input_tokens": 37})
        assert await provider.count_tokens(REQUEST) == 37


async def test_a_refused_request_holds_no_connection_while_its_key_is_renewed(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("key-0001")
    async with serving("openai-chat", api_key_command=f"cat {shlex.quote(str(token))}") as (server, provider):
        assert isinstance(provider, OpenAIChat)
        server.answers += [Answer(pieces("openai-chat")), Answer([b"{}"], 401)]
        await collect(provider, REQUEST)
        token.unlink()
        got = await collect(provider, REQUEST)
        assert got.error is not None and "api_key_command ended with exit code 1" in str(got.error)
        transport: Any = (await provider.client())._http._transport
        assert [connection.is_idle() for connection in transport._pool.connections] == [True]


async def test_a_missing_key_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("P_KEY", raising=False)
    with pytest.raises(ProviderError, match="Set P_KEY, or api_key_command"):
        await ProviderConfig("p", key_env=("P_KEY",), needs_key=True).key()
    assert await ProviderConfig("p", key_env=("P_KEY",)).key() is None


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-abcdefghijklmnop",
        "sk-proj-0123456789abcdef",
        "gsk_abcdefghijklmnopqrstuvwx",
        "xai-abcdefghijklmnop",
        "AIzaSyA1234567890abcdefgh",
        "Bearer abcdef0123456789",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc",
        'api_key="abcdefghijklmnop"',
        "{'x-api-key': 'abcdef0123456789'}",
        "https://me:hunter2@proxy.example/v1",
        "HTTPS_PROXY_https://:hunter2@proxy.example",
        "socks5h://me:0123456789@hunter2@proxy.example",
    ],
)
def test_what_looks_like_a_key_is_struck_out(secret: str) -> None:
    text = redact(f"failed with {secret} here")
    assert "[key]" in text
    for part in ("abcdef", "0123456789", "hunter2"):
        assert part not in text
    assert text.endswith(" here")


def test_one_line_has_neither_keys_nor_what_moves_a_terminal() -> None:
    page = f"{' ' * 9_000}a\x1b[31m red\r\n\u202etoken=abcdefghijklmnop"
    assert one_line(page, 40) == "a red \ufffdtoken=[key]"
    assert one_line("word " * 100_000, 10) == "word word…"


@pytest.mark.parametrize("safe", ["", "/"])
def test_a_held_key_is_struck_out_of_an_address_too(safe: str) -> None:
    secret = "q+1/of=Azure=="
    hold_secret(secret)
    assert redact(f"GET /v1?key={quote(secret, safe=safe)}&a=1") == "GET /v1?key=[key]&a=1"


def test_a_held_key_of_any_shape_is_struck_out() -> None:
    hold_secret("correct horse battery")
    assert redact("bad key: correct horse battery!") == "bad key: [key]!"
    hold_secret("ab")
    assert redact("about") == "about"


@pytest.mark.parametrize(
    "text",
    [
        "prompt is too long: 213462 tokens > 200000 maximum",
        "max_tokens: 4096",
        "token limit: 262144 (requested: 300000)",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "text", ["a." * 100_000, "eyJ-" * 30_000, "://a:" * 50_000, "a+" * 100_000 + "://me:hunter2@host"]
)
def test_a_long_foreign_text_takes_no_time_that_grows_with_its_square(text: str) -> None:
    """This ran for minutes, and nothing else could run meanwhile."""
    assert "hunter2" not in redact(text)
