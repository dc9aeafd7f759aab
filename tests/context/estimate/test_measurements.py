from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context.helpers import estimator, request, thinking, without_reasoning
from tests.messages import assistant, user
from tui.context.counting.counting import TokenCounter
from tui.context.counting.digests import CostBook, preamble_digest
from tui.context.estimate.ledger import Account, Ledger
from tui.context.estimate.measurements import REMEMBERED, ConversationStateTracker, Match, Measurement, MeasurementStore
from tui.messages import Message, Request, Usage


class Store(MeasurementStore):
    """One in memory."""

    def __init__(self) -> None:
        self.saved: list[Measurement] = []

    def load(self, provider: str, model: str) -> Iterable[Measurement]:
        return [m for m in self.saved if (m.provider, m.model) == (provider, model)]

    def save(self, measurement: Measurement) -> None:
        self.saved.append(measurement)

    def remove(self, measurement: Measurement) -> None:
        self.saved.remove(measurement)

    def clear(self, provider: str, model: str) -> None:
        self.saved = [m for m in self.saved if (m.provider, m.model) != (provider, model)]


def measured(*turns: tuple[Request, Message, Usage], store: Store | None = None) -> ConversationStateTracker:
    """A tracker after these calls."""
    made = ConversationStateTracker(store)
    accounting = estimator(made)
    for at, (sent, reply, usage) in enumerate(turns):
        accounting.record(sent, reply, usage, learn=True, at=float(at))
    return made


def lookup(tracker: ConversationStateTracker, outgoing: Request) -> Match | None:
    """The measurement that covers the most of `asked`."""
    account = Ledger(outgoing.provider, COUNTER, CostBook(), Account(outgoing.model)).update(outgoing.messages)
    return tracker.find(outgoing.provider, outgoing.model, account, preamble_digest(outgoing.system, outgoing.tools))


def covered(tracker: ConversationStateTracker, *messages: Message) -> int:
    """The number of messages that are measured of a request with `messages`."""
    match = lookup(tracker, request(*messages))
    return 0 if match is None else match.covered


COUNTER = TokenCounter()
ONE, TWO, REPLY = user("first question"), user("second question"), assistant("an answer of some words")
CALL = (request(ONE), REPLY, Usage(100, 20))


def test_the_same_request_again_is_exact() -> None:
    match = lookup(measured(CALL), request(ONE))
    assert match is not None
    assert (match.covered, match.with_reply) == (1, False)


def test_the_reply_is_covered_and_what_follows_is_new() -> None:
    match = lookup(measured(CALL), request(ONE, REPLY, TWO))
    assert match is not None
    assert (match.covered, match.with_reply) == (2, True)


def test_nothing_known_is_none() -> None:
    assert lookup(ConversationStateTracker(), request(ONE)) is None
    assert lookup(measured(CALL), request(TWO)) is None
    assert lookup(measured(CALL), request()) is None


def test_another_model_or_provider_has_its_own_measurements() -> None:
    tracker = measured(CALL)
    assert lookup(tracker, request(ONE, model="words-2")) is None
    assert lookup(tracker, request(ONE, provider="q")) is None
    assert lookup(tracker, request(ONE)) is not None  # and switching back finds the old one


def test_a_fork_an_edit_and_a_rewind_find_the_prefix_they_share() -> None:
    second = (request(ONE, REPLY, TWO), assistant("more"), Usage(130, 5))
    tracker = measured(CALL, second)
    assert covered(tracker, ONE, REPLY, user("another turn")) == 2
    assert covered(tracker, ONE, REPLY, TWO) == 3
    assert covered(tracker, user("edited"), REPLY, TWO) == 0
    assert covered(tracker, ONE, REPLY) == 2  # rewound


def test_a_regenerated_reply_is_told_from_the_first() -> None:
    other = assistant("a different answer")
    tracker = measured(CALL, (request(ONE), other, Usage(100, 7)))
    for reply, output in ((REPLY, 20), (other, 7)):
        match = lookup(tracker, request(ONE, reply, TWO))
        assert match is not None
        assert match.measurement.output_tokens == output


def test_another_session_with_the_same_words_is_the_same_conversation() -> None:
    assert lookup(measured(CALL), request(ONE, session="another")) is not None


def test_ids_times_and_status_change_nothing() -> None:
    stored = replace(ONE, id="7", created_at=3.0, status="complete", provider="p")
    assert lookup(measured(CALL), request(stored)) is not None


def test_a_restart_finds_what_was_stored() -> None:
    store = Store()
    measured(CALL, store=store)
    assert covered(ConversationStateTracker(store), ONE, REPLY, TWO) == 2


def test_reasoning_may_leave_and_the_measurement_is_still_found() -> None:
    reply = thinking("long thoughts", "short answer")
    tracker = measured((request(ONE), reply, Usage(100, 50, reasoning=40)))
    for form in (reply, without_reasoning(reply)):
        assert covered(tracker, ONE, form, TWO) == 2


def test_the_same_preamble_is_preferred() -> None:
    other = request(ONE, system="be brief")
    match = lookup(measured((other, REPLY, Usage(500, 20)), CALL), other)
    assert match is not None
    assert match.measurement.input_tokens == 500


def test_a_reply_that_is_not_whole_is_no_part_of_the_measurement() -> None:
    cut = replace(REPLY, status="cancelled")
    match = lookup(measured((request(ONE), cut, Usage(100, 1))), request(ONE, cut, TWO))
    assert match is not None
    assert (match.covered, match.with_reply) == (1, False)


@pytest.mark.slow
def test_memory_is_bounded() -> None:
    tracker = ConversationStateTracker()
    accounting = estimator(tracker)
    for number in range(REMEMBERED + 50):
        accounting.record(request(user(str(number))), REPLY, Usage(9, 9), learn=False, at=0.0)
    assert covered(tracker, user("0")) == 0
    assert covered(tracker, user(str(REMEMBERED + 49))) == 1
    index = tracker._models["p", "words-1"]
    assert len(index.measurements) == REMEMBERED
    assert len(index.entries) <= 2 * REMEMBERED


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6), st.data())
def test_the_longest_measured_prefix_is_found(conversation: list[tuple[int, int]], data: st.DataObject) -> None:
    """Against a plain model: measured prefixes in a set, tried from the longest."""
    history: list[Message] = []
    calls = []
    prefixes: set[tuple[Message, ...]] = set()
    for question, reply_number in conversation:
        history.append(user(f"q{question}"))
        reply = assistant(f"a{reply_number} with several words")
        if data.draw(st.booleans()):
            calls.append((request(*history), reply, Usage(10, 6)))
            prefixes |= {tuple(history), (*history, reply)}
        history.append(reply)
    outgoing = (*history[: data.draw(st.integers(0, len(history)))], user("new"))
    expected = next((n for n in range(len(outgoing), 0, -1) if outgoing[:n] in prefixes), 0)
    assert covered(measured(*calls), *outgoing) == expected
