"""What a reader can do with one message, and with all of them."""

from __future__ import annotations

import webbrowser

import pytest
from textual.app import App

from tests.screens.conftest import running
from tests.screens.scenarios import SESSION, Scenario, assistant, ident, user
from tui.chat.workspace import Workspace
from tui.messages import Message, Reasoning, Text

CODE = "First:\n\n```python\nprint(1)\n```\n\nthen\n\n```sh\nls\n```\n"


def scenario() -> Scenario:
    messages = [user("one", "m1"), assistant(CODE, "m2"), user("two", "m3"), assistant("no code here", "m4")]
    return Scenario(messages=messages, title="a talk")


async def test_a_fork_is_opened_from_a_message_and_says_what_it_is() -> None:
    async with running(scenario()) as run:
        await run.press("alt+up", "alt+up", "alt+up", "f")
        await run.shows("This is a fork: what you write here leaves the other conversation as it is.")
        assert run.session.id != SESSION
        assert [message.id for message in run.session.messages] == [ident("m1"), ident("m2")]
        assert "two" not in run.text
        await run.type("on")
        assert run.chat.composer.value == "on"


@pytest.mark.slow
async def test_a_fork_of_a_question_says_how_it_is_answered() -> None:
    async with running(scenario(), size=(60, 9)) as run:  # the message before it fills the screen
        await run.press("alt+up", "alt+up", "f")
        await run.shows("/retry answers the")


async def test_a_fork_that_fails_is_said_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fork(_self: Workspace, _session_id: str, _message_id: str) -> None:
        raise OSError("no room")

    monkeypatch.setattr(Workspace, "fork", fork)
    async with running(scenario()) as run:
        await run.press("alt+up", "f")
        await run.shows("no room")
        await run.press("f")
        await run.until(lambda: run.text.count("no room") == 2)


@pytest.mark.slow
async def test_copies_say_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    monkeypatch.setattr("tui.chat.clipboard.copy_tool", lambda _environ: None)
    async with running(scenario()) as run:
        monkeypatch.setattr(App, "copy_to_clipboard", lambda _app, text: copied.append(text))
        await run.press("alt+up", "y")
        await run.shows("There is no code block in this message.")
        await run.press("alt+up", "alt+up", "y")
        await run.shows("code block 2 of 2")
        await run.press("y")
        await run.shows("code block 1 of 2")
        await run.press("c")
        await run.until(lambda: len(copied) == 3)
        assert copied == ["ls", "print(1)", CODE]


async def test_beginning_and_end_are_a_key_away_and_leave_the_draft_alone() -> None:
    messages = [user(f"message {number} of many", f"m{number:03}") for number in range(60)]
    async with running(Scenario(messages=messages), size=(60, 20)) as run:
        await run.type("draft")
        await run.press("ctrl+home")
        await run.shows("message 0 of many")
        await run.press("ctrl+end")
        await run.shows("message 59 of many")
        assert run.chat.composer.value == "draft" and run.chat.transcript.reader_place is None


@pytest.mark.slow
async def test_the_block_cursor_moves_both_ways_from_the_prompt() -> None:
    async with running(scenario()) as run:

        def chosen() -> str | None:
            return run.chat.transcript.cursor_id

        await run.press("alt+down")
        assert chosen() is None
        await run.press("alt+up", "alt+up")
        assert chosen() == ident("m3")
        run.chat.composer.focus_prompt()
        await run.press("alt+down")
        assert chosen() == ident("m4")
        await run.press("alt+down")
        assert chosen() is None
        await run.type("hello")
        assert run.chat.composer.value == "hello"


async def test_everything_is_unfolded_and_folded() -> None:
    thought = Message("assistant", (Reasoning("deep thoughts"), Text("so")), id=ident("m2"), provider="a", model="b")
    async with running(Scenario(messages=[user("q"), thought])) as run:
        assert "deep thoughts" not in run.text
        await run.press("f3")
        await run.shows("deep thoughts")
        await run.command("/fold")
        await run.until(lambda: "deep thoughts" not in run.text)


@pytest.mark.slow
async def test_times_are_shown_and_hidden_and_stay_for_the_next_conversation() -> None:
    async with running(scenario()) as run:
        await run.press("f4")
        await run.shows("1970")
        await run.press("alt+up", "f")
        await run.shows("This is a fork", "1970")
        await run.command("/times")
        await run.until(lambda: "1970" not in run.text)


async def test_a_link_is_opened_or_shown_where_no_browser_can_open(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def note(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", note)
    monkeypatch.delenv("BROWSER", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("SSH_CONNECTION", "here")
    async with running(scenario()) as run:
        await run.chat.message_actions.open_link("https://example.org/x")
        await run.shows("The link: https://example.org/x")
        assert opened == []
        monkeypatch.delenv("SSH_CONNECTION")
        await run.chat.message_actions.open_link("https://example.org/y")
        assert opened == ["https://example.org/y"]
        monkeypatch.setenv("TEXTUAL_DRIVER", "textual.drivers.web_driver:WebDriver")  # a page of `serve`
        monkeypatch.setattr(type(run.app), "open_url", lambda _app, url: opened.append(url))
        await run.chat.message_actions.open_link("https://example.org/z")
        assert opened[1:] == ["https://example.org/z"]
