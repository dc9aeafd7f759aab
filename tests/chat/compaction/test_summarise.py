"""Summaries: requests that fit and contain everything, and the ladder down when the call fails."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat.fakes import ScriptedProvider, open_workspace
from tests.context.conversations import HistoryBuilder, budget
from tests.messages import tool, user
from tui.chat.compaction.summarise import (
    MAX_CHUNKS,
    OVERLAP,
    TRUNCATED_BELOW,
    Summariser,
    SummaryFailedError,
    render_pieces,
    split_source,
    split_text,
    summary_prompt,
)
from tui.chat.conversation.completion import Completion, complete
from tui.context.reduction.compaction import summary_allowance
from tui.context.usage.limits import Budget
from tui.messages import Attachment, Message, Reasoning, Refusal, Request, Text, ToolCall, ToolResult, Usage
from tui.providers.base import (
    ErrorKind,
    ProviderError,
    ReasoningDelta,
    RefusalDelta,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)

BASE = Request("test", "model", (), session="s")
ROOMY = budget(60_000)
FACT = re.compile(r"FACT-[\w./:-]+")


def count(text: str) -> int:
    return -(-len(text) // 4)


def request_size(request: Request) -> int:
    return sum(count(m.text) for m in request.messages) + sum(count(s.text) for s in request.system) + 10


def summariser(
    model: Callable[[Request], Awaitable[Completion]],
    space: Budget,
    *,
    sent: Request = BASE,
    allowance: int | None = None,
    least_read: float = TRUNCATED_BELOW,
) -> Summariser:
    return Summariser(model, sent, space, allowance or summary_allowance(space), count, least_read=least_read)


class Faithful:
    """In place of the model: a summary that repeats every planted fact it was shown, and refuses what is too large."""

    def __init__(self, space: Budget, failures: Sequence[Completion | ProviderError] = ()) -> None:
        self.requests: list[Request] = []
        self._space = space
        self._failures = list(failures)

    async def __call__(self, request: Request) -> Completion:
        self.requests.append(request)
        if self._failures:
            failure = self._failures.pop(0)
            if isinstance(failure, ProviderError):
                raise failure
            return failure
        assert request.max_output is not None
        if self._space.context is not None and request_size(request) + request.max_output > self._space.context:
            raise ProviderError("overflow_input", "too long")
        facts = dict.fromkeys(FACT.findall(request.messages[-1].text))
        return Completion(" ".join(facts) or "nothing of note", Usage(request_size(request), 10))


def planted(turns: int, tokens: int) -> tuple[list[Message], list[str]]:
    """A conversation with a fact in every kind of part."""
    builder, facts = HistoryBuilder(), []

    def fact(kind: str, number: int) -> str:
        facts.append(f"FACT-{kind}/src/module_{number}.py:{number * 37}")
        return facts[-1]

    for number in range(turns):
        filler = "lorem ipsum dolor sit amet\n" * (tokens * 4 // 27)
        builder.user(text=f"{filler}please look at {fact('user', number)} {filler}")
        builder.add("assistant", ToolCall(f"call-{number}", "edit", f'{{"path": "{fact("argument", number)}"}}'))
        builder.add("tool", ToolResult(f"call-{number}", "edit", f"{filler}Error: {fact('result', number)}\n{filler}"))
        builder.assistant(text=f"Decided on {fact('decision', number)}, {filler}")
    return builder.messages, facts


@pytest.mark.parametrize("max_input", [1_536, 6_144, 24_576, 984_000])
@pytest.mark.parametrize("tokens", [20, 700])
async def test_every_fact_of_the_range_is_in_a_request_and_every_request_fits(max_input: int, tokens: int) -> None:
    messages, facts = planted(4, tokens)
    space = budget(max_input)
    model = Faithful(space)
    summary = await summariser(model, space).summarise(messages)
    shown = " ".join(r.messages[-1].text for r in model.requests)
    assert [f for f in facts if f not in shown] == []
    assert [f for f in facts if f not in summary.text] == []
    assert all(request_size(r) <= max_input for r in model.requests)


async def test_each_request_carries_the_summary_so_far() -> None:
    messages, _ = planted(6, 300)
    model = Faithful(budget(3_000))
    await summariser(model, budget(3_000)).summarise(messages)
    assert len(model.requests) > 2
    for before, request in zip(model.requests, model.requests[1:], strict=False):
        carried = FACT.findall(before.messages[-1].text)
        assert set(carried) <= set(FACT.findall(request.messages[-1].text))


async def test_in_parts_too_the_summary_is_as_long_as_the_goal_has_room_for() -> None:
    """Before a switch the old model writes, with its own window, for a smaller one."""
    messages, _ = planted(6, 2_000)
    large, small = budget(20_000), budget(2_000)
    goal = Faithful(large)
    await summariser(goal, large, allowance=summary_allowance(small)).summarise(messages)
    unlimited = Faithful(large)
    await summariser(unlimited, large).summarise(messages)
    assert len(goal.requests) > 1 and len(unlimited.requests) > 1
    words = [
        int(re.findall(r"At most (\d+) words", r.messages[0].text)[0]) for r in (*goal.requests, *unlimited.requests)
    ]
    assert {2 * summary_allowance(small)} == {r.max_output for r in goal.requests}
    assert max(words[: len(goal.requests)]) <= summary_allowance(small) < min(words[len(goal.requests) :])


async def test_the_request_takes_neither_tools_nor_pairs_nor_images_along() -> None:
    builder = HistoryBuilder()
    builder.add("user", Text("see"), Attachment("image", "shot.png", "image/png", "0" * 64, 2_500_000))
    builder.step(100)
    model = Faithful(budget(6_000))
    base = Request("test", "model", tuple(builder.messages), max_output=6_000, session="s")
    await summariser(model, budget(6_000), sent=base).summarise(builder.messages)
    (request,) = model.requests
    assert request.tools == ()
    assert [m.role for m in request.messages] == ["user"]
    assert "image shot.png (not shown here)" in request.messages[0].text
    assert request.max_output is not None and request.max_output <= 2_000


async def test_an_earlier_summary_is_part_of_the_source() -> None:
    old = user("FACT-old/summary", id="s", kind="summary")
    messages, _ = planted(1, 10)
    model = Faithful(budget(6_000))
    summary = await summariser(model, budget(6_000)).summarise([old, *messages])
    assert "[earlier summary]\nFACT-old/summary" in model.requests[0].messages[0].text
    assert "FACT-old/summary" in summary.text


@pytest.mark.parametrize(
    "failure",
    [
        ProviderError("overflow_input", "request (4267 tokens) exceeds the available context size (4096 tokens)"),
        ProviderError("overflow_output", "too much output"),
        ProviderError("server", "500"),
        Completion("   ", problem="the model answered with nothing"),
        Completion("half of it", problem="the answer broke off"),
    ],
)
async def test_a_failed_call_is_repeated_with_less_three_times_and_loses_nothing(
    failure: Completion | ProviderError,
) -> None:
    messages, facts = planted(3, 200)
    model = Faithful(budget(6_000), [failure] * 3)
    summary = await summariser(model, budget(6_000)).summarise(messages)
    sizes = [request_size(r) for r in model.requests[:4]]
    assert sizes == sorted(set(sizes), reverse=True)
    assert [f for f in facts if f not in summary.text] == []


async def test_after_three_retries_it_says_why() -> None:
    messages, _ = planted(3, 200)
    model = Faithful(budget(6_000), [Completion("", Usage(1_000, 0), "the model answered with nothing")] * 9)
    with pytest.raises(SummaryFailedError, match="answered with nothing"):
        await summariser(model, budget(6_000)).summarise(messages)
    assert len(model.requests) == 4


@pytest.mark.parametrize("kind", ["auth", "not_found", "rate_limit", "overloaded", "network"])
async def test_what_a_smaller_request_would_not_help_is_not_repeated(kind: ErrorKind) -> None:
    messages, _ = planted(3, 200)
    model = Faithful(budget(6_000), [ProviderError(kind, "no")] * 9)
    with pytest.raises(SummaryFailedError, match="no"):
        await summariser(model, budget(6_000)).summarise(messages)
    assert len(model.requests) == 1


async def test_a_window_too_small_for_any_summary_is_said() -> None:
    messages, _ = planted(1, 10)
    with pytest.raises(SummaryFailedError, match="too small"):
        await summariser(Faithful(budget(300)), budget(300)).summarise(messages)


async def test_an_unknown_window_is_tried_and_the_overflow_makes_it_smaller() -> None:
    messages, facts = planted(3, 2_000)
    unknown = Budget(None, None, None, None)
    model = Faithful(unknown, [ProviderError("overflow_input", "too long")] * 2)
    summary = await summariser(model, unknown).summarise(messages)
    assert [f for f in facts if f not in summary.text] == []


def test_the_prompt_asks_for_what_a_developer_needs_and_passes_the_wish_on() -> None:
    prompt = summary_prompt("  keep the SQL  ")
    for heading in ("Goal", "Decisions", "State", "Facts", "Open", "Next"):
        assert f"{heading}:" in prompt
    assert "The person asks in particular: keep the SQL\n" in prompt
    assert "asks in particular" not in summary_prompt("")


# -- behind the conversation, where a prompt cache holds it ----------------------------------------------------------


async def test_behind_the_conversation_the_prefix_is_the_same_objects() -> None:
    messages, _ = planted(3, 50)
    sent = Request("test", "model", tuple(messages), session="s")
    prefix = summariser(Faithful(ROOMY), ROOMY, sent=sent).prefix_request(messages[:8])
    assert prefix is not None
    assert all(a is b for a, b in zip(prefix.messages, sent.messages, strict=False))
    assert (prefix.system, prefix.tools, prefix.reasoning) == (sent.system, sent.tools, sent.reasoning)


def test_not_where_part_of_the_source_is_not_sent_any_more() -> None:
    messages, _ = planted(3, 50)
    sent = Request("test", "model", tuple(messages[1:]), session="s")
    assert summariser(Faithful(ROOMY), ROOMY, sent=sent).prefix_request(messages[:8]) is None
    shortened = [tool(ToolResult("call-0", "edit", "[cut]"), id=messages[2].id)]
    sent = Request("test", "model", (*messages[:2], *shortened, *messages[3:]), session="s")
    assert summariser(Faithful(ROOMY), ROOMY, sent=sent).prefix_request(messages[:8]) is None


async def test_a_model_that_answers_the_prefix_with_a_tool_call_is_asked_the_other_way() -> None:
    messages, facts = planted(3, 50)
    sent = Request("test", "model", tuple(messages), session="s")
    model = Faithful(ROOMY, [Completion("", problem="the answer broke off")])
    asking = summariser(model, ROOMY, sent=sent)
    prefix = asking.prefix_request(messages)
    summary = await asking.summarise(messages, prefix)
    assert model.requests[0] is prefix
    assert len(model.requests) == 2
    assert [f for f in facts if f not in summary.text] == []


@pytest.mark.parametrize(
    ("events", "text", "problem"),
    [
        ((TextDelta("a"), TextDelta("b"), UsageUpdate(Usage(9, 2)), StreamEnd("stop", "stop")), "ab", ""),
        ((TextDelta("a"), StreamEnd("length", "length")), "a", "the answer was cut off"),
        ((TextDelta("a"), StreamEnd("window_full", "model_context_window_exceeded")), "a", "the answer was cut off"),
        ((TextDelta("a"), StreamEnd("other", "repetition")), "a", "the answer was cut off"),
        ((TextDelta("a"), StreamEnd("other", "incomplete")), "a", "the answer was cut off"),
        ((TextDelta("a"), StreamEnd("other", "done")), "a", ""),
        ((TextDelta("a"),), "a", "the answer broke off"),
        ((ReasoningDelta("a"), StreamEnd("stop", "stop")), "", "the model thought, but wrote no answer"),
        ((StreamEnd("stop", "stop"),), "", "the model answered with nothing"),
        ((RefusalDelta("I won't\nsay."), StreamEnd("stop", "stop")), "", "the model refused: I won't say."),
        ((TextDelta("a"), RefusalDelta("No."), StreamEnd("refusal", "refusal")), "a", "the model refused: No."),
        (
            (ToolCallDelta(0, "c", "read_file", "{}"), StreamEnd("tool_calls", "tool_calls")),
            "",
            "the answer broke off",
        ),
    ],
)
async def test_the_answer_of_a_provider(
    tmp_path: Path, events: tuple[StreamEvent, ...], text: str, problem: str
) -> None:
    async with open_workspace(tmp_path, ScriptedProvider([events], report_usage=False)) as workspace:
        request = replace(BASE, provider=workspace.fake.name)
        completion = await complete(workspace.services, "compaction", request)
        assert (completion.text, completion.problem) == (text, problem)
        assert workspace.fake.closed


# -- the source as text ----------------------------------------------------------------------------------------------


@given(st.text("ab \n", max_size=3_000), st.integers(1, 200))
def test_a_split_text_loses_nothing_and_fits(text: str, capacity: int) -> None:
    parts = split_text(text, capacity, count)
    assert all(count(part) <= capacity for part in parts)
    position = 0
    for part in parts:
        start = text.rfind(part, 0, position + len(part))  # begins at `position` at the latest: no gap
        assert position - OVERLAP <= start
        position = max(position, start + len(part))
    assert position == len(text)


@given(st.lists(st.integers(0, 4_000), min_size=1, max_size=12), st.integers(120, 2_000))
def test_chunks_fit_their_capacity(sizes: list[int], capacity: int) -> None:
    builder = HistoryBuilder()
    for tokens in sizes:
        builder.user(tokens)
        builder.step(tokens // 2)
    chunks = split_source(builder.messages, capacity, count)
    assert all(count(chunk) <= capacity * 1.1 + 4 for chunk in chunks)


def test_only_tool_output_is_shortened_and_only_when_it_would_take_too_many_calls() -> None:
    builder = HistoryBuilder()
    builder.user(text="said " * 1_000 + "FACT-user/end")
    builder.step(100_000)
    builder.assistant(text="FACT-assistant/x")
    whole = split_source(builder.messages, 20_000, count)
    assert sum(map(len, whole)) >= 400_000
    short = split_source(builder.messages, 1_000, count)
    assert len(short) <= MAX_CHUNKS * 1.15
    text = "".join(short)
    assert "FACT-user/end" in text and "FACT-assistant/x" in text and "characters left out" in text
    assert 1_000 <= text.count("said ") < 1_050  # a line that had to be torn repeats a little


def test_one_giant_result_of_five_megabytes_is_summarised_in_a_bounded_number_of_calls() -> None:
    """Row 63: results of hundreds of megabytes made request and compaction fail alike."""
    builder = HistoryBuilder()
    builder.user()
    builder.step(1_250_000, arguments=1_250_000)
    assert len(split_source(builder.messages, 4_000, count)) <= MAX_CHUNKS * 1.15


def test_pieces_are_labelled_by_who_said_what() -> None:
    builder = HistoryBuilder()
    builder.user(text="do it")
    builder.step(5, failed=True)
    labels = [piece.label for piece in render_pieces(builder.messages)]
    assert labels == ["user", "assistant calls read_file", "error of read_file"]


def test_every_part_that_a_model_could_read_is_in_the_source() -> None:
    parts = (
        Refusal("I won't."),
        Refusal("Blocked.", from_server=True),
        Reasoning("hm", provider="p", model="m"),
        Attachment("text", "a.txt", "text/plain", "0" * 64, 3, text="abc"),
        Attachment("pdf", "b.pdf", "application/pdf", "1" * 64, 9),
        Text(" "),
    )
    pieces = render_pieces([Message("assistant", parts, id="1"), user("s", id="2", kind="summary")])
    assert [(piece.label, piece.text, piece.long_tail) for piece in pieces] == [
        ("assistant", "I won't.", False),
        ("assistant, thinking", "hm", True),
        ("assistant attached a.txt", "abc", True),
        ("assistant attached", "pdf b.pdf (not shown here)", False),
        ("earlier summary", "s", False),
    ]


def test_the_capacity_leaves_room_for_prompt_answer_and_error() -> None:
    for max_input in (1_536, 24_576, 184_000):
        space = budget(max_input)
        assert 0 < summariser(Faithful(space), space).capacity() < 0.85 * max_input
