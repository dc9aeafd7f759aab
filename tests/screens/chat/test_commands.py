"""Slash commands, completion, pickers, themes, help."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

import pytest
from textual import events

from tests.screens.conftest import SIZES, running, screen_text, wait_until
from tests.screens.scenarios import SESSION, EchoProvider, Scenario, assistant, stored, user
from tui import commands
from tui.app import ChatApp

OTHERS = (stored("s7", "refactor the parser"), stored("s8", "why is the build slow"))


async def test_enter_runs_a_command_without_an_argument_that_nobody_chose() -> None:
    async with running(Scenario()) as run:
        await run.type("/wind")
        await run.shows("set the size of this model's context window")
        await run.press("enter")  # completes the name; the arguments are offered
        await run.shows("forget what was set and learned")
        await run.press("enter")
        await run.shows("/window 128k sets it")
        await run.type("/window ")
        await run.shows("forget what was set and learned")
        await run.press("down")
        assert run.chat.composer.completions.current is not None
        await run.press("escape")
        await run.type(" ")
        await run.press("tab")
        await run.until(lambda: run.chat.composer.value == "/window reset")


async def test_completion_is_offered_taken_and_run() -> None:
    async with running() as run:
        await run.type("/rol")
        await run.shows("/rolling-context [on|off]", "leave old content out")
        await run.press("tab")
        assert run.chat.composer.value == "/rolling-context "
        await run.shows("trim old content when the window is nearly full")
        await run.press("enter")
        await run.until(lambda: run.session.conversation.info.rolling)
        await run.shows("Rolling context is on", "rolling on")


@pytest.mark.slow
async def test_enter_takes_the_choice_and_esc_closes_the_list() -> None:
    async with running() as run:
        await run.type("/hel")
        await run.shows("commands and keys")
        await run.press("escape")
        await run.until(lambda: not run.chat.composer.completions.open)
        await run.type("p")
        await run.shows("commands and keys")
        await run.press("enter")
        await run.shows("Commands", "/rolling-context [on|off]", "Help")


async def test_the_list_lies_over_the_conversation() -> None:
    async with running(size=(60, 20)) as run:
        place = run.chat.composer.region
        await run.type("/")
        await run.shows("what fills the context")
        assert run.chat.composer.region == place
        await run.press("down", "up", "up")
        assert run.chat.composer.completions.current is not None
        assert run.chat.composer.completions.current.label == "/quit"


async def test_an_unknown_command_is_named_and_the_text_stays() -> None:
    async with running() as run:
        await run.command("/contxt please")
        await run.shows("There is no command /contxt. Did you mean /context?")
        assert run.chat.composer.value == "/contxt please"
        assert run.sent == []
        await run.command(" /help is a command")  # with a blank it is a message
        await run.until(lambda: run.sent == ["/help is a command"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["/rolling-context maybe", "/window lots", "/theme nowhere", "/find absent", "/copy", "/undo"]
)
async def test_a_bad_argument_is_one_clear_line(line: str) -> None:
    async with running() as run:
        await run.command(line)
        await run.shows("!")
        assert run.app.screen is run.chat


async def test_new_starts_an_empty_conversation() -> None:
    scenario = Scenario(messages=[user("old"), assistant("older")], title="old")
    async with running(scenario) as run:
        await run.command("/new")
        await run.shows("new conversation", "ask anything")
        assert run.session.id != SESSION and not run.session.messages


@pytest.mark.slow
async def test_a_model_is_picked_by_search() -> None:
    async with running() as run:
        await run.command("/model")
        await run.shows("Models and their windows", "openai/gpt-x", "128k", "200k", "models API", "?")
        await run.type("gpt")
        await run.until(lambda: "local/smol" not in run.text)
        await run.press("enter")
        await run.until(lambda: run.model == "openai/gpt-x")
        await run.shows("openai/gpt-x is the model from now on.")
        assert run.text.splitlines()[0].endswith("openai/gpt-x")


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
async def test_a_conversation_is_found_and_opened(size: tuple[int, int]) -> None:
    async with running(Scenario(other=OTHERS), size=size) as run:
        await run.press("ctrl+r")
        await run.shows("Conversations", "refactor the parser", "why is the build slow")
        await run.type("slow")
        await run.until(lambda: "refactor" not in run.text)
        await run.press("enter")
        await run.until(lambda: run.session.id == "s8")
        await run.shows("why is the build slow 0")


async def test_nothing_found_is_said_and_esc_changes_nothing() -> None:
    async with running(Scenario(other=OTHERS)) as run:
        await run.press("ctrl+r")
        await run.type("zzz")
        await run.shows("no matches")
        await run.press("enter")
        await run.until(lambda: run.app.screen is run.chat)
        assert run.session.id == SESSION


async def test_a_list_that_cannot_be_loaded_says_why() -> None:
    async with running() as run:
        run.models.failure = OSError("no route to host")
        await run.command("/model")
        await run.shows("no route to host")


@pytest.mark.slow
async def test_themes_are_tried_on_and_kept_or_not(tmp_path: Path) -> None:
    (tmp_path / "themes").mkdir()
    (tmp_path / "themes" / "bad.toml").write_text("colors = 1", encoding="utf-8")
    async with running(folder=tmp_path) as run:
        await run.command("/theme")
        await run.shows("Themes", "chatctx-dark", "ember", "terminal colours")
        await run.type("ember")
        await run.until(lambda: run.app.theme == "ember")
        await run.press("escape")
        await run.until(lambda: run.app.theme == "chatctx-dark")
        await run.shows("theme bad.toml: colors is a table")
        await run.press("escape")
        await run.command("/theme ember")
        await run.until(lambda: (tmp_path / "theme").exists() and run.app.theme == "ember")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["chatctx-light", "chatctx-contrast", "chatctx-terminal", "paper", "nord", "ansi-light"]
)
async def test_every_theme_draws_every_screen(name: str) -> None:
    async with running(theme=name) as run:
        await run.press("f2", "m", "escape", "h", "escape", "f", "escape", "escape", "f1", "escape", "ctrl+o")
        await run.shows("Models")


async def test_a_theme_that_is_not_there_is_said_and_the_default_stands_in() -> None:
    async with running(theme="nowhere") as run:
        await run.shows("There is no theme 'nowhere'")
        assert run.app.theme == "chatctx-dark"


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
async def test_help_is_read_to_its_end(size: tuple[int, int]) -> None:
    async with running(size=size) as run:
        await run.press("f1")
        await run.shows("Help", "/context")
        await run.press("end")
        await run.until(lambda: "Commands" not in run.text and "close" in run.text)


@pytest.mark.slow
async def test_the_palette_offers_the_same_commands() -> None:
    async with running() as run:
        titles = [command.title for command in run.app.get_system_commands(run.app.screen)]
        preview = "/compact --preview: edit the summary before it takes effect"
        assert [title for title in titles if title != preview] == [
            f"/{c.name}: {c.help}" for c in commands.all_commands()
        ]
        await run.press("ctrl+p")
        await run.type("summary before")
        await run.shows(preview)
        await run.press("down", "enter")
        await run.shows("There is nothing older to summarise")
        await run.press("ctrl+p")
        await run.type("what fills")
        await run.shows("/context: what fills")
        await run.press("enter")
        await run.shows("next request, as it would be sent")


@pytest.mark.slow
async def test_a_command_that_needs_words_is_begun_in_an_empty_prompt() -> None:
    async with running() as run:
        await run.press("ctrl+p")
        await run.type("rename")
        await run.shows("/rename TITLE")
        await run.press("enter")
        await run.until(lambda: run.chat.composer.value == "/rename ")
        assert "needs a title" not in run.text
        run.chat.composer.value = "a draft"
        run.app._chosen("rename", True)
        await run.shows("needs a title")
        assert run.chat.composer.value == "a draft"


async def test_commands_wait_for_the_answer_where_they_must() -> None:
    import asyncio

    scenario = Scenario(server=EchoProvider(gate=asyncio.Event()))
    async with running(scenario) as run:
        await run.type("x")
        await run.press("enter")
        await run.command("/new")
        await run.shows("An answer is still coming: stop it or wait")
        assert run.session.id == SESSION


async def test_find_goes_to_the_words() -> None:
    messages = [user(f"question {n}", f"m{n}") for n in range(60)]
    async with running(Scenario(messages=messages)) as run:
        await run.command("/find question 7")
        await run.shows("1 of 1", "question 7")


async def test_copy_says_only_what_it_knows() -> None:
    scenario = Scenario(messages=[user("q"), assistant("the answer")])
    async with running(scenario) as run:
        await run.command("/copy")
        await run.shows("Sent 10 characters to the terminal's clipboard")
        assert run.app.clipboard == "the answer"


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
async def test_usage_adds_up_the_calls(size: tuple[int, int]) -> None:
    from tests.chat.test_usage_report import CALL
    from tui.text.numbers import day_text

    now = time.time()
    calls = [replace(CALL, at=now), replace(CALL, at=now, session="s2", model="y", input_total=2_000_000)]
    async with running(Scenario(calls=calls), size=size) as run:
        await run.command("/usage")
        await run.shows("Usage", "session", "today", "total")
        assert "$0.25" in run.text and "$0.50" in run.text
        await run.press("end")
        await run.shows("last 30 days" if size[1] > 15 else day_text(date.fromtimestamp(now)))


async def test_the_draft_is_changed_in_an_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from contextlib import contextmanager

    resumed: list[str] = []

    @contextmanager
    def suspend(_app: object) -> Iterator[None]:
        yield  # as Textual's own: an error in the body means that the terminal is not taken back
        resumed.append("terminal")

    editor = tmp_path / "editor.sh"
    editor.write_text("#!/bin/sh\nsed -i s/draft/text/ $1\n", encoding="utf-8")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    async with running() as run:
        monkeypatch.setattr(type(run.app), "suspend", suspend)
        await run.type("a draft")
        await run.until(lambda: run.chat.composer.value == "a draft")
        await run.press("ctrl+g")
        await run.until(lambda: run.chat.composer.value == "a text")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("VISUAL", "./not-there")  # short: the line with it is not wrapped
        await run.press("ctrl+g")
        await run.shows("could not be started")
        monkeypatch.setenv("VISUAL", "false")
        await run.press("ctrl+g")
        await run.shows("'false' ended with code 1; the draft is as it was.")
        assert run.chat.composer.value == "a text"
        assert len(resumed) == 3


@pytest.mark.slow
async def test_tab_leaves_the_prompt_once_its_list_is_closed() -> None:
    async with running() as run:
        await run.type("/mod")
        await run.shows("the model that answers")
        await run.press("escape", "tab")
        await run.until(lambda: run.app.focused is not run.chat.composer.area)


@pytest.mark.slow
async def test_letters_before_enter_are_sent_and_letters_after_it_are_not() -> None:
    async with running() as run:
        for key in (*"one", "enter", *"two", "enter", *"/nope", "enter", *"three"):  # faster than the screen follows
            run.app.post_message(
                events.Key(key if len(key) > 1 or key.isalpha() else "slash", key if len(key) < 2 else None)
            )
        await run.until(lambda: run.sent == ["one", "two"])
        await run.until(lambda: run.chat.composer.value == "/nope\nthree")


@pytest.mark.parametrize(
    ("shown", "typed", "draft"),
    [
        ("", "/mod", "/model "),
        ("/mod", "el", "/model "),
        ("/mod", " gpt", "/mod gpt"),
        ("/help", " me", "/help me"),
    ],
)
async def test_letters_before_tab_are_completed_and_none_is_lost(shown: str, typed: str, draft: str) -> None:
    async with running() as run:
        await run.type(shown)
        for key in (*typed, "tab"):  # faster than the list follows
            named = {"/": "slash", " ": "space"}.get(key, key)
            run.app.post_message(events.Key(named, key if len(key) < 2 else None))
        await run.until(lambda: run.chat.composer.value == draft)
        await run.pilot.pause()
        assert run.chat.composer.value == draft
        assert run.app.focused is run.chat.composer.area


@pytest.mark.slow
async def test_help_lists_the_keys_as_they_are_set_and_a_wrong_name_is_said() -> None:
    async with running(keys={"chat.context": "f9", "chat.contxt": "f8"}, size=(120, 60)) as run:
        await run.shows("keys.chat.contxt")
        await run.command("/help")
        await run.shows("chat.context")
        row = next(line for line in run.text.splitlines() if "chat.context " in line)
        assert "f9" in row and "what fills the window" in row


def test_every_key_has_a_name_of_its_own() -> None:
    from textual.dom import DOMNode

    from tui.app import ChatApp
    from tui.screens.chat.screen import ChatScreen
    from tui.screens.context import ContextPanel
    from tui.screens.context_lists import MessagesPanel
    from tui.screens.keymap import keys_of
    from tui.widgets.composer import PromptArea
    from tui.widgets.transcript.transcript import Transcript

    keys = keys_of([PromptArea, ChatScreen, ChatApp, Transcript, ContextPanel, MessagesPanel], {})
    names = [key.id for key in keys]
    assert len(names) == len(set(names))
    assert all(key.action for key in keys)
    groups: list[list[type[DOMNode]]] = [[PromptArea, ChatScreen, ChatApp], [ContextPanel], [MessagesPanel]]
    for nodes in groups:
        taken = [one for key in keys_of(nodes, {}) for one in key.keys.split() if one != "escape"]
        assert len(taken) == len(set(taken)), taken


SAID_ON_SCREEN = {
    "/context": "next request, as it would be sent",
    "/rolling-context": "Rolling context is on",
    "/compact": "Nothing was changed.",
    "/compact --preview": "Nothing was changed.",
    "/summary": "There is no summary",
    "/undo": "There is no compaction to undo.",
    "/model": "Models and their windows",
    "/model guide": "demo/guide is the model from now on.",
    "/provider": "Which provider?",
    "/provider anthropic": "Keys are not stored",
    "/sessions": "Conversations",
    "/rename A talk": "This conversation is called A talk.",
    "/export": "Written to ",
    "/import nowhere": "Not imported",
    "/usage": "estimates off by",
    "/system": "There is no system prompt.",
    "/memory": "No memory files found.",
    "/thinking": "Reasoning effort: provider default.",
    "/tools": "built in: 0 of 3 on",
    "/mcp": "No servers yet.",
    "/prompt": "No running MCP server offers prompts.",
    "/edit": "An editor needs a terminal, and there is none here.",
    "/paste": "The clipboard can't be read",
    "/retry": "This is the demo",
    "/leave-out": "The last turn is not sent any more",
    "/find demo": "1 of ",
    "/copy": "to the terminal's clipboard",
    "/fold": "",
    "/times": "",
    "/window": "The window of this model is 8,192 tokens",
    "/theme": "Themes",
    "/help": "Commands",
    "/delete": "'A talk' is deleted. /delete undo restores it.",
    "/delete undo": "A talk",
    "/new": "new conversation",
    "/quit": "",
}


@pytest.mark.slow
async def test_every_command_runs_on_the_screen_of_the_real_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tui.chat.workspace import Workspace
    from tui.config.settings import Settings

    monkeypatch.setattr("tui.providers.local.PAUSE", 0)
    monkeypatch.chdir(tmp_path)
    covered = {line.split()[0] for line in SAID_ON_SCREEN}
    others = {f"/{command.name}": "" for command in commands.all_commands() if f"/{command.name}" not in covered}
    settings = Settings(model="demo/guide", config_file=tmp_path / "config.toml", data_dir=tmp_path, log_dir=tmp_path)
    app = ChatApp(settings, lambda: Workspace.open(settings))

    def shows(words: str) -> bool:
        return words in screen_text(app)

    async with app.run_test(size=(120, 60), notifications=True) as pilot:
        chat = app.chat
        await wait_until(pilot, lambda: chat.session is not None)
        chat.turns.ask("hello")
        await wait_until(pilot, lambda: "This is the demo" in screen_text(app) and not chat.turns.busy)
        for line, words in {**others, **SAID_ON_SCREEN}.items():
            chat.action_command(line[1:])
            await wait_until(pilot, partial(shows, words))
            await pilot.press("escape")
            await wait_until(pilot, lambda: not app.is_running or (app.screen is chat and not chat.turns.busy))
            assert not app.is_running or "Something went wrong" not in screen_text(app)
        await wait_until(pilot, lambda: not app.is_running)
