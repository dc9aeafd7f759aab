"""What the tools cost is measured by the calls that include them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context.helpers import MODEL, WordTokenizer, call, estimator, registered, request, result, thinking
from tests.messages import assistant, tool, user
from tui.context.counting.tokenizers import CountMethod
from tui.context.estimate.calibration import Calibration
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.ledger import Account, Ledger, preamble_steps
from tui.context.usage.limits import BudgetSettings, ModelLimits
from tui.context.usage.rows import UsageRow, make_rows
from tui.context.usage.usage import ContextUsage, calculate_context_usage
from tui.messages import Attachment, Message, Part, Reasoning, Request, Text, ToolResult, ToolSchema, Usage
from tui.text.labels import MESSAGE_ROWS

TOOLS = (
    ToolSchema("read_file", "Reads a file " * 10, '{"type":"object"}'),
    ToolSchema("gh__issue", "Makes an issue " * 20, '{"type":"object"}', "gh"),
)
TRUE_TOOLS, TRUE_SYSTEM = 190, 60  # what the server really makes of them: not what is estimated
SYSTEM = "Be brief. " * 20


pytestmark = pytest.mark.usefixtures("word_tokenizer")


def usage_of(hybrid: HybridTokenEstimator, outgoing: Request) -> ContextUsage:
    return calculate_context_usage(
        outgoing, estimator=hybrid, limits=ModelLimits(100_000, source="probe"), settings=BudgetSettings()
    )


def rows(hybrid: HybridTokenEstimator, outgoing: Request) -> dict[str, UsageRow]:
    usage = usage_of(hybrid, outgoing)
    assert sum(row.tokens for row in usage.rows) == usage.total
    for row in usage.rows:
        assert not row.items or sum(item.tokens for item in row.items) == row.tokens
    return {row.key: row for row in usage.rows}


def real(outgoing: Request) -> int:
    """What the server counts."""
    words = sum(len(message.text.split()) + 4 for message in outgoing.messages)
    return words + 3 + TRUE_TOOLS * bool(outgoing.tools) + TRUE_SYSTEM * bool(outgoing.system)


def measure(hybrid: HybridTokenEstimator, outgoing: Request) -> Request:
    """Send it; the next request is the conversation with one more exchange."""
    reply = assistant("Certainly.")
    hybrid.record(outgoing, reply, Usage(real(outgoing), 6), learn=True, at=1.0)
    return replace(outgoing, messages=(*outgoing.messages, reply, user("go on")))


@pytest.mark.parametrize("words", [1, 600])
@pytest.mark.parametrize("tools_first", [True, False])
def test_a_call_with_the_tools_and_one_without_tell_what_they_cost(tools_first: bool, words: int) -> None:
    hybrid = estimator()
    outgoing = request(user("hello " * words), system=SYSTEM, tools=TOOLS if tools_first else ())
    assert rows(hybrid, replace(outgoing, tools=TOOLS))["tools"].source == "estimated"
    outgoing = replace(measure(hybrid, outgoing), tools=() if tools_first else TOOLS)
    outgoing = replace(measure(hybrid, outgoing), tools=TOOLS)
    by_key = rows(hybrid, outgoing)
    assert (by_key["tools"].source, by_key["system"].source) == ("derived", "derived")
    assert by_key["tools"].tokens == pytest.approx(TRUE_TOOLS, abs=12)
    assert by_key["system"].tokens == pytest.approx(TRUE_SYSTEM, abs=12)
    assert [(item.name, item.group, item.source) for item in by_key["tools"].items] == [
        ("read_file", "built-in", "derived"),
        ("gh__issue", "gh", "derived"),
    ]
    assert by_key["tools"].items[1].tokens > by_key["tools"].items[0].tokens


def test_with_tools_alone_before_the_messages_the_first_call_tells() -> None:
    hybrid = estimator()
    outgoing = request(user("hello"), tools=TOOLS)
    assert rows(hybrid, outgoing)["tools"].source == "estimated"
    outgoing = measure(hybrid, outgoing)
    assert rows(hybrid, outgoing)["tools"].source == "derived"
    assert rows(hybrid, outgoing)["tools"].tokens == pytest.approx(TRUE_TOOLS, abs=6)


@pytest.mark.parametrize(("how", "is_told"), [("vocabulary", True), ("estimated", False)])
def test_one_call_tells_tools_from_a_system_prompt_in_the_models_own_vocabulary(
    how: CountMethod, is_told: bool
) -> None:
    tokenizer = WordTokenizer()
    tokenizer.method = how
    with registered("words-2", tokenizer):
        hybrid = estimator()
        outgoing = request(user("hello"), system=SYSTEM, tools=TOOLS, model="words-2")
        by_key = rows(hybrid, measure(hybrid, outgoing))
    assert (by_key["tools"].source, by_key["system"].source) == ("estimated", "estimated")
    assert (by_key["tools"].tokens == pytest.approx(TRUE_TOOLS + TRUE_SYSTEM - 2 * 20, abs=9)) == is_told


def test_other_tools_are_estimated_again() -> None:
    hybrid = estimator()
    outgoing = measure(hybrid, request(user("hello"), tools=TOOLS))
    more = (*TOOLS, ToolSchema("new", "Does more " * 30, "{}"))
    assert rows(hybrid, replace(outgoing, tools=more))["tools"].source == "estimated"


@pytest.mark.parametrize("seed", range(5))
def test_an_account_that_grew_is_the_account_made_anew(seed: int) -> None:
    """Messages come, go, are edited and are measured, in any order."""
    chance = Random(seed)
    hybrid = estimator()
    messages: list[Message] = []
    for number in range(40):
        match chance.choice(("add", "add", "add", "many", "cut", "edit", "measure")):
            case "add" | "many" as how:
                messages += (_any_message(chance, f"{number}-{i}") for i in range(20 if how == "many" else 1))
            case "cut":
                del messages[chance.randrange(len(messages) + 1) :]
            case "edit" if messages:
                messages[chance.randrange(len(messages))] = _any_message(chance, f"{number}")
            case "measure" if messages:
                messages.append(assistant(f"answer {number} " * chance.randrange(1, 9), id=f"{number}"))
                outgoing = request(*messages[:-1])
                hybrid.record(outgoing, messages[-1], Usage(real(outgoing), 6), learn=True, at=float(number))
        outgoing = request(*messages)
        situation = hybrid.situation(outgoing)
        grown, anew = (
            situation.account,
            Ledger("p", hybrid.counter, hybrid.costs, Account(MODEL)).update(outgoing.messages),
        )
        assert grown == anew
        usage = calculate_context_usage(outgoing, estimator=hybrid, limits=ModelLimits(None), settings=BudgetSettings())
        looked_up = {message.id: usage.messages.get(message.id) for message in chance.sample(messages, len(messages))}
        assert looked_up == dict(make_rows(outgoing, situation).messages)
        of_items: Counter[str] = Counter()
        for row in usage.rows:
            if row.key in MESSAGE_ROWS:
                assert sum(item.tokens for item in row.items) == row.tokens
                of_items.update({item.ref: item.tokens for item in row.items})
        assert of_items == Counter({ident: share.tokens for ident, share in looked_up.items() if share})


def _any_message(chance: Random, ident: str) -> Message:
    text = f"{ident} " * chance.choice((1, 3, 90))
    parts: tuple[Part, ...] = chance.choice(
        ((Text(text),), (Reasoning(text, "p", MODEL, signature="s"), Text(ident)), (Text(f"see {ident}"), call(ident)))
    )
    return chance.choice(
        (
            Message("assistant", parts, ident),
            user(text, id=ident),
            user(text, f"again {ident}", id=ident, kind="summary"),
            tool(ToolResult(ident, "look", text), id=ident),
        )
    )


def message_items(by_key: dict[str, UsageRow]) -> list[tuple[str, int]]:
    """Source and tokens of the messages, in order of their ids."""
    items = [item for key in MESSAGE_ROWS if key in by_key for item in by_key[key].items]
    return [(item.source, item.tokens) for item in sorted(items, key=lambda item: item.ref)]


@given(st.floats(0.3, 2.4), st.integers(1, 40), st.integers(0, 3))
def test_what_is_measured_of_messages_stays_and_the_preamble_is_what_is_left(
    share: float, words: int, turns: int
) -> None:
    """Whatever the estimate of the tools is off by: no message gets more or less for it."""
    hybrid = estimator()
    outgoing = request(user("hello", id="0"), tools=TOOLS)
    preamble = round(share * rows(hybrid, outgoing)["tools"].tokens)
    expected = []
    for turn in range(turns + 1):
        size = preamble + 5 + sum(len(message.text.split()) + 4 for message in outgoing.messages[1:])
        reply = assistant("word " * words, id=f"{turn}a")
        hybrid.record(outgoing, reply, Usage(size, words + 4), at=1.0)
        outgoing = replace(outgoing, messages=(*outgoing.messages, reply, user("go on", id=f"{turn}b")))
        expected.append(("measured", words + 4))
    by_key = rows(hybrid, outgoing)
    replies = [item for item in message_items(by_key) if item[0] == "measured"]
    assert replies == expected
    assert by_key["tools"].tokens == pytest.approx(preamble, abs=3)
    assert by_key["tools"].source in ("derived", "estimated")
    assert "unattributed" not in by_key


def test_what_no_row_explains_has_a_row_of_its_own_and_is_said() -> None:
    hybrid = estimator()
    outgoing = request(user("hello"), tools=TOOLS)
    reply = assistant("Certainly.")
    hybrid.record(outgoing, reply, Usage(9_000, 6), at=1.0)
    usage = usage_of(hybrid, outgoing)
    by_key = {row.key: row.tokens for row in usage.rows}
    assert by_key["tools"] == pytest.approx(rows(estimator(), outgoing)["tools"].tokens, abs=5)
    assert by_key["unattributed"] + by_key["tools"] + by_key["user"] == 9_000
    assert usage.warnings == (f"{by_key['unattributed']:,} tokens belong to no known message, prompt or tool",)


def test_what_a_chat_template_adds_is_not_taken_for_part_of_a_message() -> None:
    hybrid = estimator()
    outgoing = request(user("word " * 30))
    expected = rows(hybrid, outgoing)["user"].tokens
    hybrid.record(outgoing, assistant("Certainly."), Usage(expected + 30, 6), at=1.0)
    by_key = rows(hybrid, outgoing)
    assert (by_key["hidden"].tokens, by_key["user"].tokens) == (33, expected - 3)  # with what opens a request
    assert (by_key["hidden"].source, by_key["user"].source) == ("derived", "estimated")


@pytest.mark.parametrize(("model", "row"), [(MODEL, "hidden"), ("of-no-known-family", "unattributed")])
def test_what_a_chat_template_adds_is_shown_but_no_reason_to_warn(model: str, row: str) -> None:
    hybrid = estimator()
    outgoing = request(user("hi"), model=model)
    hybrid.record(outgoing, assistant("Certainly."), Usage(60, 6), at=1.0)
    usage = usage_of(hybrid, outgoing)
    tokens = {row.key: row.tokens for row in usage.rows}
    assert 0 < tokens[row] < 60
    assert not {"hidden", "unattributed"} - {row} & tokens.keys()
    assert usage.warnings == ()


@pytest.mark.parametrize("model", ["gemini-3-pro", "mistral-large", "gpt-5"])
def test_an_empty_conversation_has_nothing_to_warn_of(model: str) -> None:
    usage = usage_of(estimator(), request(model=model))
    assert usage.warnings == ()
    assert sum(row.tokens for row in usage.rows) == usage.total


def test_contradicting_measurements_leave_no_row_empty_and_are_said() -> None:
    hybrid = estimator()
    outgoing = request(user("hello"), tools=TOOLS)
    reply = assistant("word " * 400)
    hybrid.record(outgoing, reply, Usage(300, 404), at=1.0)
    outgoing = replace(outgoing, messages=(*outgoing.messages, reply))
    hybrid.record(outgoing, assistant("Well."), Usage(200, 4), at=2.0)  # the server cut it; recorded all the same
    usage = usage_of(hybrid, outgoing)
    assert {row.key for row in usage.rows if row.tokens > 0} == {"tools", "user", "assistant"}
    assert {row.source for row in usage.rows} == {"estimated"}
    assert usage.warnings[0].endswith("they were scaled down")


@pytest.mark.parametrize(("lacks", "warns"), [(60, False), (90, True)])
def test_what_a_chat_template_lacks_is_no_reason_to_warn(lacks: int, warns: bool) -> None:
    hybrid = estimator()
    outgoing = request(user("hello " * 120), system=SYSTEM)
    hybrid.record(outgoing, assistant("Certainly."), Usage(usage_of(hybrid, outgoing).total - lacks, 6), at=1.0)
    usage = usage_of(hybrid, outgoing)
    assert {row.source for row in usage.rows} == {"estimated"}
    assert bool(usage.warnings) == warns


def test_what_the_server_adds_has_a_row_of_its_own() -> None:
    hybrid = estimator()
    outgoing = request(user("hello"), tools=TOOLS)
    learned = Calibration().learn_excess(3_000, sure=True)
    hybrid.calibrations.put("p", MODEL, learned)
    size = usage_of(hybrid, replace(outgoing, session="before")).total
    before = rows(hybrid, replace(outgoing, session="before"))
    assert (before["hidden"].tokens, before["hidden"].source) == (3_000, "derived")
    hybrid.record(outgoing, assistant("Certainly."), Usage(size, 6), at=1.0)
    by_key = rows(hybrid, outgoing)
    assert (by_key["hidden"].tokens, by_key["hidden"].name) == (3_000, "added by the server")
    assert "unattributed" not in by_key


def test_what_an_image_costs_beyond_its_estimate_is_its_own() -> None:
    """No formula is published for this model's images; its text is counted."""
    hybrid = estimator()
    image = Attachment("image", "a.png", "image/png", "0" * 64, 1_000, width=800, height=600)
    outgoing = request(user("word " * 300, image), system=SYSTEM)
    before = rows(hybrid, outgoing)
    hybrid.record(outgoing, assistant("Certainly."), Usage(usage_of(hybrid, outgoing).total + 700, 6), at=1.0)
    by_key = rows(hybrid, outgoing)
    assert by_key["attachments"].tokens == pytest.approx(before["attachments"].tokens + 700, abs=12)
    assert by_key["user"].tokens == pytest.approx(before["user"].tokens, abs=12)
    assert usage_of(hybrid, outgoing).warnings == ()


def test_what_the_server_cleared_leaves_the_tool_results_even_if_they_are_estimated() -> None:
    hybrid = estimator()
    conversation = [user("hello"), assistant(call("1")), result("1", "word " * 800)]
    outgoing = replace(request(*conversation, system=SYSTEM), server_edits=True)
    before, total = rows(hybrid, outgoing), usage_of(hybrid, outgoing).total
    hybrid.record(outgoing, assistant("Certainly."), Usage(total - 500, 6, cleared=500), at=1.0)
    after, usage = rows(hybrid, outgoing), usage_of(hybrid, outgoing)
    assert after["tool_results"].tokens == pytest.approx(before["tool_results"].tokens - 500, abs=2)
    assert after["system"].tokens == pytest.approx(before["system"].tokens, abs=2)
    assert usage.warnings == ()


def test_reasoning_that_the_server_is_known_to_drop_has_no_row() -> None:
    hybrid = estimator()
    outgoing = request(user("hello"), system=SYSTEM)
    for _ in range(5):
        reply = thinking("hm", "Certainly.", 500)
        hybrid.record(outgoing, reply, Usage(real(outgoing), 505, reasoning=500), at=1.0)
        outgoing = replace(outgoing, messages=(*outgoing.messages, reply, user("go on")))
    usage = usage_of(hybrid, outgoing)
    assert usage.total == pytest.approx(real(outgoing), abs=30)
    by_key = rows(hybrid, outgoing)
    assert by_key["system"].tokens == pytest.approx(TRUE_SYSTEM, abs=20)
    assert "reasoning" not in by_key
    assert usage.warnings == ()


@pytest.mark.parametrize("model", ["llama-3.1-8b-instruct", "gpt-oss-20b"])
def test_what_a_family_is_known_to_add_is_added_by_the_server(model: str) -> None:
    hybrid = estimator()
    outgoing = request(user("hello"), model=model)
    before, usage = rows(hybrid, outgoing)["hidden"], usage_of(hybrid, outgoing)
    hybrid.record(outgoing, assistant("Certainly."), Usage(usage.total, 6), at=1.0)
    after = rows(hybrid, outgoing)["hidden"]
    assert [before.source, after.source] == ["estimated", "derived"]
    assert [before.tokens, after.tokens] == pytest.approx([usage.total - 5] * 2, abs=1)


@pytest.mark.parametrize("system", ["", SYSTEM])
def test_what_calls_agree_on_beyond_tools_and_prompt_is_added_by_the_server(system: str) -> None:
    hybrid = estimator()
    for session in ("first", "second"):
        outgoing = request(user(f"hello for the {session} time"), system=system, tools=TOOLS, session=session)
        hybrid.record(outgoing, assistant("Certainly."), Usage(1_500 + real(outgoing), 6), at=1.0)
    before = rows(estimator(), outgoing)
    by_key = rows(hybrid, outgoing)
    assert by_key["hidden"].tokens == pytest.approx(1_500, abs=150)
    assert by_key["tools"].tokens == pytest.approx(before["tools"].tokens, rel=0.6)
    assert "unattributed" not in by_key


@pytest.mark.parametrize("conversation", [(), (user("hello"),)])
def test_the_parts_that_a_provider_counts_are_shown_as_counted(conversation: tuple[Message, ...]) -> None:
    hybrid = estimator()
    outgoing = request(*conversation, system=SYSTEM, tools=TOOLS)
    hybrid.note_parts(outgoing, [real(step) for step in preamble_steps(outgoing)])
    by_key = rows(hybrid, outgoing)
    assert (by_key["system"].tokens, by_key["tools"].tokens) == (TRUE_SYSTEM, TRUE_TOOLS)
    assert (by_key["system"].source, by_key["tools"].source) == ("counted", "counted")
    usage = usage_of(hybrid, outgoing)
    assert usage.source == ("estimated" if conversation else "exact")
    assert usage.basis.counted is not bool(conversation)
    assert (usage.upper_bound == usage.total) is not bool(conversation)
    changed = replace(outgoing, tools=TOOLS[:1])
    assert rows(hybrid, changed)["tools"].source == "estimated"
    assert rows(hybrid, replace(outgoing, session="another"))["tools"].tokens == TRUE_TOOLS


@pytest.mark.parametrize(
    "counts",
    [
        pytest.param([9, 9, 9, 9, 9], id="always the same"),
        pytest.param([9, 80, 80, 80, 60], id="less with tools than without"),
        pytest.param([9, 80, 80, 80, 90_000], id="more than bytes"),
    ],
)
def test_counts_that_do_not_fit_the_text_are_not_used(counts: list[int]) -> None:
    hybrid = estimator()
    outgoing = request(user("hello"), system=SYSTEM, tools=TOOLS)
    before = rows(hybrid, outgoing)
    assert not hybrid.note_parts(outgoing, counts)
    assert rows(hybrid, outgoing) == before


@pytest.mark.parametrize(("model", "default"), [(MODEL, 40), ("qwen2.5:7b", 21)], ids=["unknown", "known"])
def test_a_default_prompt_of_the_template_is_no_part_of_what_replaces_it(model: str, default: int) -> None:
    hybrid = estimator()
    outgoing = request(user("hello"), system=SYSTEM, model=model)
    counts = [real(step) + default * (not step.system) for step in preamble_steps(outgoing)]
    hybrid.note_parts(outgoing, counts)
    assert rows(hybrid, outgoing)["system"].tokens == pytest.approx(TRUE_SYSTEM, abs=3)


def test_with_the_rest_counted_the_only_estimated_row_is_a_difference() -> None:
    hybrid = estimator()
    outgoing = request(user("hello there"), tools=TOOLS)
    hybrid.note_parts(outgoing, [real(step) for step in preamble_steps(outgoing)])
    assert rows(hybrid, outgoing)["user"].source == "estimated"
    hybrid.note_count(outgoing, real(outgoing), at=1.0)
    by_key = rows(hybrid, outgoing)
    assert {key: row.source for key, row in by_key.items()} == {"tools": "counted", "user": "derived"}
    assert by_key["user"].tokens == real(outgoing) - TRUE_TOOLS


@pytest.mark.parametrize(("tools", "after"), [(TOOLS, "derived"), (TOOLS[:1], "counted")])
def test_of_counted_tools_each_is_derived_unless_it_is_the_only_one(tools: tuple[ToolSchema, ...], after: str) -> None:
    hybrid = estimator()
    outgoing = request(user("hello there"), tools=tools)
    before = rows(hybrid, outgoing)["tools"].items
    hybrid.note_parts(outgoing, [real(step) for step in preamble_steps(outgoing)])
    counted = rows(hybrid, outgoing)["tools"].items
    assert ({item.source for item in before}, {item.source for item in counted}) == ({"estimated"}, {after})


@pytest.mark.parametrize(("model", "row"), [(MODEL, "unattributed"), ("of-no-known-family", "user")])
def test_a_first_message_that_costs_twice_its_estimate_is_not_booked_as_tools(model: str, row: str) -> None:
    """Only the text of a model whose vocabulary is unknown can cost twice its estimate."""
    hybrid = estimator()
    outgoing = request(user("word " * 1_000), tools=TOOLS, model=model)
    before = rows(hybrid, outgoing)
    hybrid.record(outgoing, assistant("Certainly."), Usage(2_000 + before["tools"].tokens, 6), at=1.0)
    by_key = rows(hybrid, outgoing)
    assert by_key["tools"].tokens <= 2.5 * before["tools"].tokens
    gained = {key: by_key[key].tokens - (before[key].tokens if key in before else 0) for key in by_key}
    assert max(gained, key=gained.__getitem__) == row
    assert gained[row] > 700


@pytest.mark.parametrize("system", ["word " * 400, "word " * 40])
def test_a_system_prompt_of_a_known_vocabulary_is_not_what_the_server_adds(system: str) -> None:
    hybrid = estimator()
    expected = rows(hybrid, request(system=system))["system"].tokens
    for session in ("first", "second"):
        outgoing = request(user(session), system=system, session=session)
        hybrid.record(outgoing, assistant("Certainly."), Usage(expected + 405, 6), at=1.0)
    by_key = rows(hybrid, outgoing)
    assert by_key["system"].tokens == pytest.approx(expected, abs=8)
    assert by_key["hidden"].tokens == pytest.approx(400, abs=10)
