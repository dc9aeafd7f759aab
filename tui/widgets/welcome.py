"""What an empty conversation says: who answers, where that runs, and three things to try."""

from __future__ import annotations

from textual.content import Content

from tui.context.usage import ContextUsage
from tui.widgets.figures import tokens_short

TRY = (
    ("Ask something.", "Enter sends, ctrl+j starts a new line."),
    ("/context", "shows what fills the window, and what is left of it."),
    ("/model", "changes who answers; / lists all commands, F1 the keys."),
)


def welcome(provider: str, model: str, usage: ContextUsage | None, where: str) -> Content:
    """The static text of an empty conversation. No markup is read from the model's name."""
    window = usage.limits.context if usage is not None else None
    size = f" · window {tokens_short(window, strip=True)} tokens" if window else ""
    lines: list[Content] = [
        Content.assemble((model, "bold $primary"), (size, "$text-muted")),
        Content.styled(where or f"Messages go to {provider}.", "$text-muted"),
        Content(""),
    ]
    for what, why in TRY:
        lines.append(Content.assemble((f"{what:<16}", "$foreground"), (why, "$text-muted")))
    return Content("\n").join(lines)
