"""A compaction by the real small model: every fact was put before it, whatever it makes of them; the report is true."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.chat.fakes import drain
from tests.messages import assistant, user
from tests.real.conftest import StartServer
from tests.real.test_conversation import session_on
from tui.chat.conversation.events import CompactionFinished, TurnFailed
from tui.chat.store.database import new_id
from tui.messages import Request
from tui.providers.base import StreamEvent
from tui.providers.dialects.openai_chat import OpenAIChat

FACTS = (
    "the module is src/hafen/boote_42.py",
    "the keeper is called Ágota Křížová",
    "the build fails with error E0382 at line 5127",
    "we decided on SQLite because the server is too far away",
    "the red sail costs 1,049.50 crowns",
    "港の船は九そうあります",
)


async def test_every_fact_is_put_before_the_model_and_the_report_is_true(
    llama_server: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = llama_server(window=512)
    since = server.mark()
    requests: list[Request] = []
    stream = OpenAIChat.stream

    def noting(self: OpenAIChat, request: Request) -> AsyncGenerator[StreamEvent, None]:
        requests.append(request)
        return stream(self, request)

    monkeypatch.setattr(OpenAIChat, "stream", noting)
    settings = {"reserve_output": 8, "compaction": "off", "preserve_recent_turns": 1}
    async with session_on(server, tmp_path, "openai-compatible", **settings) as session:
        for fact in (*FACTS, "nothing new"):
            question = user(f"Please note that {fact}.", id=new_id())
            answer = assistant("It is noted in the book.", id=new_id())
            await session.conversation.add_message(question)
            await session.conversation.add_message(answer)
        before = (await session.refresh_usage()).total
        [done] = [e for e in await drain(session.compact()) if isinstance(e, CompactionFinished)]
        assert len(requests) >= 2  # the source is larger than what one request takes beside its instructions
        sent = "\n".join(m.text for request in requests for m in request.messages)
        assert [fact for fact in FACTS if fact not in sent] == []
        usage = session.usage
        assert usage is not None
        assert (done.record.messages, done.record.before, done.record.after) == (2 * len(FACTS), before, usage.total)
        assert done.summary is not None
        assert not [e for e in await drain(session.send("And now?")) if isinstance(e, TurnFailed)]
        assert requests[-1].messages[0].text == done.summary.text
        stored = "\n".join(m.text for m in session.conversation.store.messages(session.id))
        assert [fact for fact in FACTS if fact not in stored] == []
    assert server.refusals(since) == []
