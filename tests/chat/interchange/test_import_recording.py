from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chat.interchange.foreign.test_foreign import claude_answer, claude_line, write
from tests.chat.store.test_store import EVERYTHING, user
from tests.recordings import read_recording
from tui.chat.conversation.history import fold_records
from tui.chat.conversation.projection import Target, build_request
from tui.chat.interchange.export import export_session
from tui.chat.interchange.importing import checked, import_recording
from tui.chat.interchange.recording import RecordingError
from tui.chat.store.calls import CallLog
from tui.chat.store.database import StoreError
from tui.chat.store.store import SessionInfo, SessionStore
from tui.messages import Message, Request, ToolResult, Usage


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[SessionStore, SessionStore]]:
    opened = SessionStore(tmp_path / "one.db"), SessionStore(tmp_path / "two.db")
    yield opened
    for store in opened:
        store.close()


def exported(store: SessionStore, path: Path) -> SessionInfo:
    """A session with a bit of everything, and its export."""
    store.create_session(SessionInfo("0a", "a title", "p", "m", 1.0, 1.0))
    store.add_message("0a", user("hello"))
    store.add_message("0a", EVERYTHING)
    store.add_record("0a", "pin", {"id": "01", "on": True})
    store.put_blob("00", b"\x00image")
    store.add_message("0a", Message("tool", (ToolResult("c", "fetch", "cut", full="11"),), id="99"))
    store.put_blob("11", b"all of it")
    calls = CallLog(store)
    call = calls.begin(Request("p", "m", (), session="0a"), None, message="01", kind="chat")
    calls.finish(call, usage=Usage(10, 5), seconds=1.5, cost=0.25)
    export_session(path, store, "0a")
    info = store.session("0a")
    assert info is not None
    return info


def test_our_own_export_comes_back_as_it_was(stores: tuple[SessionStore, SessionStore], tmp_path: Path) -> None:
    one, two = stores
    info = exported(one, tmp_path / "a.jsonl")
    assert import_recording(read_recording(tmp_path / "a.jsonl"), two) == info
    assert two.session("0a") == info
    assert two.messages("0a") == one.messages("0a")
    assert two.records("0a") == one.records("0a")
    assert two.blob("00") == b"\x00image"
    assert two.blob("11") == b"all of it"
    assert CallLog(two).rows() == CallLog(one).rows()
    export_session(tmp_path / "b.jsonl", two, "0a")
    assert (tmp_path / "b.jsonl").read_bytes() == (tmp_path / "a.jsonl").read_bytes()


def test_a_second_import_is_a_second_session(stores: tuple[SessionStore, SessionStore], tmp_path: Path) -> None:
    one, _ = stores
    exported(one, tmp_path / "a.jsonl")
    copy = import_recording(read_recording(tmp_path / "a.jsonl"), one)
    assert copy.id != "0a"
    assert one.messages(copy.id) == one.messages("0a")
    assert len(CallLog(one).rows(copy.id)) == 1
    assert len(CallLog(one).rows()) == 2


def test_a_foreign_session_opens_with_its_compaction(stores: tuple[SessionStore, SessionStore], tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        claude_line("user", "one", timestamp="2026-01-01T00:00:00Z"),
        claude_answer([{"type": "text", "text": "two"}], "r1", 9),
        claude_line("user", "what happened so far") | {"isCompactSummary": True},
        claude_line("user", "three", timestamp="2026-01-02T00:00:00Z"),
    )
    store, _ = stores
    info = import_recording(read_recording(path), store)
    assert (info.title, info.provider, info.model, info.messages) == ("one", "anthropic", "claude-opus-4-6", 4)
    assert (info.created_at, info.updated_at) == (1_767_225_600.0, 1_767_312_000.0)
    state = fold_records(store.records(info.id))
    request = build_request(store.messages(info.id), state, Target("anthropic", "m"))
    assert [message.text for message in request.messages] == ["what happened so far", "three"]


def test_a_growing_message_is_closed(stores: tuple[SessionStore, SessionStore], tmp_path: Path) -> None:
    one, two = stores
    exported(one, tmp_path / "a.jsonl")
    recording = read_recording(tmp_path / "a.jsonl")
    growing = replace(recording.messages[-1], status="streaming")
    info = import_recording(checked(replace(recording, messages=(growing,), blobs={})), two)
    assert [message.status for message in two.messages(info.id)] == ["interrupted"]


def test_a_failed_import_leaves_nothing(stores: tuple[SessionStore, SessionStore], tmp_path: Path) -> None:
    one, two = stores
    exported(one, tmp_path / "a.jsonl")
    recording = read_recording(tmp_path / "a.jsonl")
    doubled = replace(recording, messages=(*recording.messages, recording.messages[0]))
    with pytest.raises(StoreError):
        import_recording(doubled, two)
    assert two.sessions() == []
    (tmp_path / "bad.jsonl").write_text("nonsense", encoding="utf-8")
    with pytest.raises(RecordingError):
        import_recording(read_recording(tmp_path / "bad.jsonl"), two)


def test_calls_whose_ids_are_taken_get_ids_of_their_own(
    stores: tuple[SessionStore, SessionStore], tmp_path: Path
) -> None:
    one, _ = stores
    exported(one, tmp_path / "a.jsonl")
    path = tmp_path / "changed by hand.jsonl"  # another session, the same calls
    path.write_text((tmp_path / "a.jsonl").read_text().replace('"0a"', '"0b"'))
    assert import_recording(read_recording(path), one).id == "0b"
    rows = CallLog(one).rows()
    assert sorted(row.session for row in rows) == ["0a", "0b"]
    assert len({row.id for row in rows}) == 2
