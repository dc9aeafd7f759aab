"""No byte of a stranger reaches the terminal as more than text: commands and screens, hostile text in each field."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.hostile.recorder import CHATCTX, EVIL, foreign, recorded
from tests.messages import assistant
from tui.chat.interchange.recording import write_jsonl
from tui.chat.store.store import SessionInfo
from tui.messages import Attachment, Message, Part, Reasoning, Refusal, Text, ToolCall, ToolResult, Usage

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")

COMMANDS = (
    *("/context", "/tools", "/mcp", "/memory", "/usage", "/model", "/sessions"),
    *("/find EVIL", "/summary", "/export", "/rename EVIL"),
)
NAME = EVIL.replace("\0", "").replace("/", "")  # a file may be called that


class EvilServer(BaseHTTPRequestHandler):
    """An OpenAI-compatible server with hostile names, answers and errors."""

    def do_GET(self) -> None:
        self._send(200, {"data": [{"id": f"model-{EVIL}", "name": EVIL, "context_length": 8_192}, {"id": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "fail" in json.dumps(body["messages"][-1]):
            self._send(400, {"error": {"message": f"bad {EVIL}", "type": EVIL}})
            return
        call = {"index": 0, "id": "c1", "function": {"name": EVIL, "arguments": json.dumps({"path": EVIL})}}
        tool = "tool" in json.dumps(body["messages"][-1])
        deltas: list[dict[str, object]] = [
            {"reasoning_content": EVIL},
            {"content": f"**{EVIL}** [x](https://x.org/{EVIL})"},
        ]
        if tool:
            deltas.append({"tool_calls": [call]})
        chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": EVIL}]})
        data = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self._send(200, data)

    def _send(self, status: int, body: object) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def session_file(path: Path) -> None:
    parts: tuple[Part, ...] = (Text(EVIL), Attachment("text", EVIL, "text/plain", "0" * 64, 4, text=EVIL))
    answer: tuple[Part, ...] = (
        Reasoning(EVIL),
        Text(f"# {EVIL}\n\n```{EVIL}\n{EVIL}\n```\n\n| {EVIL} |\n|---|\n| {EVIL} |\n\n[{EVIL}](https://x.org/{EVIL})"),
        ToolCall("c1", EVIL, json.dumps({"path": EVIL})),
    )
    messages = [
        Message("user", parts, "m1", created_at=1.0),
        Message("assistant", answer, "m2", created_at=2.0, provider="evil", model=EVIL, usage=Usage(100, 10)),
        Message("tool", (ToolResult("c1", EVIL, EVIL),), "m3", created_at=3.0),
        assistant(Refusal(EVIL), id="m4", created_at=4.0, provider="evil", model="model", finish_reason=EVIL),
        assistant(id="m5", created_at=5.0, provider="evil", model="model", status="failed", error=EVIL),
    ]
    info = SessionInfo("s1", EVIL, "evil", "model", 1.0, 5.0, draft=EVIL)
    path.write_text("\n".join(write_jsonl(info, messages, (), (), ())) + "\n", encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder full of hostile files, and an environment whose provider is hostile."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), EvilServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home, folder = tmp_path / "home", tmp_path / "project"
    (home / ".config" / "chatctx").mkdir(parents=True)
    folder.mkdir()
    (home / ".config" / "chatctx" / "config.toml").write_text(
        f'model = "evil/model"\n[providers.evil]\nbase_url = "http://127.0.0.1:{server.server_port}/v1"\n'
        f'api_key_env = "EVIL_KEY"\n[mcpServers.broken]\ncommand = "{tmp_path}/\\u001b]0;EVIL\\u0007"\n'
    )
    (folder / "AGENTS.md").write_text(f"# {EVIL}\n")
    (folder / f"{NAME}.md").write_text(EVIL)
    session_file(folder / f"{NAME}.jsonl")
    environment = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "EVIL_KEY": "key",
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": str(home / "cache"),
    }
    yield folder, environment
    server.shutdown()
    server.server_close()


ONE_BY_ONE = """
import json, sys
from tui.cli.main import main
for arguments in json.loads(sys.argv[1]):
    main(arguments)
"""


def run(place: tuple[Path, dict[str, str]], *commands: Sequence[str]) -> bytes:
    """What these commands write, one after the other in one process."""
    with recorded(("-c", ONE_BY_ONE, json.dumps(commands)), *place) as program:
        program.ended(120)
    return program.written


def test_the_recorder_sees_what_is_foreign() -> None:
    assert foreign(b"plain \x1b[1;31mred\x1b[0m \x1b]8;id=1;https://x.org\x1b\\link\x1b]8;;\x1b\\\r\n") == []
    for piece in (EVIL, "\x1b]0;x\x07", "\u202ex", "\x9b7m", "\x1bPq", "\x07", "\x1b]8;;file:///etc\x1b\\"):
        assert foreign(piece.encode("utf-8"))


def test_commands_print_text(place: tuple[Path, dict[str, str]]) -> None:
    folder = place[0]
    session, text, missing = f"{NAME}.jsonl", f"{NAME}.md", f"missing {NAME}"
    outputs = ("out.md", "out.html", f"{NAME}.out", f"missing/{NAME}.md")
    written = run(
        place,
        *(("import", session), ("import", text), ("import", missing), ("replay", session)),
        *(("sessions",), ("sessions", "EVIL"), ("sessions", "--json"), ("context",), ("context", "--json")),
        *(("usage",), ("models",), ("doctor",), (NAME,)),
        *(("-m", model, "ask", "x") for model in (f"evil/{NAME}", NAME)),
        *(("ask", *words) for words in (("tool",), ("fail",), ("-a", text, "x"), ("-a", missing, "x"))),
        *(("export", "s1", name) for name in outputs),
    )
    assert foreign(written) == []
    assert b"EVIL" in written and b"Traceback" not in written
    assert b"EVIL" in (exported := (folder / "out.md").read_bytes())
    assert foreign(exported) == []


def test_the_chat_by_lines_prints_text(place: tuple[Path, dict[str, str]]) -> None:
    run(place, ("import", f"{NAME}.jsonl"))
    lines = ("hello", "tool", "fail", *COMMANDS, "/quit")
    typed = "".join(f"{line}\r" for line in lines)
    with recorded((*CHATCTX, "--plain", "--continue"), *place) as program:
        program.read(8, "EVIL")
        program.type(typed)
        program.ended()
    assert foreign(program.written) == []
    assert program.written.count(b"EVIL") > 10


def test_the_screen_shows_text(place: tuple[Path, dict[str, str]]) -> None:
    run(place, ("import", f"{NAME}.jsonl"))
    paste = EVIL.replace("\0", "")
    with recorded((*CHATCTX, "--continue"), *place) as program:
        program.read(15, "EVIL")
        program.read(2)
        program.type(f"\x1b[200~{paste}\x1b[201~")
        program.read(2)
        program.type("\x03")
        for keys in ("hello\r", "tool\r", "fail\r"):
            program.type(keys)
            program.read(3)
        for command in COMMANDS:
            program.type(f"{command}\r")
            program.read(2)
            program.type("m" if command == "/context" else "\x1b[B")
            program.read(0.5)
            program.type("\x1b")
            program.read(0.5)
            program.type("\x1b")
            program.read(0.3)
        program.type("@")
        program.read(1)
        program.type("\t")
        program.read(0.5)
        program.type("\x1b[1;3A\x1b[1;3A")
        program.read(1)
        program.type("\r")
        program.read(1)
        program.type("\x11")
        program.ended()
    assert foreign(program.written) == []
    assert program.written.count(b"EVIL") > 20
