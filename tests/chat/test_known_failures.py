"""Kinds of failure seen in other clients around compaction, overflow and pairing; the rows are those of the list of
known failures, sections 1.E to 1.H."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chat.fakes import (
    Answer,
    ScriptedProvider,
    Tools,
    answer,
    converse,
    drain,
    is_summary,
    of,
    open_workspace,
    real_tokens,
)
from tests.context.conversations import problems
from tests.usages import make_usage
from tui.chat.conversation.events import CompactionFinished, CompactionStarted, Notice, ReplyFinished, TurnFailed
from tui.chat.turn.turn import _within_window
from tui.messages import Message, Reasoning, Request, ToolResult, Usage
from tui.providers.base import (
    Capabilities,
    ProviderError,
    ReasoningDelta,
    ReasoningMeta,
    StreamEnd,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)

LONG = "The parser keeps the last token of every line, and the next line begins where it ended. " * 12


def call(ident: str, arguments: str = '{"id": 7}') -> Answer:
    return [ToolCallDelta(0, ident, "fetch", arguments), StreamEnd("tool_calls", "tool_calls")]


def conversation(provider: ScriptedProvider) -> list[Request]:
    return [request for request in provider.requests if not is_summary(request)]


# -- 1.E loops and useless compactions -------------------------------------------------------------------------------


async def test_an_overhead_over_the_trigger_is_said_once_and_never_compacted(tmp_path: Path) -> None:
    """Rows 50 to 52."""
    provider = ScriptedProvider(window=4_096)
    async with open_workspace(tmp_path, provider, system=LONG * 12) as workspace:
        session = await workspace.new_session()
        events: list[object] = []
        for number in range(4):
            events += await drain(session.send(f"hi {number}"))
        assert not of(CompactionStarted, events)
        assert len([n for n in of(Notice, events) if "cannot hold" in n.text]) == 1
        assert not of(TurnFailed, events)
        assert provider.refused == 0


async def test_never_two_compactions_without_an_answer_between(tmp_path: Path) -> None:
    """Row 53, with a server that tells no usage."""
    provider = ScriptedProvider(window=2_048, report_usage=False, fallback=lambda r: answer("An answer. " * 20))
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        compactions = since = 0
        for number in range(30):
            for event in await drain(session.send(f"{number} {LONG}")):
                if isinstance(event, CompactionFinished):
                    compactions += 1
                    assert since > 0
                    since = 0
                since += isinstance(event, ReplyFinished)
        assert compactions >= 3


async def test_a_summary_as_long_as_what_it_replaces_is_refused_and_the_turn_goes_on(tmp_path: Path) -> None:
    """Row 54."""

    def babble(request: Request) -> Answer:
        return answer("word " * 900) if is_summary(request) else answer("An answer. " * 20)

    provider = ScriptedProvider(window=2_048, fallback=babble)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events = await converse(session, 12, LONG)
        assert not of(TurnFailed, events)
        assert all(event.record.after <= 0.95 * event.record.before for event in of(CompactionFinished, events))
        assert provider.refused == 0


async def test_the_usage_of_the_summary_call_is_billed_and_never_a_measurement(tmp_path: Path) -> None:
    """Rows 55 and 17: the number after a compaction is that of the next request, at once."""

    def reply(request: Request) -> Answer:
        if not is_summary(request):
            return answer("An answer. " * 20)
        return [TextDelta("Short notes."), UsageUpdate(Usage(180_000, 900)), StreamEnd("stop", "stop")]

    provider = ScriptedProvider(window=8_000, fallback=reply)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await converse(session, 8, LONG)
        provider.report_usage = False  # only the event above reports
        events = await drain(session.compact())
        (done,) = of(CompactionFinished, events)
        assert session.usage is not None
        true_size = real_tokens(session.conversation.request())
        assert session.usage.total == pytest.approx(true_size, rel=0.15)
        assert done.record.after == session.usage.total
        rows = workspace.services.calls.rows(session.id)
        assert [row.input_total for row in rows if row.kind == "compaction"] == [180_000]


@pytest.mark.parametrize(
    "failing",
    [[ProviderError("server", "500")], [TextDelta(""), StreamEnd("stop", "stop")], [TextDelta("half")]],
    ids=["error", "empty", "broken off"],
)
async def test_a_failed_compaction_changes_neither_numbers_nor_messages(tmp_path: Path, failing: Answer) -> None:
    """Row 56."""
    provider = ScriptedProvider(window=8_000, fallback=lambda r: failing if is_summary(r) else answer("Fine. " * 30))
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await converse(session, 8, LONG)
        before = session.conversation.request()
        usage = await session.refresh_usage()
        events = await drain(session.compact())
        assert not of(CompactionFinished, events)
        assert "Nothing was changed" in of(Notice, events)[-1].text
        assert session.conversation.request() == before
        assert (await session.refresh_usage()).total == usage.total


@pytest.mark.parametrize("rolling", [True, False])
async def test_switched_off_it_stays_off_when_the_provider_overflows(tmp_path: Path, rolling: bool) -> None:
    """Row 58."""
    provider = ScriptedProvider(window=2_000, claimed=100_000)
    async with open_workspace(tmp_path, provider, compaction="off", rolling_context=rolling) as workspace:
        session = await workspace.new_session()
        events = await converse(session, 12, LONG)
        assert not of(CompactionStarted, events)
        assert not [r for r in provider.requests if is_summary(r)]
        assert bool(of(TurnFailed, events)) is not rolling


async def test_system_prompt_and_tools_are_byte_identical_after_a_compaction(tmp_path: Path) -> None:
    """Row 103: the provider's cache holds them still."""
    provider = ScriptedProvider(window=8_000, fallback=lambda r: answer("Fine. " * 30))
    async with open_workspace(tmp_path, provider, tools=Tools(), system="Be brief.") as workspace:
        session = await workspace.new_session()
        await converse(session, 6, LONG)
        before = conversation(provider)[-1]
        assert of(CompactionFinished, await drain(session.compact()))
        await drain(session.send("on"))
        after = conversation(provider)[-1]
        assert (after.system, after.tools) == (before.system, before.tools)


# -- 1.F too late, giant results -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rolling", [True, False])
async def test_the_check_comes_before_every_step_of_a_tool_loop(tmp_path: Path, rolling: bool) -> None:
    """Rows 60 and 61: results that fill the window between two steps."""
    script: list[Answer] = [call(f"c{n}") for n in range(12)]
    provider = ScriptedProvider(script, window=4_096, fallback=lambda r: answer("Notes. " * 20))
    tools = Tools(lambda _: LONG * 4)
    async with open_workspace(tmp_path, provider, tools=tools, rolling_context=rolling) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("go"))
        assert not of(TurnFailed, events)
        assert provider.refused == 0
        assert all(problems(request.messages) == [] for request in provider.requests)


@pytest.mark.parametrize("rolling", [True, False])
@pytest.mark.parametrize("where", ["result", "argument"])
async def test_one_giant_result_or_argument_does_not_end_the_session(tmp_path: Path, rolling: bool, where: str) -> None:
    """Rows 60 and 63."""
    giant = "lorem ipsum dolor sit amet " * 20_000
    arguments = '{"text": "' + giant + '"}' if where == "argument" else '{"id": 1}'
    script: list[Answer] = [call("c1", arguments)]
    provider = ScriptedProvider(script, window=16_000, fallback=lambda r: answer("Notes. " * 20))
    tools = Tools(lambda _: giant if where == "result" else "done")
    async with open_workspace(tmp_path, provider, tools=tools, rolling_context=rolling) as workspace:
        session = await workspace.new_session()
        await drain(session.send("before"))
        events = await drain(session.send("go"))
        assert not of(TurnFailed, events)
        assert provider.refused == 0
        assert not of(TurnFailed, await drain(session.send("and now?")))
        if where == "argument":
            assert any(giant in str(m.parts) for m in session.messages)
        else:
            [result] = [p for m in session.messages for p in m.parts if isinstance(p, ToolResult)]
            assert await session.tools.full_text(result.full) == giant


# -- 1.G overflow during compaction, model switches ------------------------------------------------------------------


async def test_overflowing_summary_requests_are_made_smaller(tmp_path: Path) -> None:
    """Row 72."""
    overflows = 2

    def reply(request: Request) -> Answer:
        nonlocal overflows
        if is_summary(request) and overflows:
            overflows -= 1
            return [ProviderError("overflow_input", "too long")]
        return answer("Notes. " * 20)

    provider = ScriptedProvider(window=8_000, fallback=reply)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await converse(session, 10, LONG)
        assert of(CompactionFinished, await drain(session.compact()))
        assert overflows == 0


@pytest.mark.slow
@pytest.mark.parametrize("rolling", [True, False])
async def test_switching_to_a_much_smaller_window_goes_on(tmp_path: Path, rolling: bool) -> None:
    """Rows 71 and 73: a history of several windows."""
    provider = ScriptedProvider(window=64_000, fallback=lambda r: answer("Notes. " * 20))
    async with open_workspace(tmp_path, provider, rolling_context=rolling) as workspace:
        session = await workspace.new_session()
        for number in range(45):
            await drain(session.send(f"{number} {LONG * 5}"))
        provider.window = 4_096
        await session.set_model("scripted/small")
        events = await drain(session.send("and now?"))
        assert not of(TurnFailed, events)
        assert provider.refused == 0


async def test_thinking_as_large_as_the_window_is_left_out_with_the_rest(tmp_path: Path) -> None:
    """Row 75."""

    def reply(request: Request) -> Answer:
        thought = ReasoningDelta("I wonder. " * 600)
        return [thought, ReasoningMeta(signature="s"), TextDelta("Fine."), StreamEnd("stop", "stop")]

    able = Capabilities(reasoning_return="always", needs_signature=True, prefix_bound=True)
    provider = ScriptedProvider(window=4_096, fallback=reply, able=able)
    async with open_workspace(tmp_path, provider, rolling_context=True) as workspace:
        session = await workspace.new_session()
        for number in range(8):
            assert not of(TurnFailed, await drain(session.send(f"{number}")))
        assert provider.refused == 0


# -- 1.H pairing, thinking blocks ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("rolling", [True, False])
async def test_many_compactions_and_trims_never_orphan_a_result(tmp_path: Path, rolling: bool) -> None:
    """Row 76: 33 compactions, then a result without its call."""

    def reply(request: Request) -> Answer:
        if is_summary(request) or request.messages[-1].role == "tool":
            return answer("Notes. " * 20)
        return call(f"c{len(provider.requests)}")

    provider = ScriptedProvider(window=2_048, fallback=reply)
    async with open_workspace(tmp_path, provider, tools=Tools(lambda _: LONG), rolling_context=rolling) as workspace:
        session = await workspace.new_session()
        for number in range(40):
            assert not of(TurnFailed, await drain(session.send(f"step {number}")))
        assert all(problems(request.messages) == [] for request in provider.requests)
        assert provider.refused == 0


async def test_reasoning_goes_back_verbatim_until_its_prefix_changes(tmp_path: Path) -> None:
    """Rows 80 and 81."""

    def reply(request: Request) -> Answer:
        number = len(provider.requests)
        return [
            ReasoningDelta(f"thought {number}"),
            ReasoningMeta(signature=f"sig {number}"),
            TextDelta(f"answer {number} {LONG}"),
            StreamEnd("stop", "stop"),
        ]

    able = Capabilities(reasoning_return="always", needs_signature=True, prefix_bound=True)
    provider = ScriptedProvider(window=4_096, fallback=reply, able=able)
    async with open_workspace(tmp_path, provider, rolling_context=True) as workspace:
        session = await workspace.new_session()
        await converse(session, 24, LONG)
        changed = 0
        for before, after in zip(provider.requests, provider.requests[1:], strict=False):
            whole = after.messages[: len(before.messages)] == before.messages
            changed += not whole
            reasoning = [p for m in after.messages[:-2] for p in m.parts if isinstance(p, Reasoning)]
            assert whole or not reasoning
        assert 0 < changed < 12


def thoughts(messages: Sequence[Message]) -> list[str]:
    return [p.text for m in messages for p in m.parts if isinstance(p, Reasoning)]


async def test_compaction_and_undo_void_bound_reasoning_from_before_them(tmp_path: Path) -> None:
    """Section 3.3 of the provider facts."""

    def reply(request: Request) -> Answer:
        if is_summary(request):
            return answer("Notes.")
        number = len(provider.requests)
        thought = ReasoningDelta(f"thought {number}")
        return [thought, ReasoningMeta(signature="s"), TextDelta(f"{number} {LONG}"), StreamEnd("stop", "stop")]

    able = Capabilities(reasoning_return="always", needs_signature=True, prefix_bound=True)
    provider = ScriptedProvider(window=64_000, fallback=reply, able=able)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        for number in range(8):
            await drain(session.send(f"{number}"))
        assert len(thoughts(session.conversation.request().messages)) == 8
        assert of(CompactionFinished, await drain(session.compact()))
        assert thoughts(session.conversation.request().messages) == []
        await drain(session.send("on"))
        assert len(thoughts(session.conversation.request().messages)) == 1
        await session.undo()
        assert thoughts(session.conversation.request().messages) == []


@pytest.mark.parametrize(
    ("total", "upper", "most"), [(1_400, 1_430, 512), (1_530, 1_560, 488), (1_536, 2_040, 64), (1_000, 1_050, 512)]
)
def test_an_answer_is_shorter_where_the_input_may_be_larger_than_thought(total: int, upper: int, most: int) -> None:
    """Row 67: over by tens of tokens, each time."""
    usage = replace(make_usage(total, 2_048), upper_bound=upper)
    request = Request("test", "m", (), max_output=512)
    assert _within_window(request, usage).max_output == most
