"""Keys that run out: where a command gives the key, it is asked again once the server refuses the one in use."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from tui.messages import Request
from tui.providers.base import ProviderError, StreamEvent
from tui.providers.config import ProviderConfig

log = logging.getLogger(__name__)


class Renewal:
    """The key of one provider. `drop` lets go of the client that was made with it.

    Tokens of cloud providers (`gcloud auth print-access-token`) hold for an hour; a conversation may take longer.
    """

    def __init__(self, config: ProviderConfig, drop: Callable[[], Awaitable[None]]) -> None:
        self._config = config
        self._drop = drop
        self._used: str | None = None

    async def key(self) -> str | None:
        """The key to make a client with. Raises `ProviderError`."""
        self._used = await self._config.key()
        return self._used

    async def stream(
        self, answer: Callable[[Request], AsyncGenerator[StreamEvent, None]], request: Request
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events of `answer(request)`, with another key where there is one now. Raises `ProviderError`."""
        begun = False
        try:
            async with aclosing(answer(request)) as events:
                async for event in events:
                    begun = True
                    yield event
            return
        except ProviderError as error:
            if begun or error.status != 401 or not self._config.api_key_command:
                raise
            if await self._config.key() == self._used:
                raise
            log.info("%s refused the key; the command gives another one now", self._config.name)
        await self._drop()
        async with aclosing(answer(request)) as events:
            async for event in events:
                yield event
