from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.context.counting.tokenizers import get_tokenizer
from tui.context.counting.words import CLASSES, DIGITS, LATIN, pack
from tui.context.estimate.calibration import (
    BOUND_CALLS,
    EARLY_SPREAD,
    FACTOR_HIGH,
    FACTOR_LOW,
    KEPT,
    KEPT_ERRORS,
    KEPT_PREAMBLES,
    MIN_SPREAD,
    SURE_CALLS,
    Calibration,
    CalibrationBook,
    CalibrationStore,
    Errors,
    fit,
)
from tui.context.estimate.ledger import Sums
from tui.context.estimate.prediction import ENOUGH_CALLS, MARGIN_KNOWN, text_margin

tokens = st.floats(0, 1e7, allow_nan=False)


def taught(*observations: tuple[float, float, float]) -> Calibration:
    calibration = Calibration()
    for content, markup, actual in observations:
        calibration = calibration.learn(content, markup, actual)
    return calibration


@given(st.lists(st.tuples(tokens, tokens, tokens), max_size=80))
def test_no_learning_leaves_the_bounds(observations: list[tuple[float, float, float]]) -> None:
    calibration = taught(*observations)
    assert FACTOR_LOW <= calibration.factor <= FACTOR_HIGH + 1e-9  # a mean, rounded
    assert FACTOR_LOW <= calibration.markup_factor <= FACTOR_HIGH
    assert len(calibration.observations) <= KEPT


def test_one_call_is_no_plural() -> None:
    lessons = [replace(taught((1_000.0, 4.0, 1_304.0)), errors=Errors(calls=number)).lessons for number in (1, 2)]
    assert [text.rpartition(" (")[2] for (text,) in lessons] == ["1 call)", "2 calls)"]


def test_a_model_nobody_called_has_factor_one() -> None:
    assert (Calibration().factor, Calibration().markup_factor, Calibration().media_factor) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(("factor", "markup"), [(1.3, 1.0), (0.8, 1.5), (2.0, 0.7)])
def test_the_true_factors_are_found(factor: float, markup: float) -> None:
    chance = random.Random(1)
    observations = []
    for _ in range(60):
        content, marks = chance.uniform(0, 2_000), chance.choice([4.0, 13.0, 47.0])
        observations.append((content, marks, factor * content + markup * marks + chance.gauss(0, 2)))
    calibration = taught(*observations)
    assert calibration.factor == pytest.approx(factor, rel=0.02)
    assert calibration.markup_factor == pytest.approx(markup, abs=0.15)


def test_a_few_outliers_move_little() -> None:
    observations = [(500.0, 10.0, 600.0)] * 30 + [(500.0, 10.0, 9_000.0)] * 3
    assert fit(taught(*observations).observations).factors[LATIN] == pytest.approx(1.18, abs=0.05)


def test_a_models_own_vocabulary_is_trusted_until_calls_show_another() -> None:
    def factor(model: str, actual: float, calls: int) -> float:
        book = CalibrationBook()
        for _ in range(calls):
            book.put("p", model, book.get("p", model).learn(1_000.0, 10.0, actual))
        return book.get("p", model).factor

    assert factor("claude-opus-4-8", 1_100.0, 1) < 1.04 < factor("of no known family", 1_100.0, 1)
    for model in ("claude-opus-4-8", "of no known family"):
        assert factor(model, 1_400.0, 12) == pytest.approx(1.39, abs=0.02)


def test_one_tiny_message_teaches_little() -> None:
    assert taught((2.0, 4.0, 12.0)).factor == pytest.approx(1.0, abs=0.05)


def test_what_cannot_teach_is_ignored() -> None:
    assert taught((0.0, 0.0, 50.0), (100.0, 4.0, -1.0)) == Calibration()
    assert Calibration().note(0, 0, 0) == Calibration()
    assert Calibration().learn_media(0, 5) == Calibration()
    assert Calibration().learn_preamble(b"x", 10, -5) == Calibration()


def test_a_gateway_that_bills_base64_is_believed_after_two_calls() -> None:
    once = Calibration().learn_media(54_000, 4_500_000)
    assert once.media_factor == 2.5
    assert once.learn_media(54_000, 4_500_000).media_factor == pytest.approx(83.3, abs=0.1)


def test_a_wide_spread_until_there_are_enough_calls_then_the_models_own_errors() -> None:
    calibration = Calibration()
    for _ in range(BOUND_CALLS - 1):
        calibration = calibration.note(1_000, 1_001, 20.0)
    assert calibration.spread == EARLY_SPREAD
    assert calibration.note(1_000, 1_200, 20.0).spread == 10.0
    while len(calibration.errors.scaled) < SURE_CALLS:
        calibration = calibration.note(1_000, 1_001, 20.0)
        narrow = MIN_SPREAD if len(calibration.errors.scaled) < SURE_CALLS else 1 / 20
        assert calibration.spread == pytest.approx(narrow)
    assert calibration.first_spread == 1.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("calls", [60, 200])
@pytest.mark.parametrize(
    "draw",
    [
        lambda chance, _: chance.gauss(0, 50),
        lambda chance, _: chance.choice([0] * 12 + [1] * 5 + [2, 2, 9]),  # a model that is predicted to the token
        lambda chance, _: chance.expovariate(1 / 40) * (20 if chance.random() < 0.03 else 1),
        lambda chance, number: chance.gauss(0, 50 if number < 30 else 3),  # what is learned makes errors smaller
        lambda chance, number: chance.gauss(0, 3 if number % 40 < 30 else 60),  # bursts
    ],
    ids=["normal", "exact", "long tail", "shrinking", "bursts"],
)
def test_the_bound_covers_about_its_share_of_the_next_calls(
    draw: Callable[[random.Random, int], float], calls: int, seed: int
) -> None:
    chance, covered, scored = random.Random(seed), 0, 0
    for _ in range(2_000 // calls):
        noted = Errors()
        for number in range(calls):
            error = round(draw(chance, number))
            if noted.spread is not None:
                covered, scored = covered + (error <= round(noted.spread * 20)), scored + 1
            noted = noted.add(1_000, 1_000 + error, 20.0)
    assert 0.93 <= covered / scored <= 0.99


def test_a_bound_is_read_from_no_more_than_the_latest_errors() -> None:
    noted = Errors()
    for number in range(KEPT_ERRORS + 50):
        noted = noted.add(1_000, 1_500 if number < 50 else 1_001, 20.0)
    assert len(noted.scaled) == KEPT_ERRORS
    assert noted.spread == pytest.approx(1 / 20)


def test_learned_preambles_serve_themselves_and_their_neighbours() -> None:
    calibration = Calibration().learn_preamble(b"one", 1_000, 1_350)
    assert calibration.preamble_tokens(b"one", 1_000) == 1_000  # one call's word
    assert calibration.learn_preamble(b"one", 1_000, 3_000).preamble_tokens(b"one", 1_000) == 1_000  # they differ
    calibration = calibration.learn_preamble(b"one", 1_000, 1_400)
    assert calibration.preamble_tokens(b"one", 1_000) == 1_400
    assert calibration.preamble_tokens(b"two", 1_100) == 1_500  # the learned one and the estimated difference
    assert Calibration().preamble_tokens(b"two", 1_100) == 1_100
    for number in range(50):
        calibration = calibration.learn_preamble(b"%d" % number, 10, 10)
    assert len(calibration.preambles) == KEPT_PREAMBLES


class Store(CalibrationStore):
    """One in memory that keeps JSON."""

    def __init__(self) -> None:
        self.saved: dict[tuple[str, str], str] = {}

    def load(self, provider: str, model: str) -> dict[str, object] | None:
        text = self.saved.get((provider, model))
        return None if text is None else json.loads(text)

    def save(self, provider: str, model: str, data: object) -> None:
        self.saved[provider, model] = json.dumps(data)


def test_a_restart_changes_nothing() -> None:
    store = Store()
    calibration = taught((500.0, 10.0, 700.0)).note(1_000, 990, 20.0).learn_media(10, 20)
    calibration = calibration.note(1_000, 1_100, 50.0, first=True)
    calibration = calibration.learn_preamble(b"x", 10, 12)
    CalibrationBook(store).put("p", "m", calibration)
    again = CalibrationBook(store).get("p", "m")
    assert again == calibration
    assert again.factor == calibration.factor
    assert CalibrationBook(store).get("p", "other") == Calibration()


def test_what_a_server_adds_is_believed_as_long_as_the_last_two_conversations_agree() -> None:
    calibration = Calibration().learn_excess(18_000)
    assert calibration.hidden == 0
    calibration = calibration.learn_excess(18_100)
    assert calibration.hidden == 18_100
    assert calibration.learn_excess(0).hidden == 0
    assert Calibration().learn_excess(500, sure=True).hidden == 500
    assert Calibration.from_json(calibration.to_json()) == calibration


@pytest.mark.parametrize(
    "damage",
    [
        '{"factor": 2}',
        "[]",
        '{"observations": [[1]]}',
        "null",
        '{"observations": "x"}',
        '{"observations": [[1, 1, 1, 2, true]]}',
    ],
)
def test_damaged_state_starts_anew(damage: str) -> None:
    store = Store()
    store.saved["p", "m"] = damage
    assert CalibrationBook(store).get("p", "m") == Calibration()


HINDI, PYTHON = CLASSES.index("devanagari"), LATIN


def test_one_class_teaches_nothing_about_another() -> None:
    calibration = Calibration()
    for index in range(25):
        tokens = 200.0 + 17 * index
        calibration = calibration.learn(tokens, 4.0, 1.6 * tokens + 4, pack({HINDI: tokens}))
    assert calibration.class_factor(HINDI) == pytest.approx(1.6, rel=0.03)
    assert calibration.text(1_000.0, pack({PYTHON: 1_000.0})) == pytest.approx(1_000.0)
    assert calibration.knows(HINDI)
    assert not calibration.knows(PYTHON)


@pytest.mark.parametrize(("unproved", "learned"), [(DIGITS, 2.0), (LATIN, 1.0)])
def test_reports_that_nothing_confirms_teach_where_one_vocabulary_explains_all(unproved: int, learned: float) -> None:
    """Digits that cost twice as much are another vocabulary; text that costs more than before may be a wrong report."""
    calibration = Calibration()
    for number in range(12):
        calibration = calibration.learn(300.0, 4.0, 304.0, pack({LATIN: 300.0}))
        tokens = 900.0 - 50 * number
        calibration = calibration.learn(tokens, 4.0, 2 * tokens + 4, pack({unproved: tokens}), sure=False)
    assert calibration.class_factor(unproved) == pytest.approx(learned, rel=0.05)
    assert calibration.class_factor(LATIN) == pytest.approx(1.0, rel=0.05)


def test_classes_that_come_together_share_what_was_seen() -> None:
    calibration = Calibration()
    for index in range(25):
        latin, digits = 300.0 + 31 * (index % 7), 40.0 + 13 * (index % 5)
        classes = pack({LATIN: latin, DIGITS: digits})
        calibration = calibration.learn(latin + digits, 4.0, 1.2 * latin + 2 * digits + 4, classes)
    assert calibration.text(550.0, pack({LATIN: 480.0, DIGITS: 70.0})) == pytest.approx(1.2 * 480 + 2 * 70, rel=0.02)


def test_a_class_of_text_that_was_never_measured_keeps_its_margin() -> None:
    learned = replace(taught(*[(300.0, 4.0, 320.0)] * 5), errors=Errors(calls=ENOUGH_CALLS))
    sums, margins = Sums(all_classes=pack({LATIN: 100.0, DIGITS: 100.0})), get_tokenizer("unheard-of").margins
    assert text_margin(sums, "unheard-of", learned) == pytest.approx(100 * (MARGIN_KNOWN + margins[DIGITS]))
