from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chat.fakes import (
    Answer,
    FakeWorkspace,
    ScriptedProvider,
    Tools,
    answer,
    converse,
    drain,
    of,
    open_workspace,
    real_tokens,
    tokens_of,
)
from tui.chat.conversation.events import (
    CompactionFinished,
    ContextTrimmed,
    MessageAdded,
    Notice,
    ReplyDelta,
    ReplyFinished,
    ReplyStarted,
    RetryScheduled,
    TurnFailed,
    TurnFinished,
    UsageChanged,
)
from tui.chat.store.database import Database, StoreError
from tui.chat.turn.session import ChatSession
from tui.messages import Message, Reasoning, Request, Text, Usage
from tui.providers.base import (
    Capabilities,
    ErrorKind,
    ProviderError,
    ReasoningDelta,
    ReasoningMeta,
    StreamEnd,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)
from tui.text.labels import status_text

LONG = "The quick brown fox jumps over the lazy dog while forty-two parsers look on. " * 12


def stored(workspace: FakeWorkspace, session: ChatSession) -> list[Message]:
    return workspace.store.messages(session.id)


async def test_a_turn_is_stored_streamed_and_measured(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("Hello, what is a parser?"))
        assert isinstance(events[0], MessageAdded)
        assert "".join(e.text for e in of(ReplyDelta, events)) == "Certainly."
        assert isinstance(events[-1], TurnFinished)
        assert [m.role for m in stored(workspace, session)] == ["user", "assistant"]
        assert list(session.messages) == stored(workspace, session)
        assert session.conversation.info.title == "Hello, what is a parser?"
        reply = session.messages[-1]
        assert (reply.status, reply.finish_reason, reply.usage) == (
            "complete",
            "stop",
            Usage(real_tokens(provider.requests[0]), reply.usage.output_total if reply.usage else 0),
        )
        usage = of(UsageChanged, events)[-1].usage
        assert usage == session.usage
        assert usage.source == "exact"
        last_input, sent_back = usage.basis.last_input, usage.basis.last_output_sent_back
        assert last_input is not None
        assert sent_back is not None
        assert usage.total == last_input + sent_back


async def test_predicted_and_actual_stand_in_the_call_log(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send(LONG))
        await drain(session.send("and again " + LONG))
        first, second = workspace.services.calls.rows(session.id)
        assert (first.status, first.input_total) == ("success", real_tokens(provider.requests[0]))
        assert first.seconds is not None and 0 <= first.seconds < 300
        assert second.known is not None
        assert second.estimated is not None
        assert second.predicted == second.known + second.estimated
        assert second.predicted == pytest.approx(second.input_total, rel=0.05)


@pytest.mark.parametrize("change", ["left out", "compacted", "taken back"])
async def test_another_program_has_the_number_of_this_one_after_a_change_without_a_call(
    tmp_path: Path, change: str
) -> None:
    reasoned: Answer = [ReasoningDelta("thinking " * 30), TextDelta("Yes, " * 40), StreamEnd("stop", "stop")]
    provider = ScriptedProvider(fallback=lambda _: reasoned)
    async with open_workspace(tmp_path, provider, preserve_recent_turns=1) as workspace:
        session = await workspace.new_session()
        for number in range(4):
            await drain(session.send(f"question {number} " * 30))
        if change == "left out":
            for message in session.messages[2:4]:
                await session.exclude(message.id, True)
        else:
            await drain(session.compact())
        if change == "taken back":
            await drain(session.send("go on"))
            await session.undo()
        here = await session.refresh_usage()
        async with open_workspace(tmp_path, provider) as other:
            there = await (await other.resume(session.id, look=True)).refresh_usage()
    assert here.source != "exact"
    assert (there.total, there.upper_bound, there.source, there.rows) == (
        here.total,
        here.upper_bound,
        here.source,
        here.rows,
    )


async def test_everything_is_there_after_a_restart_and_the_number_too(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send(LONG))
        before, messages = session.usage, list(session.messages)
    async with open_workspace(tmp_path, provider) as workspace:
        again = await workspace.resume()
        shown = again.usage
        assert before is not None
        assert shown is not None
        assert (shown.total, shown.basis, shown.budget) == (before.total, before.basis, before.budget)
        assert sum(row.tokens for row in shown.rows) == shown.total
        usage = await again.refresh_usage()
        assert again.id == session.id
        assert list(again.messages) == messages
        assert before is not None
        assert (usage.total, usage.source) == (before.total, before.source) == (usage.total, "exact")


async def test_where_counting_is_free_the_first_request_is_counted_not_guessed(tmp_path: Path) -> None:
    provider = ScriptedProvider(able=Capabilities(count_endpoint=True, count_freely=True))
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send(LONG))
        [call] = workspace.services.calls.rows(session.id)
        assert (call.source, call.predicted) == ("exact", call.input_total)


async def test_a_doubtful_request_is_counted_before_it_is_sent(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=8_000, able=Capabilities(count_endpoint=True))
    async with open_workspace(tmp_path, provider, compaction="off") as workspace:
        session = await workspace.new_session()
        await drain(session.send("short"))
        await drain(session.send("word " * 5_400))
        assert provider.counted == 1
        _, doubtful = workspace.services.calls.rows(session.id)
        assert (doubtful.source, doubtful.predicted) == ("exact", doubtful.input_total)


async def test_a_count_that_fails_never_stops_a_turn(tmp_path: Path) -> None:
    class Miscounting(ScriptedProvider):
        async def count_tokens(self, request: Request) -> int | None:
            self.counted += 1
            raise ProviderError("server", "no counting today", status=500)

    provider = Miscounting(able=Capabilities(count_endpoint=True, count_freely=True))
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send("short"))
        assert provider.counted == 1 and session.messages[-1].status == "complete"
        with pytest.raises(ProviderError, match="no counting today"):
            await session.count_exactly()


async def test_the_number_goes_by_a_count_that_was_asked_for(tmp_path: Path) -> None:
    provider = ScriptedProvider(able=Capabilities(count_endpoint=True))
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send("short"))
        tokens = await session.count_exactly()
        assert session.usage is not None and tokens == session.usage.total
        assert session.usage.basis.counted


@pytest.mark.parametrize("begun", [True, False], ids=["begun", "new"])
async def test_an_exact_count_makes_the_rows_exact_and_is_asked_for_once(tmp_path: Path, begun: bool) -> None:
    provider = ScriptedProvider(able=Capabilities(count_endpoint=True))
    prompt = "Be brief and to the point."
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        session = await workspace.new_session()
        await session.set_system(prompt)
        if begun:
            await drain(session.send("hello"))
        total = await session.count_exactly()
        usage = session.usage
        assert usage is not None and usage.total == total
        rows = {row.key: (row.tokens, row.source) for row in usage.rows}
        tool = Tools().tools()[0].schema
        assert rows["system"] == (tokens_of(prompt) + 3, "counted")
        assert rows["tools"] == (tokens_of(tool.description + tool.parameters) + 10, "counted")
        assert provider.counted == 3 + begun
        await session.count_exactly()
        assert provider.counted == 3 + 2 * begun
        await session.set_system("Be verbose.")
        rows = {row.key: (row.tokens, row.source) for row in (await session.refresh_usage()).rows}
        assert rows["system"][1] != "counted"


@pytest.mark.parametrize("begun", [True, False], ids=["begun", "new"])
async def test_a_count_that_cannot_be_is_said_and_not_used(tmp_path: Path, begun: bool) -> None:
    class Constant(ScriptedProvider):
        async def count_tokens(self, request: Request) -> int | None:
            return 7

    async with open_workspace(tmp_path, Constant(able=Capabilities(count_endpoint=True)), tools=Tools()) as workspace:
        session = await workspace.new_session()
        if begun:
            await drain(session.send(LONG))
        before = await session.refresh_usage()
        with pytest.raises(ProviderError, match="not believed" if begun else "do not fit"):
            await session.count_exactly()
        assert (await session.refresh_usage()).total == before.total


async def test_an_answer_without_usage_is_priced_by_its_estimate_and_says_so(tmp_path: Path) -> None:
    provider = ScriptedProvider(name="openai", report_usage=False)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await session.set_model("openai/gpt-4o")
        await drain(session.send("go"))
        assert session.messages[-1].usage is not None and session.messages[-1].usage.output_total
        cost = await session.cost()
        assert cost.total and cost.estimated
        provider.report_usage = True
        await drain(session.send("again"))
        assert workspace.services.calls.rows(session.id)[-1].cost
        more = await session.cost()
        assert more.total and more.total > cost.total and more.estimated


async def test_a_model_of_this_machine_costs_nothing_though_nobody_counts(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(name="demo", report_usage=False)) as workspace:
        session = await workspace.new_session()
        await session.set_model("demo/guide")
        await drain(session.send("go"))
        assert [call.cost for call in workspace.services.calls.rows(session.id)] == [0.0]


async def test_cancel_keeps_what_arrived_and_the_next_turn_works(tmp_path: Path) -> None:
    provider = ScriptedProvider([[TextDelta("half an "), 30.0, TextDelta("answer"), StreamEnd("stop", "stop")]])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        async for event in session.send("go"):
            if isinstance(event, ReplyDelta):
                session.cancel()
        assert provider.closed == 1
        reply = stored(workspace, session)[-1]
        assert (reply.status, reply.text) == ("cancelled", "half an ")
        await drain(session.send("go on"))
        assert [m.text for m in provider.requests[-1].messages] == ["go", "half an ", "go on"]


@pytest.mark.parametrize("arrived", ["half an ", ""])
async def test_what_was_not_stopped_by_the_person_says_why(tmp_path: Path, arrived: str) -> None:
    why = "the terminal was closed"
    provider = ScriptedProvider([[*([TextDelta(arrived)] if arrived else []), 30.0, *answer()]])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        turn = asyncio.create_task(drain(session.send("go")))
        await provider.requested.wait()
        await asyncio.sleep(0)
        session.cancel(why)
        session.cancel()  # as the screen does when it is left
        await turn
        reply = stored(workspace, session)[-1]
        assert (reply.status, reply.text, reply.error) == ("interrupted", arrived, why)
    line = status_text(reply)
    assert line is not None and line.startswith(f"■ {why} · ") and ("what arrived is kept" in line) == bool(arrived)


async def test_the_reason_stays_if_it_is_stopped_again_before_it_notices(tmp_path: Path) -> None:
    provider = ScriptedProvider([[TextDelta("half an "), TextDelta("answer"), 30.0, *answer()]])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        async for event in session.send("go"):
            if isinstance(event, ReplyDelta):  # the next event is there already
                session.cancel("the terminal was closed")
                session.cancel()
        assert stored(workspace, session)[-1].error == "the terminal was closed"


async def test_after_leaving_at_the_last_event_nothing_is_running(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await workspace.new_session()
        events = session.compact()
        assert isinstance(events, AsyncGenerator)
        async for event in events:
            if isinstance(event, UsageChanged):
                break
        await events.aclose()
        assert not session.running


async def test_cancel_before_the_first_event(tmp_path: Path) -> None:
    provider = ScriptedProvider([[30.0, *answer()]])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        turn = asyncio.create_task(drain(session.send("go")))
        await provider.requested.wait()
        session.cancel()
        events = await turn
        assert not session.running
        assert of(ReplyFinished, events)[-1].message.status == "cancelled"
        assert isinstance(events[-1], TurnFinished)


async def test_a_stream_without_its_end_marker_is_interrupted(tmp_path: Path) -> None:
    provider = ScriptedProvider([[TextDelta("cut o")]])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send("go"))
        reply = stored(workspace, session)[-1]
        assert (reply.status, reply.text) == ("interrupted", "cut o")
        assert reply.usage is not None
        assert reply.usage.source == "estimated"


async def test_a_dropped_network_in_mid_stream_keeps_the_partial_answer(tmp_path: Path) -> None:
    provider = ScriptedProvider([[TextDelta("so far"), ProviderError("network", "connection lost")]])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("go"))
        assert len(provider.requests) == 1
        reply = stored(workspace, session)[-1]
        assert (reply.status, reply.text, reply.error) == ("interrupted", "so far", "connection lost")
        assert not of(TurnFailed, events)
        await drain(session.retry())
        assert [m.text for m in provider.requests[-1].messages] == ["go"]
        assert session.conversation.not_sent() == {reply.id: "set aside"}
        assert len(stored(workspace, session)) == 3


@pytest.mark.parametrize("kind", ["auth", "not_found", "bad_request", "protocol"])
async def test_a_refused_request_says_so_once_and_keeps_the_message(tmp_path: Path, kind: ErrorKind) -> None:
    provider = ScriptedProvider([[ProviderError(kind, "The server said no")]])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("precious"))
        [failed] = of(TurnFailed, events)
        key = "/provider tries the key, " if kind == "auth" else ""
        assert failed.text == f"The server said no. Your message is kept; {key}/retry asks again."
        user, reply = stored(workspace, session)
        assert (user.text, reply.status, reply.error) == ("precious", "failed", "The server said no")
        await drain(session.retry())
        assert [m.text for m in provider.requests[-1].messages] == ["precious"]
        assert session.messages[-1].status == "complete"


async def test_rate_limits_wait_as_the_server_says_then_ask_again(tmp_path: Path) -> None:
    provider = ScriptedProvider([[ProviderError("rate_limit", "slow down", retry_after=0.01)]])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("go"))
        [wait] = of(RetryScheduled, events)
        assert (wait.seconds, wait.attempt) == (0.01, 1)
        assert [m.role for m in stored(workspace, session)] == ["user", "assistant"]
        assert not of(TurnFailed, events)


async def test_esc_ends_the_wait(tmp_path: Path) -> None:
    provider = ScriptedProvider([[ProviderError("overloaded", "busy", retry_after=50.0)]])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events = []
        async with asyncio.timeout(20):  # the wait is longer
            async for event in session.send("go"):
                events.append(event)
                if isinstance(event, RetryScheduled):
                    session.cancel()
        assert of(TurnFailed, events)[0].text.startswith("Cancelled")
        assert len(provider.requests) == 1


async def test_output_overflow_is_clamped_by_the_servers_numbers(tmp_path: Path) -> None:
    error = ProviderError("overflow_output", "too much", limit=8_000, input_tokens=7_000)
    provider = ScriptedProvider([[error]])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("go"))
        assert not of(TurnFailed, events)
        assert provider.requests[0].max_output == 2_000
        assert provider.requests[1].max_output == 920
        await drain(session.send("next"))
        assert provider.requests[2].max_output == 2_000


@pytest.mark.parametrize("rolling", [True, False])
async def test_a_limit_named_by_a_refusal_is_learned_and_the_turn_repeated(tmp_path: Path, rolling: bool) -> None:
    provider = ScriptedProvider(window=2_000, claimed=100_000)
    async with open_workspace(tmp_path, provider, rolling_context=rolling) as workspace:
        session = await workspace.new_session()
        for number in range(12):
            events = await drain(session.send(f"{number} {LONG}"))
            assert not of(TurnFailed, events), events
        assert provider.refused == 1
        assert len([m for m in stored(workspace, session) if m.kind == "chat"]) == 24


async def test_a_window_set_too_large_by_hand_costs_a_retry_never_the_turn(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=2_000)
    async with open_workspace(tmp_path, provider, rolling_context=True) as workspace:
        session = await workspace.new_session()
        await session.set_window(100_000)
        for number in range(12):
            assert not of(TurnFailed, await drain(session.send(f"{number} {LONG}")))


@pytest.mark.slow
@pytest.mark.parametrize("rolling", [True, False])
async def test_a_small_window_never_overflows_and_loses_nothing(tmp_path: Path, rolling: bool) -> None:
    provider = ScriptedProvider(window=2_048, fallback=lambda r: answer("A summary or an answer. " * 8))
    async with open_workspace(tmp_path, provider, rolling_context=rolling) as workspace:
        session = await workspace.new_session()
        events = await converse(session, 40, LONG)
        assert provider.refused == 0
        assert not of(TurnFailed, events)
        assert len(of(ContextTrimmed if rolling else CompactionFinished, events)) >= 3
        texts = [m.text for m in stored(workspace, session) if m.role == "user" and m.kind == "chat"]
        assert texts == [f"{number} {LONG}" for number in range(40)]
        assert session.usage is not None
        assert not session.usage.space.over


async def test_what_is_left_out_is_known_with_each_request(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(window=2_000), rolling_context=True) as workspace:
        session = await workspace.new_session()
        await converse(session, 8, LONG)
        usage = await session.refresh_usage()
        trimmed = [why for why in session.conversation.not_sent().values() if why == "trimmed"]
        assert usage.rolling and usage.left_out.messages == len(trimmed) > 0
        whole = session._meter.estimate(replace(session.conversation.untrimmed_request(), session="apart"))
        assert usage.total + usage.left_out.tokens == pytest.approx(whole, rel=0.05)
        left_out = [call.left_out or 0 for call in workspace.services.calls.rows(session.id)]
        assert left_out[0] == 0 and left_out[-1] == usage.left_out.tokens
        await session.set_rolling(False)
        assert (await session.refresh_usage()).left_out == (0, 0)
        await session.pin(session.messages[0].id, True)
        await session.set_rolling(True)
        assert of(ContextTrimmed, await drain(session.send(f"again {LONG}")))
        trimmed = [why for why in session.conversation.not_sent().values() if why == "trimmed"]
        assert (await session.refresh_usage()).left_out.messages == len(trimmed)


async def test_both_off_refuses_with_the_sizes_and_sends_nothing(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=2_048)
    async with open_workspace(tmp_path, provider, compaction="off") as workspace:
        session = await workspace.new_session()
        failed: list[TurnFailed] = []
        for number in range(12):
            failed += of(TurnFailed, await drain(session.send(f"{number} {LONG}")))
        assert provider.refused == 0
        assert failed
        assert "1,536" in failed[0].text
        assert len([m for m in stored(workspace, session) if m.role == "user"]) == 12


async def test_a_tool_loop_keeps_calls_with_their_results(tmp_path: Path) -> None:
    call: Answer = [
        ToolCallDelta(0, "c1", "fetch", '{"id":'),
        ToolCallDelta(0, arguments="7}"),
        StreamEnd("tool_calls", "tool_calls"),
    ]
    provider = ScriptedProvider([call])
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        session = await workspace.new_session()
        await drain(session.send("fetch seven"))
        assert [m.role for m in stored(workspace, session)] == ["user", "assistant", "tool", "assistant"]
        assert [m.role for m in provider.requests[1].messages] == ["user", "assistant", "tool"]


async def test_a_cancelled_tool_call_is_answered_for_in_the_next_request(tmp_path: Path) -> None:
    provider = ScriptedProvider([[ToolCallDelta(0, "c1", "fetch", "{}"), 30.0]])
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        session = await workspace.new_session()
        async for event in session.send("go"):
            if isinstance(event, ReplyDelta):
                session.cancel()
        await drain(session.send("never mind"))
        assert [m.role for m in provider.requests[-1].messages] == ["user", "assistant", "tool", "user"]
        assert [m.role for m in stored(workspace, session)] == ["user", "assistant", "user", "assistant"]


async def test_refused_reasoning_is_left_out_once_and_for_all(tmp_path: Path) -> None:
    thinking: Answer = [ReasoningDelta("hm"), ReasoningMeta(signature="s"), *answer()]
    refusal: Answer = [ProviderError("signature", "Invalid signature in thinking block")]
    provider = ScriptedProvider([thinking, refusal], able=Capabilities(reasoning_return="always", needs_signature=True))
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send("one"))
        events = await drain(session.send("two"))
        assert not of(TurnFailed, events)
        with_reasoning = [any(isinstance(p, Reasoning) for m in r.messages for p in m.parts) for r in provider.requests]
        assert with_reasoning == [False, True, False]
        await drain(session.send("three"))
        assert not any(isinstance(p, Reasoning) for m in provider.requests[-1].messages for p in m.parts)
        assert any(isinstance(p, Reasoning) for m in stored(workspace, session) for p in m.parts)


async def test_silent_truncation_is_named_and_not_believed(tmp_path: Path) -> None:
    cut: Answer = [TextDelta("who are you?"), UsageUpdate(Usage(900, 5)), StreamEnd("stop", "stop")]
    provider = ScriptedProvider(window=4_000, report_usage=False, script=[cut])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send(LONG * 10))
        assert "The server cut the prompt" in of(Notice, events)[0].text
        assert session.usage is not None
        assert session.usage.total > 1_800
        assert session.usage.source == "estimated"


async def test_success_beyond_the_believed_window_raises_the_belief(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=50_000, claimed=1_200, report_usage=False)
    async with open_workspace(tmp_path, provider, compaction="off") as workspace:
        session = await workspace.new_session()
        size = (await session.refresh_usage()).total
        provider.script = [[TextDelta("x"), UsageUpdate(Usage(size + 730, 600)), StreamEnd("stop", "stop")]]
        events = await drain(session.send("word " * 725))
        assert any("larger than assumed" in n.text for n in of(Notice, events)), events
        assert (await session.refresh_usage()).limits.context == size + 1_330


async def test_a_number_that_nothing_confirms_raises_no_window(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=50_000, claimed=1_200, report_usage=False)
    async with open_workspace(tmp_path, provider, compaction="off") as workspace:
        session = await workspace.new_session()
        provider.script = [[TextDelta("x"), UsageUpdate(Usage(1_150, 400)), StreamEnd("stop", "stop")]]
        await drain(session.send("go"))
        assert (await session.refresh_usage()).limits.context == 1_200


async def test_a_full_disk_keeps_the_answer_and_writes_it_later(tmp_path: Path) -> None:
    provider = ScriptedProvider([answer("x" * 400_000)], window=None)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send("first"))
        store = workspace.store
        provider.script = [answer("y" * 600_000)]
        limited = False
        async for event in session.send("second"):
            if isinstance(event, ReplyDelta) and not limited:
                limited = True
                (pages,) = store.query("PRAGMA page_count")[0]
                store.query(f"PRAGMA max_page_count = {pages}")
        assert session.messages[-1].text == "y" * 600_000
        await session.conversation.save_draft("on")  # little enough to find room
        assert (await workspace.resume(session.id)).conversation.info.draft == "on"
        store.query("PRAGMA max_page_count = 1000000")
        await session.conversation.save_draft("")  # as when the program is left
        assert [len(m.text) for m in stored(workspace, session)] == [5, 400_000, 6, 600_000]
        assert stored(workspace, session)[-1].status == "complete"


async def test_a_disk_too_full_for_anything_keeps_the_answer_and_writes_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, full = Database.transaction, False

    @contextlib.contextmanager
    def transaction(database: Database, **how: bool) -> Iterator[object]:
        if full:
            raise StoreError("the disk is full")
        with write(database, **how) as db:
            yield db

    monkeypatch.setattr(Database, "transaction", transaction)
    provider = ScriptedProvider(window=None)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events: list[object] = []
        async for event in session.send("Hello."):
            events.append(event)
            if isinstance(event, ReplyStarted):
                full, provider.claimed = True, 9_000  # it is asked for its window once it has answered
        assert [n.text for n in of(Notice, events) if "The answer is on screen" in n.text]
        assert session.messages[-1] == of(ReplyFinished, events)[-1].message
        full = False
        await session.conversation.save_draft("")
        assert stored(workspace, session)[-1] == session.messages[-1]


async def test_the_message_that_cannot_be_stored_is_not_sent(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        (pages,) = workspace.store.query("PRAGMA page_count")[0]
        workspace.store.query(f"PRAGMA max_page_count = {pages}")
        events = await drain(session.send("x" * 500_000))
        assert "disk is full" in of(TurnFailed, events)[0].text
        assert provider.requests == []
        assert list(session.messages) == []


async def test_rewind_sets_aside_and_the_old_branch_is_kept(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        for text in ("one", "two", "three"):
            await drain(session.send(text))
        announced = [message.id for message in session.rewound(session.messages[2].id)]
        await session.rewind(session.messages[2].id)
        assert list(session.conversation.not_sent()) == announced and len(announced) == 4
        assert session.rewound(session.messages[1].id) == [session.messages[1]]  # not again what was set aside already
        await drain(session.send("other"))
        assert [m.text for m in provider.requests[-1].messages if m.role == "user"] == ["one", "other"]
        assert len(stored(workspace, session)) == 8
        assert set(session.conversation.not_sent().values()) == {"set aside"}
        usage = session.usage
        assert usage is not None
        assert usage.source == "exact"


async def test_excluded_and_pinned(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send("secret"))
        first = session.messages[0].id
        await session.exclude(first, True)
        await session.pin(first, True)
        assert session.conversation.not_sent() == {first: "excluded"}
        assert session.conversation.state.pinned == {first}
        await drain(session.send("next"))
        assert "secret" not in [m.text for m in provider.requests[-1].messages]
        await session.exclude(first, False)
        assert session.conversation.not_sent() == {}


async def test_cancelled_while_the_request_is_measured_nothing_is_sent(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events: list[object] = []
        async for event in session.send("Hello."):
            events.append(event)
            if isinstance(event, UsageChanged):
                session.cancel()
        assert not provider.requests and "Nothing was sent" in of(TurnFailed, events)[0].text


async def test_cancelled_while_the_server_counts_nothing_is_sent(tmp_path: Path) -> None:
    counting = asyncio.Event()

    class Hanging(ScriptedProvider):
        async def count_tokens(self, request: Request) -> int | None:
            counting.set()
            await asyncio.Event().wait()
            return None

    provider = Hanging(able=Capabilities(count_endpoint=True, count_freely=True))
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        turn = asyncio.create_task(drain(session.send("Hello.")))
        await counting.wait()
        session.cancel()
        assert "Nothing was sent" in of(TurnFailed, await turn)[0].text and not provider.requests


async def test_compact_by_hand_and_undo(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await converse(session, 10, LONG)
        before = await session.refresh_usage()
        provider.script = [answer("They talked about foxes.")]
        events = await drain(session.compact("mind the foxes"))
        [done] = of(CompactionFinished, events)
        assert done.record.before == before.total > done.record.after
        assert "mind the foxes" in provider.requests[-1].messages[-1].text
        usage = session.usage
        assert usage is not None
        assert usage.total == done.record.after
        assert usage.basis.compactions == 1
        assert "compacted" in session.conversation.not_sent().values()
        calls = workspace.services.calls.rows(session.id)
        assert [c.kind for c in calls].count("compaction") == 1
        assert await session.undo()
        after = await session.refresh_usage()
        assert after.total == before.total
        assert await session.undo() is None


async def test_compact_of_nothing_says_so_and_changes_nothing(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send("hi"))
        records = workspace.store.records(session.id)
        [notice] = of(Notice, await drain(session.compact()))
        assert "Nothing was changed" in notice.text
        assert workspace.store.records(session.id) == records


async def test_a_failing_summary_changes_nothing(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await converse(session, 10, LONG)
        before = await session.refresh_usage()
        provider.fallback = lambda _: [ProviderError("auth", "no")]
        [notice] = of(Notice, await drain(session.compact()))
        assert "Nothing was changed" in notice.text
        assert (await session.refresh_usage()).total == before.total


async def test_reading_changes_nothing(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send("hi"))
        messages, records = stored(workspace, session), workspace.store.records(session.id)
        usage = await session.refresh_usage()
        for _ in range(10):
            await session.refresh_usage()
            _ = session.conversation.not_sent()
            await session.export(tmp_path / "out.md", overwrite=True)
            await session.export(tmp_path / "out.jsonl", overwrite=True)
        assert stored(workspace, session) == messages
        assert workspace.store.records(session.id) == records
        assert await session.refresh_usage() == usage


async def test_the_model_that_answered_is_the_next_sessions(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await session.set_model("scripted/small")
        assert session.messages == []
        await drain(session.send("hi"))
        assert provider.requests[-1].model == "small"
        assert '"scripted/small"' in (workspace.store.get_state("last_models") or "")


async def test_text_only_messages_are_what_was_written(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    strange = "<|endoftext|> \x1b[31mred\x1b[0m 你好 👩‍👩‍👧 \ud800"
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send(strange))
        assert stored(workspace, session)[0].parts == (Text(strange),)
