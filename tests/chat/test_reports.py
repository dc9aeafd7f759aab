"""Conversations with servers that report their usage wrongly: what is shown, sent, refused and stored."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import ScriptedProvider, answer, drain, of, open_workspace, real_tokens, tokens_of
from tui.chat.conversation.events import ContextTrimmed, Notice, TurnFailed
from tui.chat.turn.session import ChatSession
from tui.config.settings import ModelSettings
from tui.messages import Request, Usage
from tui.providers.base import StreamEnd, StreamEvent, UsageUpdate

LONG = "The committee read the report again, and could not agree on what it said. " * 40  # about 600 tokens


@dataclass
class MisreportingProvider(ScriptedProvider):
    """Reports what `said` makes of the true sizes of all its requests, latest last."""

    usage_of: Callable[[list[int]], Usage] = lambda sizes: Usage(sizes[-1], 12)
    reads: int | None = None  # tokens: the rest of a prompt is cut off in silence
    sizes: list[int] = field(default_factory=list)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self.sizes.append(real_tokens(request))
        async for event in super().stream(request):
            if isinstance(event, StreamEnd):
                yield UsageUpdate(self.usage_of(self.sizes))
            yield event


def provider(usage_of: Callable[[list[int]], Usage], **values: Any) -> MisreportingProvider:
    return MisreportingProvider(usage_of=usage_of, report_usage=False, fallback=lambda _: answer("It is so."), **values)


async def turn(session: ChatSession, text: str) -> list[object]:
    events = await drain(session.send(text))
    assert not of(TurnFailed, events), [event.text for event in of(TurnFailed, events)]
    return events


def truth(session: ChatSession) -> int:
    return real_tokens(session.conversation.request())


@pytest.mark.parametrize(
    "usage_of",
    [lambda sizes: Usage(100, 12), lambda sizes: Usage(1, 1), lambda sizes: Usage(min(sizes[-1], 26), 12)],
    ids=["a placeholder", "one and one", "the uncached part"],
)
async def test_too_small_a_number_is_never_exact_and_the_window_is_respected(
    tmp_path: Path, usage_of: Callable[[list[int]], Usage]
) -> None:
    server = provider(usage_of, window=8_000)
    async with open_workspace(tmp_path, server, rolling_context=True, reserve_output=500) as workspace:
        session, trims = await workspace.new_session(), 0
        for number in range(18):
            trims += len(of(ContextTrimmed, await turn(session, f"{number} {LONG}")))
            usage = session.usage
            assert usage is not None
            assert usage.source != "exact" or usage.total == pytest.approx(truth(session), rel=0.05)
            assert usage.total == pytest.approx(truth(session), rel=0.15)
        assert trims > 0
        assert server.refused == 0


@pytest.mark.parametrize("claimed", [None, 100_000], ids=["window unknown", "window thought larger"])
async def test_a_server_that_cuts_prompts_gets_no_more_than_it_reads_once_that_is_proved(
    tmp_path: Path, claimed: int | None
) -> None:
    server = provider(lambda sizes: Usage(min(sizes[-1], 3_000), 12), window=None, claimed=claimed)
    async with open_workspace(tmp_path, server, rolling_context=True, reserve_output=100) as workspace:
        session = await workspace.new_session()
        for number in range(12):
            await turn(session, f"{number} {LONG}")
        cut = [size for size in server.sizes if size > 3_000]
        assert len(cut) <= 3
        assert max(server.sizes[-4:]) <= 3_000


async def test_one_absurd_number_for_hi_refuses_nothing_in_this_session_or_after_a_restart(tmp_path: Path) -> None:
    server = provider(lambda sizes: Usage(30_000, 12) if len(sizes) == 1 else Usage(sizes[-1], 12), window=32_000)
    async with open_workspace(tmp_path, server) as workspace:
        await turn(await workspace.new_session(), "hi")
    async with open_workspace(tmp_path, server) as workspace:
        session = await workspace.new_session()
        before = await session.refresh_usage()
        assert before.total < 500
        await turn(session, "hi")
        await turn(session, "hi again")
        assert session.usage is not None
        assert session.usage.total == pytest.approx(truth(session), abs=20)


async def test_no_number_overrides_the_window_that_the_person_set(tmp_path: Path) -> None:
    server = provider(lambda sizes: Usage(5_000_000, 12) if len(sizes) == 2 else Usage(sizes[-1], 12), window=None)
    models = {"scripted/m": ModelSettings(window=6_000)}
    async with open_workspace(tmp_path, server, models=models) as workspace:
        session = await workspace.new_session()
        for number in range(4):
            await turn(session, f"{number} what else?")
            assert session.usage is not None
            assert (session.usage.limits.context, session.usage.limits.source) == (6_000, "setting")
            assert session.usage.total < 500
        server.usage_of = lambda sizes: Usage(sizes[-1], 9_000)  # it wrote beyond that window
        events = await turn(session, "and at length?")
        assert [event.text for event in of(Notice, events) if "window" in event.text]
        stored = workspace.services.models.limits("scripted", "m")
        assert (stored.context, stored.source) == (6_000, "setting")


async def test_totals_of_all_calls_so_far_refuse_no_turn(tmp_path: Path) -> None:
    server = provider(lambda sizes: Usage(sum(sizes), 12 * len(sizes)), window=16_000)
    async with open_workspace(tmp_path, server, compaction="off") as workspace:
        session = await workspace.new_session()
        for number in range(14):
            await turn(session, f"{number} {LONG}")
        server.usage_of = lambda sizes: Usage(sizes[-1], 12)
        for number in range(2):
            await turn(session, f"{number} and now?")
        assert session.usage is not None
        assert session.usage.total == pytest.approx(truth(session), rel=0.05)


async def test_a_first_message_in_thai_books_nothing_for_tools(tmp_path: Path) -> None:
    """This server's vocabulary needs three times as many tokens for it as the one that is counted with."""
    server = provider(lambda sizes: Usage(sizes[-1], 12), window=64_000)
    thai = "เมื่อวานนี้คณะกรรมการอ่านรายงานอีกครั้งและไม่สามารถตกลงกันได้ว่ารายงานนั้นกล่าวถึงอะไร " * 60
    async with open_workspace(tmp_path, server) as workspace:
        await turn(await workspace.new_session(), thai)
        session = await workspace.new_session()
        await turn(session, "hi")
        [call] = [call for call in session._services.calls.rows(session.id) if call.kind == "chat"]
        assert call.predicted is not None
        assert call.predicted == pytest.approx(call.input_total, abs=60)
        assert call.verdict in ("believed", "confirmed")
        assert tokens_of(thai) > 4_000


async def test_fifteen_bytes_are_never_thousands_of_tokens(tmp_path: Path) -> None:
    server = provider(lambda sizes: Usage(sizes[-1] + (3_456 if len(sizes) == 3 else 0), 12), window=64_000)
    async with open_workspace(tmp_path, server) as workspace:
        session = await workspace.new_session()
        for text in (LONG, LONG, "fifteen bytes!!", "and now?"):
            await turn(session, text)
            usage = session.usage
            assert usage is not None
            counts = usage.messages
            for message in session.messages:
                if message.id in counts:
                    assert counts[message.id].tokens <= len(message.text.encode()) + 100
