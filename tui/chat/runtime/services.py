"""The services shared by all sessions of a running program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tui.chat.runtime.toolbox import Toolbox
from tui.chat.runtime.windows import Windows
from tui.chat.store.calls import CallLog
from tui.chat.store.store import SessionStore
from tui.config.settings import Settings
from tui.context.counting.counting import TokenCounter
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.providers.base import Provider


@dataclass(frozen=True, slots=True)
class Services:
    """Created once by the workspace. `provider` returns the provider of a name; it raises `ProviderError`."""

    store: SessionStore
    calls: CallLog
    settings: Settings
    counter: TokenCounter
    estimator: HybridTokenEstimator
    windows: Windows
    provider: Callable[[str], Provider]
    tools: Toolbox
