"""The command line as a person meets it: separate processes, bad input, exit codes, what is loaded when."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.cli.conftest import Run, one_line
from tui.chat.store.calls import CallLog
from tui.chat.store.schema import MIGRATIONS
from tui.chat.store.store import SessionStore
from tui.messages import Request

HEAVY = (
    *("textual", "rich", "openai", "anthropic", "tiktoken", "genai_prices", "mcp", "sqlite3", "httpx2", "xllamacpp"),
    *("asyncio", "tui.context.counting"),
)


@pytest.mark.parametrize(
    ("args", "needed"),
    [(["--version"], ()), (["--help"], ()), (["ask", "--help"], ()), (["usage"], ("rich", "sqlite3"))],
)
def test_version_help_and_sums_load_nothing_heavy(args: list[str], needed: tuple[str, ...], tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "chatctx.db")
    CallLog(store).begin(Request("p", "m", (), session="s"), None, message=None, kind="chat")
    store.query("UPDATE calls SET status = 'success'")
    store.close()
    (tmp_path / "config.toml").touch()
    names = {"CHATCTX_DATA_DIR": str(tmp_path), "CHATCTX_CONFIG": str(tmp_path / "config.toml")}
    code = (
        f"import sys; from tui.cli.main import main; code = main({args!r});"
        f"print('LOADED', [m for m in {HEAVY!r} if m in sys.modules]); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **names})
    assert done.returncode == 0, done.stderr
    assert f"LOADED {list(needed)}" in done.stdout


@pytest.mark.slow
def test_ask_answers_and_the_session_is_kept(run: Run) -> None:
    done = run("ask", "hello", "there")
    assert done.returncode == 0
    assert "demo" in done.stdout.lower()
    listed = json.loads(run("sessions", "--json").stdout)
    assert [(s["title"], s["messages"]) for s in listed] == [("hello there", 2)]
    again = json.loads(run("ask", "--session", listed[0]["id"], "--json", "more").stdout)
    assert again["session"] == listed[0]["id"]
    assert again["status"] == "complete"
    assert len(json.loads(run("sessions", "--json").stdout)) == 1


@pytest.mark.slow
def test_ask_reads_standard_input(run: Run) -> None:
    assert run("ask", "-", stdin="from a pipe\n").returncode == 0
    assert json.loads(run("sessions", "--json").stdout)[0]["title"] == "from a pipe"
    assert run("--continue", "ask", stdin="and more").returncode == 0
    assert [session["messages"] for session in json.loads(run("sessions", "--json").stdout)] == [4]
    assert run("ask", "review this", "-", stdin="+ line").returncode == 0
    assert json.loads(run("sessions", "--json").stdout)[0]["title"] == "review this + line"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--nonsense"], 2, "No such option '--nonsense'"),
        (["ask", "--nonsense"], 2, "See chatctx ask --help"),
        (["ask", "--sesion", "x"], 2, "'--sesion'. Did you mean one of: '--json', '--session'? See chatctx ask --help"),
        (["what is a monad?"], 2, 'ask a question with: chatctx ask "..."'),
        (["models", "a", "b"], 2, "extra argument (b). See chatctx models --help"),
        (["completion", "tcsh"], 2, "'fish'. See chatctx completion --help"),
        (["ask"], 2, "the question is empty"),
        (["ask", "-s", "", "hi"], 2, "name a session"),
        (["--resume", "01", "usage"], 2, "--continue and --resume go with the chat"),
        (["-c", "context"], 2, "--continue and --resume go with the chat"),
        (["ask", " "], 2, "the question is empty"),
        (["ask", "-m", "nowhere/x", "hi"], 2, "unknown provider 'nowhere'"),
        (["ask", "-m", "antropic/x", "hi"], 2, "did you mean anthropic?"),
        (["ask", "-m", "justaname", "hi"], 2, "provider/model"),
        (["ask", "-m", "openai/gpt-5.6", "hi"], 1, "OPENAI_API_KEY"),
        (["ask", "--session", "feed", "hi"], 2, "chatctx sessions"),
        (["context", "feed"], 2, "chatctx sessions"),
        (["context"], 2, "no session yet"),
        (["export", "feed", "x.md"], 2, "chatctx sessions"),
        (["replay", "missing.jsonl"], 1, "missing.jsonl"),
        (["import", "missing.jsonl"], 1, "missing.jsonl"),
        (["ask", "--gguf", "none.gguf", "-m", "local", "hi"], 1, "none.gguf"),
    ],
)
def test_bad_input_is_one_clear_line(run_here: Run, args: list[str], code: int, words: str) -> None:
    done = run_here(*args)
    assert words in one_line(done.stderr)
    assert done.returncode == code
    assert done.stdout == ""


@pytest.mark.slow
def test_unreachable_server_and_wrong_key(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[providers.mine]\nbase_url = "http://127.0.0.1:9/v1"\n')
    done = run_here("ask", "-m", "mine/x", "hi")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "/retry" in done.stderr.splitlines()[-1]
    assert done.stderr.rstrip().endswith("(in the chat: chatctx --continue)")
    assert "127.0.0.1:9" in done.stderr
    stored = json.loads(run_here("sessions", "--json").stdout)
    assert stored[0]["title"] == "hi"


def test_broken_config(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("model = \n")
    done = run_here("ask", "hi")
    assert "config.toml" in one_line(done.stderr)
    assert done.returncode == 2


def test_unwritable_data_directory(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run_here("ask", "hi", CHATCTX_DATA_DIR=str(tmp_path / "file" / "data"))
    assert "CHATCTX_DATA_DIR" in one_line(done.stderr)
    assert done.returncode == 1


def test_a_newer_database_is_left_alone(run_here: Run, tmp_path: Path) -> None:
    path = tmp_path / "data" / "chatctx.db"
    SessionStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    before = path.read_bytes()
    for args in (["ask", "hi"], ["sessions"], ["context"]):
        done = run_here(*args)
        assert "update chatctx" in one_line(done.stderr)
        assert done.returncode == 1
    assert path.read_bytes() == before


def test_context_as_json_holds_its_sums(run_here: Run) -> None:
    run_here("ask", "hello " * 200)
    usage = json.loads(run_here("context", "--json").stdout)
    assert set(usage) >= {
        *("session", "provider", "model", "window", "total", "upper_bound", "source", "percent", "basis", "rows"),
        *("output_reserve", "compaction_buffer", "free", "over", "until_compaction"),
    }
    assert set(usage["window"]) >= {"context", "input", "output", "source"}
    assert sum(row["tokens"] for row in usage["rows"]) == usage["total"]
    for row in usage["rows"]:
        assert sum(item["tokens"] for item in row["items"]) == row["tokens"]
    assert set(usage["basis"]) >= {
        *("last_input", "last_output", "last_output_sent_back", "new_messages", "last_error_percent", "factor"),
    }
    if usage["window"]["context"] is not None:
        parts = usage["output_reserve"] + usage["compaction_buffer"] + usage["free"] - usage["over"]
        assert usage["total"] + parts == usage["window"]["context"]


def test_context_as_text_fits_its_width(run_here: Run) -> None:
    run_here("ask", "hello")
    for columns in ("40", "100"):
        done = run_here("context", COLUMNS=columns)
        assert done.returncode == 0
        lines = done.stdout.splitlines()
        assert max(map(len, lines)) <= int(columns)
        assert sum("▚▚▞▞" in line for line in lines) >= 2  # the picture, where buffer and reserve meet


def test_export_and_its_endings(run_here: Run, tmp_path: Path) -> None:
    run_here("ask", "hello")
    ident = json.loads(run_here("sessions", "--json").stdout)[0]["id"]
    for name in ("out.md", "out.jsonl", "out.html", "shouted.HTML"):
        assert run_here("export", ident, str(tmp_path / name)).returncode == 0
        assert "hello" in (tmp_path / name).read_text()
    (tmp_path / "out.md").write_text("mine")
    assert "there is a file" in one_line(run_here("export", ident, str(tmp_path / "out.md")).stderr)
    assert (tmp_path / "out.md").read_text() == "mine"
    assert run_here("export", "--force", ident, str(tmp_path / "out.md")).returncode == 0
    assert "hello" in (tmp_path / "out.md").read_text()
    assert "suffix" in one_line(run_here("export", ident, str(tmp_path / "out.doc")).stderr)
    assert "can't write" in one_line(run_here("export", ident, str(tmp_path / "no" / "out.md")).stderr)


class _Refusing(BaseHTTPRequestHandler):
    """Quotes the key it was given, as some servers do."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        key = self.headers["authorization"].removeprefix("Bearer ")
        body = json.dumps({"error": {"message": f"Wrong: {key}"}}).encode()
        self.send_response(401)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Nothing on standard error."""


@pytest.mark.slow
def test_a_key_never_shows(run: Run, tmp_path: Path) -> None:
    key = "of-no-usual-look-4711"
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        (tmp_path / "config.toml").write_text(
            f'[providers.mine]\nbase_url = "http://127.0.0.1:{server.server_port}/v1"\napi_key_env = "MINE"\n'
            '[providers.other]\nbase_url = "http://me:hunter2@127.0.0.1:9/v1"\n'
        )
        done = run("ask", "-m", "mine/x", "hi", MINE=key)
        server.shutdown()
    assert "Wrong: [key]" in done.stderr
    doctor = run("doctor", MINE=key).stdout
    assert "127.0.0.1:9/v1" in doctor and "hunter2" not in doctor
    shown = done.stdout + done.stderr + doctor
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert key not in shown
    assert key.encode() not in stored


def test_doctor(run_here: Run) -> None:
    done = run_here("doctor")
    assert done.returncode == 0
    assert "Everything works" in done.stdout
    assert "demo/guide" in done.stdout
    wrong = run_here("doctor", CHATCTX_MODEL="nowhere/x")
    assert wrong.returncode == 1
    assert "unknown provider 'nowhere'" in wrong.stdout


@pytest.mark.slow
def test_the_reader_of_a_pipe_may_leave(run: Run) -> None:
    run("ask", "hello")
    done = subprocess.run(f"{sys.executable} -m tui --help | head -1", shell=True, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
