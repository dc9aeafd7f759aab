"""The person, or a kill, ends a turn while tools run: what is done stays, and the conversation can be sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import ScriptedProvider, Tools, open_workspace
from tests.chat.tool_calls.tool_calls import FunctionTools, calls, results, turn, well_formed
from tests.messages import assistant
from tui.chat.conversation.events import ApprovalAsked, Notice, ReplyFinished, ToolFinished, TurnFailed, UsageChanged
from tui.chat.conversation.projection import NO_RESULT
from tui.chat.store.database import Liveness
from tui.chat.tool_calls import tool_step
from tui.chat.tool_calls.tool_step import CANCELLED
from tui.chat.turn.turn import STOPPED
from tui.messages import ToolCall, ToolResult


@pytest.mark.parametrize(
    ("why", "result"),
    [
        ("", "Cancelled by the person before it was done."),
        ("the program ended", "Cancelled before it was done: the program ended."),
    ],
)
async def test_cancelling_while_tools_run_keeps_what_is_done(tmp_path: Path, why: str, result: str) -> None:
    async def slow(_: Mapping[str, Any]) -> str:
        await asyncio.sleep(60)
        return "never"

    source = FunctionTools(reads=("quick", "slow"), quick=lambda _: "done", slow=slow)
    provider = ScriptedProvider([calls("quick", "slow")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        events = []
        async for event in session.send("go"):
            events.append(event)
            if isinstance(event, ToolFinished):
                session.cancel(why)
        assert [r.text for r in results(session)] == ["done", result]
        assert any(isinstance(e, Notice) and "Stopped. What the tools returned is kept" in e.text for e in events)
        assert len(provider.requests) == 1
        await turn(session)
        assert well_formed(provider.requests[-1])
        assert workspace.store.messages(session.id) == list(session.messages)


async def test_cancelling_when_the_tools_are_done_and_the_next_request_is_measured_does_not_say_to_retry(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider([calls("quick")])
    async with open_workspace(
        tmp_path, provider, tools=FunctionTools(reads=("quick",), quick=lambda _: "done")
    ) as workspace:
        session = await workspace.new_session()
        events: list[object] = []
        async for event in session.send("go"):
            events.append(event)
            if isinstance(event, UsageChanged) and len([e for e in events if isinstance(e, UsageChanged)]) == 4:
                session.cancel()
        assert len(provider.requests) == 1
        assert [e.text for e in events if isinstance(e, Notice | TurnFailed)] == [STOPPED.text]


async def test_cancelling_while_a_call_asks_runs_nothing(tmp_path: Path) -> None:
    source = FunctionTools("gh", write=lambda _: "written", other=lambda _: "written")
    provider = ScriptedProvider([calls("write", "other")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        questions = []
        async for event in session.send("go"):
            if isinstance(event, ApprovalAsked):
                questions.append(event)
                session.cancel()
        session.tools.approve(questions[0].id, "once")  # too late
        assert source.ran == []
        assert len(questions) == 1
        assert all("Cancelled" in r.text and r.is_error for r in results(session))
        await turn(session, lambda _: "once")
        assert well_formed(provider.requests[-1])


async def test_cancelling_before_the_first_call_runs_nothing(tmp_path: Path) -> None:
    source = FunctionTools(reads=("look",), look=lambda _: "seen")
    provider = ScriptedProvider([calls("look")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        async for event in session.send("go"):
            if isinstance(event, ReplyFinished):
                session.cancel()
        assert source.ran == []
        await turn(session)
        assert well_formed(provider.requests[-1])


async def test_a_program_killed_between_call_and_result_goes_on(tmp_path: Path) -> None:
    """The store then ends with a call that nothing answers."""
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        session = await workspace.new_session()
        await turn(session)
        lost = assistant(ToolCall("c9", "fetch", '{"id": 1}'), id="f" * 24, model="m", provider="scripted")
        workspace.store.add_message(session.id, lost)
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        session = await workspace.resume()
        await turn(session)
        assert well_formed(provider.requests[-1])
        sent = [p for m in provider.requests[-1].messages for p in m.parts if isinstance(p, ToolResult)]
        assert [(part.call_id, part.text) for part in sent] == [("c9", NO_RESULT)]
        assert results(session) == []  # the store is not repaired


async def test_a_program_killed_while_tools_run_has_kept_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept when it is there, not when somebody takes the events: here nobody does, a question waits."""
    source = FunctionTools("gh", reads=("quick",), quick=lambda _: "done", write=lambda _: "written")
    provider = ScriptedProvider([calls("write", "quick", "write", "nothing")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        async for event in session.send("go"):
            if isinstance(event, ApprovalAsked):
                async with asyncio.timeout(20):
                    while True:
                        last = workspace.store.messages(session.id)[-1]
                        if len(last.parts) == 2:
                            break
                        await asyncio.sleep(0.01)
                assert (last.role, last.status) == ("tool", "streaming")
                monkeypatch.setattr(Liveness, "is_alive", lambda *_: False)  # what a kill looks like afterwards
                async with open_workspace(tmp_path, provider, tools=source) as later:
                    again = await later.resume()
                    assert again.messages[-1].status == "interrupted"
                    await turn(again)
                    assert again.messages[-1].text == "Certainly."
                monkeypatch.undo()
                session.cancel()
        request = provider.requests[-1]
        assert well_formed(request)
        texts = {p.call_id: p.text for m in request.messages for p in m.parts if isinstance(p, ToolResult)}
        assert texts == {
            "c0": NO_RESULT, "c1": "done", "c2": NO_RESULT,
            "c3": "There is no tool named 'nothing'. The tools are: quick, write.",
        }  # fmt: skip
        answered = session.messages[-1]
        assert [part.text for part in answered.parts if isinstance(part, ToolResult)][1] == "done"
        assert [part.call_id for part in answered.parts if isinstance(part, ToolResult)] == ["c0", "c1", "c2", "c3"]


async def test_what_comes_of_a_call_after_the_step_has_ended_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tool_step, "LAST_WAIT", 0.01)
    released = asyncio.Event()
    tasks: list[asyncio.Task[Any] | None] = []

    async def stubborn(_: Mapping[str, Any]) -> str:
        tasks.append(asyncio.current_task())
        while not released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await released.wait()
        return "late"

    source = FunctionTools(reads=("quick", "slow"), slow=stubborn, quick=lambda _: "one")
    async with open_workspace(tmp_path, ScriptedProvider([calls("slow", "quick")]), tools=source) as workspace:
        session = await workspace.new_session()
        finished = []
        async for event in session.send("go"):
            if isinstance(event, ToolFinished):
                finished.append(event.name)
                session.cancel()
        answered = session.messages[-1]
        released.set()
        await asyncio.wait([task for task in tasks if task is not None])
        assert finished == ["quick"]
        assert [result.text for result in results(session)] == [CANCELLED.text, "one"]
        assert workspace.store.messages(session.id)[-1] == answered
        assert "not saved" not in caplog.text
