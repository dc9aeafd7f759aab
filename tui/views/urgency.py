"""How full the window is, as a sign and a colour. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.context.usage.usage import ContextUsage


def urgency(usage: ContextUsage) -> str:
    """The theme colour of how full the window is: amber from 75 %, red from 90 %, else ""."""
    match usage.percent:
        case None:
            return ""
        case value if value >= 90:
            return "$text-error"
        case value if value >= 75:
            return "$text-warning"
    return ""


def alarm(usage: ContextUsage) -> str:
    """ "!" from 90 % (and " !" reads without colour), else ""."""
    return " !" if usage.percent is not None and usage.percent >= 90 else ""
