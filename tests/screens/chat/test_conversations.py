"""Going from one conversation to another: the list, names, deletion, the reader's place, the prompt that comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.chat.fakes import Answer
from tests.screens.conftest import Running, running
from tests.screens.scenarios import EchoProvider, Scenario, assistant, ident, stored, user
from tests.usages import make_usage
from tui.chat.conversation.events import (
    SessionEvent,
    UsageChanged,
)
from tui.chat.turn.session import ChatSession
from tui.context.usage.usage import ContextUsage
from tui.providers.base import ProviderError

pytestmark = pytest.mark.slow  # the whole program on a screen, most of a second each

OTHERS = (
    stored("s7", "refactor the parser", updated_at=5.0),
    stored("s8", "why is the build slow", updated_at=4.0, parent="s7"),
    stored("s9", "a recipe", updated_at=3.0),
)


def others(run: Running) -> list[str]:
    """Ids of the listed conversations."""
    return [info.id for info in run.workspace.store.sessions() if info.messages]


async def listed(run: Running) -> None:
    await run.press("ctrl+r")
    await run.shows("Conversations", "refactor the parser", "↳ why is the build slow")


@pytest.mark.slow
async def test_a_conversation_of_the_list_is_renamed() -> None:
    async with running(Scenario(other=OTHERS)) as run:
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
    scenario = Scenario(messages=[user("hi")], title="the parser", other=OTHERS)
    async with running(scenario) as run:
        await listed(run)
        await run.type("the parser")
        await run.until(lambda: "a recipe" not in run.text)
        await run.press("down", "ctrl+r", "ctrl+u", *"parser", "enter", "escape")
        await run.until(lambda: run.session.conversation.info.title == "parser")
        await run.shows("parser")


async def test_a_conversation_is_deleted_from_the_list_and_brought_back() -> None:
    async with running(Scenario(other=OTHERS)) as run:
        await listed(run)
        await run.press("down", "ctrl+d")
        await run.until(lambda: others(run) == ["s7", "s9"])
        await run.shows("^z restore")
        await run.press("ctrl+d")
        await run.until(lambda: others(run) == ["s7"])
        await run.press("ctrl+z", "ctrl+z", "ctrl+z")
        await run.until(lambda: others(run) == ["s7", "s8", "s9"])
        await run.shows("↳ why is the build slow", "a recipe")


@pytest.mark.slow
async def test_the_open_conversation_is_not_deleted_from_the_list() -> None:
    async with running(Scenario(messages=[user("hi")], title="this one", other=OTHERS)) as run:
        await listed(run)
        await run.type("this one")
        await run.shows("● this one")
        await run.press("ctrl+d")
        await run.shows("/delete deletes it")
        assert len(others(run)) == 4


async def test_each_conversation_keeps_the_readers_place() -> None:
    messages = [user(f"line {number}", f"m{number:03}") for number in range(60)]
    async with running(Scenario(messages=messages, other=[stored("s2", "other", count=60)])) as run:
        first, transcript = run.session, run.chat.transcript
        await run.press("pageup", "pageup")
        place = transcript.reader_place
        assert place is not None
        other = await run.workspace.resume("s2")
        await run.chat.attach(other)
        await run.shows("other 59")
        await run.chat.attach(first)
        assert transcript.reader_place == place
        await run.chat.attach(other)
        assert transcript.reader_place is None


async def test_the_window_is_named_once_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = asyncio.Event()

    def begin(session: ChatSession) -> None:
        refresh = session.refresh_usage

        async def slow() -> ContextUsage:
            await gate.wait()
            return await refresh()

        monkeypatch.setattr(session, "refresh_usage", slow)

    async with running(Scenario(usage=None, begin=begin)) as run:
        await run.shows("asking for its window")
        gate.set()
        await run.shows("200k token window")


def held() -> Scenario:
    """Before anything of an answer has arrived, it has to wait."""
    return Scenario(server=EchoProvider(gate=asyncio.Event(), before=0))


async def test_esc_before_anything_arrived_gives_the_prompt_back_to_be_sent_in_its_place() -> None:
    async with running(held()) as run:
        await run.type("a qestion")
        await run.press("enter")
        await run.until(lambda: run.server.requested.is_set())
        await run.press("escape")
        await run.until(lambda: not run.chat.turns.busy)
        assert run.chat.composer.value == "a qestion"
        await run.shows("Stopped before the answer began")
        question = run.session.messages[0].id
        await run.press("enter")
        await run.until(lambda: len(run.sent) == 2)
        assert run.session.conversation.not_sent()[question] == "set aside"


async def test_a_second_esc_lets_go_of_it() -> None:
    async with running(held()) as run:
        await run.type("a question")
        await run.press("enter")
        await run.until(lambda: run.server.requested.is_set())
        await run.press("escape")
        await run.until(lambda: not run.chat.turns.busy)
        await run.press("escape")
        assert run.chat.composer.value == ""
        await run.type("another")
        await run.press("enter")
        await run.until(lambda: len(run.sent) == 2)
        assert run.session.messages[0].id not in run.session.conversation.not_sent()


@pytest.mark.slow
async def test_once_something_arrived_esc_leaves_the_prompt_empty() -> None:
    scenario = Scenario(server=EchoProvider(gate=asyncio.Event()))
    async with running(scenario) as run:
        await run.type("a question")
        await run.press("enter")
        await run.until(lambda: run.chat.turns._asked is None and run.chat.turns.busy)
        await run.press("escape")
        await run.until(lambda: not run.chat.turns.busy)
        assert run.chat.composer.value == ""


@pytest.mark.slow
async def test_a_retry_forgets_the_message_that_was_to_be_replaced() -> None:
    messages = [user("one", "m1"), assistant("answer", "m2")]
    async with running(Scenario(messages=messages)) as run:
        await run.press("alt+up", "e")
        await run.until(lambda: run.chat.turns.rewind_to == ident("m1"))
        await run.command("/retry")
        await run.until(lambda: len(run.server.requests) == 1)
        await run.idle()
        await run.type("next")
        await run.press("enter")
        await run.until(lambda: run.sent == ["next"])
        assert run.session.conversation.not_sent() == {ident("m2"): "set aside"}


async def test_context_follows_the_numbers_while_an_answer_arrives() -> None:
    gate = asyncio.Event()
    async with running() as run:

        async def growing() -> AsyncIterator[SessionEvent]:
            for total in (60_000, 70_000):
                run.session._meter.latest = usage = make_usage(total)
                yield UsageChanged(usage)
                await gate.wait()

        await run.press("f2")
        await run.shows("52,100 / 200,000")
        run.turn(growing())
        await run.shows("60,000 / 200,000")
        await run.press("down", "down")
        gate.set()
        await run.shows("70,000 / 200,000")


async def test_the_keys_up_and_down_of_the_prompt_can_be_changed() -> None:
    async with running(Scenario(prompts=["earlier"]), keys={"composer.up": "ctrl+up"}) as run:
        await run.press("up")
        assert run.chat.composer.value == ""
        await run.press("ctrl+up")
        await run.until(lambda: run.chat.composer.value == "earlier")


async def test_attempts_that_came_to_nothing_leave_one_error_on_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.chat.turn.recovery.MAX_WAITS", {"overloaded": 1})
    script: list[Answer] = [[ProviderError("overloaded", "529 overloaded", retry_after=2.0)] for _ in range(2)]
    async with running(Scenario(server=EchoProvider(script=script))) as run:
        await run.type("hi")
        await run.press("enter")
        await run.shows("asking again in 2 s", "attempt 2 · 529 overloaded")
        assert "✗" not in run.text
        await run.idle()
        await run.shows("✗ 529 overloaded")
        assert run.text.count("529") == 1
        assert run.text.count("claude-x\n") == 2  # the title and one reply


async def test_a_draft_goes_along_where_there_is_none_and_else_stays_with_its_conversation() -> None:
    other = [stored("s2", "second"), stored("s3", "third", draft="another thought")]
    async with running(Scenario(messages=[user("one")], other=other)) as run:
        first = run.session
        await run.type("half a thought")
        empty, written = await run.workspace.resume("s2"), await run.workspace.resume("s3")
        await run.chat.attach(empty)
        assert run.chat.composer.value == "half a thought"
        await run.until(
            lambda: (first.conversation.info.draft, empty.conversation.info.draft) == ("", "half a thought")
        )
        await run.chat.attach(written)
        assert run.chat.composer.value == "another thought"
        assert empty.conversation.info.draft == "half a thought"
        await run.chat.attach(empty)
        assert run.chat.composer.value == "half a thought"
        assert written.conversation.info.draft == "another thought"
