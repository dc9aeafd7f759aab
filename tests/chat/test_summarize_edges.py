"""Summaries where something is cut or goes wrong in the middle: nothing is left out, and nothing is too large."""

from __future__ import annotations

from dataclasses import replace

from tests.chat.test_summarize import BASE, FACT, Faithful, count, planted, request_size
from tests.context.conversations import budget
from tui.chat.summarize import Completion, summarise
from tui.chat.summary_source import split_text
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

    summary = await summarise(model, messages, base=BASE, budget=space, count=count)
    assert len(answered) >= 4
    assert [fact for fact in facts if not any(fact in text for text in answered)] == []
    assert summary.text == f"notes {calls}"
    assert f"notes {calls - 1}" in answered[-1]  # each carries on from the one before


async def test_tools_of_the_conversation_are_not_offered() -> None:
    messages, _ = planted(1, 10)
    model = Faithful(budget(6_000))
    base = replace(BASE, tools=(ToolSchema("edit", "Edits a file.", "{}"),))
    await summarise(model, messages, base=base, budget=budget(6_000), count=count)
    assert [request.tools for request in model.requests] == [()]


async def test_a_summary_of_full_length_still_fits_beside_the_next_part() -> None:
    messages, _ = planted(40, 20)
    space = budget(1_536)
    sizes: list[int] = []

    async def wordy(request: Request) -> Completion:
        assert request.max_output is not None
        sizes.append(request_size(request))
        return Completion("word " * (request.max_output * 4 // 5))

    await summarise(wordy, messages, base=BASE, budget=space, count=count)
    assert len(sizes) >= 4
    assert max(sizes) <= 0.9 * 1_536  # counts of text are estimates: a tenth is left for their error


def test_a_name_that_lies_on_a_cut_stands_whole_in_the_next_part() -> None:
    names = [f"FACT-{number}/src/module_{number}.py:{number * 37}" for number in range(900)]
    text = ",".join(names)  # minified: no blank and no line end anywhere
    parts = split_text(text, 1_000, count)
    assert len(parts) > 5
    found = {name for part in parts for name in FACT.findall(part)}
    assert [name for name in names if name not in found] == []
    assert all(count(part) <= 1_000 for part in parts)
