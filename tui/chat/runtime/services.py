"""What every session of a running program shares."""

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
from tui.messages import Usage
from tui.providers.base import Provider


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
