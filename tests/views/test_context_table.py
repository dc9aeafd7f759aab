"""The total as a sum: what is on the line adds up to the headline, and says what it is."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.context.helpers import MODEL, estimator, request, thinking
from tests.messages import assistant, user
from tui.context.counting.digests import TokenCost, message_digest
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.usage.limits import BudgetSettings, ModelLimits
from tui.context.usage.usage import ClassFactor, calculate_context_usage
from tui.messages import Message, Usage
from tui.views.context_table import basis_lines

LONG = "one two three four five " * 40


pytestmark = pytest.mark.usefixtures("word_tokenizer")


def line(hybrid: HybridTokenEstimator, *messages: Message, system: str = "") -> str:
    """The sum on screen, which has to come to the total."""
    usage = calculate_context_usage(
        request(*messages, system=system), estimator=hybrid, limits=ModelLimits(200_000), settings=BudgetSettings()
    )
    text = basis_lines(usage, 200)[0].plain.removeprefix("basis   ")
    if usage.basis.last_input is not None:
        words = re.sub(r"last output [\d,]+ \(([\d,]+) of it", r"\1 (", text)  # only what goes back counts
        parts = re.findall(r"(?:^|([+-]) )[a-z ]*~?([\d,]+)", words)
        assert sum(int(f"{sign}{number.replace(',', '')}") for sign, number in parts) == usage.total, text
    return text


ANSWER = assistant("a " * 196)  # 200 tokens


def measured(reply: Message | None = None, usage: Usage | None = None) -> HybridTokenEstimator:
    hybrid = estimator()
    hybrid.record(request(user("q")), reply or ANSWER, usage or Usage(1_000, 200), learn=True, at=0.0)
    return hybrid


def test_without_a_call_nothing_is_added_up() -> None:
    assert line(estimator(), user("q")) == "estimated: no call to this model has measured it yet"


def test_last_input_last_output_and_what_is_new() -> None:
    text = line(measured(), user("q"), ANSWER, user("x"))
    assert text.startswith("last input 1,000 + last output 200 (all of it sent back) + new ~")


def test_only_what_goes_back_of_the_output() -> None:
    reply = assistant("word " * 12)
    hybrid = measured(reply, usage=Usage(100, 2_315, reasoning=2_303))
    assert line(hybrid, user("q"), reply) == "last input 100 + last output 2,315 (12 of it sent back)"


def test_an_answer_that_is_set_aside_is_not_added() -> None:
    assert line(measured(), user("q")) == "last input 1,000"


def test_an_output_nobody_reported_is_not_said_to_be_none() -> None:
    cut = replace(assistant(LONG), status="cancelled")
    text = line(measured(cut, usage=Usage(1_000, None)), user("q"), cut)
    assert text.startswith("last input 1,000 + new ~")


def test_the_servers_count_is_not_a_calls_usage() -> None:
    hybrid = estimator()
    hybrid.note_count(request(user("q")), 68, at=0.0)
    assert line(hybrid, user("q")) == "counted by the server 68"
    assert line(hybrid, user("q"), ANSWER, user(LONG)).startswith("counted by the server 68 + new ~")


def test_a_longer_system_prompt_is_new() -> None:
    assert line(measured(), user("q"), ANSWER, system=LONG).endswith(" + new ~204")


def test_what_left_since_is_taken_off() -> None:
    hybrid = estimator()
    conversation: list[Message] = []
    total = 300
    for number in range(10):
        conversation.append(user(f"{number} " * 100))
        total += 104
        hybrid.record(request(*conversation), assistant(f"a{number}"), Usage(total, 10), learn=True, at=float(number))
        conversation.append(assistant(f"a{number}"))
        total += 10
    assert " - not sent any more ~3" in line(hybrid, *conversation[6:], user("x"))


def test_reasoning_that_left_is_taken_off() -> None:
    thought = thinking("hm " * 30, "so")
    hybrid = estimator()
    hybrid.record(request(user("q")), thought, Usage(1_000, 200, reasoning=150), learn=True, at=0.0)
    hybrid.record(request(user("q"), thought, user("r")), assistant("b"), Usage(1_210, 10), learn=True, at=1.0)
    bare = replace(thought, parts=thought.parts[1:])
    assert "- not sent any more" in line(hybrid, user("q"), bare, user("r"), assistant("b"))


def test_the_classes_of_the_conversation_show_what_was_learned_of_each() -> None:
    hybrid = estimator()
    usage = calculate_context_usage(
        request(user("q")), estimator=hybrid, limits=ModelLimits(200_000), settings=BudgetSettings()
    )
    classes = (ClassFactor("latin", 900, 1.0), ClassFactor("devanagari", 400, 1.3))
    basis = replace(usage.basis, factor=1.1, measured_calls=3, classes=classes)
    lines = [line.plain for line in basis_lines(replace(usage, basis=basis), 200)]
    assert any("factor 1.10 (latin 1.00, devanagari 1.30)" in text for text in lines)
    same = replace(basis, classes=(ClassFactor("latin", 900, 1.1), ClassFactor("digits", 90, 1.1)))
    assert not any("latin" in line.plain for line in basis_lines(replace(usage, basis=same), 200))


def test_what_is_new_is_all_that_came_since_also_where_some_of_it_was_measured() -> None:
    hybrid = measured()
    hybrid.costs.put("p", MODEL, {message_digest(ANSWER).full: TokenCost(200, 0, "measured")})
    text = line(hybrid, user("q"), ANSWER, user("x"), ANSWER, user("y"))
    assert "sent again" not in text
    assert re.search(r"\+ new ~2\d\d$", text)


def test_first_estimates_are_told_apart_from_those_that_had_a_measured_call() -> None:
    hybrid = estimator()
    usage = calculate_context_usage(
        request(user("q")), estimator=hybrid, limits=ModelLimits(200_000), settings=BudgetSettings()
    )
    basis = replace(
        usage.basis,
        factor=1.0,
        measured_calls=30,
        error_p95_percent=3.3,
        first_error_p95_percent=84.0,
        last_error_percent=84.2,
        last_error_first=True,
    )
    text = " ".join(line.plain for line in basis_lines(replace(usage, basis=basis), 200))
    assert "first estimate off by +84.2 %" in text
    assert "95 % of estimates within 3.3 %, of first estimates within 84.0 %" in text
    later = replace(basis, last_error_percent=0.4, last_error_first=False, first_error_p95_percent=None)
    text = " ".join(line.plain for line in basis_lines(replace(usage, basis=later), 200))
    assert "last estimate off by +0.4 %" in text
    assert "of first estimates" not in text
