"""Conversations that OpenAI compacted itself, while an older version let it: they open, and the messages go out."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.chat.fakes import ScriptedProvider, drain, of, open_workspace
from tests.messages import user
from tui.chat.conversation.events import CompactionFinished, TurnFailed
from tui.chat.conversation.history import RecordKind
from tui.chat.store.codec import load_events
from tui.context.reduction.records import CompactionRecord, checkpoint_to_json
from tui.providers.base import TextDelta

SEALED = [{"type": "sealed_summary", "provider": "openai", "model": "gpt-5.6", "encrypted": "gAAA" * 20}]


async def test_the_messages_go_out_and_the_history_says_so(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=64_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        for text in ("Parsers. " * n for n in range(90, 96)):
            await drain(session.send(text))
        chat = [m.id for m in session.messages]
        conversation = session.conversation
        summary = user("x", id=f"{chat[-1]}s", kind="summary")
        await conversation.add_message(summary)
        record = CompactionRecord("c1", 1.0, 900, 90, 3, chat[0], chat[2], summary.id)
        await conversation.add_record(RecordKind.CHECKPOINT, {**checkpoint_to_json(record), "answer": chat[3]})
        later = CompactionRecord("c2", 2.0, 900, 90, 4, summary.id, chat[4], "not there")
        await conversation.add_record(RecordKind.CHECKPOINT, checkpoint_to_json(later))
    with closing(sqlite3.connect(tmp_path / "chatctx.db")) as db:
        db.execute("DROP TRIGGER messages_are_append_only")
        db.execute("UPDATE messages SET parts = ? WHERE id = ?", (json.dumps(SEALED), summary.id))
        db.commit()
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.resume(session.id)
        assert [m.id for m in session.conversation.request().messages] == chat
        assert session.conversation.not_sent() == {summary.id: "set aside"}
        assert "no longer supported" in session.messages[-1].text
        assert session.conversation.in_force() == () and await session.undo() is None
        assert not of(TurnFailed, await drain(session.retry()))
        assert of(CompactionFinished, await drain(session.compact()))
        await session.export(tmp_path / "out.jsonl")
    async with open_workspace(tmp_path / "other", provider) as workspace:
        copy = (await workspace.import_file(tmp_path / "out.jsonl")).info
        assert len(workspace.store.messages(copy.id)) == len(session.messages)


def test_the_events_of_a_stream_that_died_are_read_without_it() -> None:
    events = [["Compacted", {"encrypted": "gAAA", "item_id": None}], ["TextDelta", {"text": "a", "block": None}]]
    assert load_events(json.dumps(events)) == [TextDelta("a")]
