"""`chatctx ask` with files and instructions."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, one_line
from tui.chat.attachments import read_attachment
from tui.chat.conversation.history import fold_records
from tui.chat.store.store import SessionStore, UsageError
from tui.cli.subcommands.ask import _outside, ask
from tui.config.settings import Settings
from tui.messages import Attachment

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 3, 2) + b"\x08\x02\0\0\0"


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
    "options",
    [{"session": "a", "last": True}, {"session": "a", "resume": ""}, {"last": True, "resume": "a"}],
    ids=str,
)
async def test_a_question_goes_into_one_session(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="can't go together"):
        await ask(Settings(data_dir=tmp_path), question="hi", **options)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [("a.bin", b"\0\1\2", "neither text nor a picture"), ("none.txt", None, "can't be read"), ("", None, "can't be")],
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


def test_an_address_is_no_file(run: Run) -> None:
    for words in (["ask", "-a", "https://example.com/x.pdf", "hi"], ["import", "HTTP://example.com/x.jsonl"]):
        done = run(*words)
        assert "save it first (curl -O)" in one_line(done.stderr)
        assert done.returncode == 2
