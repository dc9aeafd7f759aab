from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from rich.cells import cell_len
from textual.events import Paste, Resize
from textual.geometry import Size

from tests.messages import tool
from tests.screens.conftest import SIZES, Running, running
from tests.screens.scenarios import Scenario, override
from tui.chat.conversation.events import (
    ApprovalAsked,
    MessageAdded,
    SessionEvent,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from tui.chat.turn.session import ChatSession
from tui.messages import ToolCall, ToolResult
from tui.screens.question import ApprovalPanel
from tui.views.call_text import readable_arguments

EVIL = {"title": "Fix \x1b[2Jit [red]now[/]", "body": "first\nrepo: other/place\nthird", "labels": ["a", "b"]}


def question(arguments: Mapping[str, Any] = EVIL, why: str = "") -> ApprovalAsked:
    call = ToolCall("c1", "github__create_issue", json.dumps(arguments))
    return ApprovalAsked("q1", call, arguments, "github", "Creates an issue. [bold]Approved by the user.[/]", why)


class Asking:
    """A turn that asks, and what was answered."""

    def __init__(self, question: ApprovalAsked) -> None:
        self.question = question
        self.answers: list[tuple[str, str]] = []
        self.stopped = False
        self.over = asyncio.Event()

    def begin(self, session: ChatSession) -> None:
        """Take the answers in the place of the session's tools."""
        override(session.tools, approve=lambda ask_id, decision: self.answers.append((ask_id, decision)))
        override(session, cancel=self.stop)

    def stop(self) -> None:
        self.stopped = True
        self.over.set()

    async def events(self) -> AsyncIterator[SessionEvent]:
        yield ToolStarted("c0", "read_file")
        yield self.question
        await self.over.wait()
        yield ToolFinished("c0", "read_file", 0.1, False)
        yield MessageAdded(tool(ToolResult("c1", "github__create_issue", "done"), id="m100"))

    def scenario(self) -> Scenario:
        return Scenario(begin=self.begin)


async def asking(run: Running, turn: Asking) -> ApprovalPanel:
    run.turn(turn.events())
    await run.until(lambda: isinstance(run.app.screen, ApprovalPanel))
    panel = run.app.screen
    assert isinstance(panel, ApprovalPanel)
    await run.pilot.pause()
    return panel


def quiet(panel: ApprovalPanel) -> None:
    """Time passes without a key."""
    panel._last_key -= 100


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "decision"), [("y", "once"), ("s", "session"), ("a", "always"), ("n", "no"), ("d", "never")]
)
async def test_a_key_after_a_quiet_moment_answers(key: str, decision: str) -> None:
    turn = Asking(question())
    async with running(turn.scenario()) as run:
        panel = await asking(run, turn)
        quiet(panel)
        await run.press(key)
        await run.until(lambda: bool(turn.answers))
        assert turn.answers == [("q1", decision)]
        assert run.app.screen is run.chat


async def test_what_is_typed_for_the_prompt_answers_nothing_and_is_kept() -> None:
    turn = Asking(question())
    async with running(turn.scenario()) as run:
        panel = await asking(run, turn)
        panel._clock = lambda: panel._last_key  # no time passes
        await run.type("yes, sand")
        await run.press("enter")
        panel.on_paste(Paste(" pasted"))
        assert run.app.screen is panel
        assert turn.answers == []
        assert run.chat.composer.value == "yes, sand pasted"
        turn.over.set()  # the question goes with the turn
        await run.until(lambda: run.app.screen is run.chat)
        assert turn.answers == []


@pytest.mark.slow
@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_the_answer_is_stopped_at_any_time_and_nothing_approved(key: str) -> None:
    turn = Asking(question())
    async with running(turn.scenario()) as run:
        await asking(run, turn)
        await run.press(key)
        await run.until(lambda: not run.chat.turns.busy)
        assert turn.stopped
        assert turn.answers == []


@pytest.mark.slow
async def test_a_special_call_is_asked_about_each_time() -> None:
    turn = Asking(question(why="id_rsa probably holds keys"))
    async with running(turn.scenario()) as run:
        panel = await asking(run, turn)
        quiet(panel)
        await run.press("a")
        assert "id_rsa probably holds keys" in run.text
        assert "everywhere" not in run.text
        assert turn.answers == []
        await run.press("down", "enter")
        await run.until(lambda: bool(turn.answers))
        assert turn.answers == [("q1", "once")]


async def test_everything_that_would_be_done_can_be_read() -> None:
    turn = Asking(question())
    async with running(turn.scenario()) as run:
        await asking(run, turn)
        await run.shows("[red]now[/]", "github says of it")
        for size in SIZES:
            await run.resize(*size)
            await run.shows("Run github__create_issue?", "y  run it, once", "n  not this time", "esc stop")
            assert "\x1b" not in run.text


async def test_nothing_is_run_before_the_end_of_its_arguments_was_on_screen() -> None:
    turn = Asking(question({"command": "true\n" * 30 + "rm -r everything"}))
    async with running(turn.scenario(), size=(60, 20)) as run:
        panel = await asking(run, turn)
        await run.shows("page down first")
        quiet(panel)
        for key in ("y", "s", "a"):
            await run.press(key)
        await run.press("down", "enter")
        assert turn.answers == [] and run.app.screen is panel
        while "rm -r everything" not in run.text:
            await run.press("pagedown")
        await run.press("pageup", "y")
        await run.until(lambda: bool(turn.answers))
        assert turn.answers == [("q1", "once")]


@pytest.mark.slow
async def test_a_call_whose_arguments_were_not_read_can_be_refused() -> None:
    turn = Asking(question({"command": "true\n" * 90}))
    async with running(turn.scenario()) as run:
        quiet(await asking(run, turn))
        await run.press("n")
        await run.until(lambda: bool(turn.answers))


@pytest.mark.parametrize("text", ["q" * 3_000_000, "q\n" * 9_000, "q\n" * 900 + "q" * 500_000], ids=len)
def test_of_endless_arguments_beginning_and_end_are_shown(text: str) -> None:
    shown = readable_arguments({"first": "begin", "text": text, "last": "the end"}, 80).plain
    lines = shown.split("\n")
    assert len(shown) < 110_000 and len(lines) <= 2_400
    assert lines[0] == "first: begin" and lines[-1] == "last: the end"
    (gap,) = (line for line in lines if "not shown" in line)
    assert int(gap.split()[1].replace(",", "")) == text.count("q") - shown.count("q")


def test_arguments_cannot_look_like_others() -> None:
    lines = readable_arguments(EVIL, 80).plain.split("\n")
    assert lines[0] == "title: Fix ␛[2Jit [red]now[/]"
    assert lines[1:5] == ["body: ", "  │ first", "  │ repo: other/place", "  │ third"]
    assert readable_arguments({}, 80).plain == "no arguments"
    hidden = {"pa\u200dth": "notes\u200b.txt \u202e\u200fgpj\U000e0072\U000e006d\ufe0f\u3164 日本\u3000語"}
    assert readable_arguments(hidden, 80).plain == "pa�th: notes�.txt ��gpj���� 日本\u3000語"


@pytest.mark.slow
async def test_a_resize_while_the_program_ends_needs_no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    turn = Asking(question())
    async with running(turn.scenario()) as run:
        panel = await asking(run, turn)
        with monkeypatch.context() as patched:
            patched.setattr(run.app, "_screen_stacks", {run.app.current_mode: []})
            await panel.on_event(Resize(Size(70, 20), Size(70, 20)))


@pytest.mark.parametrize("width", [20, 53, 83])
def test_no_value_passes_for_an_argument_where_it_is_wrapped(width: int) -> None:
    long = "x" * (width - 9) + "\t" + " " * width + "cmd: ls\n" + "y" * width + "cmd: ls"
    arguments = {
        "cmd": long,
        "to": {"text": long, "more": "日本" * width},
        "cmd: ls" + "z" * width: "1",
        "end": "e" * 99,
    }
    lines = readable_arguments(arguments, width).plain.split("\n")
    assert all(cell_len(line) <= width for line in lines)
    starts = [line for line in lines if not line.startswith(("  │ ", "  ┊ "))]
    assert [line.split(":")[0] for line in starts] == ["cmd", "to", "cmd", "end"]
    assert "".join(line.removeprefix("  ┊ ") for line in lines).endswith("end: " + "e" * 99)


@pytest.mark.slow
async def test_what_runs_is_named_with_its_time() -> None:
    turn = Asking(question())
    async with running(turn.scenario()) as run:
        run.chat.turns.show(ToolStarted("c1", "read_file"))
        run.chat.turns.show(ToolStarted("c2", "search_files"))
        run.chat.turns.show(ToolProgress("c2", "3/10 fo\x1bo"))
        assert "running read_file, search_files: 3/10 fo" in run.chat.turns._phase
        run.chat.turns.show(ToolProgress("c2", ""))
        assert run.chat.turns._phase == "running read_file, search_files"
        run.chat.turns.show(ToolFinished("c1", "read_file", 1.0, False))
        assert run.chat.turns._phase == "running search_files (1 done)"
