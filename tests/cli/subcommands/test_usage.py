"""`chatctx usage`: what is printed is what the calls in the store add up to."""

from __future__ import annotations

import json
import time
from pathlib import Path

from tests.chat.interchange.test_importing import claude_session
from tests.cli.conftest import Run, one_line
from tui.chat.store.store import SessionInfo, SessionStore
from tui.context.reduction.records import TRIM_LOG


def test_json_adds_up(run_here: Run, tmp_path: Path) -> None:
    run_here("import", str(claude_session(tmp_path / "a.jsonl")))
    run_here("ask", "hello")
    report = json.loads(run_here("usage", "--json").stdout)
    assert report["session"]["title"] == "hello"
    assert (report["session"]["calls"], report["today"]["calls"], report["all"]["calls"]) == (1, 1, 3)
    assert report["all"]["cached_tokens"] == 15_000
    assert report["all"]["input_tokens"] == report["all"]["fresh_tokens"] + report["all"]["cached_tokens"]
    for table in ("by_provider", "by_model", "by_day"):
        assert sum(row["calls"] for row in report[table]) == 3
        assert sum(row["input_tokens"] for row in report[table]) == report["all"]["input_tokens"]
    assert {row["name"] for row in report["by_provider"]} == {"anthropic", "demo"}
    # Nobody predicted the imported calls, and the demo measures nothing.
    assert report["all"]["estimates"] == {"calls": 0, "median_abs_error_percent": None, "p95_abs_error_percent": None}


def test_each_call_is_listed_with_what_was_predicted_reported_and_believed(run_here: Run, tmp_path: Path) -> None:
    assert run_here("usage", "--calls").stdout == "No calls yet. Start with: chatctx\n"
    run_here("ask", "hello")
    (entry,) = json.loads(run_here("usage", "--calls", "--json").stdout)
    assert entry["predicted"] <= entry["upper_bound"]
    assert (entry["verdict"], entry["reported"], entry["status"]) == (None, None, "success")  # the demo counts nothing
    heads, line = run_here("usage", "--calls").stdout.splitlines()
    assert heads.split()[:2] == ["when", "predicted"]
    assert f"{entry['predicted']:,}" in line and entry["model"] in line


def test_days_and_session_narrow_it(run_here: Run, tmp_path: Path) -> None:
    ident = run_here("import", str(claude_session(tmp_path / "a.jsonl"))).stdout.split()[0]
    run_here("ask", "hello")
    report = json.loads(run_here("usage", "--json", "--days", "2", "--session", ident).stdout)
    assert report["session"]["calls"] == 2
    assert report["days"]["calls"] == 1  # the imported calls carry no time: they are not of these days
    assert [row["name"] for row in report["by_provider"]] == ["demo"]
    assert report["all"]["calls"] == 3
    of_session = ("usage", "--calls", "--json", "--session", ident)
    assert len(json.loads(run_here(*of_session).stdout)) == 2
    assert json.loads(run_here(*of_session, "--days", "2").stdout) == []


def test_trims_are_counted(run_here: Run, tmp_path: Path) -> None:
    run_here("ask", "hello")
    ident = json.loads(run_here("sessions", "--json").stdout)[0]["id"]
    store = SessionStore(tmp_path / "data" / "chatctx.db")
    store.add_record(ident, "trim", {"state": {}, "messages": 3, "tokens": 1_200})
    store.add_record(ident, "trim", {"state": {}, "messages": 0, "tokens": 0})  # everything goes out again
    store.create_session(SessionInfo("0b", "", "demo", "demo", time.time(), 0.0))
    store.add_record("0b", "trim", {"state": {}, "messages": 1, "tokens": 100})
    store.write("INSERT INTO records (session, id, kind, at, data) VALUES ('0b', 'x', 'trim', 0, '{')", ())  # damaged
    store.put_state(TRIM_LOG, json.dumps({"requests": 4, "trimmed": 2, "utilisation_sum": 200, "latest": [1_200, 100]}))
    store.close()
    report = json.loads(run_here("usage", "--json").stdout)
    assert report["session"]["trims"] == {"count": 1, "messages": 3, "estimated_tokens": 1_200}
    assert report["all"]["trims"] == {"count": 2, "messages": 4, "estimated_tokens": 1_300}
    assert report["today"]["trims"] == report["all"]["trims"]
    assert "2 of 4 requests trimmed" in run_here("usage").stdout  # as /usage has it


def test_text_fits_and_names_everything(run_here: Run, tmp_path: Path) -> None:
    assert "No calls yet" in run_here("usage").stdout
    run_here("import", str(claude_session(tmp_path / "a.jsonl")))
    run_here("ask", "hello")
    for columns in ("40", "100"):
        done = run_here("usage", COLUMNS=columns)
        assert done.returncode == 0
        assert max(map(len, done.stdout.splitlines())) <= int(columns)
    for words in ("session", "today", "total", "by provider", "reasoning", "cost", "anthropic/claude-opus-4-6"):
        assert words in done.stdout


def test_bad_input(run_here: Run) -> None:
    for args, words in (
        (["--days", "0"], "range 1<=x<=100000"),
        (["--days", "9" * 20], "range 1<=x<=100000"),
        (["--days", "x"], "not a valid integer"),
        (["--session", "feed"], "sessions"),
    ):
        done = run_here("usage", *args)
        assert words in one_line(done.stderr)
        assert done.returncode == 2
