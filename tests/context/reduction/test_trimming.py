"""The records of rolling context: how they act, and that damaged ones are told apart."""

from __future__ import annotations

import json

import pytest

from tests.context.conversations import Talk, problems
from tui.context.reduction.trimming import Cut, TrimLog, TrimState, apply_trim
from tui.messages import ToolResult


def test_a_cut_keeps_head_and_tail_of_the_text() -> None:
    assert Cut("m", "c", "[..]", head=2, tail=3).shorten("abcdefgh") == "ab[..]fgh"
    assert Cut("m", "c", "[..]").shorten("abcdefgh") == "[..]"
    assert Cut("m", "c", "[..]", head=2, tail=0).shorten("abcdefgh") == "ab[..]"


def test_a_cut_acts_on_one_result_of_several() -> None:
    talk = Talk()
    talk.user()
    _, (owner,) = talk.step(10, 10)
    first, second = (p for p in talk.messages[-1].parts if isinstance(p, ToolResult))
    shown = apply_trim(talk.messages, TrimState((Cut(owner, second.call_id, "[gone]"),)))
    assert shown[-1].parts == (first, ToolResult(second.call_id, "read_file", "[gone]"))
    assert shown[0] is talk.messages[0] and shown[1] is talk.messages[1]


def test_results_leave_with_the_message_that_asked_though_the_state_names_only_that() -> None:
    talk = Talk()
    talk.user()
    call, results = talk.step(10, 10, apart=True)
    assert [m.id for m in apply_trim(talk.messages, TrimState(dropped=frozenset({call})))] == [talk.messages[0].id]
    only_result = apply_trim(talk.messages, TrimState(dropped=frozenset(results[:1])))
    assert problems(only_result) == []
    assert only_result == tuple(talk.messages)


@pytest.mark.parametrize("data", [{}, {"cuts": [["m"]], "dropped": [], "frontier": ""}, {"cuts": 3}, {"cuts": []}])
def test_a_damaged_record_is_named_as_such(data: dict[str, object]) -> None:
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
    assert TrimLog.from_json(json.loads(json.dumps(log.to_json()))) == log
