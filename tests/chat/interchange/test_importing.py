"""Imported sessions go on as if held here: measured, under names known here, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chat.interchange.foreign.test_foreign import claude_answer, claude_line, write
from tests.recordings import read_recording
from tui.chat.interchange.importing import AlreadyHereError, Imported, import_file, import_session, provider_name
from tui.chat.interchange.recording import RecordingError
from tui.chat.store.calls import CallLog
from tui.chat.store.imports import ImportLog
from tui.chat.store.store import SessionStore
from tui.chat.usage_report import totals
from tui.chat.workspace import Workspace
from tui.config.settings import Settings, ToolSettings
from tui.context.usage.usage import ContextUsage
from tui.messages import Usage

PROVIDERS = ("anthropic", "openai", "gemini", "openrouter")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SessionStore]:
    opened = SessionStore(tmp_path / "chatctx.db")
    yield opened
    opened.close()


def price(usage: Usage, provider: str, model: str) -> float | None:
    return 0.5


def imported(store: SessionStore, path: Path) -> Imported:
    return import_session(store, read_recording(path), providers=PROVIDERS, price=price)


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
    assert json.loads(data)["preambles"] == {}
    assert json.loads(data)["calls"] == 1


async def test_a_session_is_measured_once_when_it_is_first_opened(store: SessionStore, tmp_path: Path) -> None:
    info = imported(store, claude_session(tmp_path / "a.jsonl")).info
    assert store.query("SELECT count(*) FROM measurements") == store.query("SELECT count(*) FROM calibrations")
    assert store.query("SELECT count(*) FROM measurements") == [(0,)]
    first = await measured(tmp_path, info.id)
    learned = store.query("SELECT * FROM measurements"), store.query("SELECT * FROM calibrations")
    assert len(learned[0]) == 2
    assert (await measured(tmp_path, info.id)).total == first.total
    assert (store.query("SELECT * FROM measurements"), store.query("SELECT * FROM calibrations")) == learned
    assert ImportLog(store).unmeasured(info.id) is None


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
    first, second = calls = CallLog(store).rows(result.info.id)
    estimates = ("predicted", "upper_bound", "source", "known", "estimated")
    assert all(getattr(call, name) is None for call in calls for name in estimates)
    assert (second.input_total, second.input_cached, second.output_total) == (15_940, 15_000, 310)
    assert [first.cost, second.cost] == [0.5, 0.5]
    replies = [message.id for message in store.messages(result.info.id) if message.role == "assistant"]
    assert [first.message, second.message] == replies
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


def own(path: Path, **damage: Any) -> Path:
    message = {"id": "01", "role": "user", "parts": [{"type": "text", "text": "hello"}], "kind": "chat",
               "status": "complete", "created_at": 1.0, "provider": "", "model": "", "finish_reason": None,
               "error": None, "usage": None}  # fmt: skip
    head = {"type": "session", "format": "chatctx-session", "version": 1, "id": "0a", "title": "t", "provider": "demo",
            "model": "demo", "created_at": 1.0, "updated_at": 1.0, "messages": damage.pop("messages", 1)}  # fmt: skip
    lines: list[Any] = [head, {"type": "message", "message": message | damage}]
    return write(path, *lines, {"type": "blob", "sha256": "0" * 64, "data": "aGVsbG8="} if not damage else {})


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
        imported(store, own(tmp_path / "a.jsonl", **damage))
    assert store.sessions() == []
    assert store.query("SELECT count(*) FROM measurements") == [(0,)]


def test_a_message_id_that_stands_twice_is_refused(store: SessionStore, tmp_path: Path) -> None:
    path = own(tmp_path / "a.jsonl", messages=1, id="01")
    path.write_text(path.read_text() + path.read_text().splitlines()[1] + "\n")
    with pytest.raises(RecordingError, match="twice"):
        imported(store, path)


def test_a_failure_while_writing_leaves_nothing(
    store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(ImportLog, "add", fail)
    with pytest.raises(Exception, match=r"full|space"):
        imported(store, claude_session(tmp_path / "a.jsonl"))
    assert store.sessions() == []
    assert CallLog(store).rows() == []


def test_a_file_counts_as_imported_until_it_changes(store: SessionStore, tmp_path: Path) -> None:
    def is_imported(path: Path) -> bool:
        return ImportLog(store).has_file(path, path.stat().st_size, path.stat().st_mtime)

    path = claude_session(tmp_path / "a.jsonl")
    assert not is_imported(path)
    (outcome,) = import_file(store, path, providers=PROVIDERS, price=price)
    assert isinstance(outcome, Imported)
    assert is_imported(path)
    path.write_text(path.read_text() + "\n", encoding="utf-8")
    assert not is_imported(path)
    (outcome,) = import_file(store, path, providers=PROVIDERS, price=price)
    assert isinstance(outcome, AlreadyHereError)
    assert is_imported(path)


def test_what_was_imported_before_is_recognised_by_its_content(store: SessionStore, tmp_path: Path) -> None:
    first = imported(store, claude_session(tmp_path / "a.jsonl")).info
    with pytest.raises(AlreadyHereError, match="--again") as refusal:
        imported(store, claude_session(tmp_path / "other name.jsonl"))
    assert (refusal.value.info.id, refusal.value.more) == (first.id, 0)
    path = claude_session(tmp_path / "grown.jsonl")
    path.write_text(path.read_text() + json.dumps(claude_line("user", "one more question")) + "\n")
    with pytest.raises(AlreadyHereError, match="1 are new") as refusal:
        imported(store, path)
    assert (refusal.value.info.id, refusal.value.more) == (first.id, 1)
    assert imported(store, claude_session(tmp_path / "different.jsonl", preamble=9_000)).info.id != first.id
    again = import_session(store, read_recording(path), providers=PROVIDERS, price=price, again=True).info
    assert len(store.sessions()) == 3
    for session in (first.id, again.id):
        store.update_session(session, deleted_at=1.0)
    assert (
        imported(store, claude_session(tmp_path / "a.jsonl")).info.id != first.id
    )  # what was deleted is not in the way
