"""A server's client and its key, which may expire: if a command prints the key, it is run again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tui.providers.base import ProviderError
from tui.providers.config import ProviderConfig
from tui.providers.http.client import Client

log = logging.getLogger(__name__)

T = TypeVar("T")


class Connection:
    """One provider's client, made by `connect` with a key at first use, and again once the server refuses that key.

    Tokens of cloud providers (`gcloud auth print-access-token`) are valid for an hour; a conversation may last longer.
    """

    def __init__(self, config: ProviderConfig, connect: Callable[[str | None], Awaitable[Client]]) -> None:
        self._config = config
        self._connect = connect
        self._client: Client | None = None
        self._key: str | None = None
        self._outdated: list[Client] = []  # may still stream an answer: the key counts at the start of a request
        self._busy = asyncio.Lock()

    async def client(self) -> Client:
        """The client. Raises `ProviderError` if there is no key."""
        async with self._busy:
            if self._client is None:
                self._key = await self._config.key()
                self._client = await self._connect(self._key)
            return self._client

    async def ask(self, question: Callable[[], Awaitable[T]]) -> T:
        """The result of `question()`, repeated with a new key if there is one. Raises `ProviderError`."""
        used = self._client
        try:
            return await question()
        except ProviderError as error:
            if not await self.renewed(error, used):
                raise
        return await question()

    async def renewed(self, error: ProviderError, used: Client | None) -> bool:
        """Whether the client differs from `used`, which failed with `error`: the command prints another key now."""
        if error.status != 401 or not self._config.api_key_command:
            return False
        async with self._busy:
            if used is not None and self._client is not used:
                return True  # done by another refused request
            if await self._config.key() == self._key:
                return False
            log.info("%s refused the key; the command gives another one now", self._config.name)
            if self._client is not None:
                self._outdated.append(self._client)
            self._client = None
            return True

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        clients, self._outdated = self._outdated, []
        if self._client is not None:
            clients.append(self._client)
        self._client = None
        for client in clients:
            await client.close()
