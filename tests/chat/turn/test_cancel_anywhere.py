"""Every provider kind, over a real connection: stopped at each of the first 20 events and at the last.

What arrived is kept, in memory and in the store, and the next turn works.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import Answer as Script
from tests.chat.fakes import ScriptedProvider, answer, drain, open_workspace
from tests.chat.tool_calls.tool_calls import FunctionTools, calls, well_formed
from tests.providers.replay import Answer, replay_server, sse
from tui.chat.conversation.events import ReplyDelta, TurnFinished
from tui.chat.turn.session import ChatSession
from tui.chat.workspace import Workspace
from tui.config.settings import ModelSettings, ProviderSettings, Settings
from tui.messages import Message, Reasoning, Text

THOUGHT = [f"thought{number} " for number in range(8)]
WORDS = [f"word{number} " for number in range(16)]


def chat() -> list[dict[str, Any]]:
    deltas = [{"reasoning_content": text} for text in THOUGHT] + [{"content": text} for text in WORDS]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    end: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
    return [*chunks, *end, {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 40}}]


def messages() -> list[dict[str, Any]]:
    def block(index: int, kind: str, pieces: list[str]) -> list[dict[str, Any]]:
        return [
            {"type": "content_block_start", "index": index, "content_block": {"type": kind, kind: ""}},
            *(
                {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", kind: piece}}
                for piece in pieces
            ),
            {"type": "content_block_stop", "index": index},
        ]

    return [
        {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
        *block(0, "thinking", THOUGHT),
        *block(1, "text", WORDS),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 40}},
        {"type": "message_stop"},
    ]


def responses() -> list[dict[str, Any]]:
    def item(index: int, kind: str, delta: str, pieces: list[str]) -> list[dict[str, Any]]:
        return [
            {"type": "response.output_item.added", "output_index": index, "item": {"type": kind, "id": f"i{index}"}},
            *({"type": delta, "output_index": index, "delta": piece} for piece in pieces),
        ]

    return [
        {"type": "response.created", "response": {}},
        *item(0, "reasoning", "response.reasoning_summary_text.delta", THOUGHT),
        *item(1, "message", "response.output_text.delta", WORDS),
        {"type": "response.completed", "response": {"usage": {"input_tokens": 9, "output_tokens": 40}}},
    ]


KINDS = {"openai-compatible": chat, "anthropic": messages, "openai": responses}


def thought_and_text(reply: Message) -> tuple[str, str]:
    thought = "".join(part.text for part in reply.parts if isinstance(part, Reasoning))
    return thought, "".join(part.text for part in reply.parts if isinstance(part, Text))


async def stopped_after(session: ChatSession, events: int) -> tuple[Message, str, str]:
    """Send, and stop after so many pieces of the answer (0: at the last one). The reply, and what was seen of it."""
    thought, text, arrived = "", "", 0
    async for event in session.send("Go on."):
        if isinstance(event, ReplyDelta):
            arrived += 1
            thought, text = (
                thought + event.text * (event.kind == "reasoning"),
                text + event.text * (event.kind == "text"),
            )
            if arrived == (events or len(THOUGHT) + len(WORDS)):
                session.cancel()
    return session.messages[-1], thought, text


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_what_arrived_is_kept_and_the_next_turn_works(kind: str, tmp_path: Path) -> None:
    async with replay_server() as server:
        path = {"openai-compatible": "/v1/chat/completions", "anthropic": "/v1/messages", "openai": "/v1/responses"}[
            kind
        ]
        server.by_path[path] = Answer([sse(event, named=True) for event in KINDS[kind]()])
        settings = Settings(
            config_file=tmp_path / "config.toml",
            data_dir=tmp_path,
            log_dir=tmp_path,
            providers={"box": ProviderSettings(kind, f"{server.url}/v1")},
            models={"box/m": ModelSettings(window=200_000)},
        )
        workspace = await Workspace.open(settings)
        try:
            session = await workspace.new_session("box/m")
            for events in [*range(1, 21), 0]:
                reply, thought, text = await stopped_after(session, events)
                assert reply.role == "assistant" and reply.status == "cancelled"
                arrived = thought_and_text(reply)
                assert arrived[0].startswith(thought) and arrived[1].startswith(text) and (thought or text)
                assert workspace.store.messages(session.id)[-1] == reply
            async for _ in session.send("And now?"):
                pass
            last = session.messages[-1]
            assert last.status == "complete" and thought_and_text(last) == ("".join(THOUGHT), "".join(WORDS))
            assert last.usage is not None and last.usage.source == "provider"
            assert [m.text for m in session.messages if m.role == "user"] == ["Go on."] * 21 + ["And now?"]
        finally:
            await workspace.close()


async def test_at_any_moment_of_a_turn_memory_and_store_say_the_same(tmp_path: Path) -> None:
    """Cancelled after so many turns of the event loop, wherever it is then: measuring, sending, running a tool."""
    script: list[Script] = []
    source = FunctionTools(reads=("look",), look=lambda _: "seen")
    provider = ScriptedProvider(script)
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        statuses: set[str] = set()
        for moment in [*range(0, 40, 2), *range(40, 400, 20)]:
            script[:] = [calls("look"), answer("Seen. " * 4)]
            turn = asyncio.create_task(drain(session.send(f"Look, {moment}.")))
            for _ in range(moment):
                await asyncio.sleep(0)
            session.cancel()
            events = await turn
            assert isinstance(events[-1], TurnFinished) and not session.running
            assert workspace.store.messages(session.id) == list(session.messages)
            assert [record.id for record in workspace.store.records(session.id)] == [
                record.id for record in session.conversation._records
            ]
            assert well_formed(session.conversation.request())
            assert all(call.status != "pending" for call in workspace.services.calls.rows(session.id))
            statuses |= {message.status for message in session.messages}
        assert statuses <= {"complete", "cancelled"}
        script.clear()
        await drain(session.send("And now?"))
        assert session.messages[-1].status == "complete" and well_formed(provider.requests[-1])
