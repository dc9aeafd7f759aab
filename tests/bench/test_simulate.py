"""The simulator itself: a slice of it runs clean, its server is strict, and it sees what it is there to see."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import pytest

from tests.bench import simulate as program
from tests.bench.simulate_driver import Scenario, simulate
from tests.bench.simulate_server import FakeServer, Reply, pairing_problem, text_tokens, words
from tui.chat.compaction.compactor import Compactor
from tui.chat.conversation.events import CompactionFinished
from tui.context.reduction import records, rolling
from tui.context.reduction.compaction import Trigger
from tui.messages import Message, Reasoning, Request, Text, ToolCall, ToolResult
from tui.providers.base import ProviderError, StreamEvent

CALL = Message("assistant", (ToolCall("c1", "read_file", "{}"),), id="2")
RESULT = Message("tool", (ToolResult("c1", "read_file", "text"),), id="3")
ASK = Message("user", (Text("ask"),), id="1")


def scenario(**changes: Any) -> Scenario:
    values: dict[str, Any] = {
        "talk": "agent",
        "mode": "rolling",
        "window": 8_192,
        "overhead": 0.1,
        "off": 0.0,
        "server": "named",
        "reasoning": "none",
        "summariser": "faithful",
        "turns": 25,
        "seed": 5,
    }
    return Scenario(**{**values, **changes})


def wrong(outcome: object) -> dict[str, int]:
    return {name: getattr(outcome, name) for name in program.MUST_BE_ZERO if getattr(outcome, name)}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["rolling", "compaction"])
@pytest.mark.parametrize(
    "changes",
    [
        {"reasoning": "bound", "off": -0.3},
        {"reasoning": "tool_loop", "server": "bare", "off": 0.6, "window": 2_048},
        {"talk": "cjk", "server": "truncating", "window": 32_768, "summariser": "failing"},
        {"talk": "images", "server": "unknown", "window": 131_072},
        {"talk": "chat", "server": "hidden", "off": -0.3, "overhead": 0.7},
    ],
)
def test_nothing_goes_wrong_and_something_happens(mode: str, changes: dict[str, object]) -> None:
    outcome = simulate(scenario(mode=mode, turns=40, **changes))
    assert wrong(outcome) == {}, outcome.samples
    assert outcome.trims + outcome.compactions + outcome.refusals > 0


def test_an_overhead_larger_than_the_window_ends_in_clear_refusals() -> None:
    outcome = simulate(scenario(overhead=1.2))
    assert outcome.refusals == outcome.turns == 3
    assert outcome.requests == 0
    assert wrong(outcome) == {}


def test_with_both_mechanisms_off_the_conversation_is_refused_not_broken() -> None:
    outcome = simulate(scenario(mode="off", turns=60))
    assert outcome.refusals == 3
    assert outcome.trims == outcome.compactions == 0
    assert wrong(outcome) == {}


def test_it_notices_when_trimming_separates_calls_from_results(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(messages: Sequence[Message], state: records.TrimState, **_: object) -> tuple[Message, ...]:
        return tuple(m for m in messages if m.role != "tool" or not state.cuts)

    monkeypatch.setattr("tui.chat.conversation.projection.leave_out", broken)
    assert simulate(scenario()).pairing_errors > 0


def test_it_notices_a_reply_that_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forgets(self: object, message: Message) -> None:
        return None

    monkeypatch.setattr("tui.chat.conversation.conversation.Conversation.add_reply", forgets)
    assert simulate(scenario(talk="chat", turns=3)).lost_messages > 0


def test_it_notices_facts_that_a_summary_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeServer, "_summarise", lambda self, request: Reply("nothing of note"))
    assert simulate(scenario(mode="compaction", talk="chat", window=32_768, turns=60)).lost_facts > 0


def test_it_notices_two_compactions_without_an_answer_between(monkeypatch: pytest.MonkeyPatch) -> None:
    once = Compactor.run

    async def twice(self: Compactor, trigger: Trigger, **values: Any) -> bool:
        done = await once(self, trigger, **values)
        if done:
            self.emit(CompactionFinished(records.CompactionRecord("c", 0.0, 900, 300, 2), None))
        return done

    monkeypatch.setattr(Compactor, "run", twice)
    assert simulate(scenario(mode="compaction", talk="chat", turns=60)).loops > 0


def test_it_notices_a_refusal_that_need_not_have_been(monkeypatch: pytest.MonkeyPatch) -> None:
    def gives_up(request: Request, estimate: Callable[[Request], int], **_: object) -> rolling.PromptResult:
        if estimate(request) < 5_000:
            return rolling.PromptResult(request, records.NO_TRIM, estimate(request), None)
        raise rolling.ContextOverflowError(estimate(request), 5_000)

    monkeypatch.setattr("tui.chat.turn.request.build_final_prompt", gives_up)
    assert simulate(scenario(talk="chat", turns=60)).wrong_refusals > 0


# -- the server ------------------------------------------------------------------------------------------------------


async def sent(server: FakeServer, *messages: Message, max_output: int = 100) -> list[StreamEvent]:
    server.replies = [Reply("fine", reasoning=50)]
    stream: AsyncGenerator[StreamEvent, None] = server.stream(Request("sim", "sim", messages, max_output=max_output))
    return [event async for event in stream]


def server(**changes: Any) -> FakeServer:
    values: dict[str, Any] = {"kind": "named", "reasoning": "none", "summariser": "faithful", "seed": 1}
    return FakeServer(1_000, **{**values, **changes})


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([ASK, CALL, RESULT], ""),
        ([ASK, CALL], "without results"),
        ([ASK, RESULT], "no tool call"),
        ([ASK, CALL, ASK, RESULT], "without results"),
        ([CALL, RESULT], "first message"),
        ([ASK, CALL, RESULT, CALL, RESULT], "twice"),
        ([ASK, Message("assistant", ())], "empty"),
    ],
)
def test_pairs(messages: list[Message], problem: str) -> None:
    assert problem in pairing_problem(messages)
    assert bool(pairing_problem(messages)) is bool(problem)


@pytest.mark.parametrize(("tokens", "kind"), [(880, None), (950, "overflow_output"), (1_100, "overflow_input")])
async def test_size(tokens: int, kind: str | None) -> None:
    message = Message("user", (Text("word" * tokens),), id="1")
    if kind is None:
        assert await sent(server(), message)
        return
    with pytest.raises(ProviderError) as caught:
        await sent(server(), message)
    assert caught.value.kind == kind
    assert caught.value.limit == 1_000


async def test_a_bound_signature_holds_for_its_prefix_only() -> None:
    strict = server(reasoning="bound")
    events = await sent(strict, ASK)
    signature = next(e.signature for e in events if hasattr(e, "signature"))
    thought = Message("assistant", (Reasoning("x", "sim", "sim", signature=signature), Text("fine")), id="2")
    assert await sent(strict, ASK, thought, Message("user", (Text("on"),), id="3"))
    with pytest.raises(ProviderError, match="signature"):
        await sent(strict, Message("user", (Text("other"),), id="1"), thought)
    assert strict.faults.signature == 1


def test_the_bulk_of_a_text_counts_as_it_should() -> None:
    for tokens in (0, 3, 50, 399, 400, 12_345, 1_000_000):
        assert text_tokens(words(tokens)) == pytest.approx(tokens, abs=2)


# -- the program -----------------------------------------------------------------------------------------------------


def test_the_grid_is_as_large_as_promised_and_every_quick_slice_has_every_value() -> None:
    scenarios = list(program.grid())
    assert len(scenarios) >= 2_000
    assert sum(s.turns for s in scenarios) >= 200_000
    quick = scenarios[:: program.QUICK_EVERY]
    for axis in ("window", "talk", "mode", "server", "off", "reasoning", "summariser"):
        assert {getattr(s, axis) for s in quick} == {getattr(s, axis) for s in scenarios}


@pytest.mark.slow
def test_json_has_the_promised_keys_and_the_prefix_changes_in_one_turn_of_fifteen_at_most(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "grid", lambda turns: iter([scenario(turns=4), scenario(turns=4, mode="compaction")]))
    assert program.main(["--json", "--workers", "1"]) == 0
    printed = json.loads(capsys.readouterr().out)
    promised = {"conversations", "turns", "overflows", "pairing_errors", "loops", "lost_messages", "refusals"}
    assert promised <= set(printed)
    assert (printed["conversations"], printed["turns"], printed["wrong"]) == (2, 8, {})
    ours, habit = printed["prefix"]["sticky"], printed["prefix"]["every_turn"]
    assert 0 < 15 * ours["changes"] <= ours["turns"]
    assert habit["changes"] > 5 * ours["changes"]
