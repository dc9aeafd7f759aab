"""Going on with a model whose window is smaller than the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.chat.fakes import FakeWorkspace, ScriptedProvider, answer, converse, drain, of, open_workspace, real_tokens
from tui.chat.conversation.events import CompactionFinished, Notice, TurnFailed, TurnFinished
from tui.chat.turn.session import ChatSession
from tui.context.reduction.compaction import summary_allowance
from tui.context.usage.limits import ModelLimits
from tui.context.usage.usage import ContextUsage
from tui.messages import Request
from tui.providers.base import ProviderError, StreamEvent

LONG = "The quick brown fox jumps over the lazy dog while forty-two parsers look on. " * 12
WINDOWS: dict[str, int | None] = {"m": 64_000, "small": 6_000, "tiny": 600, "silent": None}


@dataclass
class Windows(ScriptedProvider):
    """A window for each model, as strict as the other."""

    windows: dict[str, int | None] = field(default_factory=lambda: dict(WINDOWS))

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self.window = self.windows[request.model]
        async for event in super().stream(request):
            yield event

    async def limits(self, model: str) -> ModelLimits | None:
        window = self.windows[model]
        return None if window is None else ModelLimits(window, source="probe")


def fits(usage: ContextUsage) -> bool:
    return usage.budget.max_input is None or usage.upper_bound <= usage.budget.max_input


async def conversation_of(workspace: FakeWorkspace, turns: int = 45) -> ChatSession:
    """A conversation of several small windows."""
    session = await workspace.new_session()
    await converse(session, turns, LONG)
    return session


def state(session: ChatSession, workspace: FakeWorkspace) -> object:
    """All that a failed switch must leave alone."""
    return (
        session.provider,
        session.model,
        [m.id for m in session.messages],
        workspace.store.messages(session.id),
        workspace.store.records(session.id),
        workspace.store.session(session.id),
        dict(session.conversation.not_sent()),
        session.usage,
    )


async def test_what_it_would_cost_there_is_measured_and_changes_nothing(tmp_path: Path) -> None:
    provider = Windows(fallback=lambda _: answer("Noted. " * 8))
    async with open_workspace(tmp_path, provider) as workspace:
        session = await conversation_of(workspace, 20)
        before, count = state(session, workspace), len(provider.requests)
        usage = await session.measured_for("scripted/small")
        assert state(session, workspace) == before and len(provider.requests) == count
        assert (usage.model, usage.limits.context) == ("small", 6_000)
        assert not fits(usage) and usage.space.over
        assert fits(await session.measured_for("scripted/m"))
        unknown = await session.measured_for("scripted/silent")
        assert unknown.limits.context is None and fits(unknown)
        await session.set_model("scripted/small")
        now = await session.refresh_usage()
        assert now == usage  # what was asked about is what was got


@pytest.mark.slow
async def test_the_old_model_summarises_once_for_the_new_ones_window(tmp_path: Path) -> None:
    provider = Windows(fallback=lambda _: answer("Noted. " * 8))
    async with open_workspace(tmp_path, provider) as workspace:
        session = await conversation_of(workspace)
        whole, texts = len(provider.requests), [m.text for m in session.messages]
        events = await drain(session.compact_for("scripted/small"))
        (done,) = of(CompactionFinished, events)
        written = provider.requests[whole:]
        assert [r.model for r in written] == ["m"]  # one call, by the old model: it can read it all at once
        assert written[0].max_output is not None and written[0].max_output < 6_000 // 4
        assert (session.model, session.usage and session.usage.model) == ("small", "small")
        assert session.usage is not None and fits(session.usage)
        assert done.record.after == session.usage.total < (session.usage.budget.compaction_at or 0)
        assert [m.text for m in session.messages][: len(texts)] == texts  # nothing a person wrote is gone
        stored = workspace.store.session(session.id)
        assert stored is not None and stored.model == "small"
        assert isinstance(events[-1], TurnFinished)
        answered = await drain(session.send("and now?"))
        assert not of(TurnFailed, answered) and not of(CompactionFinished, answered)
        assert provider.requests[-1].model == "small" and provider.refused == 0
        assert real_tokens(provider.requests[-1]) <= 6_000
        assert await session.undo()  # as any other compaction


async def test_where_the_old_model_has_to_read_it_in_parts_it_still_writes_for_the_new_one(tmp_path: Path) -> None:
    provider = Windows(
        fallback=lambda _: answer("Noted. " * 8), windows={"m": 9_000, "small": 4_000, "tiny": 600, "silent": None}
    )
    async with open_workspace(tmp_path, provider, compaction="off") as workspace:
        session = await workspace.new_session()
        for number in range(8):
            await drain(session.send(f"{number} {LONG * 3}"))
        whole, there = len(provider.requests), await session.measured_for("scripted/small")
        assert len(of(CompactionFinished, await drain(session.compact_for("scripted/small")))) == 1
        written = provider.requests[whole:]
        assert written and all(len(r.messages) == 1 for r in written)  # not behind the conversation: no room for that
        assert {r.max_output for r in written} == {2 * summary_allowance(there.budget)}
        assert session.model == "small" and session.usage is not None and fits(session.usage)


@pytest.mark.parametrize(
    ("model", "fault", "words"),
    [
        ("small", ProviderError("auth", "the key was refused"), "the key was refused"),
        ("tiny", None, "Nothing was changed"),  # not even the last message fits there
    ],
)
async def test_a_compaction_that_cannot_be_made_leaves_everything(
    tmp_path: Path, model: str, fault: ProviderError | None, words: str
) -> None:
    provider = Windows(fallback=lambda _: answer("Noted. " * 8))
    async with open_workspace(tmp_path, provider) as workspace:
        session = await conversation_of(workspace, 20)
        if model == "tiny":
            await drain(session.send(LONG * 3))
        before = state(session, workspace)
        if fault is not None:
            provider.script = [[fault]]
        events = await drain(session.compact_for(f"scripted/{model}"))
        (notice,) = of(Notice, events)
        assert words in notice.text and "Nothing was changed" in notice.text
        assert not of(CompactionFinished, events)
        assert state(session, workspace) == before
        assert not session.running


async def test_esc_ends_the_summary_and_the_old_model_stays(tmp_path: Path) -> None:
    provider = Windows(fallback=lambda _: answer("Noted. " * 8))
    async with open_workspace(tmp_path, provider) as workspace:
        session = await conversation_of(workspace, 20)
        before = state(session, workspace)
        provider.script = [[60.0, *answer("a summary")]]
        provider.requested.clear()
        switching = asyncio.create_task(drain(session.compact_for("scripted/small")))
        await provider.requested.wait()
        session.cancel()
        events = await switching
        assert [notice.text for notice in of(Notice, events)] == ["Compaction cancelled. Nothing was changed."]
        assert state(session, workspace) == before


@pytest.mark.slow
@pytest.mark.parametrize("rolling", [True, False])
async def test_a_stored_session_is_resumed_with_a_smaller_model(tmp_path: Path, rolling: bool) -> None:
    """`chatctx ask -m small --session ID`: nothing is sent that does not fit."""
    provider = Windows(fallback=lambda _: answer("Noted. " * 8))
    async with open_workspace(tmp_path, provider, rolling_context=rolling) as workspace:
        ident = (await conversation_of(workspace)).id
    async with open_workspace(tmp_path, provider, rolling_context=rolling) as workspace:
        session = await workspace.resume(ident, "scripted/small")
        events = await drain(session.send("and now?"))
        assert not of(TurnFailed, events)
        assert provider.refused == 0 and provider.requests[-1].model == "small"
    async with open_workspace(tmp_path, provider, rolling_context=rolling, compaction="off") as workspace:
        session = await workspace.resume(ident, "scripted/tiny")
        count = len(provider.requests)
        (failed,) = of(TurnFailed, await drain(session.send(LONG * 3)))
        assert "tokens" in failed.text and len(provider.requests) == count  # refused before it was sent
        assert session.messages[-1].text == LONG * 3


async def test_what_another_model_measured_counts_after_a_restart_too(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, Windows()) as workspace:
        session = await conversation_of(workspace, 3)
        await session.set_model("scripted/small")
        before = await session.refresh_usage()
    async with open_workspace(tmp_path, Windows()) as workspace:
        again = await workspace.resume(session.id)
        after = await again.refresh_usage()
    assert (after.model, after.source, after.total, after.upper_bound) == (
        "small", "estimated", before.total, before.upper_bound,
    )  # fmt: skip
