"""The lines above and below the conversation, the queue, and the text in place of an empty conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget
from textual.widgets import Static

from tui.text.cells import clip, plain
from tui.text.numbers import Cost, percent, spent, tokens_short
from tui.views.context_picture import CATEGORIES, alarm, context_bar, urgency

if TYPE_CHECKING:
    from tui.context.usage.usage import ContextUsage

GAP = 3
"""Spaces between two pieces of the status line."""

QUEUE_SHOWN = 3
"""Waiting messages shown; of the others only their number."""

MIN_COST = 12
"""Cells; a shorter piece of the draft's cost is useless."""


def number(usage: ContextUsage | None) -> Content:
    """The number in short: `~52.1k / 200k · 26 %`, `52.1k / ?` if the window is unknown, `…` before there is one."""
    if usage is None:
        return Content.styled("…", "$text-muted")
    style = urgency(usage)
    used = Content.styled(tokens_short(usage.total, usage.source), f"bold {style or '$foreground'}")
    window = Content.styled(f" / {tokens_short(usage.limits.context, strip=True)}", "$text-muted")
    if usage.percent is None:
        return Content.assemble(used, window)
    return Content.assemble(
        used, window, (" · ", "$text-muted"), (f"{percent(usage.percent)}{alarm(usage)}", style or "$foreground")
    )


def status_line(usage: ContextUsage | None, cost: Cost | None, rolling: bool, width: int) -> Content:
    """The status line for `width` cells; `cost` is None if no price is known.

    Dropped first: the hint, the cost, "until compaction", the bar.
    """
    bar = context_bar(usage, 20 if width >= 106 else 12 if width >= 60 else 8)
    pieces: dict[str, Content] = {"bar": bar, "number": number(usage)}
    if usage is not None and usage.space.over:
        pieces["until"] = Content.styled(f"{tokens_short(usage.space.over, usage.source)} too much", "$text-error")
    elif usage is not None and usage.space.until_compaction is not None:
        pieces["until"] = Content.assemble(
            ("until compaction ", "$text-muted"),
            (tokens_short(usage.space.until_compaction, usage.source), "$foreground"),
        )
    if cost is not None and cost.priced:  # free models need no figure
        pieces["cost"] = Content.styled(spent(cost), "$text-muted")
    if usage is not None and rolling:
        pieces["rolling"] = Content.styled("rolling on", "$text-accent")
    elif usage is not None:
        pieces["rolling"] = Content.styled("rolling off", "$text-muted")
    pieces["hint"] = Content.styled("/context for more", "$text-muted")
    optional = ["hint", "cost", "until", "rolling"] if rolling else ["hint", "cost", "rolling", "until"]
    for key in [*optional, "bar"]:
        if sum(piece.cell_length for piece in pieces.values()) + GAP * (len(pieces) - 1) <= width:
            break
        pieces.pop(key, None)
    hint = pieces.pop("hint", None)
    line = Content(" " * (GAP if width >= 60 else 1)).join(piece for piece in pieces.values() if piece)
    if hint is not None:
        line = Content.assemble(line, " " * (width - line.cell_length - hint.cell_length), hint)
    return line.truncate(width)


def title_line(title: str, model: str, width: int) -> Content:
    """`title ──────── model` in `width` cells; the model's end stays visible if both don't fit."""
    left, right = plain(title), plain(model)
    if cell_len(left) + cell_len(right) + 4 > width and "/" in right:
        right = right.rsplit("/", 1)[1]
    right = clip(right, max(0, width // 2))
    left = clip(left, max(0, width - cell_len(right) - 4))
    rule = max(1, width - cell_len(left) - cell_len(right) - 2)
    return Content.assemble(
        (left, "bold $foreground"), " ", ("─" * rule, "$border"), " ", (right, "$text-muted")
    ).truncate(width)


class Bar(Widget):
    """A line of its own: the status, the title."""

    DEFAULT_CSS = """
    Bar { height: 1; padding: 0 1; }
    """

    @dataclass
    class Pressed(Message):
        """The line was clicked."""

        bar: Bar

    def __init__(self) -> None:
        super().__init__()
        self.line: Callable[[int], Content] = lambda _width: Content("")

    def draw(self, line: Callable[[int], Content]) -> None:
        """Show `line`, a text for a width in cells."""
        self.line = line
        self.refresh()

    def render(self) -> Content:
        """The line at the current width."""
        return self.line(self.content_size.width)

    def on_click(self, event: events.Click) -> None:
        """A click anywhere on the line."""
        event.stop()
        self.post_message(self.Pressed(self))


class StatusBar(Bar):
    """The line below the prompt."""

    DEFAULT_CSS = "StatusBar { color: $text-muted; }"


TRY = (("/context", "what fills the window"), ("/model", "change the model"))

PROVIDER = ("/provider", "OpenAI, Anthropic, or any other server")
"""Offered in addition if nothing was set up yet and the embedded model is used."""

_BAND = ("system", "tools", "user", "assistant", "results", "free", "buffer", "reserve")
_WIDTHS = (2, 2, 2, 3, 4, 6, 2, 2)
_GLYPHS = {category.colour: category.glyph for category in CATEGORIES.values()}


def welcome(provider: str, model: str, usage: ContextUsage | None, where: str, keys: str) -> Content:
    """The static text of an empty conversation; `keys` says how to send. The model's name is not parsed as markup."""
    window = usage.limits.context if usage is not None else None
    unknown = "asking for its window …" if usage is None else "window unknown"
    size = f"{tokens_short(window, strip=True)} token window" if window else unknown
    band = Content.assemble(
        *(
            (_GLYPHS[colour] * width, f"$context-{colour} on $context-{colour}-back")
            for colour, width in zip(_BAND, _WIDTHS, strict=True)
        )
    )
    tries = (("ask anything", keys), *TRY, *([PROVIDER] if provider in ("local", "demo") else []))
    lines = [
        Content(""),
        band,
        Content(""),
        Content.assemble((plain(model), "bold $foreground"), (f"  {size}", "$text-muted")),
        Content.styled(where or f"Messages go to {plain(provider)}.", "$text-muted"),
        Content(""),
        *(Content.assemble((f"{what:<14}", "$primary"), (why, "$text-muted")) for what, why in tries),
    ]
    return Content("\n").join(lines)


class RuleLine(Bar):
    """The line above the prompt: activity on the left, the draft's cost on the right."""

    auto_links = var(False)
    left = Content("")
    right: Sequence[str] = ()

    def show(self, *, left: Content | None = None, right: Sequence[str] | None = None) -> None:
        """Change either side. `right` are variants of the same text, longest first."""
        self.left = self.left if left is None else left
        self.right = self.right if right is None else right
        self.refresh()

    def render(self) -> Content:
        """`left ───── right` at the current width."""
        width = self.content_size.width
        left = Content.assemble(self.left, " ") if self.left else Content("")
        available = width - left.cell_length - 3
        right = next((words for words in self.right if cell_len(words) <= available), "")
        if not right and self.right and available >= MIN_COST:
            right = clip(self.right[-1], available)
        right = f" {right}" if right else ""
        rule = "─" * max(0, width - left.cell_length - cell_len(right))
        line = Content.assemble(left, (rule, "$border"), (right, "$text-muted"))
        return line.truncate(width, ellipsis=True)


def queue_lines(texts: Sequence[str], width: int) -> list[Content]:
    """One line for each of the first messages, and how many more are waiting."""
    lines = [
        Content.assemble(("queued  ", "$text-accent"), (clip(plain(text), max(1, width - 8)), "$text-muted"))
        for text in texts[:QUEUE_SHOWN]
    ]
    if len(texts) > QUEUE_SHOWN:
        lines.append(Content.styled(f"        and {len(texts) - QUEUE_SHOWN} more", "$text-muted"))
    return lines


class QueueList(Static):
    """The waiting messages, between transcript and composer; hidden if there are none."""

    DEFAULT_CSS = """
    QueueList { height: auto; padding: 0 1; display: none; }
    """

    texts: tuple[str, ...] = ()

    def show(self, texts: tuple[str, ...]) -> None:
        """Show these messages."""
        if texts != self.texts:
            self.texts = texts
            self.display = bool(texts)
            self.on_resize()

    def on_resize(self) -> None:
        """Draw one line for each at this width."""
        self.update(Content("\n").join(queue_lines(self.texts, max(10, self.app.size.width - 2))))
