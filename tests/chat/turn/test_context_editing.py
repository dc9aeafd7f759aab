"""A provider that clears old tool results by itself: the numbers follow it, and nothing wrong is learned."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.chat.fakes import Answer, ScriptedProvider, Tools, answer, drain, of, open_workspace, real_tokens
from tests.recordings import read_recording
from tui.chat.conversation.events import Notice, UsageChanged
from tui.chat.interchange.importing import import_recording
from tui.chat.store.store import SessionStore
from tui.messages import Part, Request, ToolResult, Usage
from tui.providers.base import Capabilities, StreamEnd, StreamEvent, ToolCallDelta, UsageUpdate

KEEP, TRIGGER = 3, 4_000
RESULT = "All of the lazy dogs were counted again, and forty-two of them are parsers. " * 40
EDITING = Capabilities(edits_context=True)


@dataclass
class Editor(ScriptedProvider):
    """Clears all but the last tool results of a prompt over the trigger, as Anthropic does, if it was asked to."""

    able: Capabilities = EDITING
    real: list[tuple[int, int]] = field(default_factory=list)  # (tokens read, tokens cleared) of each request

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        whole = real_tokens(request)
        results = [part for m in request.messages for part in m.parts if isinstance(part, ToolResult)]
        old = results[:-KEEP] if request.server_edits and whole > TRIGGER else []
        gone = {part.call_id for part in old}
        edited = replace(request, messages=tuple(replace(m, parts=without(m.parts, gone)) for m in request.messages))
        read = real_tokens(edited)
        self.real.append((read, whole - read))
        async for event in super().stream(request):
            if isinstance(event, UsageUpdate):
                cleared = (whole - read or None, len(old) or None)
                event = UsageUpdate(Usage(read, event.usage.output_total, cleared=cleared[0], cleared_uses=cleared[1]))
            yield event


def without(parts: Sequence[Part], gone: set[str]) -> tuple[Part, ...]:
    return tuple(
        replace(part, text="[cleared]") if isinstance(part, ToolResult) and part.call_id in gone else part
        for part in parts
    )


def calls(number: int) -> list[Answer]:
    """Tool steps, then an answer."""
    steps: list[Answer] = []
    for step in range(number):
        steps.append([ToolCallDelta(0, f"c{step}", "fetch", '{"id":1}'), StreamEnd("tool_calls", "tool_calls")])
    return [*steps, answer()]


@pytest.mark.slow
async def test_the_numbers_follow_what_the_provider_clears(tmp_path: Path) -> None:
    provider = Editor(script=list(calls(14)), window=64_000)
    async with open_workspace(tmp_path, provider, tools=Tools(lambda _: RESULT)) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("Look at everything."))
        assert provider.real[-1][1] > TRIGGER  # most of it was cleared
        notices = [notice.text for notice in of(Notice, events)]
        assert notices and all("of " in text and "tool calls from the prompt by itself" in text for text in notices)
        assert not any("cut the prompt" in text or "larger than believed" in text for text in notices)

        # What the provider read is what is shown and anchored on, and the rows add up to it.
        usage = session.usage
        assert usage is not None and usage.source == "exact"
        read, cleared = provider.real[-1]
        assert usage.basis.last_input == read and usage.basis.cleared == cleared
        assert usage.total == read + (usage.basis.last_output_sent_back or 0)
        assert sum(row.tokens for row in usage.rows) == usage.total
        assert all(changed.usage.total >= 0 for changed in of(UsageChanged, events))

        # Predictions are off by no more than what the provider newly cleared, and never too low.
        rows = workspace.services.calls.rows(session.id)
        for row, (read, gone), before in zip(rows[1:], provider.real[1:], provider.real, strict=False):
            assert row.predicted is not None
            assert -60 <= row.predicted - read <= gone - before[1] + 60

        # With nothing newly cleared the next turn is predicted as well as any.
        await drain(session.send("Thanks. And in one word?"))
        last = workspace.services.calls.rows(session.id)[-1]
        assert last.predicted is not None and abs(last.predicted - provider.real[-1][0]) <= 20
        learned = workspace.services.estimator.calibrations.get("scripted", "m").factor

    # Nothing wrong was learned: the factor is that of the same conversation without editing.
    plain = Editor(script=list(calls(14)), window=64_000, able=Capabilities())
    async with open_workspace(tmp_path / "plain", plain, tools=Tools(lambda _: RESULT)) as workspace:
        session = await workspace.new_session()
        await drain(session.send("Look at everything."))
        await drain(session.send("Thanks. And in one word?"))
        assert abs(workspace.services.estimator.calibrations.get("scripted", "m").factor - learned) < 0.05


async def test_switched_off_again_the_whole_prompt_counts(tmp_path: Path) -> None:
    provider = Editor(script=list(calls(14)), window=64_000)
    async with open_workspace(tmp_path, provider, tools=Tools(lambda _: RESULT)) as workspace:
        session = await workspace.new_session()
        await drain(session.send("Look at everything."))
        ident, read = session.id, provider.real[-1][0]
        usage = session.messages[-1].usage
        assert usage is not None and usage.cleared == provider.real[-1][1] and usage.cleared_uses
        await session.export(tmp_path / "out.jsonl")  # it is kept with the call, and travels with it
    other = SessionStore(tmp_path / "other.db")
    copy = import_recording(read_recording(tmp_path / "out.jsonl"), other)
    assert other.messages(copy.id)[-1].usage == usage
    other.close()
    provider.able = Capabilities()
    async with open_workspace(tmp_path, provider, tools=Tools(lambda _: RESULT)) as workspace:
        session = await workspace.resume(ident)
        whole = await session.refresh_usage()
        assert whole.total > read + TRIGGER and whole.basis.cleared == 0
        await drain(session.send("And now?"))
        last = workspace.services.calls.rows(session.id)[-1]
        assert last.predicted is not None and provider.real[-1][1] == 0
        assert abs(last.predicted - provider.real[-1][0]) <= 40
