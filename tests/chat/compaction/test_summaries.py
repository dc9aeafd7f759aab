"""Summaries that a person sees before a compaction is made, and changes afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.chat.fakes import FakeWorkspace, ScriptedProvider, answer, converse, drain, open_workspace, real_tokens
from tui.chat.compaction.compactor import CurrentSummary
from tui.chat.compaction.summarise import HEADER, SummaryFailedError
from tui.chat.turn.session import ChatSession
from tui.context.reduction.compaction import CompactionRefusedError
from tui.messages import Request
from tui.providers.base import TextDelta

LONG = "The keeper counts the boats in the harbour, and writes the number into the book with the red spine. " * 10


def summary_calls(provider: ScriptedProvider) -> list[Request]:
    return [request for request in provider.requests if request.messages[-1].id == "summary-request"]


async def conversation_of(workspace: FakeWorkspace, turns: int = 8) -> ChatSession:
    session = await workspace.new_session()
    await converse(session, turns, LONG)
    return session


async def compacted(workspace: FakeWorkspace, text: str = "They spoke of boats.") -> tuple[ChatSession, CurrentSummary]:
    session = await conversation_of(workspace)
    await (await session.compactor.draft_summary()).accept(text)
    current = session.compactor.current_summary()
    assert current is not None
    return session, current


def first_text(session: ChatSession) -> str:
    return session.conversation.request().messages[0].text


async def test_a_draft_changes_nothing_and_what_is_accepted_is_what_was_written(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await conversation_of(workspace)
        before = await session.refresh_usage()
        stamp, request = session.conversation.stamp, session.conversation.request()
        provider.script = [answer("They spoke of boats.")]
        draft = await session.compactor.draft_summary("mind the gulls")
        assert draft.text == "They spoke of boats."
        assert "mind the gulls" in summary_calls(provider)[0].messages[-1].text
        assert (session.conversation.stamp, session.conversation.request()) == (stamp, request)

        written = "Boats and gulls, 9 of them, src/港.py. " * 3
        effect = await draft.measure(written)
        assert effect.problem == ""
        await draft.accept(written)
        assert draft.done is not None
        done, _ = draft.done
        assert (done.before, done.after) == (before.total, effect.after) == (effect.before, effect.after)
        assert (await session.refresh_usage()).total == done.after
        assert effect.before - effect.replaced + effect.summary == effect.after
        assert first_text(session) == f"{HEADER}\n\n{written.strip()}"
        await drain(session.send("on"))
        assert "Boats and gulls" in provider.requests[-1].messages[0].text
        rows = workspace.services.calls.rows(session.id)
        assert [row.kind for row in rows].count("compaction") == 1


async def test_measuring_follows_the_text_by_the_same_numbers(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(window=20_000)) as workspace:
        session = await conversation_of(workspace)
        draft = await session.compactor.draft_summary()
        effects = [await draft.measure("word " * count) for count in (10, 400)]
        grown = real_tokens(Request("t", "m", (session.compactor.summary_message("word " * 400),))) - real_tokens(
            Request("t", "m", (session.compactor.summary_message("word " * 10),))
        )
        assert effects[1].after - effects[0].after == pytest.approx(grown, rel=0.1)
        assert effects[1].summary - effects[0].summary == pytest.approx(grown, rel=0.1)
        assert effects[1].replaced == pytest.approx(effects[0].replaced, abs=15)


@pytest.mark.parametrize(
    ("text", "words"),
    [("  \n", "empty"), (LONG * 6, "hardly help"), (LONG * 80, "hardly help")],
    ids=["nothing", "as long", "much longer"],
)
async def test_what_no_compaction_may_be_is_refused_and_nothing_is_changed(
    tmp_path: Path, text: str, words: str
) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(window=20_000)) as workspace:
        session = await conversation_of(workspace)
        draft = await session.compactor.draft_summary()
        stamp = session.conversation.stamp
        assert (await draft.measure(text)).problem
        with pytest.raises(CompactionRefusedError, match=words):
            await draft.accept(text)
        assert session.conversation.stamp == stamp


async def test_a_draft_of_a_conversation_that_went_on_is_refused(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(window=20_000)) as workspace:
        session = await conversation_of(workspace)
        draft = await session.compactor.draft_summary()
        await drain(session.send("one more thing"))
        with pytest.raises(CompactionRefusedError, match="gone on"):
            await draft.accept(draft.text)


async def test_a_draft_can_be_cancelled_and_of_nothing_there_is_none(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send("hi"))
        with pytest.raises(CompactionRefusedError, match="nothing older"):
            await session.compactor.draft_summary()
        await converse(session, 8, LONG)
        provider.script = [[30.0]]
        provider.requested.clear()
        draft = asyncio.create_task(session.compactor.draft_summary())
        await provider.requested.wait()
        running = [session.running]
        session.cancel()
        with pytest.raises(SummaryFailedError, match="cancelled"):
            await draft
        assert [*running, session.running] == [True, False]
        assert provider.closed == len(provider.requests)


async def test_a_summary_that_was_stopped_is_priced_by_what_arrived(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await conversation_of(workspace)
        provider.script = [[TextDelta("A summary that begins well"), 30.0]]
        provider.requested.clear()
        draft = asyncio.create_task(session.compactor.draft_summary())
        await provider.requested.wait()
        session.cancel()
        with pytest.raises(SummaryFailedError, match="cancelled"):
            await draft
        row = workspace.services.calls.rows(session.id)[-1]
        assert (row.kind, row.usage_source, row.status) == ("compaction", "estimated", "failed")
        assert row.input_total == pytest.approx(real_tokens(provider.requests[-1]), rel=0.1)
        assert row.output_total == 5


async def test_a_draft_cancelled_before_the_call_makes_none(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await conversation_of(workspace)
        draft = asyncio.create_task(session.compactor.draft_summary())
        await asyncio.sleep(0)
        assert session.running
        session.cancel()
        with pytest.raises(SummaryFailedError, match="cancelled"):
            await draft
        assert summary_calls(provider) == []


async def test_a_task_that_is_cancelled_is_not_taken_for_the_persons_wish(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await conversation_of(workspace)
        provider.script = [[30.0]]
        provider.requested.clear()
        draft = asyncio.create_task(session.compactor.draft_summary())
        await provider.requested.wait()
        draft.cancel()
        with pytest.raises(asyncio.CancelledError):
            await draft


async def test_of_several_compactions_the_newest_summary_is_the_one_in_force(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(window=20_000)) as workspace:
        session, first = await compacted(workspace)
        await drain(session.send(f"on {LONG}"))
        await (await session.compactor.draft_summary()).accept("And then of gulls.")
        assert session.compactor.current_summary(first.message.id) is None
        second = session.compactor.current_summary()
        assert second is not None
        assert second.text == "And then of gulls."
        await session.pin(second.message.id, True)  # stays beside the next one
        await converse(session, 3, LONG)
        await (await session.compactor.draft_summary()).accept("And then of sails.")
        assert sum(m.kind == "summary" for m in session.conversation.request().messages) == 2
        newest = session.compactor.current_summary()
        assert newest is not None
        assert newest.text == "And then of sails."


async def test_edits_are_taken_back_level_by_level_also_after_restarts(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    sizes: list[int] = []
    async with open_workspace(tmp_path, provider) as workspace:
        session, current = await compacted(workspace)
        whole = session.messages[0].text.strip()
        sizes.append((await session.refresh_usage()).total)
        for text in ("Boats, and 9 gulls.", "Boats, 9 gulls and a very long word: " + "港" * 60):
            await current.accept(text)
            assert current.done is not None
            edit, message = current.done
            sizes.append((await session.refresh_usage()).total)
            assert (edit.before, edit.after) == (sizes[-2], sizes[-1])
            assert session.messages[-1] is message
            in_force = session.compactor.current_summary()
            assert in_force is not None
            assert in_force.text == text
            current = in_force
        usage = session.usage
        assert usage is not None
        assert usage.basis.compactions == 1
        await drain(session.send("on"))  # the edited one goes out, and is measured
        assert "港" in provider.requests[-1].messages[0].text
        assert session.usage is not None
        assert session.usage.basis.last_input is not None
    texts: list[str] = []
    for _ in range(3):
        async with open_workspace(tmp_path, provider) as workspace:
            session = await workspace.resume()
            line = await session.undo()
            assert line is not None
            assert line.startswith("Undone: Edited" if len(texts) < 2 else "Undone: Compacted")
            texts.append(first_text(session))
    assert [text.removeprefix(HEADER).strip() for text in texts] == [
        "Boats, and 9 gulls.",
        "They spoke of boats.",
        whole,
    ]
    async with open_workspace(tmp_path, provider) as workspace:
        assert await (await workspace.resume()).undo() is None


async def test_only_the_summary_in_force_can_be_edited(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(window=20_000)) as workspace:
        session, current = await compacted(workspace)
        assert session.compactor.current_summary(current.message.id) is not None
        assert session.compactor.current_summary(session.messages[0].id) is None
        await current.accept("Boats, and 9 gulls.")
        assert session.compactor.current_summary(current.message.id) is None
        with pytest.raises(CompactionRefusedError, match="replaced or undone"):
            await current.accept("other")
        with pytest.raises(CompactionRefusedError, match="empty"):
            in_force = session.compactor.current_summary()
            assert in_force is not None
            await in_force.accept(" ")
        await session.undo()
        await session.undo()
        assert session.compactor.current_summary() is None


async def test_an_edit_that_leaves_no_room_is_refused(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(window=20_000)) as workspace:
        session, current = await compacted(workspace)
        effect = await current.measure(LONG * 60)
        assert "too long" in effect.problem
        with pytest.raises(CompactionRefusedError, match="too long"):
            await current.accept(LONG * 60)
        in_force = session.compactor.current_summary()
        assert in_force is not None
        assert (in_force.record, in_force.message) == (current.record, current.message)


async def test_what_a_person_writes_outlives_the_program_until_it_is_forgotten(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send("hi"))
        assert await session.compactor.saved_draft() == ""
        await session.compactor.save_draft("Boats, 港")
    async with open_workspace(tmp_path, provider) as workspace:
        assert await (await workspace.new_session()).compactor.saved_draft() == ""
        session = await workspace.resume()
        assert await session.compactor.saved_draft() == "Boats, 港"
        await session.compactor.save_draft("")
        assert await session.compactor.saved_draft() == ""


async def test_what_was_compacted_is_found_and_so_is_the_summary(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(window=20_000)) as workspace:
        session = await workspace.new_session()
        await drain(session.send(f"The cormorant sat on the crane. {LONG}"))
        await converse(session, 7, LONG)
        await (await session.compactor.draft_summary()).accept("They spoke of a kittiwake.")
        assert session.conversation.not_sent()[session.messages[0].id] == "compacted"
        other = await workspace.new_session()
        await drain(other.send("A heron."))
        for word in ("cormorant", "kittiwake"):
            assert [info.id for info in await workspace.sessions(word)] == [session.id]


async def test_edits_go_along_into_a_fork_and_through_an_export(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session, current = await compacted(workspace)
        await current.accept("Boats, and 9 gulls.")
        await drain(session.send("on"))
        fork = await workspace.fork(session.id, session.messages[-1].id)
        await session.export(tmp_path / "talk.jsonl")
        info = (await workspace.import_file(tmp_path / "talk.jsonl", again=True)).info
        copy = await workspace.resume(info.id)
        for other in (fork, copy):
            in_force = other.compactor.current_summary()
            assert in_force is not None
            assert in_force.text == "Boats, and 9 gulls."
            assert other.conversation.request().messages == session.conversation.request().messages
            assert "Edited" in (await other.undo() or "")
            assert first_text(other).endswith("They spoke of boats.")
