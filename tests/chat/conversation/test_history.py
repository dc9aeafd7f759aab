"""What each kind of record does to the state that the projection reads."""

from __future__ import annotations

from typing import Any

import pytest

from tui.chat.conversation.history import HistoryState, RecordKind, fold_records, unreadable
from tui.chat.store.store import Record
from tui.context.reduction.records import CompactionUndo, TrimState, checkpoint_to_json

UNDO = CompactionUndo("u", 1.0, "c", "m5")


def record(number: int, kind: str, data: dict[str, Any]) -> Record:
    return Record(f"r{number}", kind, 1.0, data)


def folded(*entries: tuple[str, dict[str, Any]]) -> HistoryState:
    return fold_records(record(number, kind, data) for number, (kind, data) in enumerate(entries))


def trimmed(*ids: str) -> dict[str, Any]:
    return {"state": TrimState(dropped=frozenset(ids)).to_json()}


@pytest.mark.parametrize(
    ("entries", "state"),
    [
        ((), HistoryState()),
        ((("checkpoint", checkpoint_to_json(UNDO)),), HistoryState(checkpoints=(UNDO,))),
        ((("checkpoint", {"answer": "a", "summary": "m1"}),), HistoryState(set_aside=frozenset({"m1"}))),
        ((("trim", trimmed("m1")), ("trim", trimmed("m2"))), HistoryState(trim=TrimState(dropped=frozenset({"m2"})))),
        (
            (("set_aside", {"ids": ["m1", "m2"], "frontier": "m3"}), ("set_aside", {"ids": ["m4"], "frontier": "m4"})),
            HistoryState(set_aside=frozenset({"m1", "m2", "m4"}), frontier="m4"),
        ),
        (  # the request has changed up to there, also when it is as it was
            (("set_aside", {"ids": ["m1"], "frontier": "m3"}), ("restore", {"record": "r0"})),
            HistoryState(frontier="m3"),
        ),
        (
            (("pin", {"id": "m1", "on": True}), ("pin", {"id": "m2", "on": True}), ("pin", {"id": "m1", "on": False})),
            HistoryState(pinned=frozenset({"m2"})),
        ),
        (
            (("exclude", {"id": "m1", "on": True, "frontier": "m2"}), ("exclude", {"id": "m3", "on": True})),
            HistoryState(excluded=frozenset({"m1", "m3"}), frontier="m2"),
        ),
        ((("system", {"text": "a"}), ("system", {"text": ""})), HistoryState(system="")),
        ((("void", {"frontier": "m2"}), ("void", {"frontier": "m4"})), HistoryState(void="m4")),
        (
            (("void", {"frontier": "m2"}), ("void", {"frontier": "m4"}), ("restore", {"record": "r1"})),
            HistoryState(void="m2"),
        ),
        ((("memory", {"files": [1]}), ("memory", {"files": []})), HistoryState(memory={"files": []})),
        (
            (("tools", {"name": "gh__*", "on": False}), ("tools", {"name": "gh__a", "on": True})),
            HistoryState(tools=(("gh__*", False), ("gh__a", True))),
        ),
        ((("loaded", {"names": ["b", "a"]}), ("loaded", {"names": ["a", "c"]})), HistoryState(loaded=("b", "a", "c"))),
        (
            (
                ("leave_out", {"message": "m1", "sha256": "s", "keep": 9, "frontier": "m1"}),
                ("leave_out", {"message": "m2", "sha256": "t", "frontier": "m2"}),
                ("restore", {"record": "r0"}),
            ),
            HistoryState(left_out={("m2", "t"): 0}, frontier="m2"),
        ),
        ((("of a later version", {}),), HistoryState()),
    ],
)
def test_records_fold_into_a_state(entries: tuple[tuple[str, dict[str, Any]], ...], state: HistoryState) -> None:
    assert folded(*entries) == state


def test_a_record_that_lacks_its_data_is_unreadable_and_the_others_are_not() -> None:
    whole = record(0, "pin", {"id": "m1", "on": True})
    damaged = [record(number, kind, {}) for number, kind in enumerate(RecordKind, 1) if kind != RecordKind.MEMORY]
    assert unreadable([whole, *damaged]) == damaged
