"""Actions on one message of the transcript (copy, edit, ask again, fork, pin, leave out, open), and their keys."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.commands import BUSY, parse
from tui.messages import Message, ToolResult
from tui.screens.base import Hint
from tui.terminal.browser import open_in_browser
from tui.widgets.transcript.transcript import Transcript

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession
    from tui.screens.chat.screen import ChatScreen


class MessageActions:
    """Acts on the messages of a chat screen."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen

    async def run(self, requested: Transcript.ActionRequested) -> None:
        """Run an action on a message."""
        session = self._screen.session
        messages = session.messages if session is not None else ()
        message = next((message for message in messages if message.id == requested.message_id), None)
        if session is None or message is None:
            return
        match requested.action:
            case "copy_code" if not requested.text:
                self._screen.notify("There is no code block in this message.", markup=False)
            case "copy" | "copy_code":
                self._screen.app.copy_to_clipboard(requested.text, requested.detail)
            case "edit" if message.kind == "summary":
                self._screen.run_command(parse("/summary")[0], message.id)
            case "edit" | "retry":
                self._resend(message, session.messages, send=requested.action == "retry")
            case "pin" | "exclude":
                from tui.screens.context_lists import select_message

                if reason := await select_message(session, message.id, pin=requested.action == "pin"):
                    self._screen.notify(reason, markup=False)
                self._screen.request_changed()
            case "fork":
                await self._fork(message)
            case "open":
                await self._open_result(session, message)

    def _busy(self) -> bool:
        """Whether an answer is running, which is then reported."""
        busy = self._screen.turns.busy
        if busy:
            self._screen.transcript.add_notice("warning", BUSY)
        return busy

    async def _open_result(self, session: ChatSession, message: Message) -> None:
        """Show the full output of the tools in a message."""
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        if not results:
            self._screen.notify("This message has no tool result to open.", markup=False)
            return
        texts = []
        for result in results:
            whole = await session.tools.full_text(result.full) if result.full else None
            texts.append((result.name or "tool", result.text if whole is None else whole))
        from tui.screens.pager import Pager

        self._screen.app.push_screen(Pager(texts))

    async def _fork(self, message: Message) -> None:
        """Continue from this message in a new conversation."""
        workspace, session = self._screen.workspace, self._screen.session
        if workspace is None or session is None or self._busy():
            return
        fork = await workspace.fork(session.id, message.id)
        await fork.set_reasoning(session.conversation.target.reasoning)
        await self._screen.attach(fork)
        self._screen.composer.focus_prompt()
        answer = " /retry answers the last message." if message.role == "user" else ""
        self._screen.transcript.scroll_end(animate=False)  # the new conversation continues there
        self._screen.transcript.add_notice(
            "info", f"This is a fork: what you write here leaves the other conversation as it is.{answer}"
        )

    def _resend(self, message: Message, messages: Sequence[Message], *, send: bool) -> None:
        """Go back to the person's message at or before this one: send it again, or edit it in the draft.

        What followed stays in the conversation but is not sent any more once the new message is sent. At most the last
        turn is set aside without asking: for more, that is shown first, and enter sends.
        """
        before = [m for m in messages if m.id <= message.id and m.role == "user" and m.kind == "chat"]
        if not before or self._busy():
            return
        composer = self._screen.composer
        if composer.value:
            self._screen.drafts.remember(composer.value)
        self._screen.turns.rewind_to = before[-1].id
        composer.value = before[-1].text
        composer.focus_prompt()
        turns = [m for m in messages if m.role == "user" and m.kind == "chat"]
        if send and turns[-1] is before[-1]:
            composer.submit()
        elif send:
            key = self._screen.key("composer.send", "enter").capitalize()
            self._screen.notify(f"{key} sends this again and sets aside all that followed.", markup=False)

    async def open_link(self, url: str) -> None:
        """Open a clicked address, or show it if there is no browser. The screen may be a page of one (`serve`)."""
        if "TEXTUAL_DRIVER" in os.environ:
            self._screen.app.open_url(url)
        elif await asyncio.to_thread(open_in_browser, url):
            self._screen.notify(f"Opening {url}", markup=False)
        else:
            self._screen.transcript.add_notice("info", f"The link: {url}")


_KEYS: Sequence[Hint] = (
    ("o", "open", "focused.request('open')"),
    ("enter", "unfold", "focused.toggle_fold"),
    ("c", "copy", "focused.request('copy')"),
    ("e", "edit", "focused.request('edit')"),
    ("r", "retry", "focused.request('retry')"),
    ("f", "fork", "focused.request('fork')"),
    ("p", "pin", "focused.request('pin')"),
    ("x", "leave out", "focused.request('exclude')"),
    ("y", "copy code", "focused.request('copy_code')"),
    ("esc", "back", "focused.leave"),
)
"""The most useful first."""


def message_keys(*, on_result: bool, folds: bool) -> list[Hint]:
    """The keys for a chosen message: tool results can be opened, and some messages have parts to unfold."""
    absent = {"open": not on_result, "unfold": not folds}
    return [key for key in _KEYS if not absent.get(key[1])]
