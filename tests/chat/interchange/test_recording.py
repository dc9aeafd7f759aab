"""What could not be shown, stored or folded later is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.messages import user
from tests.recordings import read_recording
from tui.chat.interchange.recording import (
    Recording,
    RecordingError,
    checked,
    checked_records,
    checked_row,
    first_words,
    read_jsonl,
)
from tui.chat.store.calls import CallRow
from tui.chat.store.store import Record, SessionInfo

INFO = SessionInfo("01", "title", "local", "m", 1.0, 2.0)
CALL = CallRow("c1", "01", None, "chat", "local", "m", 1.0, "success", 5, None, "delta", 5, -3)


@pytest.mark.parametrize(
    ("row", "changes", "words"),
    [
        (INFO, {"title": ["x"]}, "title of a SessionInfo is list"),
        (INFO, {"rolling": []}, "rolling of a SessionInfo is list"),
        (INFO, {"updated_at": 1e308}, "updated_at of a SessionInfo is 1e"),  # no list of sessions could show it
        (INFO, {"created_at": float("nan")}, "created_at of a SessionInfo is nan"),
        (CALL, {"predicted": 10**30}, "predicted of a CallRow is 1000"),
        (CALL, {"cost": "much"}, "cost of a CallRow is str"),
        (CALL, {"model": None}, "model of a CallRow is NoneType"),
    ],
)
def test_a_row_that_can_not_be(row: Any, changes: dict[str, Any], words: str) -> None:
    assert checked_row(row) == row
    with pytest.raises(RecordingError, match=words):
        checked_row(replace(row, **changes))


def test_a_title_that_is_no_text() -> None:
    title: Any = True
    info = replace(INFO, title=title)
    with pytest.raises(RecordingError, match="title of a SessionInfo is bool"):
        checked(Recording("chatctx", info.title, (), info=info))


@pytest.mark.parametrize("ident", ["a; reboot", "$(id)", "../01", "-m", "", "0" * 41])
def test_an_id_that_a_shell_would_read_is_refused(ident: str) -> None:
    with pytest.raises(RecordingError, match="the session's id"):
        checked(Recording("chatctx", "t", (), info=replace(INFO, id=ident)))


@pytest.mark.parametrize("line", [{"type": "note"}, {"type": ["message"]}, {"type": "session", "version": 2}, {}])
def test_nothing_of_a_later_version_is_left_out_in_silence(line: dict[str, Any]) -> None:
    with pytest.raises(RecordingError, match="a later version of chatctx: update it"):
        read_jsonl([{"type": "message", "message": {}}, line], "a.jsonl")


def test_half_a_character_in_a_label_is_mended() -> None:
    assert checked_row(replace(INFO, title="a\ud800b")).title == "a?b"


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        ("pin", {"id": "m1"}, "KeyError"),
        ("pin", {"id": ["m1"], "on": True}, "id of a record 'pin' is not text"),
        ("set_aside", {"ids": ["m1", {}]}, "ids of a record 'set_aside' is not text"),
        ("set_aside", {"ids": 5}, "ids of a record"),
        ("system", {}, "KeyError"),
        ("memory", {"files": None}, "TypeError"),
        ("trim", {"state": []}, "can't be read"),
        ("checkpoint", {"type": "compaction", "id": "c", "at": 1.0, "before": float("inf")}, "can't be read"),
        ("checkpoint", {"type": "odd"}, "can't be read"),
    ],
)
def test_a_record_that_can_not_be_folded(kind: str, data: dict[str, Any], words: str) -> None:
    with pytest.raises(RecordingError, match=words):
        checked_records([Record("r1", kind, 1.0, data)])
    with pytest.raises(RecordingError, match=words):  # taken back: a fork and a later version may read it
        checked_records([Record("r1", kind, 1.0, data), Record("r2", "restore", 1.0, {"record": "r1"})])


def test_a_file_nested_without_end_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "deep.jsonl"
    file.write_text('{"a":' * 50_000)
    with pytest.raises(RecordingError, match=r"deep\.jsonl: damaged"):
        read_recording(file)


def test_a_long_first_message_makes_a_title_with_an_ellipsis() -> None:
    title = first_words([user("word " * 40, id="1")])
    assert len(title) <= 80 and title.endswith("word…")
