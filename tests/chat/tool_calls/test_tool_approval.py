"""Calls that ask: what was answered holds for as long as it says, and for nothing else."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import FakeWorkspace, ScriptedProvider, answer, open_workspace
from tests.chat.tool_calls.tool_calls import FunctionTools, calls, results, turn
from tui.chat.conversation.events import ApprovalAsked, Notice, ToolFinished
from tui.chat.runtime.services import APPROVALS
from tui.chat.store.database import StoreError
from tui.chat.turn.session import ChatSession
from tui.config.settings import ToolSettings
from tui.tools.approval import Decision
from tui.tools.files.builtin import BuiltInTools


@pytest.fixture
def writes() -> FunctionTools:
    return FunctionTools("gh", reads=("look",), write=lambda _: "written", look=lambda _: "seen")


async def ask_twice(workspace: FakeWorkspace, decision: Decision) -> tuple[int, ChatSession]:
    session = await workspace.new_session()
    questions = 0
    for _ in range(2):
        events = await turn(session, lambda _: decision)
        questions += sum(isinstance(e, ApprovalAsked) for e in events)
    return questions, session


@pytest.mark.parametrize(
    ("decision", "questions_first", "ran", "asked_later"),
    [("once", 2, 2, 1), ("session", 1, 2, 1), ("always", 1, 2, 0), ("no", 2, 0, 1), ("never", 1, 0, 0)],
)
async def test_what_was_answered_holds_as_long_as_it_says(
    tmp_path: Path, writes: FunctionTools, decision: Decision, questions_first: int, ran: int, asked_later: int
) -> None:
    provider = ScriptedProvider(fallback=lambda r: answer() if r.messages[-1].role == "tool" else calls("write"))
    async with open_workspace(tmp_path, provider, tools=writes) as workspace:
        questions, session = await ask_twice(workspace, decision)
        assert (questions, len(writes.ran)) == (questions_first, ran)
        assert all(result.is_error for result in results(session)) is (ran == 0)
    async with open_workspace(tmp_path, provider, tools=writes) as workspace:  # another run of the program
        later = await turn(await workspace.new_session(), lambda _: "no")
        assert sum(isinstance(e, ApprovalAsked) for e in later) == asked_later


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        ("no", "The person did not allow this call"),
        ("never", "The person's rules never allow this"),
    ],
)
async def test_the_model_is_told_why_a_call_did_not_run(
    tmp_path: Path, writes: FunctionTools, decision: Decision, told: str
) -> None:
    async with open_workspace(tmp_path, ScriptedProvider([calls("write")]), tools=writes) as workspace:
        session = await workspace.new_session()
        events = await turn(session, lambda _: decision)
        [result] = results(session)
        assert result.is_error and result.text.startswith(told)
        assert ToolFinished("c0", "write", 0.0, is_error=True) in events


@pytest.mark.parametrize(
    ("decision", "questions", "ran"),
    [("once", 2, 2), ("session", 1, 2), ("always", 1, 2), ("no", 2, 0), ("never", 1, 0)],
)
async def test_an_answer_holds_for_the_other_calls_of_the_same_reply(
    tmp_path: Path, decision: Decision, questions: int, ran: int
) -> None:
    source = FunctionTools("gh", write=lambda _: "written")
    provider = ScriptedProvider([calls("write", "write")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        events = await turn(session, lambda _: decision)
        assert sum(isinstance(event, ApprovalAsked) for event in events) == questions
        assert source.ran == ["write"] * ran
        assert len(results(session)) == 2


@pytest.mark.parametrize(("decision", "ran"), [("always", 2), ("never", 0)])
async def test_an_answer_that_a_full_disk_keeps_out_holds_for_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decision: Decision, ran: int
) -> None:
    def put_state(key: str, value: str | None) -> None:
        if key == APPROVALS:
            raise StoreError("the disk is full")
        put(key, value)

    source = FunctionTools("gh", write=lambda _: "written")
    provider = ScriptedProvider([calls("write", "write")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        put = workspace.store.put_state
        monkeypatch.setattr(workspace.store, "put_state", put_state)
        events = await turn(session, lambda _: decision)
        assert source.ran == ["write"] * ran
        assert [result.is_error for result in results(session)] == [ran == 0] * 2
        assert sum(isinstance(event, ApprovalAsked) for event in events) == 1
        assert [event.text for event in events if isinstance(event, Notice)] == [
            "the disk is full. Your answer holds until chatctx ends"
        ]
        assert not any("Cancelled" in result.text for result in results(session))


async def test_an_answer_given_in_another_running_program_holds_here_too(tmp_path: Path, writes: FunctionTools) -> None:
    provider = ScriptedProvider(fallback=lambda r: answer() if r.messages[-1].role == "tool" else calls("write"))
    async with (
        open_workspace(tmp_path, provider, tools=writes) as here,
        open_workspace(tmp_path, provider, tools=writes) as there,
    ):
        session = await here.new_session()
        await turn(session, lambda _: "once")
        await turn(await there.new_session(), lambda _: "never")
        events = await turn(session, lambda _: "once")
        assert not any(isinstance(event, ApprovalAsked) for event in events)
        assert [result.is_error for result in results(session)] == [False, True]


def _say(decision: Decision, _: ApprovalAsked) -> Decision:
    return decision


async def test_an_answer_for_a_file_that_holds_secrets_is_for_this_call_alone(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=hunter2")
    (tmp_path / "a.txt").write_text("alpha")
    requested = [
        calls(("search_files", '{"path": ".env", "pattern": "KEY"}')),
        calls(("read_file", '{"path": ".env"}')),
    ]
    replies = [reply for pair in (requested, requested) for one in pair for reply in (one, answer())]
    provider = ScriptedProvider([*replies, calls(("read_file", '{"path": "a.txt"}'))])
    async with open_workspace(tmp_path, provider, tools=BuiltInTools(tmp_path)) as workspace:
        session = await workspace.new_session()
        decisions: list[Decision] = ["never", "session", "always", "no"]
        for decision in decisions:
            events = await turn(session, partial(_say, decision))
            [question] = [event for event in events if isinstance(event, ApprovalAsked)]
            assert ".env probably holds keys" in question.why
        assert not any(isinstance(event, ApprovalAsked) for event in await turn(session))
        texts = [result.text for result in results(session)]
        assert ["hunter2" in text for text in texts] == [False, True, True, False, False]
        assert "alpha" in texts[-1]


async def test_what_only_reads_does_not_wait_for_an_answer(tmp_path: Path, writes: FunctionTools) -> None:
    provider = ScriptedProvider([calls("write", "look")])
    async with open_workspace(tmp_path, provider, tools=writes) as workspace:
        session = await workspace.new_session()
        events: dict[type, object] = {}
        async for event in session.send("go"):
            if isinstance(event, ApprovalAsked | ToolFinished):
                events[type(event)] = event
                question = events.get(ApprovalAsked)
                if isinstance(question, ApprovalAsked) and ToolFinished in events:
                    assert writes.ran in (["look"], ["look", "write"])
                    session.tools.approve(question.id, "once")
        assert [r.text for r in results(session)] == ["written", "seen"]


@pytest.mark.parametrize(
    ("rules", "questions", "ran"),
    [
        ({"write": "allow"}, 0, ["look", "write"]),
        ({"*": "ask"}, 2, ["look", "write"]),
        ({"write": "allow", "wr*": "never"}, 0, ["look"]),
        ({"*": "ask", "look": "allow"}, 1, ["look", "write"]),
    ],
)
async def test_rules_of_the_config_file(
    tmp_path: Path, writes: FunctionTools, rules: dict[str, Any], questions: int, ran: list[str]
) -> None:
    provider, settings = ScriptedProvider([calls("look", "write")]), ToolSettings(rules=rules)
    async with open_workspace(tmp_path, provider, tools=writes, tool_settings=settings) as workspace:
        events = await turn(await workspace.new_session(), lambda _: "once")
        assert sum(isinstance(e, ApprovalAsked) for e in events) == questions
        assert sorted(writes.ran) == ran


async def test_an_answer_does_not_hold_for_a_tool_that_says_something_else_of_itself(tmp_path: Path) -> None:
    source = FunctionTools("gh", write=lambda _: "written")
    provider = ScriptedProvider(fallback=lambda r: answer() if r.messages[-1].role == "tool" else calls("write"))
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        await turn(await workspace.new_session(), lambda _: "always")
    changed = FunctionTools("gh", write=lambda _: "written")
    changed.says = "Writes anywhere."
    async with open_workspace(tmp_path, provider, tools=changed) as workspace:
        session = await workspace.new_session()
        assert any(isinstance(e, ApprovalAsked) for e in await turn(session, lambda _: "no"))
        await session.tools.forget("write")
        assert await session.tools.remembered() == []
