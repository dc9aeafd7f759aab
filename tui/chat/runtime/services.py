"""Shared by all sessions of a running program: the services, with its tools, and work that is not interrupted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from tui.chat.runtime.model_facts import ModelFacts
from tui.chat.servers import Servers
from tui.chat.store.calls import CallLog
from tui.chat.store.codec import MALFORMED
from tui.chat.store.learned import StoredCalibrations, StoredCounts, StoredMeasurements, optional_write
from tui.chat.store.store import SessionStore
from tui.config.settings import Settings, ToolSettings
from tui.context.counting.counting import TokenCounter
from tui.context.counting.digests import CostBook
from tui.context.estimate.calibration import CalibrationBook
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.measurements import ConversationStateTracker
from tui.messages import BUILT_IN
from tui.providers.base import Provider, ProviderError
from tui.tools.approval import Remembered
from tui.tools.base import Tool, ToolSource

APPROVALS = "tool_approvals"  # key in the store's state: {tool: {"rule": "allow" | "never", "fingerprint": hex}}
USED = "tools_used"  # key in the store's state: {tool: seconds since the epoch}


class Toolbox:
    """All tools, of `sources` and of `servers` by their names, and a person's permanent answers about them."""

    def __init__(
        self,
        settings: ToolSettings,
        store: SessionStore,
        sources: Iterable[ToolSource] = (),
        servers: Mapping[str, ToolSource] | None = None,
    ) -> None:
        self.settings = settings
        self.sources: dict[str, ToolSource] = {source.name: source for source in sources}
        self._store = store
        self._servers = {} if servers is None else servers
        self._unsaved: dict[str, Remembered] = {}  # answers not stored because the disk is full

    def tools(self) -> tuple[Tool, ...]:
        """All tools, the built-in ones first, then by source and name: a fixed order for the provider's cache.

        Of tools with the same name the first is used.
        """
        tools: dict[str, Tool] = {}
        sources = {**self._servers, **self.sources}
        for name in sorted(sources, key=lambda name: (name != BUILT_IN, name)):
            for tool in sorted(sources[name].tools(), key=lambda tool: tool.schema.name):
                tools.setdefault(tool.schema.name, tool)
        return tuple(tools.values())

    def find(self, name: str) -> Tool | None:
        """The tool of that name."""
        return next((tool for tool in self.tools() if tool.schema.name == name), None)

    # -- permanent answers (not on the event loop) --------------------------------------------------------

    def remembered(self) -> Mapping[str, Remembered]:
        """The answers "always" and "never", by tool; read each time, since another program may have stored some."""
        answers: dict[str, Remembered] = {}
        for name, entry in self._store.state(APPROVALS).items():
            with suppress(*MALFORMED):  # such an answer is asked for again
                fingerprint = entry.get("fingerprint") or entry["seal"]  # as older versions called it
                answers[name] = Remembered(name, entry["rule"], str(fingerprint))
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

    def note_use(self, names: Collection[str]) -> None:
        """Record that these tools were used now."""
        if names:
            with optional_write():
                self._store.change_state(USED, lambda used: {**used, **dict.fromkeys(names, time.time())})


class Services:
    """On a store, with the tools of `sources`. `provider` returns the one of a name; it raises `ProviderError`."""

    def __init__(
        self,
        settings: Settings,
        store: SessionStore,
        provider: Callable[[str], Provider],
        sources: Iterable[ToolSource],
    ) -> None:
        counts = StoredCounts(store)
        self.settings = settings
        self.store = store
        self.provider = provider
        self.calls = CallLog(store)
        self.counter = TokenCounter(counts)
        self.models = ModelFacts(store, settings, provider)
        self.estimator = HybridTokenEstimator(
            self.counter,
            ConversationStateTracker(StoredMeasurements(store)),
            CalibrationBook(StoredCalibrations(store)),
            CostBook(counts),
            self.models.answering,
        )
        self.servers = Servers(settings, store)
        self.tools = Toolbox(settings.tools, store, sources, self.servers.hub.servers)

    async def prepare(self, provider: str) -> None:
        """Load what sends requests to a provider. What is wrong with it shows when something is sent."""
        with suppress(ProviderError):
            await self.provider(provider).prepare()


# -- cancellation: work that must not stop half-way, and a task that ends its own --------------------------------------

P = ParamSpec("P")
T = TypeVar("T")


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. A cancellation in the meantime is raised at the caller's next await instead.

    For changes that are stored and then shown: both happen, or neither.
    """
    task = asyncio.create_task(work)
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancellation = cancellation or error  # the first one has the reason
            end_cancellation()
    if cancellation is not None and (current := asyncio.current_task()) is not None:
        current.cancel(*cancellation.args)
    return task.result()


def uninterruptible(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """`work`, always run by `uninterrupted`."""

    @wraps(work)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await uninterrupted(work(*args, **kwargs))

    return run


def end_cancellation() -> None:
    """Continue after a caught `CancelledError`: the running task is no longer being cancelled."""
    if (task := asyncio.current_task()) is not None:
        task.uncancel()
