"""Compaction as a session does it: how often it is tried, what it is asked with, what it leaves alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
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
from tests.messages import PNG, user
from tui.chat.attachments import make_attachment
from tui.chat.compaction.compactor import SummaryEffect
from tui.chat.conversation.events import (
    CompactionFinished,
    CompactionStarted,
    ContextTrimmed,
    Notice,
    SessionEvent,
    ToolStarted,
    TurnFailed,
)
from tui.context.reduction.records import CompactionRecord
from tui.context.usage.limits import Percent, Tokens
from tui.messages import Request, Usage
from tui.providers.base import ProviderError, StreamEnd, TextDelta, ToolCallDelta, UsageUpdate

LONG = "The keeper counts the boats in the harbour, and writes the number into the book with the red spine. " * 10


async def test_one_try_for_each_measurement_also_when_the_server_refuses_after_it(tmp_path: Path) -> None:
    def reply(request: Request) -> Answer:
        return [ProviderError("auth", "no")] if is_summary(request) else answer("Noted.")

    provider = ScriptedProvider(window=2_000, claimed=100_000, fallback=reply)
    async with open_workspace(tmp_path, provider, compaction=Tokens(1_600)) as workspace:
        session = await workspace.new_session()
        await converse(session, 6, LONG)
        assert not any(map(is_summary, provider.requests))
        del provider.requests[:]
        events = await drain(session.send(LONG * 4))
        assert not [e for e in events if isinstance(e, TurnFailed)]
        assert [is_summary(request) for request in provider.requests] == [True, True, False, False]  # refused, repeated
        assert len([e for e in events if isinstance(e, CompactionStarted)]) == 1


@pytest.mark.parametrize("claimed", [100_000, None])
async def test_after_an_overflow_a_summary_is_asked_for_with_less_than_was_refused(
    tmp_path: Path, claimed: int | None
) -> None:
    def reply(request: Request) -> Answer:
        if not is_summary(request) and real_tokens(request) > 3_000:
            return [ProviderError("overflow_input", "too long")]
        return answer("Noted. " * 10)

    provider = ScriptedProvider(window=None, claimed=claimed, report_usage=False, fallback=reply)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events: list[object] = []
        for number in range(18):
            events += await drain(session.send(f"{number} {LONG * 3}"))
        assert [e for e in events if isinstance(e, CompactionFinished)]
        requests = [request for request in provider.requests if is_summary(request)]
        assert requests
        assert all(len(request.messages) == 1 for request in requests)
        assert max(map(real_tokens, requests)) <= 3_000
        refused = {r.messages for r in provider.requests if not is_summary(r) and real_tokens(r) > 3_000}
        assert len(refused) <= 4  # it leaves room for the next turns, whatever the window is said to be


async def test_a_summary_longer_than_the_model_writes_is_asked_for_with_what_it_does(tmp_path: Path) -> None:
    def reply(request: Request) -> Answer:
        if is_summary(request) and (request.max_output or 0) > 300:
            return [ProviderError("overflow_output", "max_tokens is too large", most_output=300)]
        return answer("Noted.")

    provider = ScriptedProvider(window=20_000, fallback=reply)
    async with open_workspace(tmp_path, provider, preserve_recent_turns=1) as workspace:
        session = await workspace.new_session()
        await converse(session, 8, LONG)
        events = await drain(session.compact())
    assert of(CompactionFinished, events)
    assert [r.max_output for r in provider.requests if is_summary(r)][1:] == [300]


@pytest.mark.parametrize(("turns", "behind"), [(9, True), (10, False)])
async def test_a_summary_is_asked_for_behind_the_conversation_where_2000_tokens_are_free(
    tmp_path: Path, turns: int, behind: bool
) -> None:
    """There the provider has the conversation in its cache. 10 turns may take 14,100 of 15,000 tokens."""
    provider = ScriptedProvider(
        window=20_000, fallback=lambda _: answer("They spoke of boats and of the red book. " * 3)
    )
    async with open_workspace(tmp_path, provider, compaction="off") as workspace:
        session = await workspace.new_session()
        await converse(session, turns, LONG * 5)
        await drain(session.compact())
    assert len(provider.requests[turns].messages) == (2 * turns + 1 if behind else 1)


async def test_a_summary_that_is_asked_for_again_is_billed_each_time(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await converse(session, 8, LONG)
        provider.script = [answer(""), answer("Goal: the boats are counted.")]
        assert of(CompactionFinished, await drain(session.compact()))
        assert len([request for request in provider.requests if is_summary(request)]) == 2
        rows = [row for row in workspace.services.calls.rows(session.id) if row.kind == "compaction"]
        assert [bool(row.input_total and row.output_total) for row in rows] == [True, True]


async def test_a_summary_that_ends_early_says_so(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await converse(session, 8, LONG)
        cut: Answer = [
            TextDelta("Goal: the boats are counted.\nFacts: the spine is red.\nNext"),
            StreamEnd("length", "length"),
        ]
        provider.script = [cut, cut]
        events = await drain(session.compact())
        assert of(CompactionFinished, events)
        assert [event.text for event in of(Notice, events)] == [
            "The summary met its output limit and ends early; /summary shows it"
        ]
        summary = session.compactor.current_summary()
        assert summary is not None and "red" in summary.text and "Next" not in summary.text


async def test_the_price_of_a_summary_says_what_it_leaves_out(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await converse(session, 8, LONG)
        provider.report_usage = False
        usage = UsageUpdate(Usage(4_000, 10, terms=("flex",)))
        provider.script = [[usage, *answer("Goal: the boats are counted.")]]
        assert of(CompactionFinished, await drain(session.compact()))
        [row] = [row for row in workspace.services.calls.rows(session.id) if row.kind == "compaction"]
        assert row.unpriced == "flex"


async def test_pinned_messages_go_out_word_for_word_behind_the_summary(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await converse(session, 8, LONG)
        pinned = session.messages[2]
        await session.pin(pinned.id, True)
        assert [e for e in await drain(session.compact()) if isinstance(e, CompactionFinished)]
        await drain(session.send("on"))
        assert provider.requests[-1].messages[1] == pinned
        assert session.conversation.not_sent().get(pinned.id) is None


async def test_esc_before_the_summary_is_asked_for_keeps_it_from_being_asked_for(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await converse(session, 8, LONG)
        del provider.requests[:]

        async def stopped(events: AsyncIterator[SessionEvent]) -> str:
            """What is said when it is cancelled as soon as a compaction begins."""
            texts = []
            async for event in events:
                texts += [event.text] if isinstance(event, (Notice, TurnFailed)) else []
                if isinstance(event, CompactionStarted):
                    session.cancel()
            return texts[-1]

        assert "Nothing was changed" in await stopped(session.compact())
        await session.set_window(1_800)
        assert "Nothing was sent" in await stopped(session.send("on"))
        assert not provider.requests
        assert [e for e in await drain(session.compact()) if isinstance(e, CompactionFinished)]


async def test_nothing_is_compacted_while_tools_run(tmp_path: Path) -> None:
    call: Answer = [ToolCallDelta(0, "c1", "fetch", "{}"), StreamEnd("tool_calls", "tool_calls")]
    async with open_workspace(tmp_path, ScriptedProvider([call]), tools=Tools()) as workspace:
        session = await workspace.new_session()
        async for event in session.send("go"):
            if isinstance(event, ToolStarted):
                with pytest.raises(RuntimeError, match="a turn is running"):
                    await drain(session.compact())
        assert session.messages[-1].text == "Certainly."


async def test_a_failed_compaction_says_what_becomes_of_the_request(tmp_path: Path) -> None:
    def reply(request: Request) -> Answer:
        return [ProviderError("auth", "no")] if is_summary(request) else answer("Noted.")

    async with open_workspace(
        tmp_path, ScriptedProvider(window=2_400, fallback=reply), compaction=Percent(50)
    ) as workspace:
        session = await workspace.new_session()
        fits: list[str] = []
        over: list[str] = []
        for number in range(10):
            events = await drain(session.send(f"{number} {LONG}"))
            texts = [e.text for e in events if isinstance(e, Notice) and "Compaction failed" in e.text]
            (over if [e for e in events if isinstance(e, ContextTrimmed)] else fits).extend(texts)
        assert fits
        assert all(text.endswith("The request still fits") for text in fits)
        assert over
        assert all(text.endswith("Old content is left out instead") for text in over)


async def test_what_was_left_out_when_no_summary_could_be_had_comes_back_once_there_is_room(tmp_path: Path) -> None:
    def reply(request: Request) -> Answer:
        return [ProviderError("auth", "no")] if is_summary(request) else answer("Noted.")

    provider = ScriptedProvider(window=2_400, fallback=reply)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await converse(session, 10, LONG)
        assert "trimmed" in session.conversation.not_sent().values()
        provider.window = 50_000
        await session.set_window(50_000)
        await drain(session.send("on"))
        assert session.conversation.not_sent() == {}
        assert len(provider.requests[-1].messages) == 21


async def test_that_compacting_is_of_no_use_is_said_again_after_it_was_of_use(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=4_096, fallback=lambda _: answer("Noted. " * 10))
    system = LONG * 13
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()

        async def notices(turns: int) -> int:
            """How often it is said in so many turns that this window cannot hold the conversation."""
            events: list[object] = []
            for number in range(turns):
                events += await drain(session.send(f"{number} hi"))
            return len([e for e in events if isinstance(e, Notice) and "cannot hold" in e.text])

        await session.set_system(system)
        assert await notices(3) == 1
        await session.set_system("")
        while not [e for e in await drain(session.send(LONG)) if isinstance(e, CompactionFinished)]:
            assert len(session.messages) < 60
        await session.set_system(system)
        assert await notices(3) == 1


def test_what_was_done_is_one_line_for_the_screen_and_the_command_line() -> None:
    summary = user(kind="summary")
    record = CompactionRecord("c", 0.0, 121_400, 18_300, 142, summary="s", source="exact")
    assert CompactionFinished(record, summary).line == "Compacted 142 messages: 121,400 -> ~18,300 tokens (-85 %)"
    assert ContextTrimmed(1, 38_400, ("m",)).line == "Context trimmed: 1 message, ~38,400 tokens left out"


async def test_a_summary_asked_behind_the_conversation_sees_its_pictures(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        picture = make_attachment("a.png", PNG)
        workspace.store.put_blob(picture.sha256, PNG)
        await drain(session.send("see", [picture]))
        await converse(session, 8, LONG)
        assert [e for e in await drain(session.compact()) if isinstance(e, CompactionFinished)]
        [request] = [request for request in provider.requests if is_summary(request)]
        assert len(request.messages) > 8  # the cache of the server holds all but the wish for a summary
        assert dict(request.blobs) == {picture.sha256: PNG} == dict(provider.requests[0].blobs)


async def test_what_was_learned_of_the_tokenizer_counts_for_the_summarys_requests_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.chat.fakes.real_tokens", lambda request: int(2.3 * real_tokens(request)))
    provider = ScriptedProvider(window=40_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await converse(session, 25, LONG)
        provider.window = 4_000
        await session.set_window(4_000)
        assert [e for e in await drain(session.compact()) if isinstance(e, CompactionFinished)]
        requests = [request for request in provider.requests if is_summary(request)]
        assert len(requests) > 3  # in parts, as large as they may be
        assert provider.refused == 0


async def test_a_model_with_fewer_tokens_than_our_tokenizer_has_is_not_taken_for_a_server_that_cuts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.chat.fakes.real_tokens", lambda request: int(0.52 * real_tokens(request)))
    provider = ScriptedProvider(window=40_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await converse(session, 25, LONG)
        assert [e for e in await drain(session.compact()) if isinstance(e, CompactionFinished)]
        assert len([request for request in provider.requests if is_summary(request)]) == 1


async def test_a_question_that_only_a_summary_stands_for_is_not_asked_again(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        for _ in range(6):
            await drain(session.send("Parsers. " * 100))
        assert of(CompactionFinished, await drain(session.compact()))
        sent = session.conversation.request().messages
        await session.rewind(next(m.id for m in sent if m.kind == "chat"))
        provider.requests.clear()
        assert "nothing to retry" in of(TurnFailed, await drain(session.retry()))[0].text and not provider.requests


async def test_a_retry_leaves_a_compaction_in_force(tmp_path: Path) -> None:
    """Its summary was written after the question, and stands before it."""
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        for _ in range(6):
            await drain(session.send("Parsers. " * 100))
        assert of(CompactionFinished, await drain(session.compact()))
        first = session.conversation.request().messages[0]
        assert first.kind == "summary"
        await drain(session.retry())
        assert provider.requests[-1].messages[0] is first and session.conversation.request().messages[0] is first


@pytest.mark.parametrize(("source", "before"), [("exact", "100 -> "), ("delta", "~100 -> "), ("estimated", "~100 -> ")])
def test_the_effect_of_a_summary_says_which_figures_are_estimates(source: str, before: str) -> None:
    assert SummaryEffect(5, 100, 40, source).line == f"next request {before}~40 tokens (-60 %) · summary ~5 tokens"
