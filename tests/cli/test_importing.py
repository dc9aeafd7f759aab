"""`chatctx import` as a person meets it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.chat.interchange.test_importing import claude_session
from tests.cli.conftest import Run, one_line


def test_out_and_in_again_is_the_same(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("some notes")
    run("ask", "hello")
    ident = json.loads(run("sessions", "--json").stdout)[0]["id"]
    first, second, third = (tmp_path / name for name in ("one.jsonl", "two.jsonl", "three.jsonl"))
    assert run("export", ident, str(first)).returncode == 0
    elsewhere = {"CHATCTX_DATA_DIR": str(tmp_path / "other")}
    came = run("import", str(first), **elsewhere)
    assert came.returncode == 0
    assert ident in came.stdout
    run("export", ident, str(second), **elsewhere)
    assert second.read_bytes() == first.read_bytes()
    known = run("import", "--json", str(first))
    assert (json.loads(known.stdout), known.returncode) == ([], 0)
    assert f"one.jsonl: it is here already, as 'hello' ({ident}): --again" in one_line(known.stderr)
    (entry,) = json.loads(run("import", "--json", "--again", str(first)).stdout)
    assert entry["copy_of"] == ident != entry["session"]
    run("export", entry["session"], str(third))
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    again = [json.loads(line) for line in third.read_text().splitlines()]
    for before, after in zip(lines, again, strict=True):
        if before["type"] == "session":
            before, after = ({**line, "id": ""} for line in (before, after))
        elif before["type"] == "call":  # calls have ids of their own in the whole store
            before, after = ({**line, "id": "", "session": ""} for line in (before, after))
        assert before == after


def test_another_programs_session_has_a_context(run: Run, tmp_path: Path) -> None:
    done = run("import", str(claude_session(tmp_path / "a.jsonl")))
    assert done.returncode == 0, done.stderr
    ident = done.stdout.split()[0]
    usage = json.loads(run("context", ident, "--json").stdout)  # CHATCTX_MODEL is for new sessions
    assert (usage["provider"], usage["basis"]["last_input"]) == ("anthropic", 15_940)
    assert json.loads(run("context", ident, "--json", "-m", "demo").stdout)["provider"] == "demo"
    assert sum(row["tokens"] for row in usage["rows"]) == usage["total"]


def test_a_bad_file_among_good_ones_is_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"some": "thing"}\n')
    done = run("import", str(tmp_path / "bad.jsonl"), str(claude_session(tmp_path / "good.jsonl")), "--json")
    assert done.returncode == 1
    assert "bad.jsonl" in one_line(done.stderr)
    assert [Path(entry["file"]).name for entry in json.loads(done.stdout)] == ["good.jsonl"]
    assert len(json.loads(run("sessions", "--json").stdout)) == 1
