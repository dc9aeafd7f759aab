from __future__ import annotations

import json
import operator
import os
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

import pytest

from tests.messages import assistant
from tui.chat.conversation.conversation import Conversation
from tui.chat.store import database
from tui.chat.store.calls import CallLog, usage_columns
from tui.chat.store.database import StoreError, new_id
from tui.chat.store.learned import StoredCalibrations
from tui.chat.store.repair import repair
from tui.chat.store.schema import APPLICATION_ID, MIGRATIONS
from tui.chat.store.store import SessionInfo, SessionStore, search_values
from tui.context.counting.words import LATIN
from tui.context.estimate.calibration import Calibration, CalibrationBook, Errors, Observation, PreambleCost
from tui.errors import UsageError
from tui.messages import (
    Attachment,
    BilledPass,
    Message,
    Reasoning,
    Request,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from tui.providers.base import ReasoningDelta, ReasoningMeta, TextDelta, UsageUpdate


def add_session(store: SessionStore, title: str = "", at: float = 1.0) -> str:
    ident = new_id()
    store.create_session(SessionInfo(ident, title, "local", "smollm2", at, at))
    return ident


def user(text: str, at: float = 1.0) -> Message:
    return Message("user", (Text(text),), id=new_id(), created_at=at)


EVERYTHING = assistant(
    Reasoning("hm", "p", "m", signature="", encrypted="e", item_id="rs_1", details="[]", tokens=3),
    "text with \x00, \ud800 and 你好",
    ToolCall("c1", "read_file", '{"path": "a"}', extra="{}"),
    ToolResult("c1", "read_file", "…", is_error=True),
    Attachment("image", "a.png", "image/png", "00", 10, 4, 5),
    id="01",
    created_at=2.0,
    provider="p",
    model="m",
    finish_reason="stop",
    usage=Usage(10, 5, 3, None, 2),
)


def test_messages_survive_unchanged(store: SessionStore) -> None:
    session = add_session(store)
    store.add_message(session, EVERYTHING)
    assert store.messages(session) == [EVERYTHING]


def test_a_finished_message_cannot_be_changed(store: SessionStore) -> None:
    session = add_session(store)
    store.add_message(session, EVERYTHING)
    with pytest.raises(StoreError, match="never changed"):
        store.add_message(session, EVERYTHING)


def test_records_cannot_be_changed(store: SessionStore) -> None:
    session = add_session(store)
    record = store.add_record(session, "pin", {"id": "x"})
    assert store.records(session) == [record]
    with pytest.raises(StoreError, match="never changed"), store.transaction() as db:
        db.execute("UPDATE records SET data = '{}'")


def test_streaming_message_grows_then_is_final(store: SessionStore) -> None:
    session = add_session(store)
    draft = assistant(id=new_id(), status="streaming", created_at=1.0, provider="p", model="m")
    store.add_message(session, draft)
    store.append_events(session, draft.id, [ReasoningDelta("a"), ReasoningMeta(signature="s")])
    store.append_events(session, draft.id, [TextDelta("he"), TextDelta("llo"), UsageUpdate(Usage(5, 2))])
    [grown] = store.messages(session)
    assert grown.parts == (Reasoning("a", "p", "m", signature="s"), Text("hello"))
    assert grown.usage == Usage(5, 2)
    final = Message(**{**{f: getattr(grown, f) for f in grown.__dataclass_fields__}, "status": "complete"})
    store.add_message(session, final)
    assert store.messages(session) == [final]
    assert store.query("SELECT count(*) FROM deltas") == [(0,)]


WRITER = """
import sys, time
from pathlib import Path
from tui.chat.store.store import SessionStore, SessionInfo
from tui.messages import Message
from tui.providers.base import TextDelta
store = SessionStore(Path(sys.argv[1]))
store.create_session(SessionInfo("s", "", "p", "m", 1.0, 1.0))
store.add_message("s", Message("assistant", (), id="m1", status="streaming", created_at=1.0))
store.append_events("s", "m1", [TextDelta("kept")])
print("ready", flush=True)
time.sleep(60)
"""


def test_killed_writer_leaves_an_interrupted_message_and_a_live_one_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "chatctx.db"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        store = SessionStore(path)
        try:
            assert store.recover() == 0
            assert store.messages("s")[0].status == "streaming"
            child.kill()
            child.wait()
            assert store.recover() == 1
            [message] = store.messages("s")
            assert (message.status, message.text) == ("interrupted", "kept")
            assert message.error
        finally:
            store.close()


def test_two_programs_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "chatctx.db"
    stores = [SessionStore(path), SessionStore(path)]
    session = add_session(stores[0])

    def write(store: SessionStore) -> None:
        for number in range(40):
            store.add_message(session, user(str(number)))

    threads = [threading.Thread(target=write, args=(store,)) for store in stores for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores[1].messages(session)) == 160
    for store in stores:
        store.close()


def test_a_database_of_the_first_format_is_brought_forward(tmp_path: Path) -> None:
    path = tmp_path / "chatctx.db"
    with sqlite3.connect(path) as db:
        db.executescript(MIGRATIONS[0])
        db.execute(
            "INSERT INTO calls (id, session, kind, provider, model, at, status, input_total, output_total)"
            " VALUES ('c1', 's1', 'chat', 'p', 'm', 1.0, 'success', 900, 90)"
        )
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 1")
    db.close()
    store = SessionStore(path)
    calls = CallLog(store)
    assert [(row.input_total, row.passes_input) for row in calls.rows()] == [(900, None)]
    assert [group.day for group in calls.groups()] == [date.fromtimestamp(1.0).isoformat()]
    request = Request("p", "m", (), session="s1")
    call = calls.begin(request, None, message=None, kind="chat")
    several = Usage(800, 80, passes=(BilledPass(1_000, 10, 300), BilledPass(800, 80, 200)))
    calls.finish(call, usage=several, billed=("p", "m"), seconds=1.0)
    row = calls.rows()[-1]
    assert (row.input_total, row.passes_input, row.passes_cached, row.passes_output) == (800, 1_800, 500, 90)
    store.close()


def test_each_sum_of_a_call_in_several_passes_is_over_all_of_them() -> None:
    passes = BilledPass(1_000, 10, 300, 40, reasoning=4), BilledPass(800, 80, 200, 5, reasoning=20)
    several = Usage(800, 80, 200, 5, 20, passes=passes)
    columns = usage_columns(several)
    assert [columns[f"passes_{name}"] for name in ("input", "cached", "output")] == [1_800, 500, 90]
    assert (columns["input_cache_write"], columns["reasoning"]) == (45, 24)
    silent = replace(several, passes=(*passes, BilledPass(700, 7)))
    assert usage_columns(silent)["reasoning"] is None  # of one pass nobody knows it


STATE = {
    "imported": {"s1": [2, "d1"], "gone": [3, "d2"], "s2": [4, "d3"]},
    "unmeasured": {"s2": {"not_in_file": 5, "corrected": {}}},
    "imported_files": {"/a.jsonl": [100, 1.5]},
    "rolling": "on",
}


@pytest.mark.parametrize(
    "state", [STATE, dict.fromkeys(STATE, "damaged"), {"imported": ["odd"], "imported_files": {"/b": None}}]
)
@pytest.mark.parametrize("bring_forward", [lambda path: None, repair], ids=["opened", "repaired"])
def test_imports_of_a_database_of_the_sixth_format_are_still_known(
    tmp_path: Path, state: dict[str, object], bring_forward: Callable[[Path], object]
) -> None:
    path = tmp_path / "chatctx.db"
    with sqlite3.connect(path) as db:
        for script in MIGRATIONS[:6]:
            db.executescript(script)
        for session in ("s1", "s2"):
            db.execute(
                "INSERT INTO sessions (id, created_at, updated_at, provider, model) VALUES (?, 1, 1, '', '')",
                (session,),
            )
        texts = ((key, value if isinstance(value, str) else json.dumps(value)) for key, value in state.items())
        db.executemany("INSERT INTO state (key, value) VALUES (?, ?)", texts)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 6")
    db.close()
    bring_forward(path)
    with closing(SessionStore(path)) as store:
        imports = store.query("SELECT session, digest FROM imports ORDER BY rowid")
        if state is STATE:
            assert imports == [("s1", "d1"), ("s2", "d3")]
            assert store.unmeasured("s1") is None
            assert json.loads(store.unmeasured("s2") or "") == {"not_in_file": 5, "corrected": {}}
            assert store.query("SELECT * FROM imported_files") == [("/a.jsonl", 100, 1.5)]
            assert store.query("SELECT key FROM state") == [("rolling",)]
        else:
            assert imports == []


CALIBRATION = {
    "observations": [[100.0, 4.0, 130.0, {"latin": 100.0}, True], [200.0, 4.0, 250.0, {"latin": 200.0}, False]],
    "call_errors": [0.5, 1.5],
    "relative": [0.01, -0.02],
    "calls": 2,
    "first": {"call_errors": [0.25], "relative": [0.03], "calls": 1},
    "media": [1.5],
    "returned": [0.0],
    "preambles": {"ab": [10.0, 12.0, True]},
    "tool_changes": [[1.0, 2.0]],
    "floor": 0.5,
    "excesses": [1.0, 2.0, 900.0, 901.0],
    "unseen": [1.0],
}


@pytest.mark.parametrize("bring_forward", [lambda path: None, repair], ids=["opened", "repaired"])
def test_what_the_seventh_format_knew_of_a_model_is_still_known(
    tmp_path: Path, bring_forward: Callable[[Path], object]
) -> None:
    path = tmp_path / "chatctx.db"
    state = {
        "asked:p/m": {"context": 8_192},
        "tools:p/m": False,
        "window:p/m": {"set": 4_096},
        "tools:p/other": True,
        "window:p/new": {"asked": {"context": 2}, "tools": True},
        "asked:p/new": {"context": 1},
        "asked:p/odd": [1],
        "tools:p/forgotten": None,
        "usage:s1": {"total": 5},
        "tools_used": {"look": 1.5},
    }
    with sqlite3.connect(path) as db:
        for script in MIGRATIONS[:7]:
            db.executescript(script)
        texts = [*((key, json.dumps(value)) for key, value in state.items()), ("asked:p/bad", "{"), ("window:p/b", "{")]
        db.executemany("INSERT INTO state (key, value) VALUES (?, ?)", texts)
        db.execute("INSERT INTO sessions (id, created_at, updated_at, provider, model) VALUES ('s1', 1, 1, '', '')")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 7")
    db.close()
    bring_forward(path)
    with closing(SessionStore(path)) as store:
        assert store.get_state("window:p/b") == "{"
        rows = store.query("SELECT key, value FROM state WHERE key <> 'window:p/b'")
    assert {key: json.loads(value) for key, value in rows} == {
        "window:p/m": {"set": 4_096, "asked": {"context": 8_192}, "tools": False},
        "window:p/other": {"tools": True},
        "window:p/new": {"asked": {"context": 2}, "tools": True},
        "tools_used": {"look": 1.5},
    }


def test_what_was_learned_in_the_seventh_format_is_still_known(tmp_path: Path) -> None:
    path = tmp_path / "chatctx.db"
    with sqlite3.connect(path) as db:
        for script in MIGRATIONS[:7]:
            db.executescript(script)
        for model, data in (("m", json.dumps(CALIBRATION)), ("damaged", "{"), ("odd", "[]")):
            db.execute("INSERT INTO calibrations (provider, model, data) VALUES ('p', ?, ?)", (model, data))
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 7")
    db.close()
    with closing(SessionStore(path)) as store:
        book = CalibrationBook(StoredCalibrations(store))
        assert book.get("p", "damaged") == book.get("p", "odd") == Calibration()
        assert book.get("p", "m") == Calibration(
            observations=(
                Observation(100.0, 4.0, 130.0, ((LATIN, 100.0),)),
                Observation(200.0, 4.0, 250.0, ((LATIN, 200.0),), sure=False),
            ),
            errors=Errors((0.5, 1.5), (0.01, -0.02), 2),
            first_errors=Errors((0.25,), (0.03,), 1),
            media=(1.5,),
            returned=(0.0,),
            preambles={b"\xab": PreambleCost(10.0, 12.0, agreed=True)},
            floor=0.5,
            excesses=(900.0, 901.0),
            unseen=(1.0,),
        )


def test_newer_database_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "chatctx.db"
    SessionStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="newer chatctx"):
        SessionStore(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"not a database at all", b"SQLite format 3\0 cut", b"\0" * 4096])
def test_damaged_database_is_refused_and_untouched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "chatctx.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged|belongs to another") as caught:
        SessionStore(path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


def test_damage_inside_gives_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "chatctx.db"
    store = SessionStore(path)
    session = add_session(store)
    for _ in range(50):
        store.add_message(session, user("x" * 2000))
    store.close()
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreError, match="damaged") as caught, closing(SessionStore(path)) as opened:
        opened.messages(session)
    assert "\n" not in str(caught.value)


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chatctx.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA application_id = 7")
        db.execute("CREATE TABLE t (x)")
    db.close()
    with pytest.raises(StoreError, match="another program"):
        SessionStore(path)


def test_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="CHATCTX_DATA_DIR"):
        SessionStore(tmp_path / "file" / "chatctx.db")


def test_what_keeps_it_from_writing_is_named(store: SessionStore) -> None:
    store.query("PRAGMA busy_timeout = 0")
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="held by another program"):
            add_session(store)
    store.query("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match=r"can't write to .*readonly"):
        add_session(store)
    with pytest.raises(StoreError, match=r"could not be used .malformed JSON"):
        store.query("SELECT value FROM json_each('{')")  # says nothing of the file
    assert not store.damage


def test_full_disk_says_so_and_keeps_what_was_there(store: SessionStore) -> None:
    session = add_session(store)
    store.add_message(session, user("kept"))
    (pages,) = store.query("PRAGMA page_count")[0]
    store.query(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="disk is full"):
        store.add_message(session, user("x" * 500_000))
    store.query("PRAGMA max_page_count = 1000000")
    assert [m.text for m in store.messages(session)] == ["kept"]
    store.add_message(session, user("again"))
    assert [m.text for m in store.messages(session)] == ["kept", "again"]


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_written_to_a_file_that_is_not_there_any_more(store: SessionStore, replaced: bool) -> None:
    session = add_session(store)
    store.add_message(session, user("kept"))
    store.path.rename(store.path.with_suffix(".old"))
    if replaced:
        store.path.touch()
    with pytest.raises(StoreError, match="removed or replaced"):
        store.add_message(session, user("lost"))
    assert [m.text for m in store.messages(session)] == ["kept"]
    store.path.with_suffix(".old").replace(store.path)
    store.add_message(session, user("again"))


def test_nothing_is_lost_after_this_program_has_read_its_own_database(store: SessionStore) -> None:
    """Closing the file ends the locks of SQLite, so that the next program to leave removes the write-ahead log."""
    session = add_session(store)
    another = f"import sqlite3; db = sqlite3.connect({str(store.path)!r}); print(*db.execute(%r)); db.close()"
    store.path.read_bytes()
    subprocess.run([sys.executable, "-c", another % "SELECT 1 FROM sessions"], check=True)
    store.add_message(session, user("hello"))
    query = "SELECT count(*) FROM messages"
    seen = subprocess.run([sys.executable, "-c", another % query], check=True, capture_output=True, text=True).stdout
    assert seen.strip() == "(1,)"
    assert [info.id for info in store.sessions("hello")] == [session]  # its functions are there


def test_a_message_restores_a_session_that_another_program_has_deleted(store: SessionStore) -> None:
    session = add_session(store)
    with closing(SessionStore(store.path)) as other:
        other.update_session(session, deleted_at=1.0)
        assert other.sessions() == []
        store.add_message(session, user("hello"))
        assert [info.id for info in other.sessions()] == [session]
        other.update_session(session, deleted_at=1.0)
        store.add_message(session, assistant("hi", id="a"))
        assert other.sessions() == []


def test_a_quota_is_no_reason_to_move_the_database_away(store: SessionStore) -> None:
    session = add_session(store)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StoreError, match=r"free space") as error:
            store.add_message(session, user("x" * 500_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "move it away" not in str(error.value)
    store.add_message(session, user("again"))


def test_session_is_found_by_the_beginning_of_its_id_if_that_is_clear(store: SessionStore) -> None:
    for ident in ("abc1", "abc2", "xyz"):
        store.create_session(SessionInfo(ident, "", "p", "m", 1.0, 1.0))
    assert store.session("x") is not None
    assert store.session("abc") is None
    assert store.session("abc1") is not None
    assert store.session("") is None
    assert store.session("*") is None


def test_sessions_are_searched_by_title_and_text(store: SessionStore) -> None:
    first, second = add_session(store, "About Parsers", 1.0), add_session(store, at=2.0)
    store.add_message(second, user('Grüße, "quoted"', at=2.0))
    assert [s.id for s in store.sessions()] == [second, first]
    assert [s.id for s in store.sessions("parser")] == [first]
    assert [s.id for s in store.sessions("GRÜSSE".replace("SS", "ß"))] == [second]
    assert [s.id for s in store.sessions('"quoted"')] == [second]
    assert [s.id for s in store.sessions('grüsse, "QUOTED')] == [second]
    assert store.sessions("nothing like it") == []


def test_a_search_finds_what_can_be_read_and_nothing_else(store: SessionStore) -> None:
    """Not the store's own words, not ids, not what is signed or encrypted; case-folded beyond ASCII."""
    session = add_session(store, "x", 1.0)
    parts = (
        Text("ÜBER den Wolken\nmuß die 東京 𠮷野家 sein"),
        Reasoning("quietly", signature="c2lnbmVk", encrypted="c2VhbGVk"),
        ToolCall("call_77", "fetch_it", '{"place":"Köln"}'),
        ToolResult("call_77", "fetch_it", "Dom"),
        Attachment("text", "Notes.md", "text/markdown", "ab" * 32, 9, text="inside"),
    )
    store.add_message(session, Message("assistant", parts, id=new_id()))
    for words in [
        "über",
        "WOLKEN",
        "MUß",
        "Quietly",
        "FETCH_IT",
        "köln",
        "dom",
        "notes.MD",
        "Inside",
        "den wolken\nmuß",
        "東京",
        "Die 東京 𠮷野",
    ]:
        assert store.sessions(words), words
    first = {
        query: search_values(query)["stored"] for query in ("a", "ÜBER Den", "muß", "東京 a")
    }  # what SQL looks for
    assert list(first.values()) == ["a", "den", "", "\\u6771\\u4eac"]
    for missed in [
        "type",
        "signature",
        "c2lnbmVk",
        "c2VhbGVk",
        "call_77",
        "markdown",
        "abab",
        "assistant",
        "wolken muß",
    ]:
        assert not store.sessions(missed), missed


def test_prompts_come_back_oldest_first(store: SessionStore) -> None:
    for text in "abc":
        store.add_prompt(text)
    assert store.prompts(2) == ["b", "c"]


def test_state_is_remembered_and_forgotten(store: SessionStore) -> None:
    assert store.get_state("k") is None
    store.put_state("k", "1")
    store.put_state("k", "2")
    assert store.get_state("k") == "2"
    store.put_state("k", None)
    assert store.get_state("k") is None


@pytest.mark.parametrize("damaged", ["{", "[1]", "null", ""])
def test_damaged_state_counts_as_none_and_can_be_replaced(store: SessionStore, damaged: str) -> None:
    store.put_state("k", damaged)
    assert store.state("k") == {}
    assert store.change_state("k", lambda values: values | {"a": 1}) == {"a": 1} == store.state("k")


def test_sessions_in_which_nothing_was_said_are_forgotten_after_a_day(store: SessionStore) -> None:
    now = time.time()
    for name, at, draft in (("old", now - 100_000, ""), ("drafted", now - 100_000, "hm"), ("new", now, "")):
        store.create_session(SessionInfo(name, "", "p", "m", at, at, draft=draft))
    spoken = add_session(store, at=1.0)
    store.add_message(spoken, user("hi"))
    store.recover()
    assert {info.id for info in store.sessions()} == {"drafted", "new", spoken}


def test_of_what_two_programs_remember_at_once_nothing_is_lost(store: SessionStore) -> None:
    with closing(SessionStore(store.path)) as other:

        def remember(where: SessionStore, name: str) -> None:
            for number in range(20):
                where.change_state("answers", partial(operator.or_, {f"{name}{number}": number}))

        threads = [threading.Thread(target=remember, args=pair) for pair in ((store, "a"), (other, "b"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(store.change_state("answers", dict)) == 40


def test_what_comes_after_a_clock_was_set_back_stands_behind_what_was_there(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = add_session(store)
    store.add_message(session, user("before"))
    monkeypatch.setattr(database, "_last", 0)  # another run of the program ...
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000_000_000_000_000)  # ... on a day in 2001
    info = store.session(session)
    assert info is not None
    Conversation(store, info, store.messages(session), store.records(session))
    store.add_message(session, user("after"))
    assert [message.text for message in store.messages(session)] == ["before", "after"]
    record = store.add_record(session, "tools", {"name": "x", "on": True})
    monkeypatch.setattr(database, "_last", 0)
    Conversation(store, info, store.messages(session), store.records(session))
    assert store.add_record(session, "tools", {"name": "x", "on": True}).id > record.id
    database.follow(["", "01", "zz" * 12, "f" * 24])  # no ids of ours
    assert database.new_id() < "1"


def test_a_session_by_the_beginning_or_the_end_of_its_id(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "chatctx.db")
    for ident in ("01a2", "01a3", "02"):
        store.create_session(SessionInfo(ident, "", "local", "m", 1.0, 1.0))
    assert [store.find(text).id for text in ("01a3", "02", "a2")] == ["01a3", "02", "01a2"]
    with pytest.raises(UsageError, match="several sessions have an id like '01a': type more of it"):
        store.find("01a")
    assert store.with_id("x" * 100_000) == []
    for nothing in ("03", "", "*"):
        with pytest.raises(UsageError, match="list them with: chatctx sessions"):
            store.find(nothing)
    store.close()


def test_the_last_session_is_found_behind_any_number_of_starts_without_a_word(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "chatctx.db")
    assert store.last_session() is None
    store.create_session(SessionInfo("0", "", "local", "m", 1.0, 1.0))
    store.add_message("0", Message("user", (Text("hello"),), id="1", created_at=1.0))
    for number in range(30):
        store.create_session(SessionInfo(f"{number + 1:02}", "", "local", "m", 1e10 + number, 1e10 + number))
    last = store.last_session()
    assert last is not None and last.id == "0"
    store.close()
