"""The chat screen: what is typed, what is shown, what is kept."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual import events
from textual.geometry import Size
from textual.worker import Worker

from tests.chat.fakes import answer
from tests.screens.conftest import SIZES, Running, running, wait_until
from tests.screens.scenarios import EchoProvider, Scenario, assistant, ident, long_scenario, opener, settings_in, user
from tests.usages import make_usage
from tui.app import ChatApp
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import ContextTrimmed, Notice, RetryScheduled, SessionEvent
from tui.chat.turn.session import ChatSession
from tui.chat.workspace import Workspace
from tui.context.usage.usage import ContextUsage
from tui.providers.base import ProviderError
from tui.screens.base import GuardedScreen, Panel
from tui.screens.chat import turns
from tui.screens.chat.screen import ChatScreen


async def test_a_message_is_answered_and_the_numbers_follow() -> None:
    async with running() as run:
        await run.type("hello there")
        await run.press("enter")
        await run.shows("hello there", "You said: hello there.")
        await run.until(lambda: not run.chat.turns.busy)
        assert run.sent == ["hello there"]
        assert run.chat.composer.value == ""
        for size in SIZES:
            await run.resize(*size)
            await run.shows("52.2k / 200k · 26 %")
            lines = run.text.splitlines()
            assert lines[0].startswith(" hello there ─")
            assert lines[-2].startswith(" › ask, or / for commands")
            assert all(len(line) <= size[0] for line in lines)
        assert run.workspace.store.prompts() == ["hello there"]  # for later runs


async def test_keys_and_messages_before_the_workspace_is_there_are_not_lost() -> None:
    gate = asyncio.Event()
    async with running(gate=gate, wait=False) as run:
        await run.type("first")
        await run.press("enter")
        await run.type("and a draft")
        await run.shows("queued  first", "› and a draft", "starting …")
        assert run.sent == []
        gate.set()
        await run.shows("You said: first.")
        assert run.chat.composer.value == "and a draft"
        assert "queued" not in run.text


@pytest.mark.slow
async def test_keys_before_the_prompt_is_there_are_not_lost(tmp_path: Path) -> None:
    class Hasty(ChatApp):
        def on_load(self) -> None:  # before there is a screen
            for key in "ahoy":
                self.post_message(events.Key(key, key))
            self.post_message(events.Paste(" there"))
            self.post_message(events.Key("enter", "\r"))
            self.post_message(events.Key("x", "x"))

    settings = settings_in(tmp_path)
    app = Hasty(settings, opener(Scenario(), settings))
    async with app.run_test() as pilot:
        run = Running(app, pilot, Scenario())
        await run.until(lambda: app.chat.session is not None and run.sent == ["ahoy there"])
        await run.until(lambda: app.chat.composer.value == "x")
        await app.chat.leave()


async def test_a_low_window_says_all_of_the_welcome() -> None:
    scenario = Scenario(provider="local", model="smol")
    async with running(scenario, size=(60, 12)) as run:
        await run.shows("smol", "enter sends", "/context", "/model", "/provider")


@pytest.mark.slow
@pytest.mark.parametrize("size", [(40, 12), (60, 20), (120, 40)])
async def test_a_long_draft_leaves_its_cursor_and_all_else_on_screen(size: tuple[int, int]) -> None:
    async with running(size=size) as run:
        run.chat.composer.value = "\n".join(f"line {number}" for number in range(14))
        await run.shows("line 13", "52.1k / 200k")
        run.chat.turns.waiting.extend(["first thing " * 9, "second"])
        run.chat.turns._show_queue()
        await run.pilot.pause()
        await run.shows("line 13", "52.1k / 200k", "queued  first thing")
        assert run.chat.transcript.size.height >= 1
        await run.resize(size[0] - 8, size[1])
        await run.until(lambda: run.chat.queue_list.size == Size(size[0] - 8 - 2, 2))


async def test_what_is_typed_meanwhile_does_not_replace_the_draft_of_last_time() -> None:
    gate = asyncio.Event()
    async with running(Scenario(draft="a long thought"), gate=gate, wait=False) as run:
        await run.type("new")
        gate.set()
        await run.shows("The up key brings back your last draft", "› new")
        await run.press("up")
        assert run.chat.composer.value == "a long thought"
        await run.press("down")
        assert run.chat.composer.value == "new"


async def test_an_empty_conversation_teaches() -> None:
    scenario = Scenario(provider="local", model="smol", usage=make_usage(120, 8_192, source="estimated"))
    async with running(scenario) as run:
        await run.shows("smol  8.2k token window", "It runs on this machine", "ask anything", "/context", "/model")
        await run.type("x")
        await run.press("enter")
        await run.shows("You said: x.")
        assert "ask anything" not in run.text


async def test_esc_stops_the_answer_and_keeps_what_arrived() -> None:
    scenario = Scenario(server=EchoProvider(gate=asyncio.Event()))
    async with running(scenario) as run:
        await run.type("go on")
        await run.press("enter")
        await run.shows("● answering", "esc stops")
        await run.press("escape")
        await run.until(lambda: not run.chat.turns.busy)
        assert run.session.messages[-1].status == "cancelled"
        assert "● answering" not in run.text


@pytest.mark.slow
async def test_messages_wait_for_the_running_turn_in_order() -> None:
    scenario = Scenario(server=EchoProvider(gate=asyncio.Event()))
    async with running(scenario) as run:
        for text in ("one", "two", "three"):
            await run.type(text)
            await run.press("enter")
        await run.shows("queued  two", "queued  three")
        assert run.sent == ["one"]
        assert run.server.gate is not None
        run.server.gate.set()
        await run.until(lambda: run.sent == ["one", "two", "three"] and not run.chat.turns.busy)
        await run.shows("You said: three.")
        assert "queued" not in run.text


async def test_the_last_waiting_message_comes_back_with_up_and_esc_brings_all() -> None:
    scenario = Scenario(server=EchoProvider(gate=asyncio.Event()))
    async with running(scenario) as run:
        for text in ("one", "two", "three", "four"):
            await run.type(text)
            await run.press("enter")
        await run.press("up")
        await run.until(lambda: run.chat.composer.value == "four")
        await run.press("escape")
        await run.until(lambda: not run.chat.turns.busy)
        assert run.chat.composer.value == "two\n\nthree\n\nfour"
        assert run.sent == ["one"]


async def test_a_failed_turn_says_so_and_does_not_send_what_waits() -> None:
    failing = [ProviderError("not_found", "The server can't be reached. Nothing was lost")]
    server = EchoProvider(script=[failing], gate=asyncio.Event(), before=0)
    async with running(Scenario(server=server)) as run:
        for text in ("one", "two"):
            await run.type(text)
            await run.press("enter")
        assert server.gate is not None
        server.gate.set()
        await run.shows("The server can't be reached. Nothing was lost", "/retry")
        await run.idle()
        assert run.chat.composer.value == "two"
        assert run.sent == ["one"]


async def test_an_error_of_the_program_is_one_line_and_the_screen_lives_on(tmp_path: Path) -> None:
    async def breaks() -> AsyncIterator[SessionEvent]:
        yield Notice("info", "so far so good")
        raise ZeroDivisionError("division by\nzero")

    async with running(log_dir=tmp_path) as run:
        run.turn(breaks())
        await run.shows("ZeroDivisionError: division by zero")
        shown = "".join(line.strip() for line in run.text.splitlines())
        assert str(tmp_path / "chatctx.log") in shown
        assert "Traceback" not in run.text
        await run.type("again")
        await run.press("enter")
        await run.shows("You said: again.")


@pytest.mark.slow
async def test_what_happens_on_the_way_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, clock = asyncio.Event(), SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr(turns, "time", clock)

    async def events() -> AsyncIterator[SessionEvent]:
        yield ContextTrimmed(12, 38_400, ("m1",))
        yield RetryScheduled(5, 1, "rate limit")
        await gate.wait()
        yield Notice("warning", "The server cut the prompt: set num_ctx.")

    async with running() as run:
        run.turn(events())
        await run.shows("Context trimmed: 12 messages, ~38,400 tokens left out", "attempt 2 · rate limit")
        for passed, seconds in ((0, "5 s"), (1, "4 s")):  # it counts down while one looks
            clock.monotonic = lambda passed=passed: float(passed)
            await run.shows(f"asking again in {seconds} · esc stops")
        gate.set()
        await run.shows("The server cut the prompt: set num_ctx.")


async def test_compaction_reports_what_it_did() -> None:
    async with running(long_scenario()) as run:
        run.server.script.append(answer("Goal: learn about boats."))
        await run.command("/compact keep the plan")
        await run.shows("Compacted ", " messages: ", "-> ", "summary of the earlier")
        assert "keep the plan" in str(run.server.requests[-1].messages[-1])


@pytest.mark.slow
@pytest.mark.parametrize("key", ["shift+enter", "ctrl+j", "alt+enter"])
async def test_a_new_line_is_not_a_message(key: str) -> None:
    async with running() as run:
        await run.type("one")
        await run.press(key)
        await run.type("two")
        assert run.chat.composer.value == "one\ntwo"
        await run.press("enter")
        await run.until(lambda: run.sent == ["one\ntwo"])


@pytest.mark.slow
async def test_the_prompt_grows_and_the_lines_below_stay() -> None:
    async with running(size=(60, 20)) as run:
        for _ in range(20):
            await run.press("ctrl+j")
        await run.pilot.pause()
        assert run.chat.composer.area.size.height == 10
        assert run.chat.status_bar.region.y == 19
        assert run.chat.transcript.size.height > 0


async def test_up_and_down_go_through_earlier_prompts_and_keep_the_draft() -> None:
    async with running(Scenario(prompts=["older", "two\nlines"])) as run:
        await run.type("draft")
        await run.press("up")
        assert run.chat.composer.value == "two\nlines"
        await run.press("up")
        assert run.chat.composer.value == "older"
        await run.press("down", "down", "down")
        assert run.chat.composer.value == "draft"


@pytest.mark.slow
async def test_the_draft_is_counted_and_its_cost_does_not_grow_with_what_was_pasted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running() as run:
        await run.type("a" * 40)
        tokens = run.session.draft_tokens("a" * 40)
        await run.shows(f"draft ~{tokens} tok · +0.0 %")
        big = "line of text\n" * 80_000
        run.chat.composer.area.post_message(events.Paste(big))
        await run.shows("[paste 1: 80,001 lines, 1.0 MB]", " % !")
        counted: list[int] = []
        count = run.session.draft_tokens

        def draft_tokens(text: str) -> int | None:
            counted.append(len(text))
            return count(text)

        monkeypatch.setattr(run.session, "draft_tokens", draft_tokens)
        await run.type("!")
        await run.until(lambda: bool(counted))
        assert max(counted) < 100
        await run.press("enter")
        await run.until(lambda: run.sent == ["a" * 40 + big + "!"])


@pytest.mark.slow
async def test_the_draft_is_kept_and_comes_back(tmp_path: Path) -> None:
    async with running(folder=tmp_path) as run:
        await run.type("unfinished")
        await run.until(lambda: run.session.conversation.info.draft == "unfinished")
    async with running(folder=tmp_path) as run:
        assert run.chat.composer.value == "unfinished"
        await run.press("enter")
        await run.until(lambda: run.sent == ["unfinished"] and run.session.conversation.info.draft == "")


async def test_a_key_typed_as_an_argument_is_not_stored_with_the_draft() -> None:
    async with running() as run:
        await run.type("/provider openai sk-test-4711-do-not-tell")
        await run.until(lambda: run.session.conversation.info.draft.startswith("/provider openai"))
        assert "4711" not in run.session.conversation.info.draft


@pytest.mark.slow
async def test_leaving_stops_the_answer_keeps_the_draft_and_closes(tmp_path: Path) -> None:
    async with running(Scenario(server=EchoProvider(gate=asyncio.Event())), folder=tmp_path) as run:
        await run.type("one")
        await run.press("enter")
        await run.type("two")
        await run.press("enter")
        await run.shows("queued  two")
        await run.type("three")
        await run.press("ctrl+q")
        await run.until(lambda: not run.app.is_running)
    async with running(folder=tmp_path) as run:
        assert run.session.messages[-1].status == "cancelled"
        assert run.session.conversation.info.draft == "two\n\nthree"


async def test_ctrl_c_stops_then_clears_then_leaves() -> None:
    async with running(Scenario(server=EchoProvider(gate=asyncio.Event()))) as run:
        await run.type("one")
        await run.press("enter")
        await run.type("draft")
        await run.press("ctrl+c")
        await run.until(lambda: not run.chat.turns.busy)
        assert run.chat.composer.value == "draft"
        await run.press("ctrl+c")
        assert run.chat.composer.value == ""
        await run.press("up")
        assert run.chat.composer.value == "draft"
        await run.press("ctrl+c", "ctrl+c")
        assert run.app.is_running
        await run.press("ctrl+c")
        await run.until(lambda: not run.app.is_running)


@pytest.mark.slow
async def test_ctrl_c_closes_a_panel_and_nothing_else() -> None:
    async with running() as run:
        await run.type("draft")
        for keys in (["f2"], ["f2", "m"], ["ctrl+o"]):
            await run.press(*keys)
            await run.until(lambda: isinstance(run.app.screen, Panel))
            await run.press(*["ctrl+c"] * len(keys))
            await run.until(lambda: run.app.screen is run.chat)
        assert run.chat.composer.value == "draft"


async def test_a_workspace_that_does_not_open_ends_with_one_line_and_code_1(tmp_path: Path) -> None:
    async def fails() -> Workspace:
        raise OSError("disk full")

    app = ChatApp(settings_in(tmp_path), fails)
    async with app.run_test() as pilot:
        await wait_until(pilot, lambda: app.return_code is not None)
    assert app.return_code == 1


async def test_history_shows_stored_messages_with_their_tokens() -> None:
    scenario = Scenario(messages=[user("old question"), assistant("old answer")], title="old times")
    async with running(scenario) as run:
        await run.shows("old question", "old answer", "old times", " tok")


async def test_numbers_that_are_not_there_yet_are_fetched() -> None:
    async with running(Scenario(usage=None)) as run:
        await run.shows("/ 200k")


@pytest.mark.slow
async def test_keys_can_be_changed_by_id() -> None:
    async with running(keys={"chat.context": "f9"}) as run:
        await run.press("f2")
        assert run.app.screen is run.chat
        await run.press("f9")
        await run.shows("next request, as it would be sent")


async def test_every_text_names_the_keys_that_were_set() -> None:
    keys = {
        "composer.newline": "f7,f10",
        "chat.stop": "ctrl+x",
        "panel.close": "f6",
        "composer.up": "f11",
        "context.messages": "z",
        "context.compact": "k",
    }
    async with running(Scenario(server=EchoProvider(gate=asyncio.Event())), size=(120, 20), keys=keys) as run:
        await run.shows("enter sends, f7 new line")
        await run.press("f2")
        await run.shows("z  list messages", "kept free; k compacts now")
        await run.press("f6")
        run.chat.composer.value = "go on"
        run.chat.composer.submit()
        await run.shows("● answering", "ctrl+x stops")
        await run.press("ctrl+x")  # which cuts in a text area
        await run.until(lambda: not run.chat.turns.busy)
        await run.press("f8")
        await run.shows("ctrl+x keeps")


async def test_a_set_key_wins_over_a_default_one() -> None:
    async with running(size=(120, 20), keys={"chat.context": "ctrl+j", "composer.send": "enter"}) as run:
        await run.type("a")
        await run.press("ctrl+j")  # by default a new line
        await run.shows("next request, as it would be sent")
        await run.press("escape", "alt+enter")
        assert run.chat.composer.value == "a\n"
        await run.type("b")
        await run.press("enter")
        await run.shows("You said: a")


async def test_a_key_that_would_leave_none_to_send_is_not_used() -> None:
    async with running(size=(120, 20), keys={"chat.help": "enter"}) as run:
        await run.shows("keys.chat.help to enter, which hides composer.send")
        await run.type("a")
        await run.press("enter")
        await run.until(lambda: run.sent == ["a"])
        await run.press("f1")
        await run.shows("composer.send")


async def test_keys_that_would_hide_others_are_not_used_from_the_first_key_on() -> None:
    gate = asyncio.Event()
    async with running(
        size=(120, 20), keys={"chat.help": "enter", "app.palette": "down"}, gate=gate, wait=False
    ) as run:
        await run.type("a")
        await run.press("enter")  # hides sending, as is known at the start
        await run.until(lambda: bool(run.chat.turns.waiting))
        gate.set()
        await run.shows("hides composer.send", "keys.app.palette to down, which hides a fixed key of /sessions")
        await run.until(lambda: run.sent == ["a"])
        await run.press("up")
        assert run.chat.composer.value == "a"
        await run.press("down")  # known once the panels are loaded
        assert run.chat.composer.value == ""


async def test_the_key_that_quits_is_named_as_it_was_set() -> None:
    async with running(keys={"app.interrupt": "f12", "composer.up": "f11"}) as run:
        await run.type("draft")
        await run.press("f12")
        await run.shows("Draft saved: the f11 key")
        await run.press("f12")
        await run.shows("Press f12 again to quit.")


@pytest.mark.parametrize(
    ("keys", "newline", "send"),
    [
        ({"composer.newline": "enter", "composer.send": "ctrl+s"}, "enter", "ctrl+s"),
        ({"composer.newline": "enter", "composer.send": "ctrl+j"}, "enter", "ctrl+j"),
        ({"composer.newline": "f7", "composer.send": "enter,tab", "chat.context": "ctrl+j"}, "f7", "tab"),
    ],
)
async def test_keys_can_change_places(keys: dict[str, str], newline: str, send: str) -> None:
    async with running(size=(120, 20), keys=keys) as run:
        await run.type("a")
        await run.press(newline)
        await run.type("b")
        await run.press(send)
        await run.until(lambda: run.sent == ["a\nb"])
        if "chat.context" in keys:
            assert run.chat.active_bindings["ctrl+j"].binding.id == "chat.context"


async def test_keys_that_are_set_for_a_panel_still_edit_the_prompt() -> None:
    async with running(keys={"context.fold": "left,z", "messages.sort": "backspace"}) as run:
        await run.type("cm")
        await run.press("left", "a", "right", "e", "backspace")
        assert run.chat.composer.value == "cam"


async def test_a_press_on_a_widget_that_has_just_gone_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as run:
        unguarded = GuardedScreen.get_widget_and_offset_at

        def stale(self: GuardedScreen[None], x: int, y: int) -> object:
            from textual.geometry import Offset
            from textual.screen import Screen
            from textual.widgets import Static

            monkeypatch.setattr(Screen, "get_widget_and_offset_at", lambda *_: (Static("gone"), Offset(1, 1)))
            return unguarded(self, x, y)

        monkeypatch.setattr(GuardedScreen, "get_widget_and_offset_at", stale)
        await run.pilot.mouse_down(offset=(5, 5))
        await run.pilot.mouse_up(offset=(5, 5))
        assert run.app.is_running


@pytest.mark.slow
async def test_a_message_is_edited_and_sent_in_its_place() -> None:
    scenario = Scenario(messages=[user("first", "m1"), assistant("answer", "m2"), user("second", "m3")])
    async with running(scenario) as run:
        run.chat.transcript.focus()
        await run.press("alt+up", "alt+up", "e")
        await run.until(lambda: run.chat.composer.value == "first")
        await run.shows("sets aside 3 messages, ? tokens · esc keeps them")
        await run.type(" again")
        await run.press("enter")
        await run.until(lambda: run.sent == ["first again"])
        assert run.session.conversation.not_sent() == dict.fromkeys(map(ident, ("m1", "m2", "m3")), "set aside")
        await run.until(lambda: "sets aside" not in run.text)


@pytest.mark.slow
async def test_asking_an_older_message_again_waits_for_enter() -> None:
    scenario = Scenario(messages=[user("first", "m1"), assistant("answer", "m2"), user("second", "m3")])
    async with running(scenario) as run:
        run.chat.transcript.focus()
        await run.press("alt+up", "alt+up", "r")
        await run.shows("Enter sends this again", "sets aside 3 messages")
        assert run.sent == []
        await run.press("enter")
        await run.until(lambda: run.sent == ["first"])


async def test_messages_are_chosen_from_the_prompt_and_the_keys_are_shown() -> None:
    scenario = Scenario(messages=[user("first", "m1"), assistant("answer", "m2")])
    async with running(scenario) as run:
        await run.type("draft")
        await run.press("alt+up")
        await run.shows("c copy   e edit   r retry   f fork   p pin   x leave out   y copy code   esc back")
        await run.press("escape")
        await run.until(lambda: run.app.focused is run.chat.composer.area)
        assert "x leave out" not in run.text
        assert run.chat.composer.value == "draft"


@pytest.mark.slow
async def test_esc_lets_go_of_an_edit() -> None:
    scenario = Scenario(messages=[user("first", "m1"), assistant("answer", "m2")])
    async with running(scenario) as run:
        run.chat.transcript.focus()
        await run.press("alt+up", "e")
        await run.until(lambda: run.chat.composer.value == "first")
        await run.press("escape")
        await run.until(lambda: run.chat.composer.value == "")
        await run.type("new")
        await run.press("enter")
        await run.until(lambda: run.sent == ["new"])
        assert not run.session.conversation.not_sent()


async def test_a_message_is_sent_again_pinned_and_left_out_by_key() -> None:
    scenario = Scenario(messages=[user("first", "m1"), assistant("answer", "m2")])
    async with running(scenario) as run:
        run.chat.transcript.focus()
        await run.press("alt+up", "p", "x")
        await run.until(lambda: run.session.conversation.state.pinned == {ident("m2")})
        await run.until(lambda: run.session.conversation.not_sent() == {ident("m2"): "excluded"})
        await run.press("r")
        await run.until(lambda: run.sent == ["first"])
        assert run.session.conversation.not_sent()[ident("m1")] == "set aside"


async def test_a_long_answer_rings_only_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[bool] = []
    monkeypatch.setattr(ChatApp, "bell", lambda self: rung.append(self.app_focus))
    monkeypatch.setattr("tui.screens.chat.turns.LONG", 0.0)
    async with running() as run:
        await run.command("one")
        await run.until(lambda: run.sent == ["one"] and not run.chat.turns.busy)
        assert rung == []
        run.app.app_focus = False
        run.chat.turns.ask("two")
        await run.until(lambda: rung == [False])


@pytest.mark.slow
async def test_what_cannot_be_stored_is_printed_for_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(self: Conversation, text: str) -> None:
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(Conversation, "save_draft", full)
    exits: list[object] = []
    async with running() as run:
        monkeypatch.setattr(run.app, "exit", lambda **values: exits.append(values))
        await run.type("precious")
        await run.shows("disk full")
        assert run.text.count("disk full") == 1
        await run.press("ctrl+q")
        await run.until(lambda: bool(exits))
    assert isinstance(exits[0], dict)
    assert exits[0]["return_code"] == 1
    assert "disk full" in str(exits[0]["message"]) and "precious" in str(exits[0]["message"])


async def test_the_program_ends_in_one_line_that_calls_no_error_of_the_system_a_bug(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running() as run:
        shown: list[object] = []
        monkeypatch.setattr(run.app, "panic", shown.append)
        for error in (OSError(errno.EMFILE, "Too many open files"), ValueError("odd")):
            try:
                raise error
            except Exception:
                run.app._fatal_error()
        system, bug = map(str, shown)
    assert system.startswith("chatctx: Too many open files: close other programs") and "bug" not in system
    assert bug.startswith("chatctx: a bug: ValueError: odd. Nothing stored is lost; details are in ")


@pytest.mark.slow
async def test_a_draft_that_is_still_to_be_kept_when_the_store_closes_is_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def closed(_text: str) -> None:
        raise OSError("the store is closed")

    monkeypatch.setattr("tui.screens.chat.drafts.SAVE_PAUSE", 0.1)
    async with running() as run:
        close, session = run.workspace.close, run.session

        async def while_it_closes() -> None:
            monkeypatch.setattr(session.conversation, "save_draft", closed)
            run.chat.drafts.save_soon()
            for worker in [worker for worker in run.chat.workers if worker.group == "draft-save"]:
                await worker.wait()
            await close()

        monkeypatch.setattr(run.workspace, "close", while_it_closes)
        await run.type("unfinished")
        await run.press("ctrl+q")
        await run.until(lambda: not run.app.is_running)
        assert session.conversation.info.draft == "unfinished"
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_what_is_typed_while_a_draft_cannot_be_kept_is_kept_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.screens.chat.drafts.SAVE_PAUSE", 0.0)
    async with running() as run:
        session = run.session
        keep = session.conversation.save_draft

        async def fails_once(_text: str) -> None:
            monkeypatch.setattr(session.conversation, "save_draft", keep)
            run.chat.drafts.save_soon()
            raise OSError("the store is busy")

        monkeypatch.setattr(session.conversation, "save_draft", fails_once)
        await run.type("x")
        await run.until(lambda: session.conversation.info.draft == "x")


async def test_without_a_workspace_a_message_stays_in_the_prompt_and_the_reason_is_said_again(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def fails() -> Workspace:
        await gate.wait()
        raise OSError("database is from a newer version")

    app = ChatApp(settings_in(tmp_path), fails)
    async with app.run_test() as pilot:
        await pilot.press(*"precious")
        gate.set()
        async with asyncio.timeout(60):
            while not app.chat.broken:
                await pilot.pause(0.01)
        assert app.is_running and app.chat.composer.value == "precious"
        await pilot.press("enter")
        await pilot.pause()
        assert app.chat.composer.value == "precious"
        assert not app.chat.turns.waiting


@pytest.mark.slow
async def test_draft_and_queue_outlive_a_compaction() -> None:
    """Known failures 96 and 97: what was typed and what waited were gone, or the queue stuck."""
    async with running(long_scenario()) as run:
        run.server.gate = asyncio.Event()
        await run.command("/compact")
        await run.shows("compacting")
        for text in ("one", "two"):
            run.chat.composer.value = text
            await run.press("enter")
        await run.type("a draft")
        assert run.sent == []
        run.server.gate.set()
        await run.until(lambda: run.sent == ["one", "two"])
        assert run.chat.composer.value == "a draft"


@pytest.mark.slow
async def test_a_number_kept_from_last_time_is_shown_at_once_and_then_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = asyncio.Event()

    def begin(session: ChatSession) -> None:
        refresh = session.refresh_usage

        async def measured() -> ContextUsage:
            await gate.wait()
            session._meter.latest = None
            monkeypatch.setattr(session._meter, "measure", lambda _request: make_usage(2_000))
            return await refresh()

        monkeypatch.setattr(session, "refresh_usage", measured)

    scenario = Scenario(messages=[user("first", "m1")], usage=make_usage(1_000), begin=begin)
    async with running(scenario) as run:
        await run.shows("1.0k / 200k")
        gate.set()
        await run.shows("2.0k / 200k")


async def test_a_burst_of_keys_starts_no_worker_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A paste without brackets is thousands of keys: each would wait for the workers of all before it."""
    started: list[str] = []
    begin = ChatScreen.run_worker

    def counted(self: ChatScreen, *args: Any, **kwargs: Any) -> Worker[Any]:
        started.append(str(kwargs.get("group")))
        return begin(self, *args, **kwargs)

    monkeypatch.setattr(ChatScreen, "run_worker", counted)
    words = "as fast as it comes " * 20
    async with running() as run:
        started.clear()
        await run.type(words)
        await run.until(lambda: run.session.conversation.info.draft == words)
        await run.shows("draft ~")
        assert len(started) < len(words) / 4, started


async def test_typed_text_that_prints_nothing_by_itself_is_kept() -> None:
    """Joiner, non-joiner, ideographic and no-break space, private use, an emoji newer than this Python."""
    words = "👩\u200d💻 می\u200cخواهم 日本\u3000語 dix\u00a0% \ue0b0 \U0001fae8 \U0001fadf."
    async with running() as run:
        await run.type(words)
        await run.until(lambda: run.chat.composer.value == words)
        await run.press("enter")
        await run.until(lambda: run.sent == [words])
