"""Whole conversations with the real model: the numbers against the server's, small windows, what a kill leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import drain
from tests.real.conftest import LlamaServer, StartServer
from tui.chat.conversation.events import CompactionFinished, ContextTrimmed, TurnFailed
from tui.chat.store.calls import CallRow
from tui.chat.turn.session import ChatSession
from tui.chat.workspace import Workspace
from tui.config.settings import ProviderSettings, Settings

QUESTIONS = (
    "Hello! Who are you?",
    "Name three colours of the sea.",
    "Which of them do you like most, and why?",
    "Write a short poem about it. Keep it to four lines.",
    "Translate the first line into French.",
    "def f(x):\n    return x * 2\n\nWhat does this function do?",
    "And what would f('ab') return?",
    "List five fruits, one on each line.",
    "Summarise what we talked about.",
    "Thank you. Say goodbye!",
)
STORY = (
    "In the harbour lay nine boats, and number {n} had a red sail that nobody could mend. The keeper wrote it down. "
    "What should he do next?"
)
MAX_TURNS = 17  # of about 60 tokens each: a window of 512 is full after eight


@asynccontextmanager
async def session_on(server: LlamaServer, folder: Path, kind: str, **settings: Any) -> AsyncIterator[ChatSession]:
    """A session that talks to `server` in the dialect of `kind`."""
    base = server.url if kind == "anthropic" else f"{server.url}/v1"
    values: dict[str, Any] = {
        "model": f"real/{server.model}",
        "providers": {"real": ProviderSettings(kind=kind, base_url=base)},
        "data_dir": folder,
        "log_dir": folder,
        **settings,
    }
    workspace = await Workspace.open(Settings(**values))
    try:
        yield await workspace.new_session()
    finally:
        await workspace.close()


def calls_of(session: ChatSession) -> list[CallRow]:
    return [call for call in session._services.calls.rows(session.id) if call.kind == "chat"]


@pytest.mark.parametrize("kind", ["openai-compatible", "anthropic", "openai"])
async def test_ten_turns_are_predicted_before_they_are_sent(
    llama_server: StartServer, tmp_path: Path, kind: str
) -> None:
    server = llama_server(window=8192)
    since = server.mark()
    async with session_on(server, tmp_path, kind, reserve_output=32) as session:
        for question in QUESTIONS:
            assert not [e for e in await drain(session.send(question)) if isinstance(e, TurnFailed)]
        calls = calls_of(session)
        assert len(calls) == len(QUESTIONS)
        for call in calls[1:]:
            assert call.predicted is not None
            assert call.input_total is not None
            assert abs(call.predicted - call.input_total) <= max(8, 0.02 * call.input_total), call
        assert [call.verdict for call in calls] == ["confirmed"] * len(calls)
        cached = [call.input_cached or 0 for call in calls]
        assert max(cached) > 0
        assert all(c <= (call.input_total or 0) for c, call in zip(cached, calls, strict=True))
        usage = session.usage
        assert usage is not None
        assert usage.limits.context == 8192
        assert usage.basis.last_input == calls[-1].input_total
    assert server.refusals(since) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("rolling", [True, False], ids=["rolling", "compacting"])
async def test_many_turns_in_a_small_window(llama_server: StartServer, tmp_path: Path, rolling: bool) -> None:
    server = llama_server(window=512)
    since = server.mark()
    async with session_on(server, tmp_path, "openai-compatible", rolling_context=rolling, reserve_output=16) as session:
        acted = 0
        turns = 0
        while acted < 2 and turns < MAX_TURNS:
            events = await drain(session.send(STORY.format(n=turns)))
            assert not [e for e in events if isinstance(e, TurnFailed)]
            acted += sum(isinstance(e, ContextTrimmed | CompactionFinished) for e in events)
            turns += 1
        assert acted == 2
        assert {call.verdict for call in calls_of(session)} <= {"believed", "confirmed"}
        stored = session.conversation.store.messages(session.id)
        questions = [m.text for m in stored if m.role == "user" and m.kind == "chat"]
        assert questions == [STORY.format(n=number) for number in range(turns)]
        assert len([m for m in stored if m.role == "assistant"]) == turns
    assert server.refusals(since) == []


def test_a_kill_in_mid_stream_loses_less_than_a_second(llama_server: StartServer, tmp_path: Path) -> None:
    server = llama_server(window=8192)
    config = tmp_path / "config.toml"
    provider = f'[providers.real]\nbase_url = "{server.url}/v1"\n'
    config.write_text(f'model = "real/{server.model}"\nreserve_output = 300\n{provider}')  # the last answer is short
    env = {
        **os.environ,
        "CHATCTX_CONFIG": str(config),
        "CHATCTX_DATA_DIR": str(tmp_path),
        "CHATCTX_LOG_DIR": str(tmp_path),
    }
    command = [sys.executable, "-m", "tui", "ask", "Tell me a very long story about a lighthouse keeper."]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        pieces: list[tuple[float, bytes]] = []
        started = time.monotonic()
        while time.monotonic() - started < 60 and (not pieces or time.monotonic() - pieces[0][0] < 1.5):
            piece = os.read(child.stdout.fileno(), 4096)
            assert piece, "the answer ended before it could be cut"
            pieces.append((time.monotonic(), piece))
        child.send_signal(signal.SIGKILL)
        killed = time.monotonic()
    shown_a_second_before = b"".join(piece for at, piece in pieces if at < killed - 1.0).decode()
    listed = subprocess.run(
        [sys.executable, "-m", "tui", "ask", "--continue", "--json", "Say yes."],
        env=env,
        capture_output=True,
        check=False,  # 1 where this small model does not end its answer by itself
    )
    session = json.loads(listed.stdout)["session"]
    out = tmp_path / "out.jsonl"
    subprocess.run([sys.executable, "-m", "tui", "export", session, str(out)], env=env, check=True, capture_output=True)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    messages = [line["message"] for line in lines if line["type"] == "message"]
    assert [m["role"] for m in messages] == ["user", "assistant", "user", "assistant"]
    assert messages[1]["status"] == "interrupted"
    stored = "".join(part["text"] for part in messages[1]["parts"])
    assert stored.startswith(shown_a_second_before)
    assert shown_a_second_before


def test_a_wrong_key_is_one_clear_line(llama_server: StartServer, tmp_path: Path) -> None:
    server = llama_server(api_key="the-right-one")
    config = tmp_path / "config.toml"
    config.write_text(
        f'model = "real/{server.model}"\n[providers.real]\nbase_url = "{server.url}/v1"\napi_key_env = "REAL_KEY"\n'
    )
    folders = {"CHATCTX_CONFIG": str(config), "CHATCTX_DATA_DIR": str(tmp_path), "CHATCTX_LOG_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "tui", "ask", "hi"]
    for key, words in (("the-wrong-one", "401"), ("", "REAL_KEY")):
        env = {**os.environ, **folders, "REAL_KEY": key}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith("chatctx: ")
        assert done.stderr.count("\n") == 1, done.stderr
        assert words in done.stderr or "key" in done.stderr.lower()
        assert "the-wrong-one" not in done.stderr
    env = {**os.environ, **folders, "REAL_KEY": "the-right-one"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip()  # 1 where this small model does not end its answer by itself
    assert done.returncode == 0 or "cut off" in done.stderr
