"""Summaries where something is cut or goes wrong in the middle: nothing is left out, and nothing is too large."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.chat.compaction.test_summarise import BASE, FACT, Faithful, count, planted, request_size, summariser
from tests.context.conversations import budget
from tui.chat.compaction.summarise import (
    CUT_MARK,
    SummaryFailedError,
    split_text,
)
from tui.chat.conversation.completion import Completion
from tui.context.reduction.compaction import summary_allowance
from tui.context.usage.limits import BudgetSettings, ModelLimits, make_budget
from tui.messages import Request, ToolSchema, Usage
from tui.providers.base import ProviderError


async def test_a_call_that_fails_in_the_middle_leaves_nothing_out() -> None:
    messages, facts = planted(8, 120)
    space = budget(3_000)
    answered: list[str] = []
    calls = 0

    async def model(request: Request) -> Completion:
        nonlocal calls
        calls += 1
        if calls in (3, 4):
            raise ProviderError("server", "500")
        answered.append(request.messages[0].text)
        return Completion(f"notes {calls}", Usage(request_size(request), 2))

    summary = await summariser(model, space).summarise(messages)
    assert len(answered) >= 4
    assert [fact for fact in facts if not any(fact in text for text in answered)] == []
    assert summary.text == f"notes {calls}"
    assert f"notes {calls - 1}" in answered[-1]  # each carries on from the one before


async def test_tools_of_the_conversation_are_not_offered() -> None:
    messages, _ = planted(1, 10)
    model = Faithful(budget(6_000))
    base = replace(BASE, tools=(ToolSchema("edit", "Edits a file.", "{}"),))
    await summariser(model, budget(6_000), sent=base).summarise(messages)
    assert [request.tools for request in model.requests] == [()]


async def test_a_summary_of_full_length_still_fits_beside_the_next_part() -> None:
    messages, _ = planted(40, 20)
    space = budget(1_536)
    sizes: list[int] = []

    async def wordy(request: Request) -> Completion:
        assert request.max_output is not None
        sizes.append(request_size(request))
        return Completion("word " * (request.max_output * 4 // 5))

    await summariser(wordy, space).summarise(messages)
    assert len(sizes) >= 4
    assert max(sizes) <= 0.9 * 1_536  # counts of text are estimates: a tenth is left for their error


def test_a_name_that_lies_on_a_cut_stands_whole_in_the_next_part() -> None:
    names = [f"FACT-{number}/src/module_{number}.py:{number * 37}" for number in range(900)]
    text = ",".join(names)  # minified: no blank and no line end anywhere
    parts = split_text(text, 1_000, count)
    assert len(parts) > 5
    shown = {name for part in parts for name in FACT.findall(part)}
    assert [name for name in names if name not in shown] == []
    assert all(count(part) <= 1_000 for part in parts)


CUT = Completion("Goal: half of", Usage(900, 384), "the answer was cut off", cut=True)


def words_asked(request: Request) -> int:
    return int(re.findall(r"At most (\d+) words", request.messages[-1].text)[0])


async def test_a_summary_cut_at_its_limit_is_asked_for_again_shorter_with_all_the_room_there_is() -> None:
    messages, facts = planted(3, 50)
    space = budget(6_000)
    model = Faithful(space, [CUT])
    summary = await summariser(model, space).summarise(messages)
    assert [fact for fact in facts if fact not in summary.text] == []
    assert "half of" not in summary.text
    first, second = model.requests
    assert words_asked(second) == words_asked(first) // 2
    assert first.max_output is not None and second.max_output is not None and space.reserved_output is not None
    assert first.max_output < second.max_output == space.reserved_output
    source = [r.messages[0].text.partition("<conversation")[2] for r in model.requests]
    assert source[0] == source[1]  # it was not too much to read


@pytest.mark.parametrize(
    ("answered", "used"),
    [
        ("Goal: sell tea.\nNext: call the", "Goal: sell tea."),
        ("Goal: sell tea.\nNext: call Ann.", "Goal: sell tea.\nNext: call Ann."),
        ("Goal: half of", "Goal: half of"),
    ],
)
async def test_a_summary_that_is_cut_again_is_taken_in_whole_lines_and_says_so(answered: str, used: str) -> None:
    messages, _ = planted(3, 50)
    model = Faithful(budget(6_000), [replace(CUT, text="the first"), replace(CUT, text=answered)])
    summary = await summariser(model, budget(6_000)).summarise(messages)
    assert (summary.text, summary.cut) == (f"{used}\n\n{CUT_MARK}", True)
    assert len(model.requests) == 2  # a small model may go on for ever: each try takes as long as it may


async def test_an_answer_cut_before_it_said_anything_is_no_summary() -> None:
    messages, _ = planted(3, 50)
    model = Faithful(budget(6_000), [replace(CUT, text="")] * 9)
    with pytest.raises(SummaryFailedError, match="the answer was cut off"):
        await summariser(model, budget(6_000)).summarise(messages)
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    ("ending", "tries"),
    [pytest.param(CUT, 2, id="cut"), pytest.param(Completion(""), 4, id="complete: the server ignores the limit")],
)
async def test_what_is_too_long_in_a_part_leaves_room_for_the_next(ending: Completion, tries: int) -> None:
    messages, facts = planted(12, 150)
    space = budget(3_000)
    long = replace(ending, text="line\n" * 3_000, usage=None)
    model = Faithful(space, [long] * tries)
    summary = await summariser(model, space).summarise(messages)
    assert summary.cut and CUT_MARK not in summary.text
    assert len(model.requests) > 2 and facts[-1] in summary.text
    endless = Faithful(space, [long] * 99)  # in every part: taken all the same, in so many requests and no more
    summary = await summariser(endless, space).summarise(messages)
    assert summary.cut and summary.text.endswith(CUT_MARK)
    assert len(endless.requests) <= 3 + len(model.requests)
    assert max(map(request_size, endless.requests)) <= (space.max_input or 0)


async def test_a_cut_summary_behind_the_conversation_is_asked_for_beside_it() -> None:
    messages, facts = planted(3, 50)
    space = budget(60_000)
    model = Faithful(space, [CUT])
    asking = summariser(model, space, sent=replace(BASE, messages=tuple(messages)))
    prefix = asking.prefix_request(messages)
    assert prefix is not None
    summary = await asking.summarise(messages, prefix)
    assert [fact for fact in facts if fact not in summary.text] == []
    assert words_asked(model.requests[1]) == words_asked(prefix) // 2


async def test_what_got_more_room_but_is_too_long_to_be_carried_on_is_not_taken() -> None:
    messages, _ = planted(3, 50)
    space = budget(6_000)
    model = Faithful(space, [CUT, Completion("word " * 1_900), Completion("short")])
    assert (await summariser(model, space).summarise(messages)).text == "short"


@pytest.mark.parametrize("reserve", [0, 24, 500, 16_000])
@pytest.mark.parametrize("window", [2_048, 8_192, 200_000])
def test_no_more_is_asked_for_than_half_of_what_the_answer_may_take(window: int, reserve: int) -> None:
    space = make_budget(ModelLimits(window), BudgetSettings(reserve_output=reserve))
    request = summariser(Faithful(space), space).request("")
    assert request.max_output is not None
    assert request.max_output >= min(2 * 160, window // 8)
    assert 40 <= words_asked(request) <= min(request.max_output / 2, summary_allowance(space)) / 1.4


async def test_a_request_that_the_server_cut_in_silence_is_repeated_with_less() -> None:
    messages, facts = planted(12, 150)
    space = budget(6_000)
    whole = Faithful(space)

    async def model(request: Request) -> Completion:
        answer = await whole(request)
        read = min(request_size(request), 2_000)  # its real window; what stands before that is dropped
        facts_read = FACT.findall(request.messages[0].text[-4 * read :])
        return replace(answer, text=" ".join(facts_read), usage=Usage(read, 10))

    summary = await summariser(model, space).summarise(messages)
    assert [fact for fact in facts if fact not in summary.text] == []
    sizes = [request_size(request) for request in whole.requests]
    assert sizes[0] > 2_000 / 0.6 and max(sizes[1:]) <= 2_000


async def test_a_summary_behind_a_conversation_that_the_server_cut_in_silence_is_not_taken() -> None:
    messages, facts = planted(6, 150)
    space = budget(60_000)
    model = Faithful(space, [Completion("Goal: half of it", Usage(1_200, 10))])
    asking = summariser(model, space, sent=replace(BASE, messages=tuple(messages)))
    summary = await asking.summarise(messages, asking.prefix_request(messages))
    assert [fact for fact in facts if fact not in summary.text] == []
    assert max(request_size(request) for request in model.requests[1:]) <= 1_200


async def test_a_tokenizer_with_fewer_tokens_than_ours_or_a_server_that_clears_is_no_server_that_cuts() -> None:
    messages, _ = planted(6, 150)
    space = budget(60_000)
    for read, cleared, least in ((0.55, 0, 0.6 * 0.55), (0.1, 9_000, 0.6)):
        requests: list[Request] = []

        async def model(
            request: Request, read: float = read, cleared: int = cleared, requests: list[Request] = requests
        ) -> Completion:
            requests.append(request)
            return Completion("Goal: all of it", Usage(int(read * request_size(request)), 10, cleared=cleared))

        summary = await summariser(model, space, least_read=least).summarise(messages)
        assert (summary.text, len(requests)) == ("Goal: all of it", 1)
