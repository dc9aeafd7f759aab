"""The `UI` of slash commands in `--plain`: panels become lines.

Output of commands goes to standard output, refusals to standard error. No escape sequence is ever written.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING

from tui.chat.clipboard import copied_line, copy_tool, run_copy_tool
from tui.cli import complain, table, write
from tui.text.clean import clean_copied, clean_line, clean_text
from tui.views.summary_text import figures_line
from tui.views.view import RejectedError

if TYPE_CHECKING:
    from tui.chat.conversation.events import SessionEvent
    from tui.chat.turn.session import ChatSession
    from tui.cli.plain import PlainChat
    from tui.views.summary_text import SummaryText
    from tui.views.view import Form, Menu, Option, Question, View

FENCE = '"""'
"""A line that begins and ends a message of several lines."""

LISTED = 20
"""Options shown of a list; words after the command filter it."""

WIDTH = 79
"""Cells of a line: the default width of terminals."""

_SIGNS = re.compile("[\u2500-\u25ff]|^\u00b7")
"""Box drawing, block elements and shapes: meaningless without the picture."""


class PlainUI:
    """Implements `commands.ui.UI`. `/quit` sets `leaving`."""

    screen = None
    busy = False  # commands are read only between turns

    def __init__(self, chat: PlainChat) -> None:
        self._chat = chat
        self.leaving = False

    async def say(self, text: str, *, passing: bool = False) -> None:
        """Print on standard output."""
        write(clean_text(text))

    async def refuse(self, text: str) -> None:
        """Print on standard error."""
        complain(text)

    def progress(self, text: str) -> AbstractAsyncContextManager[None]:
        """Shows nothing: a line can't be taken back."""
        return nullcontext()

    async def show(self, view: View) -> None:
        """Print all lines."""
        for line in await view.lines(WIDTH):
            write(_SIGNS.sub(" ", line.plain).rstrip())

    async def choose(self, menu: Menu) -> str | None:
        """Print the list and how to name an entry; nothing is read, since the next line of a pipe is no answer."""
        options = await menu.source("")
        rows = [_option_row(option) for option in options[:LISTED]]
        if not rows:
            write(f"{menu.empty[:1].upper()}{menu.empty[1:]}.")
            return None
        write(table(rows))
        current = "* in use now. " if any(option.current for option in options) else ""
        more = f" {len(options) - LISTED:,} more are not listed." if len(options) > LISTED else ""
        write(f"{current}{menu.usage} chooses one.{more}")
        return None

    async def confirm(self, question: Question) -> str | None:
        """Print the text and the answers by their keys. Nobody is asked in a pipe, which has messages only."""
        if not self._chat.talks:
            if question.default is None:
                write(clean_text(question.text))
                complain(question.otherwise)
            return question.default
        write(clean_text(question.text))
        answers = {option.key: option for option in question.answers if option.key}
        for option in answers.values():
            write("  " + clean_line(f"{option.key}: {option.label}" + (f", {option.detail}" if option.detail else "")))
        answer = (await self._chat.ask(f"{question.title} ({', '.join(answers)}, or Enter to cancel)")).lower()
        return answer if answer in answers else None

    async def ask(self, form: Form) -> Mapping[str, str] | None:
        """Ask for each field on a line; a required field left empty cancels."""
        if not self._chat.talks:
            complain(form.otherwise)
            return None
        write(clean_line(f"{form.title}. {form.text}".rstrip(". ") + "."))
        values: dict[str, str] = {}
        for field in form.fields:
            default = f" [{field.value}]" if field.value else f" ({field.hint})" if field.hint else ""
            value = await self._chat.ask(clean_line(f"{field.label}{default}:")) or field.value
            if field.required and not value:
                complain("cancelled")
                return None
            values[field.name] = value
        if form.submit is not None:
            try:
                write(await form.submit(values))
            except RejectedError as error:
                complain(str(error))
                return None
        return values

    async def edit(self, text: SummaryText) -> bool:
        """Print it, and ask until it is accepted or left. Nobody is asked in a pipe."""
        from tui.chat.compaction.compactor import FAILURES

        edited = text.text
        while True:
            weight = await text.measure(edited)
            write(f"{text.title}. {text.about(weight)}")
            write(clean_text(edited))
            write(f"({figures_line(weight)})")
            if weight.problem:
                complain(weight.problem)
            if not self._chat.talks:
                complain("nobody can be asked here: the summary stays as it is")
                return False
            accept = "" if weight.problem else f"y {text.accept_label}, "
            match (await self._chat.ask(f"{accept}e write another text, n cancel:")).lower():
                case "y" if not weight.problem:
                    try:
                        await text.accept(edited)
                    except FAILURES as error:
                        complain(str(error))
                    else:
                        return True
                case "e":
                    write(f"{FENCE} begins and ends a text of several lines.")
                    edited = await self._chat.text("summary:") or edited
                case "n" | "":
                    return False

    async def turn(self, events: AsyncIterator[SessionEvent]) -> None:
        """Print the turn as it proceeds."""
        await self._chat.turn(events)

    async def attach(self, session: ChatSession) -> None:
        """Print the model and where the conversation ended."""
        self._chat.attach(session)

    async def changed(self) -> None:
        """Measure again; the next turn shows the result."""
        await self._chat.session.refresh_usage()

    async def copy(self, text: str) -> None:
        """Copy with the system's tools only."""
        text, tool = clean_copied(text), copy_tool(os.environ)
        if tool is None or not await run_copy_tool(tool, text):
            complain("the clipboard is not available here: /export FILE writes the conversation to a file")
        else:
            write(copied_line("", len(text), tool[0], True))

    async def leave(self) -> None:
        """End the chat after this command."""
        self.leaving = True


def _option_row(option: Option) -> tuple[str, str, str, str]:
    name = option.name or option.key
    label = "" if option.label == name else option.label
    return "*" if option.current else " ", name, label, option.detail.strip()
