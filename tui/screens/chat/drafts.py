"""The draft being written: stored copies that survive a crash, and its cost."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from tui.chat.attachments import AttachmentError, mentioned, not_taken, read_attachment
from tui.commands import is_command
from tui.config.files import unsent_files, write_unsent
from tui.screens.chat.mentions import open_mention
from tui.text.cells import plain
from tui.text.numbers import plural, share, tokens_exact, tokens_short

if TYPE_CHECKING:
    from tui.chat.servers import Servers
    from tui.chat.turn.session import ChatSession
    from tui.messages import Attachment
    from tui.screens.chat.screen import ChatScreen

log = logging.getLogger(__name__)

SAVE_PAUSE = 0.4
"""Seconds after a key before the draft is stored."""


def _without_key(text: str) -> str:
    """`text`; if it is a command, without a key that was typed as its argument."""
    from tui.providers.keys import redact  # not before the first frame

    return redact(text) if is_command(text) else text


class Drafts:
    """Stores the draft of a chat screen, and prompts for the up key."""

    def __init__(self, screen: ChatScreen) -> None:
        self.screen = screen
        self.unstored: list[str] = []  # prompts for the up key that are not stored yet
        self._form = ""  # what was typed into an open form

    def save_soon(self) -> None:
        """Store the draft after a short pause."""
        self.screen.soon(self.save, "draft-save", SAVE_PAUSE)

    @property
    def text(self) -> str:
        """Everything written that is not stored elsewhere: what is being sent, what waits, and the prompt.

        The stored draft is replaced by a shorter one only once the removed part is stored.
        """
        turns, composer = self.screen.turns, self.screen.composer
        texts = [
            *self.unstored,
            turns.sending,
            *turns.waiting,
            *composer.outgoing,
            *composer.history.hidden,
            self._form,
            composer.value,
        ]
        return "\n\n".join(_without_key(text) for text in texts if text).strip("\n")

    def set_form(self, text: str) -> None:
        """Set what was typed into an open form, which is a part of the draft until the form is closed."""
        from tui.providers.keys import redact  # not before the first frame

        if (text := redact(text)) != self._form:
            self._form = text
            self.save_soon()

    async def save(self) -> None:
        """Store the draft, and waiting messages, now."""
        session = self.screen.session
        if session is not None:
            await session.conversation.save_draft(self.text)

    async def hand_over(self, before: ChatSession, session: ChatSession) -> None:
        """Move the draft to a conversation without one; otherwise each keeps its own. Raises `StoreError`."""
        if session.conversation.info.draft:
            await before.conversation.save_draft(self.text)
            self.screen.composer.value = session.conversation.info.draft
        else:
            await session.conversation.save_draft(self.text)  # before it is removed from the old one
            await before.conversation.save_draft("")

    def remember(self, text: str, *, sent: bool = False) -> None:
        """Store a prompt for the up key, in this run and later ones; until then it counts as a draft.

        A `sent` message is part of the conversation as well.
        """
        history = self.screen.composer.history
        hidden = history.hidden
        history.add(text)
        for prompt in hidden if sent else [*hidden, text]:
            self.unstored.append(prompt)
            self.screen.background(partial(self.store_prompt, prompt), "prompts")
        if sent and self.screen.workspace is not None:
            self.screen.background(partial(self.screen.workspace.add_prompt, text), "prompts")

    async def remember_now(self, text: str) -> None:
        """Like `remember`, but stored when this returns. Raises `StoreError`, with the text kept in memory."""
        self.screen.composer.history.add(text)
        self.unstored.append(text)
        await self.store_prompt(text)

    async def save_at_end(self) -> str:
        """Store the draft at the end of the program. Returns what could not be stored, with the reason; "" for nothing.

        The terminal may be gone: the text goes into a file, too, where one can be written.
        """
        screen, session = self.screen, self.screen.session
        unsaved = self.text
        try:
            if session is not None:
                await self.save()
                unsaved = ""
        except Exception as error:
            log.exception("the draft could not be stored")
            screen.broken = screen.one_line(error)
        if session is not None and session.conversation.unsaved:
            unsaved = "\n\n".join(filter(None, [unsaved, *(message.text for message in session.conversation.unsaved)]))
        if not unsaved:
            return ""
        path = await asyncio.to_thread(write_unsent, unsaved, screen.rescue_folders) if unsaved.strip() else None
        log.error("what could not be stored is in %s", path)
        where = f", also written to {path}" if path is not None else ""
        why = screen.broken or "The last answers could not be stored"
        return f"{why}\nNot stored{where}, so that you can copy it:\n{unsaved}"

    def rescued_texts(self) -> list[str]:
        """A line for each file that `save_at_end`, or a kill, has left. Reads folders: not on the event loop."""
        files = unsent_files(self.screen.rescue_folders)
        return [f"Text that was not stored is in {path}: delete the file once you have it." for path in files]

    async def store_prompt(self, text: str) -> None:
        """Store a prompt for the up key; until then it is part of the draft. Raises `StoreError`."""
        if self.screen.workspace is not None:
            await self.screen.workspace.add_prompt(text)
            self.unstored.remove(text)
            self.save_soon()


# -- the cost of the draft, with the files and resources that it names ----------------------------------------------

PAUSE = 0.08
"""Seconds after a key before the draft is counted; longer if counting takes longer."""


def draft_line(tokens: int, window: int | None, files: Sequence[tuple[str, int]] = ()) -> tuple[str, ...]:
    """`draft ~48 tok + parser.py ~2.1k · +1.1 %`, `files` with their tokens, and shorter variants."""
    names = "".join(f" + {plain(name)} {tokens_short(size, 'estimated')}" for name, size in files[:2])
    if len(files) > 2:
        names += f" + {len(files) - 2} more {tokens_short(sum(size for _, size in files[2:]), 'estimated')}"
    whole = tokens + sum(size for _, size in files)
    part = f" · +{share(whole, window)}" + (" !" if whole > window else "") if window else ""
    full = f"draft {tokens_exact(tokens, 'estimated')} tok{names}{part}"
    short = f"{tokens_exact(whole, 'estimated')} tok{part}"
    return (full, f"draft + {plural(len(files), 'file')} {short}", short) if files else (full, short)


class DraftCost:
    """Counts the draft of a chat screen and shows its cost above the prompt."""

    def __init__(self, screen: ChatScreen) -> None:
        self.screen = screen
        self.typed = ""
        self.pasted: Sequence[str] = ()
        self._pastes: dict[tuple[str, str], int] = {}  # (model, text) -> tokens
        self._files: dict[tuple[str, str], tuple[int, str]] = {}  # (model, file) -> tokens, the kind if not accepted
        self._resources: dict[tuple[str, str, str], int | None] = {}  # (model, server, uri) -> tokens
        self._prepared = ""  # the provider that can be asked at once
        self._count_seconds = 0.0  # that the last count took

    def changed(self, typed: str, pasted: Sequence[str]) -> None:
        """Count the changed draft after a short pause."""
        self.typed, self.pasted = typed, pasted
        self.count()

    def count(self) -> None:
        """Count the draft as it is now, and load what sending needs, once a provider."""
        if not self._is_counted():
            self.screen.composer.rule.show(right=())
            return
        session = self.screen.session
        if session is not None and session.provider != self._prepared:
            self._prepared = session.provider
            self.screen.background(partial(self._load, session), "prepare")
        self.screen.soon(self._count, "draft-count", max(PAUSE, 2 * self._count_seconds))

    async def _load(self, session: ChatSession) -> None:
        await session.prepare()
        self.screen.transcript.prepare()  # after what the request needs: both want the same processor

    def _is_counted(self) -> bool:
        """Whether there is something to count: commands are not sent."""
        return bool(self.typed or self.pasted) and self.typed != "/" and not is_command(self.typed)

    async def _count(self) -> None:
        session = self.screen.session
        if session is None or not self._is_counted():
            return
        began = time.monotonic()
        tokens = await asyncio.to_thread(session.draft_tokens, self.typed) if self.typed else 0
        for text in self.pasted:  # each is counted once
            if (key := (session.model, text)) not in self._pastes:
                if len(self._pastes) > 16:
                    self._pastes.clear()
                self._pastes[key] = await asyncio.to_thread(session.draft_tokens, text)
            tokens += self._pastes[key]
        self._count_seconds = min(1.0, time.monotonic() - began)
        window = session.usage.limits.context if session.usage is not None else None
        files, problem = await asyncio.to_thread(self._file_sizes, session) if "@" in self.typed else ([], "")
        if "@" in self.typed and self.screen.workspace is not None:
            files += await self._resource_sizes(session, self.screen.workspace.servers)
        variants = (problem,) if problem else draft_line(tokens, window, files)
        self.screen.composer.rule.show(right=variants if self._is_counted() else ())

    def _file_sizes(self, session: ChatSession) -> tuple[list[tuple[str, int]], str]:
        """The files named in the draft with their tokens; and why one can't be sent, "" if all can.

        Each is read and counted once. Not on the event loop.
        """
        sizes = []
        for path in mentioned(self.typed, self.screen.files.folder):
            try:
                state = path.stat()
                key = (session.model, f"{path}:{state.st_mtime_ns}:{state.st_size}")
                if key not in self._files:
                    attachment, _ = read_attachment(path)
                    tokens = _attachment_tokens(attachment, session)
                    self._files[key] = tokens, not_taken(attachment, session.conversation.target.capabilities)
            except (OSError, AttachmentError):
                continue  # sending reports the error
            tokens, kind = self._files[key]
            if kind:
                return [], f"! {plain(session.model)} takes no {kind}: {plain(path.name)}"
            sizes.append((path.name, tokens))
        return sizes, ""

    async def _resource_sizes(self, session: ChatSession, servers: Servers) -> list[tuple[str, int]]:
        """Name and tokens of each resource named in the draft, read once for this; sending reports unreadable ones."""
        sizes = []
        typing = open_mention(self.typed)
        for resource in servers.mentioned(self.typed):
            if resource.name == resource.uri and f"{resource.server}:{resource.uri}" == typing:
                continue  # an address that is still being typed
            key = (session.model, resource.server, resource.uri)
            if key not in self._resources:
                try:
                    files = await servers.attach(resource)
                    tokens = [await asyncio.to_thread(_attachment_tokens, file, session) for file in files]
                    self._resources[key] = sum(tokens)
                except AttachmentError:
                    self._resources[key] = None
            if (size := self._resources[key]) is not None:
                sizes.append((f"{resource.server}:{resource.name}", size))
        return sizes


def _attachment_tokens(attachment: Attachment, session: ChatSession) -> int:
    """Tokens of a file. Not on the event loop."""
    from tui.context.counting.counting import attachment_tokens

    if attachment.text:
        return session.draft_tokens(attachment.text)
    return attachment_tokens(attachment, session.model)
