from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context.helpers import answer, estimator, request, thinking, user, without_reasoning
from tui.context.counting.digests import CHAIN_START, chain, message_digest, preamble_digest
from tui.context.estimate import tracker as module
from tui.context.estimate.tracker import ConversationStateTracker, Match, Measurement
from tui.messages import Message, Request, Usage


class Store:
    """A `MeasurementStore` in memory."""

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


def lookup(tracker: ConversationStateTracker, asked: Request) -> Match:
    """The measurement that covers the most of `asked`."""
    bodies = [message_digest(message).body for message in asked.messages]
    chains = [CHAIN_START, *chain(CHAIN_START, bodies)]
    preamble = preamble_digest(asked.system, asked.tools)
    return tracker.find(asked.provider, asked.model, (len(bodies), chains.__getitem__), preamble)


ONE, TWO, REPLY = user("first question"), user("second question"), answer("an answer of some words")
CALL = (request(ONE), REPLY, Usage(100, 20))


def test_the_same_request_again_is_exact() -> None:
    match = lookup(measured(CALL), request(ONE))
    assert (match.kind, match.covered, match.with_reply) == ("exact", 1, False)


def test_the_reply_is_covered_and_what_follows_is_new() -> None:
    match = lookup(measured(CALL), request(ONE, REPLY, TWO))
    assert (match.kind, match.covered, match.with_reply) == ("prefix", 2, True)


def test_nothing_known_is_none() -> None:
    assert lookup(ConversationStateTracker(), request(ONE)).kind == "none"
    assert lookup(measured(CALL), request(TWO)).kind == "none"
    assert lookup(measured(CALL), request()).kind == "none"


def test_another_model_or_provider_has_its_own_measurements() -> None:
    known = measured(CALL)
    assert lookup(known, request(ONE, model="words-2")).kind == "none"
    assert lookup(known, request(ONE, provider="q")).kind == "none"
    assert lookup(known, request(ONE)).kind == "exact"  # and switching back finds the old one


def test_a_fork_an_edit_and_a_rewind_find_the_prefix_they_share() -> None:
    second = (request(ONE, REPLY, TWO), answer("more"), Usage(130, 5))
    known = measured(CALL, second)
    assert lookup(known, request(ONE, REPLY, user("another turn"))).covered == 2
    assert lookup(known, request(ONE, REPLY, TWO)).kind == "exact"
    assert lookup(known, request(user("edited"), REPLY, TWO)).kind == "none"
    rewound = lookup(known, request(ONE, REPLY))
    assert (rewound.kind, rewound.covered) == ("exact", 2)


def test_a_regenerated_reply_is_told_from_the_first() -> None:
    other = answer("a different answer")
    known = measured(CALL, (request(ONE), other, Usage(100, 7)))
    for reply, output in ((REPLY, 20), (other, 7)):
        match = lookup(known, request(ONE, reply, TWO))
        assert match.measurement is not None
        assert match.measurement.output_tokens == output


def test_another_session_with_the_same_words_is_the_same_conversation() -> None:
    assert lookup(measured(CALL), request(ONE, session="another")).kind == "exact"


def test_ids_times_and_status_change_nothing() -> None:
    stored = replace(ONE, id="7", created_at=3.0, status="complete", provider="p")
    assert lookup(measured(CALL), request(stored)).kind == "exact"


def test_a_restart_finds_what_was_stored() -> None:
    store = Store()
    measured(CALL, store=store)
    again = ConversationStateTracker(store)
    assert lookup(again, request(ONE, REPLY, TWO)).covered == 2


def test_reasoning_may_leave_and_the_measurement_is_still_found() -> None:
    reply = thinking("long thoughts", "short answer")
    known = measured((request(ONE), reply, Usage(100, 50, reasoning=40)))
    for form in (reply, without_reasoning(reply)):
        match = lookup(known, request(ONE, form, TWO))
        assert (match.kind, match.covered) == ("prefix", 2)


def test_the_same_preamble_is_preferred() -> None:
    other = request(ONE, system="be brief")
    known = measured((other, REPLY, Usage(500, 20)), CALL)
    match = lookup(known, other)
    assert match.measurement is not None
    assert match.measurement.input_tokens == 500


def test_a_reply_that_is_not_whole_is_no_part_of_the_measurement() -> None:
    cut = replace(REPLY, status="cancelled")
    known = measured((request(ONE), cut, Usage(100, 1)))
    match = lookup(known, request(ONE, cut, TWO))
    assert (match.covered, match.with_reply) == (1, False)


@pytest.mark.slow
def test_memory_is_bounded(monkeypatch: object) -> None:
    known = ConversationStateTracker()
    accounting = estimator(known)
    for number in range(module.REMEMBERED + 50):
        accounting.record(request(user(str(number))), REPLY, Usage(9, 9), learn=False, at=0.0)
    assert lookup(known, request(user("0"))).kind == "none"
    assert lookup(known, request(user(str(module.REMEMBERED + 49)))).kind == "exact"
    held = known._models["p", "words-1"]
    assert len(held.order) == module.REMEMBERED
    assert len(held.index) <= 2 * module.REMEMBERED


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6), st.data())
def test_the_longest_measured_prefix_is_found(talk: list[tuple[int, int]], data: st.DataObject) -> None:
    """Against a plain model: measured prefixes in a set, tried from the longest."""
    history: list[Message] = []
    calls = []
    prefixes: set[tuple[Message, ...]] = set()
    for question, reply_number in talk:
        history.append(user(f"q{question}"))
        reply = answer(f"a{reply_number} with several words")
        if data.draw(st.booleans()):
            calls.append((request(*history), reply, Usage(10, 6)))
            prefixes |= {tuple(history), (*history, reply)}
        history.append(reply)
    known = measured(*calls)
    asked = (*history[: data.draw(st.integers(0, len(history)))], user("new"))
    expected = next((n for n in range(len(asked), 0, -1) if asked[:n] in prefixes), 0)
    assert lookup(known, request(*asked)).covered == expected
