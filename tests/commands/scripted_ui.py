"""The port of the slash commands as a script: what the person answers is decided beforehand, what is told is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tui import commands as slash
from tui.chat.compaction.compactor import SummaryText
from tui.chat.conversation.events import SessionEvent
from tui.chat.turn.session import ChatSession
from tui.chat.workspace import Workspace
from tui.commands import Chat
from tui.views.view import Form, Menu, Option, Question, View


class ScriptedScreen:
    """What only a screen has. `matches` is what `/find` finds, `draft` what stands in the prompt."""

    def __init__(self) -> None:
        self.draft = ""
        self.matches = (0, 0)
        self.clipboard = ""
        self.theme = "dark"
        self.folded = self.times = False
        self.searched: list[str] = []
        self.problem: Exception | None = None

    async def append_to_draft(self, text: str) -> None:
        self.draft = "\n\n".join(filter(None, [self.draft, text]))

    async def paste(self, text: str) -> None:
        self.draft += text

    async def mention(self, path: str) -> None:
        self.draft += f"@{path}"

    async def edit_draft(self) -> None:
        if self.problem is not None:
            raise self.problem
        self.draft = f"{self.draft}, edited"

    async def find(self, text: str) -> tuple[int, int]:
        self.searched.append(text)
        return self.matches

    async def fold(self) -> None:
        self.folded = not self.folded

    async def toggle_times(self) -> None:
        self.times = not self.times

    async def themes(self) -> Sequence[Option]:
        return [Option(name, name, current=name == self.theme) for name in ("dark", "light")]

    def use_theme(self, name: str) -> None:
        self.theme = name


class ScriptedUI:
    """Takes `answers` in turn: a key for a list or a question, values for a form, a text for a summary, or None."""

    def __init__(self, *answers: Any, screen: ScriptedScreen | None = None) -> None:
        self.answers = list(answers)
        self.screen = screen
        self.busy = False
        self.output: list[str] = []
        self.refusals: list[str] = []
        self.progress_texts: list[str] = []
        self.views: list[View] = []
        self.questions: list[Menu | Question | Form | SummaryText] = []
        self.events: list[SessionEvent] = []
        self.copied: list[str] = []
        self.attached: list[ChatSession] = []
        self.changes = 0
        self.ended = False
        self.chat: Chat | None = None

    async def say(self, text: str, *, passing: bool = False) -> None:
        self.output.append(text)

    async def refuse(self, text: str) -> None:
        self.refusals.append(text)

    @asynccontextmanager
    async def progress(self, text: str) -> AsyncIterator[None]:
        self.progress_texts.append(text)
        yield
        self.progress_texts.append("")

    async def show(self, view: View) -> None:
        self.views.append(view)

    async def choose(self, menu: Menu) -> str | None:
        key: str | None = self._answer(menu)
        assert key is None or key in [option.key for option in await menu.source("")]
        return key

    async def confirm(self, question: Question) -> str | None:
        key: str | None = self._answer(question)
        assert key is None or key in [option.key for option in question.answers]
        return key

    async def ask(self, form: Form) -> Mapping[str, str] | None:
        values: Mapping[str, str] | None = self._answer(form)
        if values is not None:
            assert values.keys() == {field.name for field in form.fields}
            if form.submit is not None:
                await form.submit(values)
        return values

    async def edit(self, text: SummaryText) -> bool:
        answer: str | None = self._answer(text)
        if answer is not None:
            await text.accept(answer)
        return answer is not None

    async def turn(self, events: AsyncIterator[SessionEvent]) -> None:
        self.events += [event async for event in events]

    async def attach(self, session: ChatSession) -> None:
        self.attached.append(session)
        assert self.chat is not None
        self.chat.attached = session

    async def changed(self) -> None:
        self.changes += 1
        assert self.chat is not None
        await self.chat.session.refresh_usage()

    async def copy(self, text: str) -> None:
        self.copied.append(text)

    async def leave(self) -> None:
        self.ended = True

    def _answer(self, question: Menu | Question | Form | SummaryText) -> Any:
        self.questions.append(question)
        return self.answers.pop(0)


class Commands:
    """Runs commands on a workspace; `session` is the conversation in use."""

    def __init__(self, workspace: Workspace, session: ChatSession) -> None:
        self.workspace = workspace
        self.chat = Chat(workspace, session)
        self.screen: ScriptedScreen | None = ScriptedScreen()

    @property
    def session(self) -> ChatSession:
        return self.chat.session

    async def run(self, line: str, *answers: Any, busy: bool = False) -> ScriptedUI:
        """Run one command; every answer has to be asked for."""
        ui = ScriptedUI(*answers, screen=self.screen)
        ui.chat, ui.busy = self.chat, busy
        command, args = slash.parse(line)
        await slash.run(command, ui, self.chat, args)
        assert not ui.answers, ui.answers
        return ui

    async def output(self, line: str, *answers: Any) -> str:
        """What a command that refuses nothing says."""
        ui = await self.run(line, *answers)
        assert ui.refusals == []
        return "\n".join(ui.output)

    async def refusal(self, line: str, *answers: Any) -> str:
        """Why a command does nothing."""
        ui = await self.run(line, *answers)
        assert ui.output == []
        return "\n".join(ui.refusals)

    async def completions(self, line: str) -> list[str]:
        """What is offered for a draft."""
        ui = ScriptedUI(screen=self.screen)
        return [choice.key for choice in await slash.complete(ui, self.chat, line)]


async def printed(view: View, width: int = 79) -> str:
    """What a view shows as lines."""
    return "\n".join(line.plain.rstrip() for line in await view.lines(width))
