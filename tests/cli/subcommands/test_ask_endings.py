"""`chatctx ask` exits with 0 only for a whole answer, and tells how each other one ended."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.cli.conftest import Run, one_line
from tests.providers.replay import sse
from tui.cli.subcommands.ask import Outcome
from tui.messages import Message, Part, ProviderItem, Refusal, Text


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
    reply = Message("assistant", (Text("Yes."),), status="complete", finish_reason=reason)
    code = Outcome(reply, "").report()
    assert code == (0 if reason in WHOLE else 1)
    assert bool(capsys.readouterr().err) == bool(code)


@pytest.mark.parametrize("part", [None, Refusal("", "cyber", from_server=True), ProviderItem("image")])
def test_an_answer_without_a_word_is_not_0(part: Part | None, capsys: pytest.CaptureFixture[str]) -> None:
    reason = "refusal" if isinstance(part, Refusal) else "stop"
    reply = Message("assistant", (part,) if part else (), status="complete", finish_reason=reason)
    assert Outcome(reply, "").report() == 1
    assert capsys.readouterr().err


def test_what_the_provider_says_of_a_refusal_is_no_part_of_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    refusal = Refusal("This is\nnot allowed.", "cyber", from_server=True)
    reply = Message("assistant", (Text("I will"), refusal), status="complete", finish_reason="refusal")
    assert Outcome(reply, "").report() == 1
    line = one_line(capsys.readouterr().err)
    assert "(cyber)" in line and "The provider says: This is" in line and "not allowed." in line


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [True, False])
def test_how_it_ended_and_what_it_cites_is_told(
    run: Run, tmp_path: Path, as_json: bool, answering: Callable[[bytes], str]
) -> None:
    cited = {"type": "url_citation", "url_citation": {"url": "https://example.com/a", "title": "A page"}}
    url = answering(
        sse({"choices": [{"delta": {"content": "Cut", "annotations": [cited]}}]})
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
    else:
        assert done.stdout == "Cut\n\nSources:\n1. A page https://example.com/a\n"
