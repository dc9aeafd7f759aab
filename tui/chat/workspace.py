"""Workspace: opens the store, chooses provider and model, creates sessions. One for each running program."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tui.chat.attachments import check_taken, mentioned, read_attachment
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.history import RecordKind, fold_records, readable_records
from tui.chat.interchange.fork import fork_session
from tui.chat.memory_files import MemoryFiles, load_memory
from tui.chat.runtime.services import Services
from tui.chat.servers import Servers
from tui.chat.store.database import DamagedError, new_id
from tui.chat.store.learned import optional_write
from tui.chat.store.store import Record, SessionInfo, SessionStore
from tui.chat.turn.session import LAST_MODELS, ChatSession
from tui.config.settings import Settings
from tui.errors import UsageError
from tui.messages import Attachment
from tui.providers.base import Provider, ProviderError
from tui.providers.config import ProviderConfig
from tui.providers.http.proxies import is_loopback
from tui.providers.keys import redact
from tui.providers.registry import Choice, all_configs, choose_default, ignored_settings, make_provider
from tui.tools.files.builtin import BuiltInTools

if TYPE_CHECKING:
    from tui.chat.interchange.importing import Imported
    from tui.chat.model_list import ModelList
    from tui.chat.provider_setup import ProviderSetup

log = logging.getLogger(__name__)


class Workspace:
    """Created by `open`. Raises `StoreError`, `UsageError` and `ProviderError`, each with one line for a person."""

    def __init__(
        self, settings: Settings, store: SessionStore, configs: dict[str, ProviderConfig], resume: str | None
    ) -> None:
        self.settings = settings
        self._resume = resume
        self.store = store
        self._configs = configs
        self._providers: dict[str, Provider] = {}
        self.deleted = ""  # id of the session deleted last by this program
        self.folder = Path.cwd()  # as it was at the start: it may be deleted
        built_in = BuiltInTools(self.folder, settings.tools.allow)
        self.services = Services(settings, store, self.provider, [built_in])
        self._news = [line for name, table in settings.providers.items() for line in ignored_settings(name, table)]

    @classmethod
    async def open(cls, settings: Settings, *, resume: str | None = None) -> Workspace:
        """Open the store, recover what a dead program left open, and find the providers.

        `resume` is the session that `start_session` opens: None for a new one, "" for the last.
        """
        try:
            window = settings.for_model("local").window
            configs = all_configs(settings.providers, gguf=settings.gguf, window=window)
        except ValueError as error:
            raise UsageError(str(error)) from None
        store = await asyncio.to_thread(SessionStore, settings.database)
        with suppress(DamagedError):  # reading continues; the first write reports it
            await asyncio.to_thread(store.recover)
        workspace = cls(settings, store, configs, resume)
        await workspace.servers.load(workspace.folder)
        return workspace

    @property
    def servers(self) -> Servers:
        """The MCP servers of this run."""
        return self.services.servers

    def news(self) -> list[str]:
        """Lines for the person, each once: ignored settings, and those of the MCP servers."""
        news, self._news = self._news, []
        return [*news, *self.servers.news()]

    async def close(self) -> None:
        """Stop MCP servers, providers (and the embedded model's process) and close the store. Idempotent."""
        await self.servers.close()
        providers, self._providers = list(self._providers.values()), {}
        for provider in providers:
            await provider.close()
        await asyncio.to_thread(self.store.close)

    # -- providers and models ------------------------------------------------------------------------------------

    def provider(self, name: str) -> Provider:
        """The provider of that name, created on first use."""
        if name not in self._providers:
            try:
                self._providers[name] = make_provider(name, self._configs.get(name))
            except ValueError as error:
                raise ProviderError("not_found", str(error)) from None
        return self._providers[name]

    @cached_property
    def setup(self) -> ProviderSetup:
        """What adds and changes providers."""
        from tui.chat.provider_setup import ProviderSetup

        return ProviderSetup(self._configs, self._drop, self.settings.config_file, self.settings.providers)

    @cached_property
    def model_list(self) -> ModelList:
        """The models of all providers."""
        from tui.chat.model_list import ModelList

        return ModelList(self.services, self._configs)

    async def _drop(self, name: str) -> None:
        """Close a provider whose settings have changed."""
        if (provider := self._providers.pop(name, None)) is not None:
            await provider.close()

    async def choose(self, explicit: str | None = None) -> Choice:
        """The model to begin with: the requested one, the last used, one with a key, a local or the embedded one.

        If only its server can name a model, it is asked. Raises `UsageError` and `ProviderError`.
        """
        settings = self.settings
        used = await asyncio.to_thread(self.store.state, LAST_MODELS)
        latest = used.pop("", None)
        requested = explicit or settings.model or ("local" if settings.gguf else None)
        try:
            choice = await choose_default(self._configs, explicit=requested, last_used=latest, last_by_provider=used)
        except ValueError as error:
            raise UsageError(str(error)) from None
        if choice.model:
            return choice
        offered = await self.provider(choice.provider).models()
        if not offered:
            raise UsageError(f"{choice.provider} offers no model; load one there, or name one with -m provider/model")
        return replace(choice, model=offered[0].id)

    async def find_model(self, name: str) -> str:
        """The full name for `name`: a provider (its last model), a model, or a part of its name.

        Raises `UsageError`.
        """
        full_name = "" if name in self._configs else await self.model_list.find(name)
        return full_name or (await self.choose(name)).full_name

    # -- sessions ------------------------------------------------------------------------------------------------

    async def start_session(self) -> ChatSession:
        """The conversation requested on the command line."""
        if self._resume is None:
            return await self.new_session()
        return await self.resume(self._resume or None)

    async def new_session(self, model: str | None = None) -> ChatSession:
        """An empty session. Without messages, `SessionStore.recover` deletes it the next day."""
        choice = await self.choose(model)
        now = time.time()
        rolling = self.settings.rolling_context or await asyncio.to_thread(self.store.get_state, "rolling") == "on"
        info = SessionInfo(new_id(), "", choice.provider, choice.model, now, now, rolling=rolling)
        memory = await asyncio.to_thread(self._memory)
        await asyncio.to_thread(self.store.create_session, info)
        return await self._session(Conversation(self.store, info, [], [], memory), keep=bool(memory.files))

    async def resume(
        self, session_id: str | None = None, model: str | None = None, *, look: bool = False
    ) -> ChatSession:
        """Open a stored session: the newest one, or by its id or a part of it.

        It continues with its own model, unless there is a `model` or the command line named one. With `look` the store
        is not changed: changed memory files are reported again the next time.
        """
        find = self.store.last_session if session_id is None else partial(self.store.find, session_id)
        if (info := await asyncio.to_thread(find)) is None:
            raise UsageError("there is no session yet; start one with: chatctx")
        messages = await asyncio.to_thread(self.store.messages, info.id)
        records = await asyncio.to_thread(readable_records, self.store, info.id)
        if requested := model or self.settings.asked_model:
            choice = await self.choose(requested)
            info = replace(info, provider=choice.provider, model=choice.model)
        memory = (await asyncio.to_thread(self._memory)).resumed(fold_records(records).memory)
        conversation = Conversation(self.store, info, messages, records, memory)
        session = await self._session(conversation, keep=memory.changed and not look)
        await asyncio.to_thread(self._measure_imported, session, records)
        await session.measure_stored()
        return session

    def _measure_imported(self, session: ChatSession, records: Sequence[Record]) -> None:
        """Learn what an imported session's calls measured, when it is first opened."""
        if unmeasured := self.store.unmeasured(session.id):
            from tui.chat.interchange.replay import measure_imported

            system = tuple(section for section in session.conversation.target.system if section.kind == "system")
            measure_imported(unmeasured, session.id, session.messages, records, self.services.estimator, system)
            with optional_write():
                self.store.set_measured(session.id)

    async def fork(self, session_id: str, message_id: str) -> ChatSession:
        """A new session that begins like this one up to a message, with the same model; see `fork_session`."""
        info = await asyncio.to_thread(fork_session, self.store, session_id, message_id)
        return await self.resume(info.id, f"{info.provider}/{info.model}")

    async def _session(self, conversation: Conversation, *, keep: bool) -> ChatSession:
        """The session of a conversation; `keep` records its memory files beside its history."""
        session = ChatSession(conversation, self.services)
        if keep:
            await conversation.add_record(RecordKind.MEMORY, conversation.memory.to_json())
        return session

    def _memory(self) -> MemoryFiles:
        config = self.settings.config_file
        beside = config.absolute().parent if config.name else None
        return load_memory(self.settings.memory_files, self.folder, beside, Path.home())

    async def sessions(self, query: str = "") -> list[SessionInfo]:
        """Sessions with messages, newest first; with `query`, those that contain it."""
        matching = await asyncio.to_thread(self.store.sessions, query)
        return [info for info in matching if info.messages]

    async def add_prompt(self, text: str) -> None:
        """Store a prompt for the up key: a command without a key that was typed as its argument."""
        await asyncio.to_thread(self.store.add_prompt, redact(text) if text.startswith("/") else text)

    def place(self, provider: str) -> str:
        """Where a provider's model runs, in one sentence for the welcome text."""
        return where_it_runs(provider, self._configs)

    async def delete_session(self, session_id: str) -> None:
        """Remove a session from the list; `restore_session` restores it."""
        await asyncio.to_thread(lambda: self.store.update_session(session_id, deleted_at=time.time()))
        self.deleted = session_id

    async def restore_session(self, session_id: str) -> None:
        """The inverse of `delete_session`."""
        await asyncio.to_thread(lambda: self.store.update_session(session_id, deleted_at=None))
        self.deleted = "" if self.deleted == session_id else self.deleted

    async def attach(self, path: Path) -> Attachment:
        """Read a file to attach, and store its bytes. Raises `AttachmentError`, one line for a person."""
        attachment, data = await asyncio.to_thread(read_attachment, path)
        if attachment.kind != "text":
            await asyncio.to_thread(self.store.put_blob, attachment.sha256, data)
        return attachment

    async def mentioned(self, text: str, session: ChatSession, folder: Path) -> list[Attachment]:
        """The files and resources mentioned in a message, read now.

        Raises `AttachmentError`, also for kinds that the session's model does not accept.
        """
        if "@" not in text:
            return []
        paths = await asyncio.to_thread(mentioned, text, folder)
        attachments = [await self.attach(path) for path in paths]
        for resource in self.servers.mentioned(text):
            attachments += await self.servers.attach(resource)
            await self.servers.follow(resource)
        check_taken(attachments, session.conversation.target.capabilities, session.model)
        return attachments

    async def import_file(self, path: Path, *, again: bool = False) -> Imported:
        """Import every conversation of a file; returns the newest, `skipped` says what of the others was not imported.

        Raises `RecordingError`, one line for a person, if there is none.
        """
        from tui.chat.interchange.importing import AlreadyHereError, import_file
        from tui.chat.interchange.recording import RecordingError

        def import_all() -> Imported:
            imported: list[Imported] = []
            errors: list[RecordingError] = []
            try:
                for outcome in import_file(self.store, path, providers=self._configs, again=again):
                    if isinstance(outcome, RecordingError):
                        errors.append(outcome)
                    else:
                        imported.append(outcome)
            except RecordingError as error:
                errors.append(error)
            damaged = [error for error in errors if not isinstance(error, AlreadyHereError)]
            if not imported:
                raise (damaged or errors)[0]
            newest = max(imported, key=lambda one: one.info.updated_at)
            return replace(newest, skipped="; ".join(filter(None, (newest.skipped, *map(str, damaged)))))

        return await asyncio.to_thread(import_all)


def where_it_runs(provider: str, configs: Mapping[str, ProviderConfig]) -> str:
    """Where a provider's models run, in one sentence for the welcome text.

    A server on this machine may be a gateway, or use a cloud for some models (like Ollama): the sentence says no more
    than where the server is.
    """
    if provider in ("local", "demo"):
        return "It runs on this machine: nothing you write leaves it."
    config = configs.get(provider)
    address = urlsplit(config.base_url) if config and config.base_url else None
    host = address.hostname if address else None
    if address and host and is_loopback(host):
        return f"Its server is on this machine, at {address.netloc.rpartition('@')[2]}."
    return f"It runs at {host or provider}: what you write is sent there."
