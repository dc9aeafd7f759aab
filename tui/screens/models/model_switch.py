"""The question before a switch to a model whose window is smaller than the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.screens.items import Item
from tui.screens.question import Question
from tui.text.numbers import tokens_exact

if TYPE_CHECKING:
    from tui.context.usage.usage import ContextUsage
    from tui.screens.session_ports import SessionLike

COMPACT, SWITCH, STAY = "compact", "switch", "stay"


def too_small(session: SessionLike, name: str, there: ContextUsage) -> Question:
    """The three ways to go on, with the figures of both sides."""
    about = "" if there.source == "exact" else "~"
    text = (
        f"This conversation is {about}{tokens_exact(there.total)} tokens to {name}, whose window of "
        f"{tokens_exact(there.limits.context)} takes {tokens_exact(there.budget.max_input)} of input."
    )
    old = f"{session.provider}/{session.model}"
    if session.rolling:
        later = "old content is left out until it fits"
    elif there.budget.compaction_at is not None:
        later = f"{name} summarises it itself, in parts, before your next message"
    else:
        later = "nothing is sent until it fits: /compact or /rolling-context on"
    return Question(
        "A smaller window",
        text,
        (
            Item(COMPACT, "Summarise first", f"{old} does that now, then {name} goes on"),
            Item(SWITCH, "Switch anyway", later),
            Item(STAY, f"Stay with {old}", "nothing changes"),
        ),
    )
