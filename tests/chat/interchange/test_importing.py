"""Imported sessions go on as if held here: measured, under names known here, whole or not at all."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.chat.interchange.foreign.files import claude_answer, claude_line, write
from tests.chat.store.test_store import EVERYTHING, user
from tests.messages import tool
from tests.recordings import read_recording
from tui.chat.conversation.history import fold_records
from tui.chat.conversation.projection import Target, build_request
from tui.chat.interchange import importing
from tui.chat.interchange.export import export_session
from tui.chat.interchange.foreign import SessionFile
from tui.chat.interchange.importing import (
    AlreadyHereError,
    Imported,
    import_file,
    import_recording,
    import_session,
    provider_name,
    was_imported,
)
from tui.chat.interchange.recording import Recording, RecordingError, checked
from tui.chat.interchange.replay import tokens_not_in_file
from tui.chat.store.calls import CallLog
from tui.chat.store.database import StoreError, new_id
from tui.chat.store.store import SessionInfo, SessionStore
from tui.chat.usage_report import totals
from tui.chat.workspace import Workspace
from tui.config.settings import Settings, ToolSettings
from tui.context.estimate.calibration import Calibration
from tui.context.usage.usage import ContextUsage
from tui.errors import UsageError
from tui.messages import Message, Request, Text, ToolResult, Usage
from tui.providers.catalog import price

PROVIDERS = ("anthropic", "openai", "gemini", "openrouter")


def imported(store: SessionStore, path: Path) -> Imported:
    return import_session(store, read_recording(path), providers=PROVIDERS)


def claude_session(path: Path, preamble: int = 15_000) -> Path:
    """Two turns; the first call has `preamble` tokens that are in no message."""
    words = "The quick brown fox jumps over the lazy dog. " * 30
    return write(
        path,
        claude_line("user", words),
        claude_answer([{"type": "text", "text": words}], "r1", 310, input_tokens=preamble + 315,
                      cache_read_input_tokens=0, cache_creation_input_tokens=0),
        claude_line("user", words),
        claude_answer([{"type": "text", "text": words}], "r2", 310, input_tokens=940,
                      cache_read_input_tokens=preamble, cache_creation_input_tokens=0),
    )  # fmt: skip


async def measured(folder: Path, session: str) -> ContextUsage:
    workspace = await Workspace.open(Settings(data_dir=folder, log_dir=folder, tools=ToolSettings(off=("*",))))
    try:
        return await (await workspace.resume(session)).refresh_usage()
    finally:
        await workspace.close()


async def test_the_next_request_is_measured_without_what_the_other_program_sent(
    store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    result = imported(store, claude_session(tmp_path / "a.jsonl"))
    assert 14_900 < result.not_in_file < 15_100
    usage = await measured(tmp_path, result.info.id)
    assert usage.source == "delta"
    assert usage.basis.last_input == 15_940
    assert usage.basis.last_output == 310
    assert abs(usage.total - (15_940 + 310 - result.not_in_file)) <= 5
    assert usage.upper_bound >= usage.total


async def test_a_running_program_knows_what_it_imported(tmp_path: Path) -> None:
    workspace = await Workspace.open(Settings(data_dir=tmp_path, log_dir=tmp_path))
    try:
        for name, preamble in (("a.jsonl", 15_000), ("b.jsonl", 9_000)):  # the second when the first is in memory
            info = (await workspace.import_file(claude_session(tmp_path / name, preamble))).info
            usage = await (await workspace.resume(info.id)).refresh_usage()
            assert usage.basis.last_input == preamble + 940
    finally:
        await workspace.close()


async def test_other_programs_system_prompts_teach_nothing_about_ours(store: SessionStore, tmp_path: Path) -> None:
    info = imported(store, claude_session(tmp_path / "a.jsonl")).info
    await measured(tmp_path, info.id)
    ((data,),) = store.query("SELECT data FROM calibrations")
    learned = Calibration.from_json(json.loads(data))
    assert (learned.preambles, learned.errors.calls) == ({}, 1)


async def test_a_session_is_measured_once_when_it_is_first_opened(store: SessionStore, tmp_path: Path) -> None:
    info = imported(store, claude_session(tmp_path / "a.jsonl")).info
    assert store.query("SELECT count(*) FROM measurements") == store.query("SELECT count(*) FROM calibrations")
    assert store.query("SELECT count(*) FROM measurements") == [(0,)]
    first = await measured(tmp_path, info.id)
    learned = store.query("SELECT * FROM measurements"), store.query("SELECT * FROM calibrations")
    assert len(learned[0]) == 2
    assert (await measured(tmp_path, info.id)).total == first.total
    assert (store.query("SELECT * FROM measurements"), store.query("SELECT * FROM calibrations")) == learned
    assert store.unmeasured(info.id) is None


async def test_a_session_opens_where_nothing_can_be_written(store: SessionStore, tmp_path: Path) -> None:
    info = imported(store, claude_session(tmp_path / "a.jsonl")).info
    workspace = await Workspace.open(Settings(data_dir=tmp_path, log_dir=tmp_path, tools=ToolSettings(off=("*",))))
    try:
        workspace.store.query("PRAGMA query_only = ON")
        usage = await (await workspace.resume(info.id)).refresh_usage()
        assert (usage.source, usage.basis.last_input) == ("delta", 15_940)
    finally:
        await workspace.close()


def test_every_call_is_there_as_reported_and_none_has_a_prediction(store: SessionStore, tmp_path: Path) -> None:
    result = imported(store, claude_session(tmp_path / "a.jsonl"))
    _, second = calls = CallLog(store).rows(result.info.id)
    estimates = ("predicted", "upper_bound", "source", "known", "estimated")
    assert all(getattr(call, name) is None for call in calls for name in estimates)
    assert (second.input_total, second.input_cached, second.output_total) == (15_940, 15_000, 310)
    replies = [message for message in store.messages(result.info.id) if message.role == "assistant"]
    assert [call.message for call in calls] == [reply.id for reply in replies]
    costs = [reply.usage and price(reply.usage, "anthropic", reply.model) for reply in replies]
    assert [call.cost for call in calls] == costs and all(costs)
    figures = totals("here", CallLog(store).groups(result.info.id))
    assert (figures.calls, figures.estimates.calls, figures.first_estimates.calls) == (2, 0, 0)


@pytest.mark.parametrize(
    ("provider", "model", "name"),
    [
        ("anthropic", "claude-x", "anthropic"),
        ("google", "gemini-2.5-flash", "gemini"),
        ("github-copilot", "gpt-5.6", "openai"),
        ("opencode", "kimi", "openrouter"),
    ],
)
def test_providers_have_our_names(provider: str, model: str, name: str) -> None:
    assert provider_name(provider, model, PROVIDERS) == name


def own_export(path: Path, **damage: Any) -> Path:
    message = {"id": "01", "role": "user", "parts": [{"type": "text", "text": "hello"}], "kind": "chat",
               "status": "complete", "created_at": 1.0, "provider": "", "model": "", "finish_reason": None,
               "error": None, "usage": None}  # fmt: skip
    head = {"type": "session", "format": "chatctx-session", "version": 1, "id": "0a", "title": "t", "provider": "demo",
            "model": "demo", "created_at": 1.0, "updated_at": 1.0, "messages": damage.pop("messages", 1)}  # fmt: skip
    lines: list[Any] = [head, {"type": "message", "message": message | damage}]
    return write(path, *lines, *([] if damage else [{"type": "blob", "sha256": "0" * 64, "data": "aGVsbG8="}]))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({"role": "system"}, "role is 'system'"),
        ({"status": "odd"}, "status is 'odd'"),
        ({"id": ""}, "no id"),
        ({"created_at": "now"}, "created_at of a Message is str"),
        ({"created_at": 1e308}, "created_at of a Message is 1e"),
        ({"usage": {"input_total": "5", "output_total": 1}}, "input_total of a Usage is str"),
        ({"parts": [{"type": "text", "text": 5}]}, "text of a Text is int"),
        ({"model": None}, "model of a Message is NoneType"),
        ({"messages": 2, "id": "01"}, "cut off"),
        ({}, "hash"),
    ],
)
def test_nothing_of_a_damaged_file_comes_in(
    store: SessionStore, tmp_path: Path, damage: dict[str, Any], words: str
) -> None:
    with pytest.raises(RecordingError, match=words):
        imported(store, own_export(tmp_path / "a.jsonl", **damage))
    assert store.sessions() == []
    assert store.query("SELECT count(*) FROM measurements") == [(0,)]


def test_a_message_id_that_stands_twice_is_refused(store: SessionStore, tmp_path: Path) -> None:
    path = own_export(tmp_path / "a.jsonl", messages=1, id="01")
    path.write_text(path.read_text() + path.read_text().splitlines()[1] + "\n")
    with pytest.raises(RecordingError, match="twice"):
        imported(store, path)


def test_a_failure_while_writing_leaves_nothing(
    store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(CallLog, "add", fail)
    with pytest.raises(Exception, match=r"full|space"):
        imported(store, claude_session(tmp_path / "a.jsonl"))
    assert store.sessions() == []
    assert CallLog(store).rows() == []


def test_a_file_counts_as_imported_until_it_changes(store: SessionStore, tmp_path: Path) -> None:
    def is_imported(path: Path) -> bool:
        return was_imported(store, SessionFile("", path, path.stat().st_mtime, path.stat().st_size))

    path = claude_session(tmp_path / os.fsdecode(b"caf\xe9.jsonl"))  # a name that is not UTF-8
    assert not is_imported(path)
    (outcome,) = import_file(store, path, providers=PROVIDERS)
    assert isinstance(outcome, Imported)
    assert is_imported(path)
    path.write_text(path.read_text() + "\n", encoding="utf-8")
    assert not is_imported(path)
    (outcome,) = import_file(store, path, providers=PROVIDERS)
    assert isinstance(outcome, AlreadyHereError)
    assert is_imported(path)


def test_what_another_program_imports_at_the_same_time_is_imported_once(
    store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = claude_session(tmp_path / "a.jsonl")

    def meanwhile(recording: Recording) -> int | None:
        monkeypatch.undo()
        imported(store, path)
        return tokens_not_in_file(recording)

    monkeypatch.setattr(importing, "tokens_not_in_file", meanwhile)
    with pytest.raises(AlreadyHereError):
        imported(store, path)
    assert len(store.sessions()) == 1


def test_what_grows_while_it_is_imported_is_not_imported_whole(store: SessionStore, tmp_path: Path) -> None:
    path = claude_session(tmp_path / "a.jsonl")
    for _ in import_file(store, path, providers=PROVIDERS):
        path.write_text(path.read_text() + json.dumps(claude_line("user", "one more")) + "\n", encoding="utf-8")
    assert not was_imported(store, SessionFile("", path, path.stat().st_mtime, path.stat().st_size))


def test_what_was_imported_before_is_recognised_by_its_content(store: SessionStore, tmp_path: Path) -> None:
    first = imported(store, claude_session(tmp_path / "a.jsonl")).info
    with pytest.raises(AlreadyHereError, match="--again") as refusal:
        imported(store, claude_session(tmp_path / "other name.jsonl"))
    assert (refusal.value.info.id, refusal.value.more) == (first.id, 0)
    path = claude_session(tmp_path / "grown.jsonl")
    path.write_text(path.read_text() + json.dumps(claude_line("user", "one more question")) + "\n")
    store.add_message(first.id, Message("user", (Text("continued here"),), id=new_id()))
    with pytest.raises(AlreadyHereError, match=f"its first {first.messages} messages .* 1 are new") as refusal:
        imported(store, path)
    assert (refusal.value.info.id, refusal.value.here, refusal.value.more) == (first.id, first.messages, 1)
    assert imported(store, claude_session(tmp_path / "different.jsonl", preamble=9_000)).info.id != first.id
    again = import_session(store, read_recording(path), providers=PROVIDERS, again=True).info
    assert len(store.sessions()) == 3
    for session in (first.id, again.id):
        store.update_session(session, deleted_at=1.0)
    deleted = first.id
    assert imported(store, claude_session(tmp_path / "a.jsonl")).info.id != deleted


# -- our own export ----------------------------------------------------------------------------------------------------


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
    store.add_message("0a", tool(ToolResult("c", "fetch", "cut", full="11"), id="99"))
    store.put_blob("11", b"all of it")
    calls = CallLog(store)
    call = calls.begin(Request("p", "m", (), session="0a"), None, message="01", kind="chat")
    calls.finish(call, usage=Usage(10, 5, cost=0.25), billed=("p", "m"), seconds=1.5)
    export_session(path, store, "0a")
    info = store.session("0a")
    assert info is not None
    return info


def test_an_export_that_a_full_disk_cuts_off_leaves_what_was_there(
    tmp_path: Path, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, mode: str, **how: Any) -> Any:
        path.open(mode).close()
        return Path("/dev/full").open("w", **how)

    path = tmp_path / "a.md"
    with monkeypatch.context() as patch:
        patch.setattr("tui.chat.interchange.export.open_private", full)
        with pytest.raises(UsageError, match="No space left"):
            exported(store, path)
    export_session(path, store, "0a")
    assert "hello" in path.read_text()
    path.write_text("an earlier one")
    with monkeypatch.context() as patch:
        patch.setattr("tui.chat.interchange.export.open_private", full)
        with pytest.raises(UsageError, match="No space left"):
            export_session(path, store, "0a", overwrite=True)
    assert path.read_text() == "an earlier one"
    assert list(tmp_path.glob("*.md")) == [path]


def test_an_export_that_could_not_be_opened_removes_nothing(
    tmp_path: Path, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_descriptor(*_: Any, **_how: Any) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    path = tmp_path / "a.md"
    path.write_text("of a person")
    monkeypatch.setattr("tui.chat.interchange.export.open_private", no_descriptor)
    with pytest.raises(UsageError, match="Too many open files"):
        exported(store, path)
    assert path.read_text() == "of a person"


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


def test_an_export_without_its_first_line_comes_in(stores: tuple[SessionStore, SessionStore], tmp_path: Path) -> None:
    one, two = stores
    exported(one, path := tmp_path / "a.jsonl")
    _, *lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join(line for line in lines if '"blob"' not in line), "utf-8")  # the fixture's hash is none
    (imported,) = import_file(two, path, providers=["p"])
    assert isinstance(imported, Imported)
    assert two.messages(imported.info.id) == one.messages("0a")
    assert two.records(imported.info.id) == one.records("0a")
    assert [call.cost for call in CallLog(two).rows()] == [call.cost for call in CallLog(one).rows()]
    (again,) = import_file(two, path, providers=["p"])
    assert isinstance(again, AlreadyHereError)


@pytest.mark.parametrize("first_line", [True, False])
def test_exports_one_after_the_other_come_in_as_one_conversation_each(
    stores: tuple[SessionStore, SessionStore], tmp_path: Path, first_line: bool
) -> None:
    one, two = stores
    lines: list[str] = []
    for ident in ("0a", "0b"):
        one.create_session(SessionInfo(ident, "a title", "p", "m", 1.0, 1.0))
        one.add_message(ident, replace(user(f"hello {ident}"), id=f"{ident}1"))
        export_session(path := tmp_path / f"{ident}.jsonl", one, ident)
        lines += path.read_text("utf-8").splitlines()
    path.write_text("\n".join(lines[not first_line :]), "utf-8")
    outcomes = list(import_file(two, path, providers=["p"]))
    ids = [outcome.info.id for outcome in outcomes if isinstance(outcome, Imported)]
    assert [[m.text for m in two.messages(ident)] for ident in ids] == [["hello 0a"], ["hello 0b"]]


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


def test_answers_of_a_model_without_a_name_come_in(store: SessionStore, tmp_path: Path) -> None:
    lines = (claude_line("user", "hello"), claude_line("assistant", "hi"))
    result = imported(store, write(tmp_path / "a.jsonl", *lines))
    assert [message.text for message in store.messages(result.info.id)] == ["hello", "hi"]
    assert store.find(result.info.id).model == "unknown"
