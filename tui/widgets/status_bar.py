"""The status line: the context bar, the number, and what can be done about it. Shows one `ContextUsage`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from tui.text.numbers import approx, percent, spent, tokens_short
from tui.views.context.bar import alarm, context_bar, urgency

if TYPE_CHECKING:
    from tui.context.usage.usage import ContextUsage
    from tui.text.numbers import Cost

GAP = 3
"""Blanks between two pieces."""


@dataclass(frozen=True, slots=True)
class Status:
    """What the line shows besides the usage. `cost` is None if no price is known."""

    usage: ContextUsage | None = None
    cost: Cost | None = None
    rolling: bool = False
    hint: str = "/context for more"


def number(usage: ContextUsage | None) -> Content:
    """The number in short: `~52.1k / 200k · 26 %`, `52.1k / ?` if the window is unknown, `…` before there is one."""
    if usage is None:
        return Content.styled("…", "$text-muted")
    style = urgency(usage)
    used = Content.styled(f"{approx(usage.source)}{tokens_short(usage.total)}", f"bold {style or '$foreground'}")
    window = Content.styled(f" / {tokens_short(usage.limits.context, strip=True)}", "$text-muted")
    if usage.percent is None:
        return Content.assemble(used, window)
    return Content.assemble(
        used, window, (" · ", "$text-muted"), (f"{percent(usage.percent)}{alarm(usage)}", style or "$foreground")
    )


def status_line(status: Status, width: int) -> Content:
    """The line for `width` cells. Dropped first: the hint, the cost, "until compaction", the bar."""
    usage = status.usage
    bar = context_bar(usage, 20 if width >= 106 else 12 if width >= 60 else 8)
    pieces: dict[str, Content] = {"bar": bar, "number": number(usage)}
    if usage is not None and usage.over:
        pieces["until"] = Content.styled(f"{tokens_short(usage.over)} too much", "$text-error")
    elif usage is not None and usage.until_compaction is not None and usage.budget.compaction_at is not None:
        pieces["until"] = Content.assemble(
            ("until compaction ", "$text-muted"), (tokens_short(usage.until_compaction), "$foreground")
        )
    if status.cost is not None and status.cost.priced:  # free models need no figure
        total, priced, estimated = status.cost
        pieces["cost"] = Content.styled(spent(total, priced, estimated=estimated), "$text-muted")
    if usage is not None:
        rolling = "rolling on" if status.rolling else "rolling off"
        pieces["rolling"] = Content.styled(rolling, "$text-accent" if status.rolling else "$text-muted")
    pieces["hint"] = Content.styled(status.hint, "$text-muted")
    optional = ["hint", "cost", "until", "rolling"] if status.rolling else ["hint", "cost", "rolling", "until"]
    for key in [*optional, "bar"]:
        if _width(pieces) <= width:
            break
        pieces.pop(key, None)
    hint = pieces.pop("hint", None)
    line = Content(" " * (GAP if width >= 60 else 1)).join(piece for piece in pieces.values() if piece)
    if hint is not None:
        line = Content.assemble(line, " " * (width - line.cell_length - hint.cell_length), hint)
    return line.truncate(width)


def _width(pieces: dict[str, Content]) -> int:
    return sum(piece.cell_length for piece in pieces.values()) + GAP * (len(pieces) - 1)


class StatusBar(Widget):
    """Shows a `Status`; a click opens the panel."""

    DEFAULT_CSS = """
    StatusBar { height: 1; padding: 0 1; color: $text-muted; }
    """

    class Pressed(Message):
        """The line was clicked."""

    def __init__(self) -> None:
        super().__init__()
        self.status = Status()

    def show(self, status: Status) -> None:
        """Draw `status` from now on."""
        if status != self.status:
            self.status = status
            self.refresh()

    def render(self) -> Content:
        """The line at the current width."""
        return status_line(self.status, self.content_size.width)

    def on_click(self, event: events.Click) -> None:
        """A click anywhere on the line."""
        event.stop()
        self.post_message(self.Pressed())
