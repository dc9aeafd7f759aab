"""The client of one server, and its key, which may run out: where a command gives the key, it is asked again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from tui.providers.base import ProviderError
from tui.providers.config import ProviderConfig

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

log = logging.getLogger(__name__)


ClientT = TypeVar("ClientT", bound="AsyncOpenAI | AsyncAnthropic")
T = TypeVar("T")


class Connection(Generic[ClientT]):
    """One provider's client, which `connect` makes with a key at first use, and anew once the server refuses that key.

    Tokens of cloud providers (`gcloud auth print-access-token`) hold for an hour; a conversation may take longer.
    """

    def __init__(self, config: ProviderConfig, connect: Callable[[str | None], Awaitable[ClientT]]) -> None:
        self._config = config
        self._connect = connect
        self._client: ClientT | None = None
        self._key: str | None = None
        self._outdated: list[ClientT] = []  # an answer may still come over one: the key counts when it is asked for
        self._busy = asyncio.Lock()

    async def client(self) -> ClientT:
        """The client. Raises `ProviderError` where the key cannot be had."""
        async with self._busy:
            if self._client is None:
                self._key = await self._config.key()
                self._client = await self._connect(self._key)
            return self._client

    async def ask(self, question: Callable[[], Awaitable[T]]) -> T:
        """The answer to `question()`, with another key where there is one now. Raises `ProviderError`."""
        used = self._client
        try:
            return await question()
        except ProviderError as error:
            if not await self.renewed(error, used):
                raise
        return await question()

    async def renewed(self, error: ProviderError, used: ClientT | None) -> bool:
        """Whether there is another client than `used`, which failed of `error`: the command gives another key now."""
        if error.status != 401 or not self._config.api_key_command:
            return False
        async with self._busy:
            if used is not None and self._client is not used:
                return True  # another question that was refused did it
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
