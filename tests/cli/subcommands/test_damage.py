"""Commands on a damaged store: what works, what is said, and `chatctx doctor --repair`."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from tests.chat.store.damaged import break_pages, make_store, pages_of, spoil
from tests.cli.conftest import Run, one_line
from tests.messages import assistant, tool, user
from tui.chat.store.database import new_id
from tui.chat.store.store import DAMAGED, SessionInfo, SessionStore
from tui.messages import ToolCall, ToolResult


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The store of the commands, undamaged so far."""
    (tmp_path / "data").mkdir()
    return make_store(tmp_path / "data" / "chatctx.db")


def test_a_bad_row_stops_no_command_and_is_said(run_here: Run, tmp_path: Path, database: Path) -> None:
    spoil(database, "UPDATE messages SET parts = '{' WHERE session = '0059' AND role = 'assistant'")
    spoil(database, "UPDATE records SET data = '{}' WHERE session = '0059'")
    assert run_here("sessions").stdout.count("\n") == 60
    for args in (("context",), ("export", "0059", str(tmp_path / "out.md")), ("ask", "--continue", "and now?")):
        done = run_here(*args)
        assert done.returncode == 0
        assert "a message of session 0059 can't be read: chatctx doctor --repair" in done.stderr
    assert DAMAGED in (tmp_path / "out.md").read_text()
    doctor = run_here("doctor")
    assert doctor.returncode == 1
    assert "messages of 1 session can't be read" in doctor.stdout


def test_a_broken_page_is_said_and_repaired(run_here: Run, database: Path) -> None:
    break_pages(database, pages_of(database, "messages")[10])
    listed = run_here("sessions", "question")
    assert (listed.returncode, listed.stdout.count("\n") > 50) == (0, True)
    assert "is damaged" in one_line(listed.stderr)
    doctor = run_here("doctor")
    assert "chatctx doctor --repair" in doctor.stdout and doctor.returncode == 1

    done = run_here("doctor", "--repair")
    assert done.returncode == 0
    assert "Saved 60 sessions" in done.stdout and "The old file is kept as" in done.stdout
    assert len(list(database.parent.glob("chatctx.damaged-*.db"))) == 1
    assert run_here("doctor").returncode == 0
    assert run_here("ask", "--continue", "go on").returncode == 0
    assert "is not damaged: nothing was changed" in run_here("doctor", "--repair").stdout


def test_doctor_counts_all_sessions_and_a_cut_list_says_so(run_here: Run, tmp_path: Path) -> None:
    path = tmp_path / "data" / "chatctx.db"
    with closing(SessionStore(path)) as store, store.transaction():
        for number in range(1_002):
            store.create_session(SessionInfo(f"{number:05}", f"t{number}", "p", "m", number, number))
            store.add_message(f"{number:05}", user("x", id=new_id()))
    assert "1,002 sessions" in run_here("doctor").stdout
    cut = run_here("sessions", "--json")
    assert len(json.loads(cut.stdout)) == 1_000
    assert "the newest 1,000 of 1,002 sessions; --all lists the rest" in one_line(cut.stderr)
    assert run_here("sessions", "--all").stdout.count("\n") == 1_002
    assert run_here("sessions", "t77").stderr == ""


def test_repair_where_there_is_nothing_or_no_database(run_here: Run, tmp_path: Path) -> None:
    assert "to repair" in run_here("doctor", "--repair").stdout
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "chatctx.db").write_bytes(b"no database at all" * 500)
    done = run_here("doctor", "--repair")
    assert "damaged or not a database" in one_line(done.stderr)
    assert done.returncode == 1


@pytest.mark.parametrize("model", ["demo", "openai/gpt-5.6", "anthropic/claude-sonnet-5-5", "deepseek/deepseek-chat"])
@pytest.mark.parametrize("role", ["assistant", "tool"])
def test_a_tool_call_or_its_result_that_is_damaged_stops_no_turn(
    run_here: Run, database: Path, role: str, model: str
) -> None:
    with closing(SessionStore(database)) as store:
        for message in (
            assistant("let me see", ToolCall("c1", "look", "{}"), id=new_id()),
            tool(ToolResult("c1", "look", "seen"), id=new_id()),
            assistant("I see", id=new_id()),
        ):
            store.add_message("0059", message)
    spoil(
        database, "UPDATE messages SET parts = '{' WHERE session = '0059' AND id = (SELECT max(id) FROM messages"
        " WHERE session = '0059' AND role = ? AND id < (SELECT max(id) FROM messages WHERE session = '0059'))", role,
    )  # fmt: skip
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY"), "x")
    assert run_here("context", "-m", model, **keys).returncode == 0
    if model == "demo":
        done = run_here("ask", "--continue", "and now?")
        assert (done.returncode, done.stderr.count("\n")) == (0, 1)
