"""A damaged store: what can be read is read, the rest is said; nothing is written to it; repair saves what there is."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.chat.store.damaged import PAGE, break_pages, make_store, pages_of, spoil
from tests.messages import assistant, tool, user
from tui.chat.store.database import DamagedError, StoreError, new_id
from tui.chat.store.repair import COPIED_TABLES, COPIED_WITH_SESSIONS, repair
from tui.chat.store.store import DAMAGED, SessionInfo, SessionStore
from tui.messages import ToolCall, ToolResult


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_store(tmp_path / "chatctx.db")


def test_a_title_that_is_not_utf_8_costs_its_odd_bytes_alone(path: Path) -> None:
    spoil(path, "UPDATE sessions SET title = CAST(x'66fc6e66' AS TEXT) WHERE id = '0005'")
    with closing(SessionStore(path)) as store:
        assert len(store.sessions()) == 60
        info = store.session("0005")
        assert info is not None and info.title == "f\ufffdnf"
        assert store.sessions("question 5.1")[0].id == "0005"


@pytest.mark.parametrize("parts", ["", "{", "[7]", '[{"type": "unheard-of"}]', "null"])
def test_a_message_that_can_not_be_read_is_said_in_its_place(path: Path, parts: str) -> None:
    spoil(path, "UPDATE messages SET parts = ? WHERE session = '0005' AND id = (SELECT min(id) FROM messages"
          " WHERE session = '0005')", parts)  # fmt: skip
    with closing(SessionStore(path)) as store:
        first, second, *rest = store.messages("0005")
        assert (first.role, first.text, first.status) == ("user", DAMAGED, "failed")
        assert second.text == "answer 5.0" and len(rest) == 10
        assert store.damage and "session 0005" in next(iter(store.damage.values()))
        assert len(store.sessions("answer 5")) == 11  # 5 and 50 to 59
        store.add_message("0005", user("and on", id=new_id()))
        assert store.messages("0005")[-1].text == "and on"


def test_a_record_that_can_not_be_read_is_left_out_and_said(path: Path) -> None:
    spoil(path, "UPDATE records SET data = '{' WHERE session = '0005'")
    with closing(SessionStore(path)) as store:
        assert store.records("0005") == []
        assert "record (pin)" in next(iter(store.damage.values()))
        assert len(store.records("0006")) == 1


@pytest.mark.parametrize("table", ["messages", "sessions", "messages_by_session"])
def test_a_broken_page_leaves_the_rest_readable_and_nothing_is_written(path: Path, table: str) -> None:
    leaves = pages_of(path, table)
    break_pages(path, leaves[len(leaves) // 2])
    before = path.read_bytes()
    with closing(SessionStore(path)) as store:
        infos = store.sessions()
        assert len(infos) >= 30
        texts = [message.text for info in infos for message in store.messages(info.id)]
        assert len(texts) > 300
        assert store.find(infos[0].id).id == infos[0].id
        assert store.with_id("no id") == []
        assert [info.id for info in store.with_id(infos[0].id[1:])] == [infos[0].id]
        if "pages" not in store.damage:
            store.query("SELECT parts FROM messages") if table == "messages" else store.query("SELECT * FROM sessions")
        with pytest.raises(DamagedError, match=r"nothing is written to it: chatctx doctor --repair"):
            store.add_message(infos[0].id, user("lost?", id=new_id()))
    assert path.read_bytes() == before


def everything(store: SessionStore) -> dict[str, list[str]]:
    return {info.id: [message.text for message in store.messages(info.id)] for info in store.sessions()}


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: break_pages(path, pages_of(path, "messages")[10]),
        lambda path: break_pages(path, pages_of(path, "messages")[0], pages_of(path, "messages")[-1]),
        lambda path: break_pages(path, *pages_of(path, "messages")[20:30]),
        lambda path: break_pages(path, *pages_of(path, "sessions")[:1]),
        lambda path: break_pages(path, *pages_of(path, "messages_by_session")[:2]),
        lambda path: spoil(path, "UPDATE messages SET parts = '{' WHERE session = '0005'"),
        lambda path: path.write_bytes(path.read_bytes()[:-20 * PAGE]),
    ],
    ids=["a page", "both ends", "ten pages", "sessions", "an index", "rows", "cut"],
)  # fmt: skip
def test_repair_saves_what_can_be_read_and_keeps_the_old_file(path: Path, damage: Callable[[Path], None]) -> None:
    with closing(SessionStore(path)) as store:
        whole = everything(store)
    damage(path)
    old = path.read_bytes()
    done = repair(path)
    assert done.backup is not None and done.backup.read_bytes() == old
    with closing(SessionStore(path)) as store:
        assert store.query("PRAGMA quick_check")[0][0] == "ok"
        saved = everything(store)
        assert len(saved) == done.sessions >= 25
        assert sum(map(len, saved.values())) == done.messages
        for session, texts in saved.items():
            assert [text for text in texts if text != DAMAGED] == [t for t in whole[session] if t in texts]
        lost = sum(map(len, whole.values())) - sum(text != DAMAGED for texts in saved.values() for text in texts)
        assert lost <= 250 and (done.lost or not lost)  # what is lost is said
        store.add_message(next(iter(saved)), user("and on", id=new_id()))
    assert [file.name for file in path.parent.glob("*.repaired*")] == []


def test_tool_calls_attachments_and_imports_come_along(path: Path) -> None:
    with closing(SessionStore(path)) as store:
        call, result = ToolCall("c1", "look", "{}"), ToolResult("c1", "look", "seen")
        store.add_message("0001", assistant(call, id=new_id()))
        store.add_message("0001", tool(result, id=new_id()))
        store.put_blob("ab", b"data")
        with store.transaction() as db:
            db.executemany("INSERT INTO imports VALUES (?, 'digest', '{}')", [("0002",), ("0001",)])
            db.execute("INSERT INTO imported_files VALUES ('/a.jsonl', 5, 1.5)")
        before = store.messages("0001")
    break_pages(path, pages_of(path, "messages")[30])
    repair(path)
    with closing(SessionStore(path)) as store:
        assert store.messages("0001") == before
        assert store.blob("ab") == b"data"
        assert store.query("SELECT session FROM imports ORDER BY rowid") == [("0002",), ("0001",)]
        assert store.unmeasured("0002") == "{}"
        assert store.query("SELECT * FROM imported_files") == [("/a.jsonl", 5, 1.5)]
        assert len(store.records("0001")) == 1


def test_repair_copies_every_table_but_those_that_are_computed_anew(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    copied = {table for table, _ in (*COPIED_TABLES, *COPIED_WITH_SESSIONS)}
    assert tables - copied == {"sessions", "messages", "measurements", "calibrations", "counts"}


def test_a_store_that_is_open_elsewhere_or_holds_nothing_is_left_alone(path: Path) -> None:
    before = path.read_bytes()
    with closing(SessionStore(path)), pytest.raises(StoreError, match="open in another chatctx"):
        repair(path)
    assert path.read_bytes() == before
    path.write_bytes(b"\0" * 10 * PAGE)
    with pytest.raises(StoreError, match=r"nothing in .* can be read|can't be repaired"):
        repair(path)
    assert path.read_bytes() == b"\0" * 10 * PAGE
    assert not list(path.parent.glob("*.repaired*"))


def test_more_sessions_than_a_list_shows_are_counted(tmp_path: Path) -> None:
    with closing(SessionStore(tmp_path / "chatctx.db")) as store:
        with store.transaction():
            for number in range(1_200):
                store.create_session(SessionInfo(f"{number:05}", "", "p", "m", number, number))
                if number % 2 == 0:
                    store.add_message(f"{number:05}", user("x", id=new_id()))
        assert sum(info.messages for info in store.sessions(limit=sys.maxsize)) == 600
        last = store.last_session()
        assert last is not None and last.id == "01198"


def leave_mark(path: Path, age: float) -> Path:
    """What a process that was killed `age` seconds ago leaves behind."""
    mark = path.parent / "running" / "dead.lock"
    mark.parent.mkdir(exist_ok=True)
    mark.touch()
    os.utime(mark, (time.time() - age, time.time() - age))
    return mark


@pytest.mark.parametrize("age", [1.0, 3_600.0])
def test_after_a_process_was_killed_damage_is_looked_for_before_anything_is_written(path: Path, age: float) -> None:
    mark = leave_mark(path, age)
    with closing(SessionStore(path)) as store:
        assert store.damage == {}
        assert mark.exists() is (age < 60)
    break_pages(path, pages_of(path, "messages")[10])
    leave_mark(path, age)
    before = path.read_bytes()
    with closing(SessionStore(path)) as store:
        with pytest.raises(DamagedError, match="nothing is written to it"):
            store.recover()
        with pytest.raises(DamagedError, match="nothing is written to it"):
            store.create_session(SessionInfo("new", "", "p", "m", 1.0, 1.0))
        assert len(store.sessions()) == 60
    assert path.read_bytes() == before


def test_a_cut_file_is_noticed_when_it_is_opened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: -20 * PAGE])
    before = path.read_bytes()
    with pytest.raises(DamagedError), closing(SessionStore(path)) as store:
        store.create_session(SessionInfo("new", "", "p", "m", 1.0, 1.0))
    assert path.read_bytes() == before
