"""Commands about messages: copy, find, fold; and what is asked of one message in the transcript."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tui.messages import Message
from tui.screens.chat.command_base import CommandBase

if TYPE_CHECKING:
    from tui.screens.session_ports import SessionLike
from tui.screens.chat.tool_commands import open_result


class MessageCommands(CommandBase):
    """The commands `/copy`, `/find`, `/fold` and `/times`, and the keys of a chosen message."""

    times = False  # whether each message says when it was written

    async def copy(self, _args: str) -> None:
        """`/copy`: the last answer."""
        session = self.ready()
        if session is None:
            return
        answer = next((m for m in reversed(session.messages) if m.role == "assistant" and m.text), None)
        if answer is None:
            self.refuse("There is no answer to copy yet.")
        else:
            self.screen.copy_text(answer.text)

    async def find(self, args: str) -> None:
        """`/find words`: shows the nearest hit; again without words: the next one."""
        transcript = self.screen.transcript
        if not args:
            number, count = transcript.find_next()
        else:
            count = await transcript.look_for(args)
            number, count = transcript.find_previous() if count else (0, 0)
        if count:
            self.screen.notify(f"{number} of {count}   /find for the next one", markup=False)
        else:
            self.refuse(f"{args!r} is not in this conversation." if args else "/find needs words to look for.")

    async def fold(self, _args: str) -> None:
        """`/fold`: fold everything that is unfolded, or unfold all."""
        self.screen.transcript.clear_cursor()
        self.screen.transcript.toggle_fold()

    async def show_times(self, _args: str) -> None:
        """`/times`: show when each message was written, or no longer."""
        self.times = not self.times
        self.screen.transcript.show_times(self.times)

    async def on_message(self, message_id: str, action: str, text: str, detail: str) -> None:
        """What was asked of one message in the transcript; `text` is what to copy, `detail` which part of it."""
        session = self.ready()
        message = next((m for m in session.messages if m.id == message_id), None) if session is not None else None
        if session is None or message is None:
            return
        match action:
            case "copy_code" if not text:
                self.screen.notify("There is no code block in this message.", markup=False)
            case "copy" | "copy_code":
                self.screen.copy_text(text, detail)
            case "edit" if message.kind == "summary":
                self.screen.action_command(f"summary {message_id}")
            case "edit" | "retry":
                self._again(message, session.messages, send=action == "retry")
            case "pin" | "exclude":
                await self._select(session, message_id, action)
            case "fork":
                await self._fork(message)
            case "open":
                await open_result(self.screen, message)
            case _:
                self.refuse(f"{action} is not possible here.")

    async def _fork(self, message: Message) -> None:
        """Go on from this message in a conversation of its own."""
        workspace, session = self.workspace(), self.idle()
        if workspace is None or session is None:
            return
        fork = await workspace.fork(session.id, message.id)
        await fork.set_reasoning(session.reasoning)
        await self.screen.attach(fork)
        self.screen.composer.focus_prompt()
        answer = " /retry answers the last message." if message.role == "user" else ""
        self.screen.transcript.scroll_end(animate=False)  # that is where it goes on
        self.say(f"This is a fork: what you write here leaves the other conversation as it is.{answer}")

    def _again(self, message: Message, messages: Sequence[Message], *, send: bool) -> None:
        """Go back to the person's message at or before this one: send it again, or put it into the draft to change.

        What followed stays in the conversation and is not sent any more once the new message goes out. Sending at once
        sets aside the last turn at most: where it is more, that is said first, and enter sends.
        """
        before = [m for m in messages if m.id <= message.id and m.role == "user" and m.kind == "chat"]
        if not before or self.idle() is None:
            return
        composer = self.screen.composer
        if composer.value:
            composer.history.add(composer.value)
        self.screen.turns.rewind_to = before[-1].id
        composer.value = before[-1].text
        composer.focus_prompt()
        turns = [m for m in messages if m.role == "user" and m.kind == "chat"]
        if send and turns[-1] is before[-1]:
            composer.submit()
        elif send:
            self.screen.notify("Enter asks this again, in the place of all that followed.", markup=False)

    async def _select(self, session: SessionLike, message_id: str, action: str) -> None:
        if action == "pin":
            await session.pin(message_id, message_id not in session.pinned)
        else:
            await session.exclude(message_id, session.not_sent.get(message_id) != "excluded")
        await session.refresh_usage()
        self.recounted()

    async def open_link(self, url: str) -> None:
        """Open an address that was clicked, or show it where there is no browser to open."""
        if has_browser(os.environ, sys.platform):
            self.screen.app.open_url(url)
            self.screen.notify(f"Opening {url}", markup=False)
        else:
            self.say(f"The link: {url}")


def has_browser(environ: Mapping[str, str], platform: str) -> bool:
    """Whether a window can open here: not over ssh, on Linux only with a display (one in here would not do)."""
    if environ.get("SSH_CONNECTION"):
        return False
    return platform in ("darwin", "win32") or any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
