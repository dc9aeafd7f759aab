"""What every session of a running program shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tui.chat.calls import CallLog
from tui.chat.store import SessionStore
from tui.chat.windows import Windows
from tui.config import Settings
from tui.context.counting import TokenCounter
from tui.context.estimator import HybridTokenEstimator
from tui.messages import ToolCall, ToolResult, ToolSchema, Usage
from tui.providers.base import Provider


class Toolbox(Protocol):
    """The tools a session offers to the model, and runs."""

    def schemas(self) -> Sequence[ToolSchema]:
        """What is offered, in a fixed order: the order is part of the provider's cache key."""
        ...

    async def call(self, call: ToolCall) -> ToolResult:
        """Run one call. Never raises: what went wrong is a result with `is_error`."""
        ...


class NoTools:
    """A toolbox without tools."""

    def schemas(self) -> Sequence[ToolSchema]:
        """Nothing."""
        return ()

    async def call(self, call: ToolCall) -> ToolResult:
        """An error for the model: it called something it was not offered."""
        return ToolResult(call.id, call.name, f"There is no tool named {call.name}.", is_error=True)


@dataclass(frozen=True, slots=True)
class Services:
    """Made once by the workspace. `provider` gives the provider of a name; it raises `ProviderError`.

    `price` gives US dollars for a call's usage, None where the price is unknown; it may be slow on first use.
    """

    store: SessionStore
    calls: CallLog
    settings: Settings
    counter: TokenCounter
    estimator: HybridTokenEstimator
    windows: Windows
    provider: Callable[[str], Provider]
    tools: Toolbox
    price: Callable[[Usage, str, str], float | None]
