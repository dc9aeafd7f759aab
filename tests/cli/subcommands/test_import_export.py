"""`chatctx import`, `export` and `replay` as a person meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.chat.interchange.foreign.files import claude_answer, claude_line, write
from tests.chat.interchange.test_importing import claude_session
from tests.chat.interchange.test_replay import recorded
from tests.cli.conftest import Run, one_line
from tests.messages import assistant, user
from tui.chat.interchange.following import Follower
from tui.chat.interchange.recording import RecordingError, write_jsonl
from tui.chat.store.store import Record, SessionInfo
from tui.cli.subcommands.import_export import replay_files
from tui.config.settings import Settings
from tui.messages import Usage


def test_out_and_in_again_is_the_same(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("some notes")
    run_here("ask", "hello")
    ident = json.loads(run_here("sessions", "--json").stdout)[0]["id"]
    first, second, third = (tmp_path / name for name in ("one.jsonl", "two.jsonl", "three.jsonl"))
    assert run_here("export", ident, str(first)).returncode == 0
    elsewhere = {"CHATCTX_DATA_DIR": str(tmp_path / "other")}
    came = run_here("import", str(first), **elsewhere)
    assert came.returncode == 0
    assert ident in came.stdout and "2 messages, 1 call," in came.stdout
    run_here("export", ident, str(second), **elsewhere)
    assert second.read_bytes() == first.read_bytes()
    repeated = run_here("import", "--json", str(first))
    assert (json.loads(repeated.stdout), repeated.returncode) == ([], 0)
    assert f"one.jsonl: it is here already, as 'hello' ({ident}): --again" in one_line(repeated.stderr)
    (entry,) = json.loads(run_here("import", "--json", "--again", str(first)).stdout)
    assert entry["copy_of"] == ident != entry["session"]
    run_here("export", entry["session"], str(third))
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    again = [json.loads(line) for line in third.read_text().splitlines()]
    for before, after in zip(lines, again, strict=True):
        if before["type"] == "session":
            before, after = ({**line, "id": ""} for line in (before, after))
        elif before["type"] == "call":  # calls have ids of their own in the whole store
            before, after = ({**line, "id": "", "session": ""} for line in (before, after))
        assert before == after


def test_another_programs_session_has_a_context(run_here: Run, tmp_path: Path) -> None:
    done = run_here("import", str(claude_session(tmp_path / "a.jsonl")))
    assert done.returncode == 0, done.stderr
    ident = done.stdout.split()[0]
    usage = json.loads(run_here("context", ident, "--json").stdout)  # CHATCTX_MODEL is for new sessions
    assert (usage["provider"], usage["basis"]["last_input"]) == ("anthropic", 15_940)
    assert json.loads(run_here("context", ident, "--json", "-m", "demo").stdout)["provider"] == "demo"
    assert sum(row["tokens"] for row in usage["rows"]) == usage["total"]


def test_a_bad_file_among_good_ones_is_one_line(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"some": "thing"}\n')
    done = run_here("import", str(tmp_path / "bad.jsonl"), str(claude_session(tmp_path / "good.jsonl")), "--json")
    assert done.returncode == 1
    assert "bad.jsonl" in one_line(done.stderr)
    assert [Path(entry["file"]).name for entry in json.loads(done.stdout)] == ["good.jsonl"]
    assert len(json.loads(run_here("sessions", "--json").stdout)) == 1


def test_json_needs_files_since_what_is_offered_is_not_json(run_here: Run) -> None:
    done = run_here("import", "--json")
    assert (done.returncode, done.stdout) == (2, "") and "--json needs FILE" in done.stderr


def test_replay_prints_a_table_or_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [recorded(tmp_path / "a.jsonl"), recorded(tmp_path / "b.jsonl", 5)]
    assert replay_files(Settings(), files=files, method="hybrid", no_learning=False, as_json=False) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["file", "a.jsonl", "b.jsonl", "all"]
    assert replay_files(Settings(), files=files, method="hybrid", no_learning=False, as_json=True) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["file"] for row in data["files"]] == ["a.jsonl", "b.jsonl"]
    assert list(data["all"]) == [
        *("file", "calls", "predicted", "median_abs_error_percent", "p95_abs_error_percent", "p99_abs_error_percent"),
        *("bias_percent", "covered_by_upper_bound_percent", "median_upper_bound_width_percent"),
        *("worst_underestimate_percent", "seconds", "not_scored"),
    ]
    assert (data["all"]["calls"], data["all"]["predicted"]) == (35, 33)


def test_replay_says_which_calls_it_does_not_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usage: Any = {"server_tool_use": {"web_search_requests": 1}}
    answers = (claude_answer([{"type": "text", "text": "found"}], f"r{n}", 9, **usage) for n in range(2))
    path = write(tmp_path / "a.jsonl", claude_line("user", "look"), *answers)
    assert replay_files(Settings(), files=[path], method="hybrid", no_learning=False, as_json=True) == 0
    shown = capsys.readouterr()
    not_scored = {"the file lacks what the server read by itself": 2}
    scores = json.loads(shown.out)
    assert scores["files"][0]["not_scored"] == scores["all"]["not_scored"] == not_scored
    assert "a.jsonl: 2 calls not scored: the file lacks" in shown.err


def test_a_damaged_export_is_named_by_replay_and_watch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = SessionInfo("0a", "t", "demo", "demo", 1.0, 1.0)
    answer = assistant("ho", id="02", model="m", usage=Usage(9, 1))
    messages = [user("hi", id="01"), answer]
    path = tmp_path / "a.jsonl"
    lines = write_jsonl(session, messages, [Record("011", "pin", 1.0, {})], [], [])
    path.write_text("\n".join(lines), encoding="utf-8")
    assert replay_files(Settings(), files=[path], method="hybrid", no_learning=False, as_json=True) == 1
    assert "a.jsonl: damaged: a record can't be read" in capsys.readouterr().err
    with pytest.raises(RecordingError, match="a record can't be read"):
        Follower(path).poll()


def test_replay_names_a_bad_file_and_scores_the_others(run_here: Run, tmp_path: Path) -> None:
    done = run_here("replay", str(tmp_path / "none.jsonl"), str(recorded(tmp_path / "a.jsonl", 1)))
    assert "none.jsonl" in one_line(done.stderr)
    assert done.returncode == 1
    assert [line.split()[:4] for line in done.stdout.splitlines()[1:]] == [
        *(["a.jsonl", "1", "0", "-"], ["all", "1", "0", "-"]),  # the first call has no prediction
    ]
