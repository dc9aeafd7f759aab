"""The toolbox: all tools of a running program, from every source, and a person's permanent answers about them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from tui.chat.store.store import SessionStore
from tui.config.settings import ToolSettings
from tui.context.reduction.deferral import BUILT_IN
from tui.messages import SystemSection
from tui.providers.base import Provider, ProviderError
from tui.tools.approval import Remembered
from tui.tools.base import Tool, ToolSource

log = logging.getLogger(__name__)

APPROVALS = "tool_approvals"  # key in the store's state: {tool: {"rule": "allow" | "never", "fingerprint": hex}}
SUPPORT = "tools:"  # + "provider/model", key in the store's state: true or false
USED = "tools_used"  # key in the store's state: {tool: seconds since the epoch}


async def _nothing() -> None:
    """There is no server to wait for."""


class Toolbox:
    """Created once by the workspace. Sources are added and change on the event loop."""

    def __init__(self, settings: ToolSettings, store: SessionStore, sources: Iterable[ToolSource] = ()) -> None:
        self.settings = settings
        self.support = ToolSupport(store)
        self._store = store
        self._sources: dict[str, ToolSource] = {source.name: source for source in sources}
        # What `Servers` sets once there are any.
        self.wait_until_started: Callable[[], Awaitable[None]] = _nothing  # gives starting servers a moment
        self.wait_until_current: Callable[[], Awaitable[None]] = _nothing  # so that lists they said are new count
        self.instructions: Callable[[], Sequence[SystemSection]] = tuple  # how servers say they are to be used
        self._unsaved: dict[str, Remembered] = {}  # answers not stored because the disk is full

    # -- tools -------------------------------------------------------------------------------------------

    def add_source(self, source: ToolSource) -> None:
        """Add a source, replacing an earlier one of that name, except for the built-in one."""
        if source.name != BUILT_IN:
            self._sources[source.name] = source

    def remove_source(self, name: str) -> None:
        """Remove a source."""
        if name != BUILT_IN:
            self._sources.pop(name, None)

    def tools(self) -> tuple[Tool, ...]:
        """All tools, the built-in ones first, then by source and name: a fixed order for the provider's cache.

        Of tools with the same name the first is used.
        """
        tools: dict[str, Tool] = {}
        for name in sorted(self._sources, key=lambda name: (name != BUILT_IN, name)):
            for tool in sorted(self._sources[name].tools(), key=lambda tool: tool.schema.name):
                tools.setdefault(tool.schema.name, tool)
        return tuple(tools.values())

    def find(self, name: str) -> Tool | None:
        """The tool of that name."""
        return next((tool for tool in self.tools() if tool.schema.name == name), None)

    # -- permanent answers (not on the event loop) --------------------------------------------------------

    def remembered(self) -> Mapping[str, Remembered]:
        """The answers "always" and "never", by tool; read each time, since another program may have stored some."""
        stored = self._store.state(APPROVALS).items()
        answers = {  # older versions wrote "seal"
            name: Remembered(name, entry["rule"], entry.get("fingerprint") or entry["seal"]) for name, entry in stored
        }
        return answers | self._unsaved

    def remember(self, answer: Remembered) -> None:
        """Store an answer, replacing an earlier one for that tool. On `StoreError` it is kept in memory."""
        self._unsaved[answer.tool] = answer
        self._change(lambda answers: answers)

    def forget(self, name: str) -> None:
        """Ask again from now on. Raises `StoreError`."""
        self._unsaved.pop(name, None)
        self._change(lambda answers: {tool: answer for tool, answer in answers.items() if tool != name})

    def _change(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        unsaved = {
            name: {"rule": answer.rule, "fingerprint": answer.fingerprint} for name, answer in self._unsaved.items()
        }
        self._store.change_state(APPROVALS, lambda answers: {**change(answers), **unsaved})
        self._unsaved.clear()

    # -- when each was used last (not on the event loop) ------------------------------------------------------------

    def last_used(self) -> Mapping[str, float]:
        """Seconds since the epoch, by tool."""
        return self._store.state(USED)

    def note_use(self, names: Iterable[str], at: float) -> None:
        """Record their use at `at` (seconds since the epoch). Raises `StoreError`."""
        self._store.change_state(USED, lambda used: {**used, **dict.fromkeys(names, at)})


class ToolSupport:
    """Whether models support tools, asked of each model's server once per run, and stored."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._support: dict[str, bool | None] = {}
        self._asked: set[str] = set()

    def takes_tools(self, provider: str, model: str) -> bool | None:
        """What is known without asking; None is unknown."""
        name = f"{provider}/{model}"
        if name not in self._support:
            text = self._store.get_state(SUPPORT + name)
            self._support[name] = None if text is None else json.loads(text)
        return self._support[name]

    def forget(self, provider: str, model: str) -> None:
        """Forget it and ask the server again next time. Raises `StoreError`. Not on the event loop."""
        name = f"{provider}/{model}"
        if self.takes_tools(provider, model) is not None:
            self._store.put_state(SUPPORT + name, json.dumps(None))
        self._support[name] = None
        self._asked.discard(name)

    async def find(self, provider: Provider, model: str) -> None:
        """Ask the server, once per run. Raises nothing: without an answer nothing changes."""
        name = f"{provider.name}/{model}"
        if name in self._asked:
            return
        try:
            takes_tools = await provider.takes_tools(model)
        except ProviderError as error:
            takes_tools = None
            log.info("whether %s calls tools is not known: %s", name, error)
        self._asked.add(name)
        if takes_tools is not None:
            await asyncio.to_thread(self.learn, provider.name, model, takes_tools)

    def learn(self, provider: str, model: str, takes_tools: bool) -> None:
        """Store this. Raises `StoreError`. Not on the event loop."""
        name = f"{provider}/{model}"
        if self.takes_tools(provider, model) is not takes_tools:
            self._store.put_state(SUPPORT + name, json.dumps(takes_tools))
            self._support[name] = takes_tools
