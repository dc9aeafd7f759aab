"""A conversation in memory: the history, the records beside it, and the request they make for the model in use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tui.chat import history
from tui.chat.history import HistoryState, fold_records
from tui.chat.projection import Target, active_messages, build_request
from tui.chat.store import Record, SessionInfo, SessionStore
from tui.messages import Message, Request


class Conversation:
    """One session's history. Changes go to the store first, then show here."""

    def __init__(
        self, store: SessionStore, info: SessionInfo, messages: list[Message], records: list[Record], target: Target
    ) -> None:
        self.store = store
        self.info = info
        self.messages = messages
        self.target = target
        self._records = records
        self._state = fold_records(records)
        self._request: Request | None = None

    @property
    def state(self) -> HistoryState:
        """What the records add up to."""
        return self._state

    # -- changes -------------------------------------------------------------------------------------------------

    async def add_message(self, message: Message) -> None:
        """Append a finished message. Raises `StoreError`."""
        await asyncio.to_thread(self.store.add_message, self.info.id, message)
        self.show_message(message)

    def show_message(self, message: Message) -> None:
        """Take a message that is in the store already: a new one, or the final form of the last."""
        self.messages.append(message)
        self._request = None

    async def add_record(self, kind: str, data: dict[str, Any]) -> Record:
        """Append a record. Raises `StoreError`."""
        record = await asyncio.to_thread(self.store.add_record, self.info.id, kind, data)
        self._records.append(record)
        self._state = fold_records(self._records)
        self._request = None
        return record

    async def set_aside(self, ids: list[str]) -> None:
        """Take messages out of the conversation; they stay in the history."""
        await self.add_record(history.SET_ASIDE, {"ids": ids, "frontier": self.frontier})

    async def update(self, **values: str | float | bool | None) -> None:
        """Set columns of the session. Raises `StoreError`."""
        await asyncio.to_thread(lambda: self.store.update_session(self.info.id, **values))
        self.info = replace(self.info, **values)  # type: ignore[arg-type]

    def aim(self, target: Target) -> None:
        """From now on requests are for `target`."""
        self.target = target
        self._request = None

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def frontier(self) -> str:
        """The newest message's id; "" in an empty history."""
        return self.messages[-1].id if self.messages else ""

    def request(self) -> Request:
        """What would go out now. The same object until something changes."""
        if self._request is None:
            self._request = build_request(self.messages, self._state, self.target)
        return self._request

    def untrimmed_request(self) -> Request:
        """What would go out if rolling context left nothing out."""
        if self._state.trim.empty:
            return self.request()
        return build_request(self.messages, self._state, self.target, trim=False)

    def active(self) -> tuple[Message, ...]:
        """The messages that compaction works on."""
        return active_messages(self.messages, self._state, prefix_bound=self.target.capabilities.prefix_bound)

    def not_sent(self) -> Mapping[str, str]:
        """Message id -> why it does not go out any more."""
        return history.not_sent(self.messages, self._state, self.request().messages)

    def records(self, kind: str) -> list[Record]:
        """The records of one kind, oldest first."""
        return [record for record in self._records if record.kind == kind]
