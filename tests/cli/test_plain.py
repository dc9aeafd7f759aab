"""`chatctx --plain`: line by line, in pipes and at a terminal."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import random
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest.mock import AsyncMock

import pytest

from tests.bench.losses import Faults
from tests.chat.fakes import ScriptedProvider, drain, open_workspace
from tests.cli.conftest import Run, one_line
from tests.messages import assistant
from tests.usages import make_usage
from tui.chat.conversation.events import (
    ApprovalAsked,
    ContextTrimmed,
    ReplyDelta,
    ReplyFinished,
    ReplyStarted,
    SessionEvent,
    TurnFailed,
)
from tui.chat.store.database import new_id
from tui.chat.store.store import SessionStore
from tui.chat.turn.session import ChatSession
from tui.chat.workspace import Workspace
from tui.cli.plain import PlainChat
from tui.cli.streams import Lines
from tui.config.files import unsent_files
from tui.messages import Text, ToolCall
from tui.tools.mcp.questions import Field, FormQuestion, Reply


@pytest.mark.slow
def test_mcp_servers_in_lines(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[mcpServers.mail]\ncomand = "x"\n')
    done = run("--plain", stdin="/mcp\n/mcp restart nobody\n/mcp dance\n", CHATCTX_CONFIG=str(tmp_path / "config.toml"))
    assert done.returncode == 0
    assert re.search(r"mail +failed", done.stdout)
    assert "did you mean command?" in " ".join(done.stdout.split())
    news, nobody, usage = done.stderr.splitlines()
    assert "MCP server mail: " in news and news.endswith("did you mean command? /mcp shows more.")
    assert "There is no MCP server 'nobody'; the servers are: mail." in nobody
    assert "/mcp restart NAME" in usage


@pytest.mark.slow
def test_a_conversation_in_a_pipe(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("some notes")
    lines = [
        '"""', "first @notes.txt", "second", '"""', "/context", "/find second", "/rename a talk",
        "/nope", "/theme", "/rolling-context perhaps", "/sessions talk", "/help", "/quit", "never said",
    ]  # fmt: skip
    done = run("--plain", stdin="\n".join(lines), cwd=tmp_path)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    assert "You wrote 23 characters" in done.stdout
    assert re.search(r"~[\d,]+ / 8,192 tokens", done.stdout)
    assert re.search(r"\n  messages +[\d,]+ +\d", done.stdout)
    assert "user: second" in done.stdout
    assert re.search(r"a talk .* 2 msgs", done.stdout)
    assert "/window" in done.stdout
    assert not re.search("[▀-▟▸▾]", done.stdout)
    errors = done.stderr.splitlines()
    assert [line.split(" ")[1:4] for line in errors] == [
        ["There", "is", "no"],
        ["/theme", "needs", "the"],
        ["/rolling-context", "takes", "on"],
    ]
    store = SessionStore(tmp_path / "data" / "chatctx.db")
    [session] = store.sessions()
    parts = store.messages(session.id)[0].parts
    store.close()
    assert (session.title, session.messages) == ("a talk", 2)
    assert {type(part).__name__ for part in parts} == {"Text", "Attachment"}
    assert Text("first @notes.txt\nsecond") in parts


@pytest.mark.slow
def test_a_turn_that_fails_leaves_the_next_line_its_turn(run: Run) -> None:
    done = run("--plain", stdin="hi\n/find hi\n", CHATCTX_MODEL="anthropic/claude-opus-5")
    assert done.returncode == 0
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert "user: hi" in done.stdout
    assert "Traceback" not in done.stderr


def test_without_a_terminal_the_screen_says_what_to_do(run_here: Run) -> None:
    done = run_here(stdin="hi")
    assert done.returncode == 2
    assert "--plain" in one_line(done.stderr)


def _take_terminal() -> None:
    """Make standard input the terminal that ctrl+c of this process comes from."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.slow
@pytest.mark.parametrize("simple", [{"TERM": "dumb"}, {"TERM": "xterm", "PYTHONIOENCODING": "latin-1"}])
def test_two_interrupts_at_a_simple_terminal_leave(tmp_path: Path, simple: dict[str, str]) -> None:
    """A terminal that can't move its cursor, or has no lines in its encoding, gets the plain chat."""
    settings = {
        **simple, "CHATCTX_CONFIG": str(tmp_path / "config.toml"), "CHATCTX_DATA_DIR": str(tmp_path / "data"),
        "CHATCTX_LOG_DIR": str(tmp_path / "log"), "CHATCTX_MODEL": "demo",
    }  # fmt: skip
    (tmp_path / "config.toml").touch()
    main, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tui"], stdin=other, stdout=other, stderr=other, start_new_session=True,
        env={**os.environ, **settings}, preexec_fn=_take_terminal,
    )  # fmt: skip
    os.close(other)
    screen = ""

    def until(words: str) -> None:
        nonlocal screen
        end = time.monotonic() + 20
        while words not in screen:
            assert time.monotonic() < end, screen
            if select.select([main], [], [], 0.1)[0]:
                screen += os.read(main, 65_536).decode()

    try:
        until("you: ")
        os.write(main, b"hello\n")
        until(" of 8,192 tokens")
        os.write(main, b"\x03")
        until("press ctrl+c again")
        os.write(main, b"\x03")
        assert process.wait(20) == 130
    finally:
        process.kill()
        process.wait()
        os.close(main)
    assert "guide:" in screen
    assert "\x1b" not in screen


async def test_lines_are_whole_however_they_arrive() -> None:
    ours, theirs = os.pipe()
    lines = Lines(ours)
    for piece in (b"one\r\ntw", "o ü".encode()[:-1], "ü".encode()[-1:] + b'\n"""\na\n\nb\n', b'"""\nla', b"st"):
        os.write(theirs, piece)
        await asyncio.sleep(0)
    os.close(theirs)
    assert [await lines.message() for _ in range(5)] == ["one", "two ü", "a\n\nb", "last", None]
    os.close(ours)


async def test_what_was_written_before_a_question_is_no_answer_to_it() -> None:
    ours, theirs = os.pipe()
    lines = Lines(ours)
    os.write(theirs, b"first\ny\n")
    while True:
        if lines._arrived.qsize() == 2:
            break
        await asyncio.sleep(0.01)
    answer = asyncio.create_task(lines.fresh(lines.next))
    await asyncio.sleep(0)
    os.write(theirs, b"n\n")
    assert await answer == "n"
    text = asyncio.create_task(lines.fresh(lines.message))
    await asyncio.sleep(0)
    os.write(theirs, b'"""\nmine\n\nall of it\n"""\nlast\n')
    os.close(theirs)
    assert await text == "mine\n\nall of it"
    assert [await lines.next() for _ in range(4)] == ["first", "y", "last", None]
    assert await lines.fresh(lines.next) is None
    os.close(ours)


async def test_whoever_waits_for_a_line_is_told_when_there_will_be_none() -> None:
    ours, theirs = os.pipe()
    lines = Lines(ours)
    waiting = asyncio.create_task(lines.message())
    await asyncio.sleep(0)
    lines.end()
    assert await waiting is None
    assert await lines.next() is None
    os.close(theirs)
    os.close(ours)


@pytest.mark.slow
def test_a_model_with_a_window_too_small_is_asked_about(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[providers.tiny]\nbase_url = "http://127.0.0.1:9/v1"\n[models."tiny/m"]\nwindow = 300\n'
    )
    lines = ["words " * 300, "/model tiny/m", "/model tiny/m --anyway", "/model demo/guide"]
    done = run("--plain", stdin="\n".join(lines))
    assert done.returncode == 0
    assert "/model tiny/m --compact summarises it first, with demo/guide" in one_line(done.stderr)
    assert "tokens to tiny/m, whose window of 300 takes 225 of input" in done.stdout
    assert done.stdout.count("is the model from now on") == 2


async def test_a_turn_is_said_in_lines_and_a_call_asks(capsys: pytest.CaptureFixture[str]) -> None:
    call = ToolCall("c1", "write_file", '{"path": "a\x1b[2J"}')
    reply = assistant("hi", call, id="m1", status="cancelled", model="vendor/model-x")
    decided = []

    async def events() -> AsyncIterator[SessionEvent]:
        yield ReplyFinished(assistant(id="m0", status="failed", error="too long"))  # it is repeated
        yield ReplyStarted("m1", "p", "vendor/model-x")
        yield ReplyDelta("m1", "reasoning", "hm")
        yield ReplyDelta("m1", "text", "hi \x1b[31mred")
        yield ReplyFinished(reply)
        yield ApprovalAsked("a1", call, {"path": "a\x1b[2J"}, "files", "writes", "")
        yield ContextTrimmed(2, 300, ())
        yield TurnFailed("It did not work. /retry asks again.")

    tools = SimpleNamespace(approve=lambda ask_id, decision: decided.append((ask_id, decision)))
    session = cast("ChatSession", SimpleNamespace(usage=make_usage(52_100), tools=tools))
    lines = cast("Lines", SimpleNamespace(next=None, fresh=AsyncMock(return_value="s")))
    workspace = cast("Workspace", SimpleNamespace())
    await PlainChat(workspace, session, lines, interactive=True).turn(events())
    printed = capsys.readouterr()
    answers = "y yes, s for this conversation, a always, n no, never"
    assert printed.out == f"model-x:\nhi ␛[31mred\nRun it? {answers}: (52,100 of 200,000 tokens, 26 %)\n"
    assert decided == [("a1", "session")]
    notices = printed.err.splitlines()
    assert "\x1b" not in printed.err
    assert notices[0].startswith("chatctx: calls write_file")
    assert "stopped by you" in notices[1]
    assert notices[2].startswith("chatctx: wants to run write_file (files)")
    assert notices[3:] == [
        "  path: a␛[2J",
        "chatctx: Context trimmed: 2 messages, ~300 tokens left out", "chatctx: It did not work. /retry asks again.",
    ]  # fmt: skip
    await PlainChat(workspace, session, lines, interactive=False).turn(events())
    assert decided[1:] == [("a1", "no")]
    assert "write_file was not run: nobody can be asked here" in capsys.readouterr().err


@pytest.mark.parametrize(("typed", "decision"), [("y", "once"), ("a", "no"), ("s", "no"), ("", "no")])
async def test_a_call_with_a_special_reason_takes_only_what_is_offered(typed: str, decision: str) -> None:
    decided: list[str] = []

    async def events() -> AsyncIterator[SessionEvent]:
        yield ApprovalAsked("a1", ToolCall("c1", "read_file", "{}"), {}, "built-in", "reads", "it may hold keys")

    tools = SimpleNamespace(approve=lambda _ask_id, decision: decided.append(decision))
    session = cast("ChatSession", SimpleNamespace(usage=None, tools=tools))
    lines = cast("Lines", SimpleNamespace(next=None, fresh=AsyncMock(return_value=typed)))
    await PlainChat(cast("Workspace", SimpleNamespace()), session, lines, interactive=True).turn(events())
    assert decided == [decision]


async def test_leaving_writes_what_a_full_disk_kept_back(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await workspace.new_session()
        await drain(session.send("hello"))
        answer = replace(session.messages[-1], id=new_id(), parts=(Text("kept back"),))
        session.conversation.unsaved.append(answer)

        async def end() -> None:
            return None

        lines = cast("Lines", SimpleNamespace(message=end))
        assert await PlainChat(workspace, session, lines, interactive=False).run() == 0
        assert workspace.store.messages(session.id)[-1].text == "kept back"


@pytest.mark.parametrize("stays", [False, True], ids=["the store recovers", "it does not"])
async def test_what_was_written_and_not_taken_is_kept(
    stays: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = Faults(random.Random(0))
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await workspace.new_session()
        written = ["a long thought"]

        async def message() -> str | None:
            if written:
                faults.share = 1.0
                return written.pop()
            faults.share = float(stays)
            return None

        lines = cast("Lines", SimpleNamespace(message=message, unread=lambda: ["typed ahead"]))
        with faults.in_store():
            await PlainChat(workspace, session, lines, interactive=True).run()
        faults.share = 0.0
        prompts, files = workspace.store.prompts(), unsent_files([tmp_path])
        if stays:
            assert [file.read_text() for file in files] == ["a long thought\ntyped ahead"]
            assert f"What was not sent is in {files[0]}" in capsys.readouterr().err
        else:
            assert sorted(prompts) == ["a long thought", "typed ahead"] and not files


async def test_a_question_of_a_server_is_asked_during_a_turn_and_cancelled_between_turns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    question = FormQuestion("crm", "Sure?", (Field("sure", "Sure?", "boolean", required=True),))
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await workspace.new_session()
        lines = cast("Lines", SimpleNamespace(fresh=lambda read: read(), next=AsyncMock(return_value="yes")))
        chat = PlainChat(workspace, session, lines, interactive=True)
        assert await chat.answer_server(question) == Reply("cancel")
        assert "the MCP server crm asked something outside of an answer" in capsys.readouterr().err
        monkeypatch.setattr(type(session), "running", True)
        assert await chat.answer_server(question) == Reply("accept", {"sure": True})
        assert "yes: Yes" in capsys.readouterr().out
