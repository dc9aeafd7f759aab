"""`chatctx ask`: files, instructions, the end of an answer, tools where nobody can be asked, the wait for a retry."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest

from tests.chat.fakes import FakeWorkspace, ScriptedProvider, answer, open_workspace
from tests.chat.tool_calls.tool_calls import FunctionTools, calls
from tests.cli.conftest import Run, one_line
from tests.machine import Terminal
from tests.messages import PNG, assistant
from tests.providers.replay import sse
from tests.tools.mcp.in_memory import by_hand
from tui.chat.attachments import read_attachment
from tui.chat.conversation.events import RetryScheduled
from tui.chat.conversation.history import fold_records
from tui.chat.store.store import SessionStore
from tui.cli.subcommands.ask import Countdown, _outside, _stream, ask, report
from tui.config.settings import ToolSettings
from tui.messages import Attachment, Message, Part, ProviderItem, Refusal
from tui.providers.base import TextDelta


@pytest.fixture
def store(tmp_path: Path, run_here: Run) -> SessionStore:
    run_here("sessions")  # makes it
    return SessionStore(tmp_path / "data" / "chatctx.db")


@pytest.mark.slow
def test_files_go_along(run_here: Run, tmp_path: Path, store: SessionStore) -> None:
    (tmp_path / "a.py").write_text("print('hello')\n")
    (tmp_path / "b.png").write_bytes(PNG)
    (tmp_path / "c.pdf").write_bytes(b"%PDF-1.4\n1 0 obj << /Type /Page >> endobj\n")
    files = [word for name in ("a.py", "b.png", "c.pdf") for word in ("-a", str(tmp_path / name))]
    refused = run_here("ask", "what is this?", *files)  # the demo does not take pictures
    assert "b.png" in one_line(refused.stderr)
    assert refused.returncode == 2
    assert run_here("ask", "what is this?", *files[:2]).returncode == 0
    # This one does; without a key it does not answer, and what was asked is kept.
    done = json.loads(run_here("ask", "-m", "anthropic/claude-sonnet-5-5", "what is this?", *files, "--json").stdout)
    assert done["status"] == "failed"
    parts = store.messages(done["session"])[0].parts
    assert [part.kind for part in parts if isinstance(part, Attachment)] == ["text", "image", "pdf"]
    assert isinstance(parts[1], Attachment)
    assert store.blob(parts[1].sha256) == PNG
    store.close()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [("a.bin", b"\0\1\2", "neither text nor an image"), ("none.txt", None, "can't be read"), ("", None, "can't be")],
)
def test_what_no_model_takes_is_refused_before_anything_is_kept(
    run_here: Run, tmp_path: Path, store: SessionStore, name: str, data: bytes | None, words: str
) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    done = run_here("ask", "hi", "--attach", str(tmp_path / name))
    assert words in one_line(done.stderr)
    assert done.returncode == 2
    assert store.sessions() == []
    store.close()


def test_json_has_cost_and_seconds(run_here: Run) -> None:
    answer = json.loads(run_here("ask", "hi", "--json").stdout)
    assert answer["status"] == "complete"
    assert 0 < answer["seconds"] < 60
    assert "cost" in answer  # the demo has no price
    failed = run_here("ask", "-m", "openai/gpt-5.6", "--json", "hi")
    assert failed.returncode == 1
    assert json.loads(failed.stdout)["status"] == "failed"


def test_system_prompt_from_the_command_line_and_a_file(run_here: Run, tmp_path: Path, store: SessionStore) -> None:
    (tmp_path / "prompt.md").write_text("Be kind.")
    first = json.loads(run_here("ask", "hi", "--json", "--system", "Be brief.").stdout)["session"]
    second = json.loads(run_here("ask", "hi", "--json", "--system-file", str(tmp_path / "prompt.md")).stdout)["session"]
    prompts = [fold_records(store.records(session)).system for session in (first, second)]
    assert prompts == ["Be brief.", "Be kind."]
    store.close()
    assert "can't be read" in one_line(run_here("ask", "hi", "--system-file", str(tmp_path / "none")).stderr)
    assert "can't go together" in one_line(run_here("ask", "hi", "--system", "x", "--system-file", "y").stderr)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("/retry asks again.", True),
        ("Shorten it, or exclude messages (/context).", True),
        ("Write less, or /compact.", True),
        ("There is no file /model.gguf.", False),
        ("cannot reach http://127.0.0.1/model or /tmp/model/x", False),
    ],
)
def test_a_command_of_the_chat_is_said_with_the_way_there(text: str, named: bool) -> None:
    assert _outside(text).endswith("(in the chat: chatctx --continue)") is named


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "question"),
    [(["review", "this"], "review this + line"), (["review this", "-"], "review this + line"), ([], "+ line")],
)
def test_what_a_pipe_brings_follows_the_words(run: Run, words: list[str], question: str) -> None:
    done = run("ask", *words, stdin="+ line\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(run("sessions", "--json").stdout)[0]["title"] == question


@pytest.mark.slow
def test_a_file_as_standard_input_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.txt").write_text("from a file\n")
    with (tmp_path / "notes.txt").open() as file:
        assert questions(file.fileno(), ["sum up"]) == ("sum up\n\nfrom a file\n", "")
    with Path(os.devnull).open() as file:
        assert questions(file.fileno(), ["sum up"]) == ("sum up", "")


def questions(descriptor: int, words: list[str]) -> tuple[str, str]:
    """What `read_question` makes of `words` in a process whose standard input is `descriptor`, and its complaints."""
    code = f"import sys; from tui.cli.subcommands.ask import read_question; sys.stdout.write(read_question({words!r}))"
    done = subprocess.run([sys.executable, "-c", code], stdin=descriptor, capture_output=True, text=True, timeout=60)
    return done.stdout, done.stderr


@pytest.mark.slow
def test_an_open_pipe_that_nobody_writes_to_holds_nothing_up(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        question, errors = questions(reading, ["hello"])
        assert question == "hello"
        assert "standard input was not read" in one_line(errors)
        os.write(writing, b"late")
    finally:
        os.close(writing)
    try:
        assert questions(reading, ["hello"]) == ("hello\n\nlate", "")
    finally:
        os.close(reading)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_bytes_with_a_mark_are_decoded_by_it_and_that_is_said(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("Grüße\r\n".encode(encoding))
    with path.open() as file:
        question, errors = questions(file.fileno(), [])
    assert question == "Grüße\n"
    assert (encoding.upper() in errors) is (encoding != "utf-8-sig")
    attachment, _ = read_attachment(path)
    assert attachment.text == "Grüße\r\n"


@pytest.mark.slow
@pytest.mark.parametrize("data", ["Grüße".encode("latin-1"), b"a\0b", b"\xff\xfe\x00"])
def test_bytes_that_are_no_text_are_refused(run: Run, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    code = "import sys; from tui.cli.main import main; sys.exit(main(['ask', 'hello']))"
    with path.open() as file:
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=file, capture_output=True, text=True,
            env={**os.environ, "CHATCTX_DATA_DIR": str(tmp_path), "CHATCTX_MODEL": "demo"},
        )  # fmt: skip
    assert "standard input is not UTF-8 text" in one_line(done.stderr)
    assert done.returncode == 2


def test_an_address_is_no_file(run_here: Run) -> None:
    for words in (["ask", "-a", "https://example.com/x.pdf", "hi"], ["import", "HTTP://example.com/x.jsonl"]):
        done = run_here(*words)
        assert "save it first (curl -O)" in one_line(done.stderr)
        assert done.returncode == 2


@pytest.fixture
def answering() -> Iterator[Callable[[bytes], str]]:
    """Starts a server that answers every POST with these bytes as an event stream; returns its address."""
    servers: list[HTTPServer] = []

    def start(body: bytes) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                self.wfile.write(body)

            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}/v1"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


WHOLE = ("stop", "end_turn", "completed", "eos", "stop_sequence", None)
ENDS = (
    *("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded", "content_filter", "safety"),
    *("refusal", "pause_turn", "malformed_function_call", "max_messages", "steered", "repetition", "brand_new"),
)


@pytest.mark.parametrize("reason", [*WHOLE, *ENDS])
def test_only_a_whole_answer_is_0(reason: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    reply = assistant("Yes.", status="complete", finish_reason=reason)
    code = report(reply, "")
    assert code == (0 if reason in WHOLE else 1)
    assert bool(capsys.readouterr().err) == bool(code)


@pytest.mark.parametrize("part", [None, Refusal("", "cyber", from_server=True), ProviderItem("image")])
def test_an_answer_without_a_word_is_not_0(part: Part | None, capsys: pytest.CaptureFixture[str]) -> None:
    reason = "refusal" if isinstance(part, Refusal) else "stop"
    reply = Message("assistant", (part,) if part else (), status="complete", finish_reason=reason)
    assert report(reply, "") == 1
    assert capsys.readouterr().err


def test_what_the_provider_says_of_a_refusal_is_no_part_of_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    refusal = Refusal("This is\nnot allowed.", "cyber", from_server=True)
    reply = assistant("I will", refusal, status="complete", finish_reason="refusal")
    assert report(reply, "") == 1
    line = one_line(capsys.readouterr().err)
    assert "(cyber)" in line and "The provider says: This is" in line and "not allowed." in line


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [True, False])
def test_how_it_ended_and_what_it_cites_is_told(
    run: Run, tmp_path: Path, as_json: bool, answering: Callable[[bytes], str]
) -> None:
    cited = {"type": "url_citation", "url_citation": {"url": "https://example.com/a", "title": "A page"}}
    url = answering(
        sse({"choices": [{"delta": {"content": "Cut", "refusal": "No.", "annotations": [cited]}}]})
        + sse(
            {"choices": [{"delta": {}, "finish_reason": "length"}], "usage": {"prompt_tokens": 9, "total_tokens": 10}}
        )
        + b"data: [DONE]\n\n"
    )
    (tmp_path / "config.toml").write_text(f'[providers.mine]\nbase_url = "{url}"\n')
    done = run("ask", "-m", "mine/m", "hi", *(["--json"] if as_json else []))
    assert done.returncode == 1 and "at the output limit" in one_line(done.stderr)
    if as_json:
        answer = json.loads(done.stdout)
        assert (answer["text"], answer["finish_reason"], answer["status"]) == ("Cut", "length", "complete")
        assert answer["sources"] == [{"url": "https://example.com/a", "title": "A page"}]
        assert answer["refusal"] == "No."
    else:
        assert done.stdout == "CutNo.\n\nSources:\n1. A page https://example.com/a\n"


def test_a_refusal_by_the_model_ends_with_a_newline(
    run: Run, tmp_path: Path, answering: Callable[[bytes], str]
) -> None:
    end = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    url = answering(sse({"choices": [{"delta": {"refusal": "I can't."}}]}) + sse(end) + b"data: [DONE]\n\n")
    (tmp_path / "config.toml").write_text(f'[providers.mine]\nbase_url = "{url}"\n')
    done = run("ask", "-m", "mine/m", "hi")
    assert (done.stdout, done.stderr, done.returncode) == ("I can't.\n", "", 0)


@pytest.mark.parametrize(
    ("allowed", "ran", "notices"),
    [
        ((), [], ["calls write", "write was not run: nobody can be asked; --allow write"]),
        (("wr*",), ["write"], ["calls write"]),
    ],
)
async def test_what_is_not_allowed_is_refused_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], allowed: tuple[str, ...], ran: list[str], notices: list[str]
) -> None:
    source = FunctionTools("gh", write=lambda _: "written")
    provider = ScriptedProvider([calls("write"), answer("done")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        reply, failure = await _stream(await workspace.new_session(), "do it", [], silent=False, allowed=allowed)
    out, err = capsys.readouterr()
    assert source.ran == ran
    assert report(reply, failure) == 0
    assert out.endswith("done\n")
    assert err.splitlines() == [f"chatctx: {line}" for line in notices]


async def test_what_arrived_is_kept_when_the_reader_of_the_output_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_workspace(tmp_path, ScriptedProvider([[TextDelta("Certainly"), 60.0]])) as workspace:
        with monkeypatch.context() as patched, pytest.raises(BrokenPipeError):
            patched.setattr("tui.cli.subcommands.ask.Workspace.open", AsyncMock(return_value=workspace))
            patched.setattr("tui.cli.subcommands.ask.write_raw", Mock(side_effect=BrokenPipeError))
            await ask(workspace.settings, question="hi")
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        (session,) = workspace.store.sessions()
        reply = workspace.store.messages(session.id)[-1]
    assert (reply.role, reply.text, reply.status) == ("assistant", "Certainly", "cancelled")


async def test_json_adds_up_all_requests_of_a_turn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = FunctionTools("gh", write=lambda _: "written")
    async with open_workspace(tmp_path, ScriptedProvider([calls("write"), answer("done")]), tools=source) as workspace:
        with monkeypatch.context() as patched:
            patched.setattr("tui.cli.subcommands.ask.Workspace.open", AsyncMock(return_value=workspace))
            assert await ask(workspace.settings, question="hi", as_json=True, allow=("write",)) == 0
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        rows = workspace.services.calls.rows()
    printed = json.loads(capsys.readouterr().out)
    assert (printed["calls"], printed["input_tokens"]) == (2, sum(row.input_total or 0 for row in rows))
    assert printed["output_tokens"] == sum(row.output_total or 0 for row in rows)
    assert printed["usage"]["input_total"] == rows[-1].input_total < printed["input_tokens"]


async def asked_with(workspace: FakeWorkspace, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.cli.subcommands.ask.Workspace.open", AsyncMock(return_value=workspace))
    await workspace.servers.load(folder)
    assert await ask(workspace.settings, question="hi") == 0


async def test_a_server_that_did_not_start_is_told_with_the_line_that_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mcp")
    complaint = "echo \"npm error 404  'x@*' is not in this registry.\" >&2; echo 'npm error A complete log of it' >&2"
    servers = {"gone": {"command": "sh", "args": ["-c", f"{complaint}; exit 1"]}}
    provider, wait = ScriptedProvider([answer("done")]), ToolSettings(wait=60)
    async with open_workspace(tmp_path, provider, tool_settings=wait, mcp_servers=servers) as workspace:
        await asked_with(workspace, tmp_path, monkeypatch)
    out, err = capsys.readouterr()
    assert out == "done\n"
    assert err.splitlines() == [
        "chatctx: MCP server gone: it ended before it was ready ('x@*' is not in this registry). /mcp shows more.",
    ]


async def test_a_server_that_was_not_there_in_time_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mcp")
    monkeypatch.setattr("tui.tools.mcp.connection.open_transport", lambda *_: by_hand(lambda *_: None))
    provider, wait = ScriptedProvider([answer("done")]), ToolSettings(wait=0)
    async with open_workspace(
        tmp_path, provider, tool_settings=wait, mcp_servers={"late": {"command": "none"}}
    ) as workspace:
        await asked_with(workspace, tmp_path, monkeypatch)
    assert capsys.readouterr().err.splitlines() == [
        "chatctx: MCP server late was not ready in time: its tools were not offered. [tools] wait sets how long"
        " to wait.",
    ]


async def test_it_counts_down_on_a_terminal_and_the_line_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    stopped = asyncio.Event()
    err = Terminal()

    async def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] >= 103:
            stopped.set()
            await stopped_for_good.wait()

    stopped_for_good = asyncio.Event()
    monkeypatch.setattr("tui.cli.subcommands.ask.time.monotonic", lambda: now[0])
    monkeypatch.setattr("tui.cli.subcommands.ask.asyncio.sleep", sleep)
    monkeypatch.setattr("sys.stderr", err)
    shown = Countdown()
    shown.start(RetryScheduled(4.0, 1, "box: too many\nrequests."), "all at once")
    await stopped.wait()
    shown.stop()
    lines = err.getvalue().split("\r\x1b[K")
    assert lines[0] == "chatctx: box: too many requests.\n"
    assert lines[1:-1] == [f"chatctx: asking again in {seconds} s (attempt 2); ctrl+c stops" for seconds in (4, 3, 2)]
    assert lines[-1] == ""


async def test_elsewhere_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    err = io.StringIO()
    monkeypatch.setattr("sys.stderr", err)
    shown = Countdown()
    shown.start(RetryScheduled(4.0, 1, "box: busy."), "box: busy. Asking again in 4 s (attempt 2)")
    shown.stop()
    assert err.getvalue() == "chatctx: box: busy. Asking again in 4 s (attempt 2)\n"
