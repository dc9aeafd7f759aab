from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chat.fakes import FakeWorkspace, ScriptedProvider, answer, drain, open_workspace
from tests.messages import assistant, tool, user
from tui.chat.interchange.fork import forked_records
from tui.chat.store.database import StoreError
from tui.chat.store.store import Record
from tui.chat.turn.session import ChatSession
from tui.errors import ExpectedError
from tui.messages import Attachment, Message, ToolCall, ToolResult

WORDS = "The quick brown fox jumps over the lazy dog. " * 8


async def three_turns(workspace: FakeWorkspace) -> ChatSession:
    session = await workspace.new_session()
    for number in range(3):
        await drain(session.send(f"{number}: {WORDS}"))
    return session


async def test_a_fork_is_a_session_of_its_own_with_the_history_up_to_the_message(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await three_turns(workspace)
        fork = await workspace.fork(session.id, session.messages[3].id)
        assert list(fork.messages) == list(session.messages[:4])
        assert (fork.conversation.info.title, fork.conversation.info.draft) == (session.conversation.info.title, "")
        info = workspace.store.session(fork.id)
        assert info is not None
        assert (info.parent, info.messages) == (session.id, 4)
        await drain(fork.send("another way"))
        assert len(fork.messages) == 6
        assert len(workspace.store.messages(session.id)) == 6
        assert workspace.store.messages(session.id) == list(session.messages)


@pytest.mark.parametrize("at", [1, 2, 3])
async def test_measurements_hold_in_a_fork_without_a_call(tmp_path: Path, at: int) -> None:
    """A reply's fork is measured like the reply was; a fork of a message that was sent, by what it was sent in."""
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        totals = []
        for number in range(3):
            await drain(session.send(f"{number}: {WORDS}"))
            assert session.usage is not None
            totals.append(session.usage.total)
        inputs = [m.usage.input_total for m in session.messages if m.usage is not None]
        fork = await workspace.fork(session.id, session.messages[at].id)
        usage = await fork.refresh_usage()
        assert usage.source == "exact"
        assert usage.total == (totals[at // 2] if at % 2 else inputs[at // 2])
        assert len(provider.requests) == 3


async def test_what_is_written_in_a_fork_is_estimated_on_a_measured_prefix(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await three_turns(workspace)
        fork = await workspace.fork(session.id, session.messages[1].id)
        await drain(fork.send("something else"))
        row = workspace.services.calls.rows(fork.id)[0]
        first = workspace.services.calls.rows(session.id)[0]
        assert first.input_total is not None
        assert first.output_total is not None
        assert row.known == first.input_total + first.output_total
        assert [m.id for m in provider.requests[-1].messages[:2]] == [m.id for m in session.messages[:2]]


async def test_after_a_restart_a_fork_is_still_measured(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await three_turns(workspace)
        fork = await workspace.fork(session.id, session.messages[3].id)
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        again = await workspace.resume(fork.id)
        assert (await again.refresh_usage()).source == "exact"
        assert provider.requests == []


async def test_a_reply_set_aside_goes_out_again_in_its_fork(tmp_path: Path) -> None:
    provider = ScriptedProvider([answer("first"), answer("second")])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send("a question"))
        await drain(session.retry())
        assert [m.text for m in session.messages] == ["a question", "first", "second"]
        assert session.conversation.not_sent() == {session.messages[1].id: "set aside"}
        fork = await workspace.fork(session.id, session.messages[1].id)
        assert fork.conversation.not_sent() == {}
        later = await workspace.fork(session.id, session.messages[2].id)
        assert later.conversation.not_sent() == session.conversation.not_sent()


async def test_pins_and_instructions_hold_what_came_later_does_not(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(window=100_000)) as workspace:
        session = await three_turns(workspace)
        await drain(session.compact())
        ids = [m.id for m in session.messages]
        await session.pin(ids[0], True)
        await session.pin(ids[4], True)
        await session.exclude(ids[2], True)
        await session.set_system("Be brief.")
        fork = await workspace.fork(session.id, ids[3])
        assert fork.conversation.state.pinned == {ids[0]}
        assert fork.conversation.not_sent() == {ids[2]: "excluded"}
        assert fork.system == "Be brief."
        await drain(fork.send("on"))
        assert fork.conversation.not_sent() == {ids[2]: "excluded"}


async def test_a_compaction_is_in_the_fork_where_its_summary_is(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=100_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        for number in range(8):
            await drain(session.send(f"{number}: {WORDS * 5}"))
        await drain(session.compact())
        assert "compacted" in session.conversation.not_sent().values()
        await drain(session.send("and then"))
        last = session.messages[-1].id
        assert (await workspace.fork(session.id, last)).conversation.not_sent() == session.conversation.not_sent()
        assert (await workspace.fork(session.id, session.messages[5].id)).conversation.not_sent() == {}
        assert await session.undo() is not None
        assert "compacted" not in (await workspace.fork(session.id, last)).conversation.not_sent().values()


async def test_a_call_keeps_its_results(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await workspace.new_session()
        calls = (ToolCall("a", "fetch", "{}"), ToolCall("b", "fetch", "{}"))
        for message in (
            user("look", id="1"),
            Message("assistant", calls, id="2"),
            tool(ToolResult("a", "fetch", "A"), id="3"),
            tool(ToolResult("b", "fetch", "B"), id="4"),
            assistant("so", id="5"),
        ):
            workspace.store.add_message(session.id, message)
        for at in ("2", "3", "4"):
            assert [m.id for m in (await workspace.fork(session.id, at)).messages] == ["1", "2", "3", "4"]
        assert [m.id for m in (await workspace.fork(session.id, "1")).messages] == ["1"]


async def test_an_attachment_is_shared(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await workspace.new_session()
        workspace.store.put_blob("f" * 64, b"bytes")
        picture = Attachment("image", "a.png", "image/png", "f" * 64, 5)
        workspace.store.add_message(session.id, user(picture, id="1"))
        fork = await workspace.fork(session.id, "1")
        assert fork.messages[0].parts == (picture,)
        assert workspace.store.query("SELECT count(*) FROM blobs") == [(1,)]


async def test_the_model_of_the_session_goes_on_whatever_the_settings_say(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await three_turns(workspace)
        await session.set_model("scripted/small")
        fork = await workspace.fork(session.id, session.messages[1].id)
        assert fork.model == "small"


@pytest.mark.parametrize("broken", ["session", "message", "streaming"])
async def test_what_is_not_there_is_refused_and_nothing_is_made(tmp_path: Path, broken: str) -> None:
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await workspace.new_session()
        workspace.store.add_message(session.id, assistant(id="1", status="streaming"))
        with pytest.raises(ExpectedError, match="fork"):
            await workspace.fork("none" if broken == "session" else session.id, "x" if broken == "message" else "1")
        assert workspace.store.query("SELECT count(*) FROM sessions") == [(1,)]


async def test_a_fork_that_can_not_be_written_whole_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await three_turns(workspace)

        def full(_session: str) -> list[Record]:
            raise StoreError("the disk is full")

        monkeypatch.setattr(workspace.store, "records", full)
        with pytest.raises(StoreError):
            await workspace.fork(session.id, session.messages[1].id)
        assert workspace.store.query("SELECT count(*) FROM sessions") == [(1,)]
        assert workspace.store.query("SELECT count(*) FROM messages") == [(6,)]


def record(ident: str, kind: str, **data: object) -> Record:
    return Record(ident, kind, 0.0, dict(data))


CASES: dict[str, tuple[Record, Callable[[list[Record]], bool]]] = {
    "trim before": (record("2", "trim", state={}), lambda copy: len(copy) == 1),
    "trim after": (record("4", "trim", state={}), lambda copy: not copy),
    "set aside before": (record("2", "set_aside", ids=["1", "9"]), lambda copy: copy[0].data["ids"] == ["1"]),
    "set aside with it": (record("2", "set_aside", ids=["1", "2"]), lambda copy: not copy),
    "set aside later": (record("4", "set_aside", ids=["1"]), lambda copy: not copy),
    "of others": (record("2", "set_aside", ids=["9"]), lambda copy: not copy),
    "restore of nothing": (record("2", "restore", record="0"), lambda copy: not copy),
    "undo of nothing": (record("2", "checkpoint", type="undo", compaction="0"), lambda copy: not copy),
    "summary elsewhere": (record("2", "checkpoint", type="compaction", id="c", summary="9"), lambda copy: not copy),
    "cleared results": (
        record("2", "checkpoint", type="compaction", id="c", summary=""),
        lambda copy: len(copy) == 1,
    ),
    "left out here": (record("9", "leave_out", message="1"), lambda copy: len(copy) == 1),
    "left out elsewhere": (record("9", "leave_out", message="9"), lambda copy: not copy),
    "memory": (record("9", "memory", files=[]), lambda copy: len(copy) == 1),
}


@pytest.mark.parametrize("case", CASES)
def test_which_records_hold_in_a_fork(case: str) -> None:
    case_record, holds = CASES[case]
    assert holds(forked_records([case_record], {"1", "2"}, "2", "3"))


def test_what_was_restored_or_undone_is_so_in_the_fork() -> None:
    records = [
        record("2", "set_aside", ids=["1"]),
        record("2a", "checkpoint", type="compaction", id="c", summary=""),
        record("8", "restore", record="2"),
        record("9", "checkpoint", type="undo", id="u", compaction="c"),
    ]
    assert forked_records(records, {"1", "2"}, "2", "3") == records


async def test_a_fork_is_named_in_the_list_and_the_other_keeps_its_name(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await three_turns(workspace)
        fork = await workspace.fork(session.id, session.messages[1].id)
        workspace.store.update_session(fork.id, title="another way")
        assert {info.id: info.title for info in await workspace.sessions()} == {
            session.id: session.conversation.info.title,
            fork.id: "another way",
        }


async def test_a_record_that_can_not_be_read_is_not_copied(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await three_turns(workspace)
        damaged = workspace.store.add_record(session.id, "set_aside", {})
        workspace.store.add_record(session.id, "restore", {"record": damaged.id})
        fork = await workspace.fork(session.id, session.messages[-1].id)
        assert workspace.store.records(fork.id) == []
