"""Compactions as records: what is active under them, and how undo and edits bring earlier states back."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context.conversations import HistoryBuilder, histories, problems
from tests.messages import user
from tui.context.reduction.records import (
    CLEARED,
    Checkpoint,
    CompactionRecord,
    CompactionUndo,
    Cut,
    SummaryEdit,
    TrimLog,
    TrimState,
    active_compactions,
    apply_compactions,
    apply_trim,
    checkpoint_from_json,
    checkpoint_to_json,
    last_undoable,
)
from tui.messages import Message, Reasoning, ToolResult


def ids(messages: tuple[Message, ...]) -> list[str]:
    return [m.id for m in messages]


def summary(message_id: str) -> Message:
    return user(f"summary {message_id}", id=message_id, kind="summary")


def compaction(number: int, first: str, last: str, summary_id: str, **more: Any) -> CompactionRecord:
    return CompactionRecord(f"c{number}", float(number), 100, 50, 3, first, last, summary_id, **more)


def history(turns: int = 5) -> list[Message]:
    builder = HistoryBuilder()
    for _ in range(turns):
        builder.turn()
    return builder.messages


def test_no_records_change_nothing() -> None:
    messages = history()
    assert apply_compactions(messages, []) == tuple(messages)


def test_the_summary_stands_where_the_range_stood_and_what_was_kept_follows_it() -> None:
    messages = [*history(), summary("m000011"), *[user("on", id="m000012")]]
    record = compaction(1, "m000001", "m000006", "m000011", kept=("m000003", "m000001"))
    active = apply_compactions(messages, [record])
    assert ids(active) == ["m000011", "m000001", "m000003", "m000007", "m000008", "m000009", "m000010", "m000012"]
    assert active[1] is messages[0]


def test_a_second_compaction_takes_the_first_ones_summary_and_undo_goes_back_level_by_level() -> None:
    messages = [*history(), summary("m000011"), summary("m000012")]
    first = compaction(1, "m000001", "m000004", "m000011")
    second = compaction(2, "m000011", "m000008", "m000012")
    records: list[Checkpoint] = [first, second]
    assert ids(apply_compactions(messages, records)) == ["m000012", "m000009", "m000010"]
    assert last_undoable(records, active_compactions(records)) == second
    records.append(CompactionUndo("u1", 3.0, "c2"))
    assert ids(apply_compactions(messages, records)) == ["m000011", *(f"m{n:06d}" for n in range(5, 11))]
    assert last_undoable(records, active_compactions(records)) == first
    records.append(CompactionUndo("u2", 4.0, "c1"))
    assert apply_compactions(messages, records) == tuple(messages[:10])
    assert last_undoable(records, active_compactions(records)) is None


def test_an_edited_summary_takes_the_place_of_the_first_also_under_a_later_compaction() -> None:
    messages = [*history(), summary("m000011"), summary("m000012"), summary("m000013")]
    records: list[Checkpoint] = [
        compaction(1, "m000001", "m000004", "m000011"),
        SummaryEdit("e1", 2.0, "c1", "m000012"),
    ]
    assert ids(apply_compactions(messages, records))[0] == "m000012"
    records.append(compaction(2, "m000012", "m000008", "m000013"))
    assert ids(apply_compactions(messages, records)) == ["m000013", "m000009", "m000010"]
    late: list[Checkpoint] = [records[0], compaction(2, "m000011", "m000008", "m000013"), records[1]]
    assert ids(apply_compactions(messages, late)) == ["m000013", "m000009", "m000010"]


def test_edits_are_taken_back_one_by_one_before_the_compaction_itself() -> None:
    messages = [*history(), summary("m000011"), summary("m000012"), summary("m000013")]
    first = compaction(1, "m000001", "m000004", "m000011")
    edits = [SummaryEdit(f"e{n}", 2.0, "c1", f"m{11 + n:06d}", before=50, after=50 + 5 * n) for n in (1, 2)]
    records: list[Checkpoint] = [first, *edits]
    assert active_compactions(records)[0].after == 50 + 5 + 10
    undone = []
    while (newest := last_undoable(records, active_compactions(records))) is not None:
        undone.append((newest.id, ids(apply_compactions(messages, records))[0]))
        records.append(CompactionUndo(f"u{newest.id}", 9.0, newest.id))
    assert undone == [("e2", "m000013"), ("e1", "m000012"), ("c1", "m000011")]
    assert apply_compactions(messages, records) == tuple(messages[:10])
    assert active_compactions(records[:4])[0].after == 50 + 5


def test_a_later_compaction_goes_before_an_earlier_edit_and_still_finds_its_range() -> None:
    messages = [*history(), summary("m000011"), summary("m000012"), summary("m000013")]
    records: list[Checkpoint] = [
        compaction(1, "m000001", "m000004", "m000011"),
        SummaryEdit("e1", 2.0, "c1", "m000012"),
        CompactionUndo("u", 2.5, "e1"),
        compaction(2, "m000012", "m000008", "m000013"),  # made elsewhere while the edit still stood
    ]
    assert ids(apply_compactions(messages, records)) == ["m000013", "m000009", "m000010"]
    newest = last_undoable(records, active_compactions(records))
    assert newest is not None and newest.id == "c2"
    records.append(CompactionUndo("u2", 3.0, "c1"))  # what was edited is gone: the edit cannot be taken back
    records.insert(2, SummaryEdit("e2", 2.2, "c1", "m000014"))
    records.append(CompactionUndo("u3", 3.0, "c2"))
    assert last_undoable(records, active_compactions(records)) is None


def test_a_range_of_another_branch_changes_nothing() -> None:
    messages = [*history(), summary("m000011")]
    record = compaction(1, "m000101", "m000104", "m000011")
    assert apply_compactions(messages, [record]) == tuple(messages[:10])


def test_without_its_summary_a_range_is_not_hidden() -> None:
    messages = history()
    assert apply_compactions(messages, [compaction(1, "m000001", "m000004", "m000099")]) == tuple(messages)


def test_cleared_results_keep_their_call_and_come_back_with_undo() -> None:
    builder = HistoryBuilder()
    builder.user()
    _, (owner,) = builder.step(100, 100)
    call = builder.messages[-1].parts[0]
    assert isinstance(call, ToolResult)
    record = CompactionRecord("c1", 0.0, 10, 5, 0, cleared=((owner, call.call_id),))
    shown = apply_compactions(builder.messages, [record])
    assert [p.text for p in shown[-1].parts if isinstance(p, ToolResult)] == [CLEARED, "t" * 400]
    assert shown[0] is builder.messages[0]
    undo: list[Checkpoint] = [record, CompactionUndo("u", 1.0, "c1")]
    assert apply_compactions(builder.messages, undo) == tuple(builder.messages)


def test_reasoning_from_before_the_latest_change_goes_where_signatures_bind_the_prefix() -> None:
    builder = HistoryBuilder()
    for _ in range(4):
        builder.user()
        builder.assistant(reasoning=10)
    messages = [*builder.messages[:6], summary("m000006x"), *builder.messages[6:]]
    record = compaction(1, "m000001", "m000002", "m000006x", frontier="m000006")
    bound = apply_compactions(messages, [record], prefix_bound=True)
    assert [m.id for m in bound if any(isinstance(p, Reasoning) for p in m.parts)] == ["m000008"]
    free = apply_compactions(messages, [record])
    assert sum(isinstance(p, Reasoning) for m in free for p in m.parts) == 3
    undone: list[Checkpoint] = [record, CompactionUndo("u", 1.0, "c1", frontier="m000008")]
    after = apply_compactions(messages, undone, prefix_bound=True)
    assert not any(isinstance(p, Reasoning) for m in after for p in m.parts)


@pytest.mark.parametrize(
    "record",
    [
        compaction(1, "a", "b", "s", kept=("k",), cleared=(("m", "c"),), frontier="z"),
        CompactionUndo("u", 1.5, "c1", "z"),
        SummaryEdit("e", 1.5, "c1", "s2", "z", 40, 50, "exact"),
    ],
)
def test_records_survive_json(record: Checkpoint) -> None:
    assert checkpoint_from_json(json.loads(json.dumps(checkpoint_to_json(record)))) == record


@pytest.mark.parametrize("data", [{}, {"type": "other"}, {"type": "undo"}, {"type": "compaction", "id": 1, "at": "x"}])
def test_a_damaged_record_is_named_as_such(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not a compaction record"):
        checkpoint_from_json(data)


@pytest.mark.slow
@given(histories(open_end=False), st.data())
def test_undoing_all_of_them_gives_the_history_back(messages: list[Message], data: st.DataObject) -> None:
    """Whatever was compacted, over several levels."""
    records: list[Checkpoint] = []
    everything = list(messages)
    for level in range(data.draw(st.integers(1, 4))):
        active = apply_compactions(everything, records)
        first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(active) - 1)] * 2)))
        made = summary(f"n{level:06d}")
        everything.append(made)
        records.append(compaction(level, active[first].id, active[last].id, made.id))
        now = apply_compactions(everything, records)
        assert ids(now) == [*ids(active[:first]), made.id, *ids(active[last + 1 :])]
    while (newest := last_undoable(records, active_compactions(records))) is not None:
        before = len(active_compactions(records))
        records.append(CompactionUndo(f"u{newest.id}", 9.0, newest.id))
        assert len(active_compactions(records)) == before - 1
    assert apply_compactions(everything, records) == tuple(messages)


def test_a_record_that_names_itself_ends() -> None:
    """An imported file may say anything."""
    record = compaction(1, "m000011", "m000011", "m000011")
    assert apply_compactions(history(), [record]) == tuple(history())


def test_a_cut_keeps_head_and_tail_of_the_text() -> None:
    assert Cut("m", "c", "[..]", head=2, tail=3).shorten("abcdefgh") == "ab[..]fgh"
    assert Cut("m", "c", "[..]").shorten("abcdefgh") == "[..]"
    assert Cut("m", "c", "[..]", head=2, tail=0).shorten("abcdefgh") == "ab[..]"


def test_a_cut_acts_on_one_result_of_several() -> None:
    builder = HistoryBuilder()
    builder.user()
    _, (owner,) = builder.step(10, 10)
    first, second = (p for p in builder.messages[-1].parts if isinstance(p, ToolResult))
    shown = apply_trim(builder.messages, TrimState((Cut(owner, second.call_id, "[gone]"),)))
    assert shown[-1].parts == (first, ToolResult(second.call_id, "read_file", "[gone]"))
    assert shown[0] is builder.messages[0] and shown[1] is builder.messages[1]


def test_results_leave_with_the_message_that_asked_though_the_state_names_only_that() -> None:
    builder = HistoryBuilder()
    builder.user()
    call, results = builder.step(10, 10, apart=True)
    assert [m.id for m in apply_trim(builder.messages, TrimState(dropped=frozenset({call})))] == [
        builder.messages[0].id
    ]
    only_result = apply_trim(builder.messages, TrimState(dropped=frozenset(results[:1])))
    assert problems(only_result) == []
    assert only_result == tuple(builder.messages)


@pytest.mark.parametrize("data", [{}, {"cuts": [["m"]], "dropped": [], "frontier": ""}, {"cuts": 3}, {"cuts": []}])
def test_a_damaged_trim_is_named_as_such(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not a trim record"):
        TrimState.from_json(data)
    assert TrimLog.from_json(data) == TrimLog()  # which only `/usage` shows: no turn ends for it


def test_the_log_of_an_older_version_keeps_what_each_trim_left_out() -> None:
    trims = [[1.0, 3, 500, 110.0, 80.0], [2.0, 1, 70, 104.0, 81.0]]
    data = {"requests": 5, "trimmed": 2, "utilisation_sum": 410.0, "recent": trims}
    assert TrimLog.from_json(data) == TrimLog(5, 2, 410.0, (500, 70))


def test_the_log_keeps_the_last_hundred_trims_and_counts_all_requests() -> None:
    log = TrimLog()
    assert log.average_utilisation is None
    for number in range(250):
        log = log.add(60.0, number) if number % 2 else log.add(90.0)
    assert (log.requests, log.trimmed, len(log.latest)) == (250, 125, 100)
    assert (log.latest[0], log.latest[-1]) == (51, 249)
    assert log.average_utilisation == 75.0
    assert TrimLog.from_json(json.loads(json.dumps(asdict(log)))) == log
