"""The program as a person meets it: a real terminal, the real embedded model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import required
from tests.e2e.terminal import Terminal
from tui.providers.local import missing_part

Open = Callable[..., Terminal]
SIZES = [(120, 40), (40, 15)]
READY = re.compile(r"\d / 8\.2k")
REPLY = re.compile(r"^  smollm2(?: |$)", re.MULTILINE)


@pytest.fixture
def open_terminal(tmp_path: Path) -> Iterator[Open]:
    if problem := missing_part():
        required(problem)
    opened: list[Terminal] = []

    def open_one(*args: str, **options: Any) -> Terminal:
        opened.append(Terminal(tmp_path, *args, **options))
        return opened[-1]

    yield open_one
    for terminal in opened:
        terminal.close()


def ready(screen: str) -> bool:
    return READY.search(screen) is not None


def answered(screen: str) -> bool:
    """The numbers come from the provider and nothing runs."""
    return ready(screen) and "esc stops" not in screen and re.search(r"[^~\d,.]\d[\d.,k]* / 8\.2k", screen) is not None


def number(screen: str) -> int:
    """The status bar's tokens."""
    match = re.search(r"~?([\d.,]+k?) / 8\.2k", screen)
    assert match, screen
    text = match[1].replace(",", "")
    return round(float(text[:-1]) * 1000) if text.endswith("k") else int(text)


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_a_whole_visit(open_terminal: Open, columns: int, rows: int) -> None:
    terminal = open_terminal(columns=columns, rows=rows)
    terminal.wait(ready)
    terminal.type("Name a fish.", "Enter")
    shown = number(terminal.wait(answered))

    usage = json.loads(terminal.run("context", "--json").stdout)
    assert usage["total"] == shown
    assert usage["source"] == "exact"

    terminal.type("/context", "Enter")
    terminal.wait(lambda s: f"{shown:,} / 8,192" in s and "added by the server" in s)  # a screen may be read half drawn
    terminal.type("", "Escape")
    terminal.wait(lambda s: answered(s) and f"{shown:,} / 8,192" not in s)

    terminal.type("/rolling-context on", "Enter")
    terminal.wait("Rolling context is on")
    assert json.loads(terminal.run("context", "--json").stdout)["compaction_buffer"] == 0

    terminal.type("/quit", "Enter")
    terminal.wait("ended with code 0")

    again = open_terminal("--continue", columns=columns, rows=rows)
    screen = again.wait(lambda s: ready(s) and "Name a fish." in s)
    assert number(screen) == shown


def test_text_and_enter_in_one_burst_are_one_message(open_terminal: Open) -> None:
    terminal = open_terminal()
    terminal.wait(ready)
    terminal.type("Say first please", "Enter")
    terminal.wait(lambda s: answered(s) and len(REPLY.findall(s)) == 1)
    terminal.type("Say second please", "Enter")
    terminal.wait(lambda s: answered(s) and len(REPLY.findall(s)) == 2)
    sessions = json.loads(terminal.run("sessions", "--json").stdout)
    assert sessions[0]["messages"] == 4
    assert sessions[0]["title"] == "Say first please"


def test_what_is_typed_before_the_program_is_ready_is_sent(open_terminal: Open) -> None:
    terminal = open_terminal()
    terminal.wait("›")
    terminal.type("early bird", "Enter")
    terminal.wait(answered)
    assert json.loads(terminal.run("sessions", "--json").stdout)[0]["title"] == "early bird"


def test_esc_stops_the_answer_and_keeps_it(open_terminal: Open) -> None:
    terminal = open_terminal(config='model = "local"')
    terminal.wait(ready)
    terminal.type("Tell me a very long story about a lighthouse.", "Enter")
    terminal.wait(lambda s: "esc stops" in s and "answering" in s)
    terminal.wait(lambda s: len(s.split()) > 60)
    terminal.type("", "Escape")
    screen = terminal.wait(lambda s: "esc stops" not in s)
    assert "cancelled" in screen or "stopped" in screen
    terminal.type("Say hi.", "Enter")
    terminal.wait(answered)
    ident = json.loads(terminal.run("sessions", "--json").stdout)[0]["id"]
    out = terminal.folder / "out.jsonl"
    assert terminal.run("export", ident, str(out)).returncode == 0
    messages = [json.loads(line)["message"] for line in out.read_text().splitlines() if '"type":"message"' in line]
    assert [m.get("status", "complete") for m in messages] == ["complete", "cancelled", "complete", "complete"]


def test_a_megabyte_is_pasted_whole(open_terminal: Open) -> None:
    terminal = open_terminal()
    terminal.wait(ready)
    text = "".join(f"line {number} of a long file\n" for number in range(40_000))
    assert len(text) > 1_000_000
    terminal.paste(text)
    screen = terminal.wait(lambda s: "40,000 lines" in s or "40,001 lines" in s)
    assert screen.count("of a long file") < 20
    terminal.type(" Summarise this.", "Enter")
    terminal.wait(lambda s: "fit" in s)
    ident = json.loads(terminal.run("sessions", "--json").stdout)[0]["id"]
    out = terminal.folder / "out.jsonl"
    terminal.run("export", ident, str(out))
    [message] = [json.loads(line)["message"] for line in out.read_text().splitlines() if '"role":"user"' in line]
    written = "".join(part["text"] for part in message["parts"])
    assert text.rstrip("\n") in written
    assert "Summarise this." in written


def test_an_unreachable_server_is_said_and_nothing_is_lost(open_terminal: Open) -> None:
    terminal = open_terminal(config='model = "gone/m"\n[providers.gone]\nbase_url = "http://127.0.0.1:9/v1"\n')
    terminal.wait("›")
    terminal.type("precious words", "Enter")
    screen = terminal.wait("/retry")
    assert "precious words" in screen
    assert "Traceback" not in screen


def test_resizing_keeps_everything_readable(open_terminal: Open) -> None:
    terminal = open_terminal()
    terminal.wait(ready)
    terminal.type("Name a bird.", "Enter")
    terminal.wait(answered)
    for columns, rows in ((40, 12), (200, 50), (60, 20)):
        terminal.resize(columns, rows)
        screen = terminal.wait(lambda s: "› ask" in s and " / 8.2k" in s)
        assert max(map(len, screen.splitlines())) <= columns
        assert rows < 20 or "Name a bird." in screen


def test_a_database_from_a_newer_version_ends_with_one_line(open_terminal: Open) -> None:
    import sqlite3

    from tui.chat.store.schema import MIGRATIONS
    from tui.chat.store.store import SessionStore

    terminal = open_terminal("--version")
    path = terminal.folder / "data" / "chatctx.db"
    SessionStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    terminal = open_terminal()
    screen = terminal.wait("update chatctx")
    assert "Traceback" not in screen
