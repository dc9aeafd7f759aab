"""Going from one conversation to another: the list, names, deletion, the reader's place, the prompt that comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import cast

import pytest

from tests.fakes import FakeInfo, FakeSession, FakeWorkspace, assistant, fake_settings, make_usage, user
from tests.screens.conftest import Running, running
from tui.chat.conversation.events import (
    ReplyDelta,
    ReplyFinished,
    ReplyStarted,
    RetryScheduled,
    SessionEvent,
    TurnFailed,
    UsageChanged,
)
from tui.chat.turn.session import ChatSession
from tui.context.usage.usage import ContextUsage

INFOS = (
    FakeInfo("s7", "refactor the parser", updated_at=3.0),
    FakeInfo("s8", "why is the build slow", updated_at=2.0, parent="s7"),
    FakeInfo("s9", "a recipe", updated_at=1.0),
)


async def listed(run: Running) -> None:
    await run.press("ctrl+r")
    await run.shows("Conversations", "refactor the parser", "↳ why is the build slow")


@pytest.mark.slow
async def test_a_conversation_of_the_list_is_renamed() -> None:
    async with running(FakeWorkspace(infos=INFOS)) as run:
        await listed(run)
        await run.press("down", "ctrl+r")
        await run.shows("New title", "why is the build slow")
        await run.press("ctrl+u", *"the slow build", "enter")
        await run.shows("Conversations", "↳ the slow build")
        await run.press("ctrl+r", "x", "escape")
        await run.shows("Conversations", "↳ the slow build")
        await run.press("enter")
        await run.until(lambda: run.session.id == "s8")


async def test_the_open_conversation_is_renamed_in_its_title_too() -> None:
    workspace = FakeWorkspace(infos=INFOS, session=FakeSession(id="s7", title="refactor the parser"))
    async with running(workspace) as run:
        await listed(run)
        await run.press("ctrl+r", "ctrl+u", *"parser", "enter", "escape")
        await run.until(lambda: run.session.title == "parser")
        await run.shows("parser")


async def test_a_conversation_is_deleted_from_the_list_and_brought_back() -> None:
    async with running(FakeWorkspace(infos=INFOS)) as run:
        await listed(run)
        await run.press("down", "ctrl+d")
        await run.until(lambda: run.workspace.gone == ["s8"])
        await run.shows("^z bring back")
        await run.press("ctrl+d")
        await run.until(lambda: run.workspace.gone == ["s8", "s9"])
        await run.press("ctrl+z", "ctrl+z", "ctrl+z")
        await run.until(lambda: run.workspace.gone == [])
        await run.shows("↳ why is the build slow", "a recipe")


@pytest.mark.slow
async def test_the_open_conversation_is_not_deleted_from_the_list() -> None:
    async with running(FakeWorkspace(infos=INFOS, session=FakeSession(id="s7"))) as run:
        await listed(run)
        await run.press("ctrl+d")
        await run.shows("/delete takes it away")
        assert run.workspace.gone == []


async def test_each_conversation_keeps_the_readers_place() -> None:
    messages = [user(f"line {number}", f"m{number:03}") for number in range(60)]
    async with running(FakeWorkspace(session=FakeSession(messages=messages))) as run:
        first, transcript = run.session, run.chat.transcript
        await run.press("pageup", "pageup")
        place = transcript.reader_place
        assert place is not None
        other = FakeSession(id="s2", messages=[user(f"other {number}", f"n{number:03}") for number in range(60)])
        await run.chat.attach(cast("ChatSession", other))
        await run.shows("other 59")
        await run.chat.attach(cast("ChatSession", first))
        assert transcript.reader_place == place
        await run.chat.attach(cast("ChatSession", other))
        assert transcript.reader_place is None


async def test_the_window_is_named_once_it_is_known() -> None:
    gate = asyncio.Event()

    class Slow(FakeSession):
        async def refresh_usage(self) -> ContextUsage:
            await gate.wait()
            return await super().refresh_usage()

    async with running(FakeWorkspace(session=Slow(usage=None))) as run:
        await run.shows("asking for its window")
        gate.set()
        await run.shows("200k token window")


async def held(session: FakeSession, text: str) -> AsyncIterator[SessionEvent]:
    reply = session.next_id()
    yield ReplyStarted(reply, session.provider, session.model)
    await session.pause()
    if not session.cancelled:
        yield ReplyDelta(reply, "text", "so")
    yield ReplyFinished(assistant("so", reply))


async def test_esc_before_anything_arrived_gives_the_prompt_back_to_be_sent_in_its_place() -> None:
    session = FakeSession(script=held, gate=asyncio.Event())
    async with running(FakeWorkspace(session=session)) as run:
        await run.type("a qestion")
        await run.press("enter")
        await run.shows("answering")
        await run.press("escape")
        await run.until(lambda: not run.chat.turns.busy)
        assert run.chat.composer.value == "a qestion"
        await run.shows("Stopped before the answer began")
        asked = session.messages[0].id
        await run.press("enter")
        await run.until(lambda: len(session.sent) == 2)
        assert session.log == [f"rewind {asked}"]


async def test_a_second_esc_lets_go_of_it() -> None:
    session = FakeSession(script=held, gate=asyncio.Event())
    async with running(FakeWorkspace(session=session)) as run:
        await run.type("a question")
        await run.press("enter")
        await run.shows("answering")
        await run.press("escape")
        await run.until(lambda: not run.chat.turns.busy)
        await run.press("escape")
        assert run.chat.composer.value == ""
        await run.type("another")
        await run.press("enter")
        await run.until(lambda: len(session.sent) == 2)
        assert session.log == []


@pytest.mark.slow
async def test_once_something_arrived_esc_leaves_the_prompt_empty() -> None:
    session = FakeSession(gate=asyncio.Event())
    async with running(FakeWorkspace(session=session)) as run:
        await run.type("a question")
        await run.press("enter")
        await run.until(lambda: run.chat.turns._asked is None and run.chat.turns.busy)
        await run.press("escape")
        await run.until(lambda: not run.chat.turns.busy)
        assert run.chat.composer.value == ""


@pytest.mark.slow
async def test_a_retry_forgets_the_message_that_was_to_be_replaced() -> None:
    messages = [user("one", "m1"), assistant("answer", "m2")]
    async with running(FakeWorkspace(session=FakeSession(messages=messages))) as run:
        await run.press("alt+up", "e")
        await run.until(lambda: run.chat.turns.rewind_to == "m1")
        await run.command("/retry")
        await run.until(lambda: run.session.log == ["retry"] and not run.chat.turns.busy)
        await run.type("next")
        await run.press("enter")
        await run.until(lambda: run.session.sent == ["next"])
        assert run.session.log == ["retry"]


async def test_context_follows_the_numbers_while_an_answer_arrives() -> None:
    async def growing(session: FakeSession, text: str) -> AsyncIterator[SessionEvent]:
        session.usage = make_usage(60_000)
        yield UsageChanged(session.usage)
        await session.pause()
        session.usage = make_usage(70_000)
        yield UsageChanged(session.usage)

    session = FakeSession(script=growing, gate=asyncio.Event())
    async with running(FakeWorkspace(session=session)) as run:
        await run.press("f2")
        await run.shows("52,100 / 200,000")
        run.chat.turns.ask("go on")
        await run.shows("60,000 / 200,000")
        await run.press("down", "down")
        assert session.gate is not None
        session.gate.set()
        await run.shows("70,120 / 200,000")


async def test_the_keys_up_and_down_of_the_prompt_can_be_changed() -> None:
    settings = fake_settings(keys={"composer.up": "ctrl+up"})
    async with running(FakeWorkspace(prompts=["earlier"]), settings=settings) as run:
        await run.press("up")
        assert run.chat.composer.value == ""
        await run.press("ctrl+up")
        await run.until(lambda: run.chat.composer.value == "earlier")


async def test_attempts_that_came_to_nothing_leave_one_error_on_screen() -> None:
    async def failing(session: FakeSession, text: str) -> AsyncIterator[SessionEvent]:
        for attempt in (1, 2, 3):
            reply = session.next_id()
            yield ReplyStarted(reply, session.provider, session.model)
            message = replace(assistant("", reply), parts=(), status="failed", error="529 overloaded")
            if attempt == 3:
                session.messages = [*session.messages, message]
            yield ReplyFinished(message)
            if attempt < 3:
                yield RetryScheduled(2.0, attempt, "529 overloaded")
                await session.pause()
        yield TurnFailed("529 overloaded. Your message is kept; /retry asks again.")

    session = FakeSession(script=failing, gate=asyncio.Event())
    async with running(FakeWorkspace(session=session)) as run:
        await run.type("hi")
        await run.press("enter")
        await run.shows("asking again in 2 s", "attempt 2 · 529 overloaded")
        assert "✗" not in run.text
        assert session.gate is not None
        session.gate.set()
        await run.shows("✗ 529 overloaded · /retry asks again")
        await run.until(lambda: not run.chat.turns.busy)
        assert run.text.count("529") == 1
        assert run.text.count("claude-x\n") == 2  # the title and one reply


async def test_a_draft_goes_along_where_there_is_none_and_else_stays_with_its_conversation() -> None:
    first = FakeSession(messages=[user("one")])
    async with running(FakeWorkspace(session=first)) as run:
        await run.type("half a thought")
        empty = FakeSession(id="s2")
        await run.chat.attach(cast("ChatSession", empty))
        assert run.chat.composer.value == "half a thought"
        await run.until(lambda: (first.draft, empty.draft) == ("", "half a thought"))
        written = FakeSession(id="s3", draft="another thought")
        await run.chat.attach(cast("ChatSession", written))
        assert run.chat.composer.value == "another thought"
        assert empty.draft == "half a thought"
        await run.chat.attach(cast("ChatSession", empty))
        assert run.chat.composer.value == "half a thought"
        assert written.draft == "another thought"
