"""Which models call tools, as their servers said or showed: offered to others, tools only cost tokens."""

from __future__ import annotations

import asyncio
import json
import logging

from tui.chat.store.store import SessionStore
from tui.providers.base import Provider, ProviderError

log = logging.getLogger(__name__)

PREFIX = "tools:"  # + "provider/model", key in the store's state: true or false


class ToolSupport:
    """Asks each model's server once in a run, and remembers."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._known: dict[str, bool | None] = {}
        self._asked: set[str] = set()

    def known(self, provider: str, model: str) -> bool | None:
        """What is known without asking; None is nothing."""
        name = f"{provider}/{model}"
        if name not in self._known:
            text = self._store.get_state(PREFIX + name)
            self._known[name] = None if text is None else bool(json.loads(text))
        return self._known[name]

    async def find(self, provider: Provider, model: str) -> None:
        """Ask the server, unless that was done in this run. Raises nothing: silence leaves what was known."""
        name = f"{provider.name}/{model}"
        if name in self._asked:
            return
        self._asked.add(name)
        try:
            said = await provider.takes_tools(model)
        except ProviderError as error:
            log.info("whether %s calls tools is not known: %s", name, error)
            return
        if said is not None:
            await asyncio.to_thread(self.learn, provider.name, model, said)

    def learn(self, provider: str, model: str, said: bool) -> None:
        """From now on this holds. Raises `StoreError`. Not on the event loop."""
        name = f"{provider}/{model}"
        if self.known(provider, model) is not said:
            self._store.put_state(PREFIX + name, json.dumps(said))
            self._known[name] = said
