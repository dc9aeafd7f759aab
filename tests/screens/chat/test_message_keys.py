"""Letters while the conversation has the keys: commands where they are some, else the beginning of the next message."""

from __future__ import annotations

import pytest
from textual import events
from textual.binding import Binding

from tests.screens.conftest import running
from tests.screens.scenarios import Scenario, assistant, ident, user
from tui.screens.chat.message_actions import message_keys
from tui.screens.chat.screen import ChatScreen
from tui.widgets.composer import PromptArea


def scenario() -> Scenario:
    return Scenario(messages=[user("one", "m1"), assistant("two", "m2")])


async def test_what_is_typed_over_a_chosen_message_goes_to_the_prompt() -> None:
    async with running(scenario()) as run:
        await run.press("alt+up")
        await run.type("hello")  # e is a key of the message; not once a word has begun
        assert run.chat.composer.value == "hello"
        assert run.chat.transcript.cursor_id is None
        assert not run.session.conversation.not_sent() and not run.session.conversation.state.pinned
        assert "c copy" not in run.text
        run.chat.composer.clear()
        run.chat.transcript.focus()  # without a chosen message letters are no commands
        await run.type("every")
        assert run.chat.composer.value == "every"


@pytest.mark.slow
async def test_what_was_set_aside_can_be_neither_pinned_nor_left_out_and_says_why() -> None:
    async with running(scenario()) as run:
        await run.session.rewind(ident("m2"))
        await run.press("alt+up", "p")
        await run.shows("set aside when you went back")
        await run.shows("nothing to pin")
        await run.press("x")
        await run.shows("nothing to leave out")
        assert (run.session.conversation.not_sent(), run.session.conversation.state.pinned) == (
            {ident("m2"): "set aside"},
            frozenset(),
        )
        await run.press("escape")
        await run.command("/context")
        await run.press("m", "x")
        await run.shows("nothing to leave out")
        assert run.session.conversation.not_sent() == {ident("m2"): "set aside"}


@pytest.mark.slow
async def test_a_paste_over_a_chosen_message_goes_to_the_prompt() -> None:
    async with running(scenario()) as run:
        await run.press("alt+up")
        run.app.post_message(events.Paste("cry"))
        await run.until(lambda: run.chat.composer.value == "cry")


async def test_next_and_previous_hit_are_keys_during_a_search() -> None:
    async with running(scenario()) as run:
        await run.command("/find o")
        await run.shows("of 2")
        await run.press("tab", "n", "N")
        assert run.chat.composer.value == ""
        await run.press("escape", "tab")
        await run.type("no")
        assert run.chat.composer.value == "no"


@pytest.mark.slow
async def test_the_keys_are_shown_as_long_as_they_hold() -> None:
    async with running(scenario()) as run:
        await run.press("alt+up")
        await run.shows("c copy")
        await run.press("f2", "escape")
        await run.resize(60, 20)
        await run.shows("c copy  e edit  r retry  f fork  p pin  esc back")
        await run.pilot.click("PromptArea")
        await run.until(lambda: "c copy" not in run.text)


async def test_as_many_keys_as_fit_and_always_the_way_back() -> None:
    async with running(scenario()) as run:
        await run.press("alt+up")
        await run.shows("c copy   e edit   r retry   f fork   p pin   x leave out   y copy code   esc back")
        await run.resize(40, 20)
        await run.shows("c copy  e edit  r retry  esc back")


def test_only_keys_that_do_something_are_shown() -> None:
    assert [word for _, word, _ in message_keys(on_result=True, folds=True)][:3] == ["open", "unfold", "copy"]
    assert [word for _, word, _ in message_keys(on_result=False, folds=True)][:2] == ["unfold", "copy"]
    assert [word for _, word, _ in message_keys(on_result=True, folds=False)][:2] == ["open", "copy"]


async def test_a_key_puts_the_last_message_back_to_rephrase_it() -> None:
    async with running() as run:
        await run.type("hello there")
        await run.press("enter")
        await run.until(lambda: not run.chat.turns.busy and bool(run.session.messages))
        await run.press("f8")
        await run.until(lambda: run.chat.composer.value == "hello there")


def test_no_key_of_the_screen_is_taken_by_the_prompt() -> None:
    """The prompt has the focus: of two bindings without priority its own would win."""
    prompt = {key for node in PromptArea.__mro__ for key in _keys(node)}
    screen = {key for key, binding in _keys(ChatScreen).items() if not binding.priority} - {"escape"}
    assert screen & prompt == set()


def _keys(node: type) -> dict[str, Binding]:
    bindings = [binding for binding in vars(node).get("BINDINGS", ()) if isinstance(binding, Binding)]
    return {key.strip(): binding for binding in bindings for key in binding.key.split(",")}
