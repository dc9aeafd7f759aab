"""Sums over calls: nothing counted twice, nothing invented."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.messages import assistant
from tui.chat import usage_report
from tui.chat.store.calls import _GROUPS, CallLog, CallRow, Totals, billed_model
from tui.chat.store.store import SessionInfo, SessionStore
from tui.chat.usage_report import totals_to_json
from tui.messages import Request
from tui.text.numbers import spent
from tui.views.usage_table import usage_lines

NOON = datetime(2026, 11, 20, 12).timestamp()
CALL = CallRow(
    "c1", "s1", "m1", "chat", "anthropic", "x", NOON, "success",
    1_010, 1_100, "delta", 1_000, 10, 1_000, 800, 0, 200, 50,
    "provider", 0.1, 1.0, "stop", None, 0.25,
)  # fmt: skip


def groups_of(calls: Iterable[CallRow]) -> list[Totals]:
    """What `CallLog.groups` adds up, each finished call by itself."""
    return [_group(call) for call in calls if call.status != "pending"]


def _group(call: CallRow) -> Totals:
    read, output = _either(call.passes_input, call.input_total), _either(call.passes_output, call.output_total)
    errors: list[float] = []
    measured = call.status == "success" and call.kind == "chat" and call.usage_source == "provider"
    if measured and call.believed and call.predicted and call.input_total:
        errors.append(1_000_000 * abs(call.predicted - call.input_total) // call.input_total / 10_000)
    return Totals(
        1,
        int(call.status != "success"),
        int(call.kind == "compaction"),
        read,
        _either(call.passes_cached, call.input_cached),
        call.input_cache_write,
        output,
        call.reasoning,
        int(call.reasoning is None and bool(output)),
        call.cost,
        call.cost is None and bool(read or output),
        bool(read or output) and call.usage_source == "estimated",
        bool(call.cost) and call.usage_source == "estimated",
        (call.unpriced,) if call.unpriced else (),
        call.provider,
        billed_model(call.model, call.answered_by),
        date.fromtimestamp(call.at).isoformat(),
        *((), errors) if call.source == "estimated" else (errors, ()),
    )


def _either(passes: int | None, one: int | None) -> int | None:
    return one if passes is None else passes


def totals(name: str, calls: Iterable[CallRow]) -> Totals:
    return usage_report.totals(name, groups_of(calls))


def by_model(calls: Iterable[CallRow]) -> list[Totals]:
    return usage_report.by_model(groups_of(calls))


def by_provider(calls: Iterable[CallRow]) -> list[Totals]:
    return usage_report.by_provider(groups_of(calls))


def drawn(calls: Iterable[CallRow], width: int = 100) -> str:
    calls = list(calls)
    days = by_day(calls, 2, date(2026, 11, 20))
    sums, none = totals("x", calls), totals("", ())
    report = usage_report.UsageReport(None, none, sums, None, sums, (), models_and_sum(calls), ())
    return "\n".join("".join(text for text, _ in line) for line in usage_lines(report, width, days))


def each_day(calls: Iterable[CallRow]) -> list[Totals]:
    return usage_report.each_day(groups_of(calls))


def models_and_sum(calls: Iterable[CallRow]) -> list[Totals]:
    return usage_report.models_and_sum(groups_of(calls), totals("", calls))


def by_day(calls: Iterable[CallRow], days: int, today: date) -> list[tuple[date, Totals]]:
    return usage_report.by_day(groups_of(calls), days, today)


def test_input_is_fresh_and_cached_and_costs_add_up() -> None:
    summed = totals("here", [CALL, replace(CALL, kind="compaction", predicted=None), replace(CALL, status="pending")])
    assert (summed.calls, summed.failed, summed.compactions) == (2, 0, 1)
    assert (summed.fresh, summed.cached, summed.output, summed.reasoning) == (400, 1_600, 400, 100)
    assert summed.cost.total == 0.5
    assert list(summed.estimates) == pytest.approx([1, 1.0, 1.0])


def test_first_calls_are_scored_apart() -> None:
    first = replace(CALL, source="estimated", predicted=2 * (CALL.input_total or 0))
    summed = totals("here", [first, CALL, CALL])
    assert summed.first_estimates == (1, 100.0, 100.0)
    assert list(summed.estimates) == pytest.approx([2, 1.0, 1.0])
    assert totals_to_json(summed)["first_estimates"] == {
        "calls": 1,
        "median_abs_error_percent": 100.0,
        "p95_abs_error_percent": 100.0,
    }


def test_of_a_call_in_several_passes_all_are_used_and_one_is_predicted() -> None:
    several = replace(CALL, passes_input=2_500, passes_cached=900, passes_output=700)
    summed = totals("here", [CALL, several])
    assert (summed.input, summed.cached, summed.fresh, summed.output) == (3_500, 1_700, 1_800, 900)
    assert list(summed.estimates) == pytest.approx([2, 1.0, 1.0])
    # A server that compacted by itself told only the sum: used all the same, and no prediction is held against it.
    told = totals("here", [replace(several, input_total=None, output_total=None)])
    assert (told.input, told.output, told.estimates.calls) == (2_500, 700, 0)
    assert [sums.tokens for _, sums in by_day([several], 1, date(2026, 11, 20))] == [3_200]


def test_an_unknown_price_makes_the_sum_unknown() -> None:
    some = totals("x", [CALL, replace(CALL, cost=None)])
    assert some.cost[:2] == (None, CALL.cost)
    failed = replace(CALL, status="failed", cost=None, input_total=None, output_total=None)
    assert totals("x", [CALL, failed]).cost.total == 0.25
    assert totals("x", []).cost.total == 0


def test_what_was_stopped_is_priced_by_its_estimate_and_marked() -> None:
    stopped = replace(CALL, status="failed", usage_source="estimated", cost=0.1)
    cost = totals("x", [CALL, stopped]).cost
    assert spent(cost) == "~$0.35"
    nothing = replace(CALL, cost=None, input_total=None, output_total=None, status="failed")
    assert totals("x", [nothing]).cost.total is None  # not $0.00
    assert spent(totals("x", [replace(CALL, cost=None)]).cost) == "?"


@pytest.mark.parametrize(("provider", "cost"), [("ollama", "$0.00"), ("openai", "?")])
def test_a_call_that_failed_costs_nothing_where_the_model_is_free(tmp_path: Path, provider: str, cost: str) -> None:
    with closing(SessionStore(tmp_path / "chatctx.db")) as store:
        log = CallLog(store)
        call = log.begin(Request(provider, "m", ()), None, message=None, kind="chat")
        log.finish(call, usage=None, billed=(provider, "m"), seconds=1.0, error="refused")
        assert spent(usage_report.totals("x", log.groups()).cost) == cost


amounts = st.none() | st.integers(0, 100_000)


@st.composite
def histories(draw: st.DrawFn) -> list[CallRow]:
    """Calls that failed, were stopped, have no price, were cached, or worked in several passes."""
    rows = []
    for _ in range(draw(st.integers(0, 12))):
        read = draw(amounts)
        cached = None if read is None else draw(st.none() | st.integers(0, read))
        passes = draw(st.none() | st.integers(1, 3))
        rows.append(
            replace(
                CALL,
                status=draw(st.sampled_from(["success", "failed", "pending"])),
                provider=draw(st.sampled_from(["p", "q"])),
                model=draw(st.sampled_from(["a", "b"])),
                answered_by=draw(st.sampled_from([None, "a", "claude-x"])),
                at=NOON + 86_400 * draw(st.integers(-3, 0)),
                cost=draw(st.none() | st.floats(0, 5)),
                input_total=read,
                input_cached=cached,
                input_cache_write=draw(amounts),
                output_total=draw(amounts),
                reasoning=draw(amounts),
                passes_input=None if passes is None or read is None else passes * read,
                passes_cached=None if passes is None or cached is None else passes * cached,
                passes_output=passes,
                usage_source=draw(st.sampled_from(["provider", "estimated"])),
            )
        )
    return rows


def figures(rows: Iterable[Totals]) -> dict[str, object]:
    """The sums of rows, unknown ones as 0."""
    names = ("calls", "failed", "input", "fresh", "cached", "written", "output", "reasoning", "reasoning_unknown")
    every = list(rows)
    expected: dict[str, object] = {name: sum(getattr(row, name) or 0 for row in every) for name in names}
    return expected | {"priced": pytest.approx(sum(row.cost.priced for row in every))}


@pytest.mark.slow
@given(histories())
def test_every_sum_of_costs_and_tokens_is_the_sum_over_its_calls(calls: list[CallRow]) -> None:
    """The tables and JSON say the same; models, providers and days add up to it."""
    whole = totals("all", calls)
    cost = whole.cost
    done = [call for call in calls if call.status != "pending"]
    assert cost.priced == pytest.approx(sum(call.cost or 0.0 for call in done))
    each = [totals("one", [call]) for call in done]
    for rows in (each, by_model(calls), by_provider(calls), each_day(calls), models_and_sum(calls)[-1:]):
        assert figures(rows) == figures([whole])
    data = totals_to_json(whole)
    assert (data["cost"], data["known_cost"]) == cost[:2]
    for name in ("input", "fresh", "cached", "output", "reasoning"):
        assert data[f"{name}_tokens"] == getattr(whole, name)
    assert (data["total_tokens"] or 0) == (whole.input or 0) + (whole.output or 0)
    by_days = by_day(calls, 4, datetime.fromtimestamp(NOON).date())
    assert sum(sums.tokens or 0 for _, sums in by_days) == (data["total_tokens"] or 0)
    unpriced = [call for call in each if call.cost.total is None and call.tokens]
    assert (cost.total is None) == bool(unpriced or (done and all(call.cost is None for call in done)))


@pytest.mark.parametrize("width", [100, 40])
def test_a_sum_with_an_estimate_is_marked_in_every_column_it_is_part_of(width: int) -> None:
    stopped = replace(
        CALL, status="failed", usage_source="estimated", input_cached=None, input_cache_write=None, reasoning=None
    )
    measured, mixed = (re.sub(" +", " ", drawn(calls, width)) for calls in ([CALL], [CALL, stopped]))
    assert "~" not in measured
    for line in ("fresh ~1,200 ~1,200", "output ~400 ~400", "tokens ~2,400 ~2,400") if width == 100 else (
        "fresh ~1.2k ~1.2k", "output ~400 ~400", "all ~2.4k ~2.4k", "anthropic/x ~2.0k ~400 ~$0.50"
    ):  # fmt: skip
        assert line in mixed
    assert "most in a day ~2.4k" in mixed
    assert ("from the cache 800 800" if width == 100 else "cached 800 800") in mixed  # no estimate says what was cached
    assert totals_to_json(totals("x", [CALL, stopped]))["tokens_estimated"] is True
    nothing = replace(stopped, input_total=None, output_total=None)
    assert totals_to_json(totals("x", [CALL, nothing]))["tokens_estimated"] is False


def test_reasoning_that_nobody_reported_marks_the_sum() -> None:
    silent = replace(CALL, reasoning=None)
    assert totals("x", [CALL, silent]).reasoning_unknown == 1
    assert totals("x", [CALL, replace(silent, output_total=None)]).reasoning_unknown == 0
    assert re.search(r"of it reasoning +50\+\? +50\+\?$", drawn([CALL, silent]), re.MULTILINE)
    assert re.search(r"of it reasoning +50 +50$", drawn([CALL]), re.MULTILINE)


def test_what_is_written_to_the_cache_and_a_grand_total_are_shown() -> None:
    text = drawn([replace(CALL, input_cache_write=120), replace(CALL, model="y")])
    assert re.search(r"written to the cache +120 +120$", text, re.MULTILINE)
    assert re.search(r"all tokens +2,400 +2,400$", text, re.MULTILINE)
    assert re.search(r"all models +2 +400 +1\.6k +400 +\$0\.50", text)


def test_a_report_that_is_not_believed_scores_no_estimate() -> None:
    lie = replace(CALL, input_total=100, verdict="doubted")
    assert totals("x", [lie]).estimates.calls == 0


def test_only_measured_chat_calls_say_something_about_estimates() -> None:
    for call in (
        replace(CALL, usage_source="estimated"),
        replace(CALL, kind="compaction"),
        replace(CALL, predicted=None),
        replace(CALL, status="failed"),
    ):
        assert totals("x", [call]).estimates.median is None


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 10_000), st.integers(0, 10_000)), max_size=20))
def test_models_add_up_to_the_whole(counts: list[tuple[str, int, int]]) -> None:
    calls = [replace(CALL, model=model, input_total=a, input_cached=0, output_total=b) for model, a, b in counts]
    rows = by_model(calls)
    whole = totals("all", calls)
    assert sum(row.fresh or 0 for row in rows) == whole.fresh
    assert sum(row.output or 0 for row in rows) == whole.output
    assert sum(row.calls for row in rows) == len(calls)
    sizes = [(row.fresh or 0) + (row.output or 0) for row in rows]
    assert sizes == sorted(sizes, reverse=True)


def test_days_without_calls_are_days_too() -> None:
    days = by_day([CALL, replace(CALL, at=NOON - 2 * 86_400)], 4, date(2026, 11, 20))
    assert [day.day for day, _ in days] == [17, 18, 19, 20]
    assert [sums.tokens for _, sums in days] == [0, 1_200, 0, 1_200]


def test_what_no_call_reports_is_unknown_and_what_some_report_is_their_sum() -> None:
    silent = replace(CALL, reasoning=None, input_cached=None)
    unknown = totals("x", [silent, silent])
    assert (unknown.reasoning, unknown.cached) == (None, None)
    assert unknown.fresh == unknown.input
    assert totals("x", [silent, CALL]).reasoning == CALL.reasoning
    assert totals("x", []).reasoning == 0


def store_calls(store: SessionStore, calls: Iterable[CallRow]) -> None:
    names = list(CallRow.__dataclass_fields__)
    with store.transaction() as db:
        sql = f"INSERT INTO calls ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        db.executemany(sql, [[getattr(call, name) for name in names] for call in calls])


def test_a_fork_inherits_the_calls_of_its_messages_and_they_count_where_they_were_made(tmp_path: Path) -> None:
    messages = {"s1": "ab", "fork": "abc", "a copy of s1": "ad"}
    first, second = replace(CALL, id="1", message="a"), replace(CALL, id="2", message="b")
    later = replace(CALL, id="3", message="c", session="fork")
    copied = replace(CALL, id="4", message="a", session="a copy of s1")
    made = replace(CALL, id="5", message=None)  # of no message, as a compaction's
    store = SessionStore(tmp_path / "chatctx.db")
    for session, ids in messages.items():
        store.create_session(SessionInfo(session, "", "p", "m", 0.0, 0.0))
        for ident in ids:
            store.add_message(session, assistant("x", id=ident))
    store_calls(store, [first, second, later, copied, made])
    log = CallLog(store)
    (before,) = log.inherited("fork")
    assert (before.calls, before.input, before.cost.total) == (2, 2_000, 0.5)
    assert log.inherited("s1") == log.inherited("a copy of s1") == []
    store.close()


def test_a_report_has_the_session_today_the_last_days_and_everything(tmp_path: Path) -> None:
    today = datetime.fromtimestamp(NOON).date()
    days = (0, 1, 6, 7)
    calls = [replace(CALL, id=f"{n}", at=NOON - n * 86_400, session="s1" if n else "s2") for n in days]
    with closing(SessionStore(tmp_path / "chatctx.db")) as store:
        store_calls(store, calls)
        report = usage_report.usage_report(CallLog(store), "s1", today, days=7)
        everything = usage_report.usage_report(CallLog(store), None, today)
    assert [(column.name, column.calls) for column in report.columns] == [
        ("session", 3), ("today", 1), ("7 days", 3), ("total", 4)
    ]  # fmt: skip
    assert sum(group.calls for group in report.groups) == 3
    assert [column.name for column in everything.columns] == ["today", "total"]
    assert sum(group.calls for group in everything.groups) == 4


def any_call(chance: Random, number: int) -> CallRow:
    def tokens() -> int | None:
        return chance.choice((None, 0, chance.randrange(1, 9_000)))

    return replace(
        CALL,
        id=f"{number:04}",
        session=chance.choice(("s1", "s2")),
        message=chance.choice(("m1", "m2", "other", None)),
        kind=chance.choice(("chat", "chat", "compaction")),
        provider=chance.choice(("anthropic", "openrouter")),
        model=chance.choice(("claude-x", "gpt-5")),
        answered_by=chance.choice((None, "claude-x", "gemini-9")),
        at=float(int(NOON) + chance.randrange(-3, 4) * 43_200),
        status=chance.choice(("success", "success", "failed", "pending")),
        predicted=tokens(),
        input_total=tokens(),
        input_cached=tokens(),
        output_total=tokens(),
        reasoning=tokens(),
        input_cache_write=tokens(),
        verdict=chance.choice((None, "confirmed", "hidden", "doubted", "cut")),
        passes_input=tokens(),
        passes_cached=tokens(),
        passes_output=tokens(),
        usage_source=chance.choice(("provider", "provider", "estimated", None)),
        cost=chance.choice((None, 0.0, 0.25, 1.5)),
        unpriced=chance.choice((None, "flex", "priority, region eu")),
    )


def test_all_calls_are_added_up_without_sorting_them_or_reading_their_table(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "chatctx.db")
    plan = [row[-1] for row in store.query(f"EXPLAIN QUERY PLAN {_GROUPS.format(calls='calls', and_where='')}")]
    store.close()
    assert plan == ["SCAN calls USING COVERING INDEX calls_by_day"]


@pytest.mark.parametrize("seed", range(5))
def test_the_database_adds_up_as_the_calls_do(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    calls = [any_call(chance, number) for number in range(chance.choice((0, 1, 3, 60)))]
    store = SessionStore(tmp_path / "chatctx.db")
    store_calls(store, calls)
    log, today = CallLog(store), date(2026, 11, 20)
    everywhere, here = log.groups(), log.groups("s1", since=NOON)
    assert len(everywhere) <= len(calls)
    for grouped, each in (
        (everywhere, groups_of(calls)),
        (log.groups("s1"), groups_of(c for c in calls if c.session == "s1")),
        (here, groups_of(c for c in calls if c.session == "s1" and c.at >= NOON)),
    ):
        assert usage_report.totals("all", grouped) == usage_report.totals("all", each)
        assert usage_report.by_model(grouped) == usage_report.by_model(each)
        assert usage_report.each_day(grouped) == usage_report.each_day(each)
        assert usage_report.by_day(grouped, 5, today) == usage_report.by_day(each, 5, today)
    store.close()
