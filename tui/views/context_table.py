"""The content of `/context`: headline, picture, rows, and how the total was obtained."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from tui.messages import BUILT_IN
from tui.text.cells import clip, pad, plain
from tui.text.labels import MESSAGE_ROWS, PREAMBLE_ROWS, ROW_NAMES
from tui.text.numbers import percent, plural, share, signed_percent, source_of, tokens_exact, tokens_short
from tui.views.context_picture import CATEGORIES, alarm, picture_lines, urgency
from tui.views.tools_mcp import deferred_text, wrapped
from tui.views.view import Row

if TYPE_CHECKING:
    from tui.chat.tool_calls.session_tools import ToolPlan
    from tui.chat.turn.session import ChatSession
    from tui.chat.workspace import Workspace
    from tui.context.usage.rows import UsageItem, UsageRow
    from tui.context.usage.usage import Basis, ContextUsage

BEFORE_MESSAGES = (*PREAMBLE_ROWS, "hidden")
ITEMS_SHOWN = 12
"""Items listed under an unfolded row; the others are summed in one line. The messages view lists everything."""

_SOURCES = {
    "setting": "set by you",
    "learned": "learned from the server",
    "probe": "from the server",
    "table": "built-in table",
    "prices": "price list",
}


@dataclass(frozen=True, slots=True)
class Line(Row):
    """A line of the panel: a row of the table, or one of its items."""

    item: UsageItem | None = None


@dataclass(frozen=True, slots=True)
class ContextView:
    """The contents of a session's context window; `picture_rows` is the height of the picture, 0 for none."""

    session: ChatSession
    workspace: Workspace
    picture_rows: int = 0
    title = "Context"

    async def lines(self, width: int) -> Sequence[Content]:
        """Everything, measured now; no line wider than `width` cells (60 or more show every column)."""
        usage = await self.session.refresh_usage()
        plan = self.session.tools.plan
        picture = picture_lines(usage, width, self.picture_rows) if self.picture_rows else []
        around = [Content("")] if picture else []
        table = (row.content for row in table_lines(usage, width, expanded={"messages"}, hints=row_hints(plan)))
        lines = [*headline(usage, width), *around, *picture, *around, *table]
        if plan.deferred:
            servers = Counter(tool.origin for tool in plan.deferred)
            names = ", ".join(f"{plain(name)} {count:,}" for name, count in servers.items())
            tokens = tokens_short(plan.tokens, "estimated")
            text = f"Deferred tools ({tokens} tokens, not sent until the model searches for them): {names}"
            lines += map(Content, wrapped(text, width))
        return [*lines, *around, *basis_lines(usage, width)]


def row_hints(plan: ToolPlan) -> dict[str, str]:
    """The command that changes what stands before the messages; of tools, which are not sent."""
    hints = {"system": "/system", "memory": "/memory", "instructions": "/mcp instructions off NAME"}
    return hints | {"tools": deferred_text(plan) if plan.deferred else "/tools"}


def headline(usage: ContextUsage, width: int) -> list[Content]:
    """Two lines: the model, and the number."""
    window = f"{tokens_short(usage.limits.context, strip=True)} window"
    source = usage.limits.detail or _SOURCES.get(usage.limits.source, "")
    if usage.limits.context is None:
        window = "window unknown"
    right = f"{usage.provider}/{usage.model} · {window}" + (f" ({source})" if source else "")
    if len(right) > width - 10:
        right = f"{usage.model} · {window}"
    title = _spread(Content.styled("Context", "bold"), Content.styled(clip(right, width - 9), "$text-muted"), width)
    number, note = number_line(usage, width), Content.styled("next request, as it would be sent", "$text-muted")
    if number.cell_length + note.cell_length + 3 <= width:
        number = _spread(number, note, width)
    return [title, number.truncate(width, ellipsis=True)]


def number_line(usage: ContextUsage, width: int) -> Content:
    """The tokens, and where they fit into `width` cells the percentage and the margin."""
    number = Content.assemble(
        (f"{tokens_exact(usage.total, usage.source)}", f"bold {urgency(usage) or '$foreground'}"),
        (f" / {tokens_exact(usage.limits.context)} tokens", "$text-muted"),
    )
    details = []
    if usage.percent is not None:
        details.append((f"   {percent(usage.percent)}{alarm(usage)}", f"bold {urgency(usage) or '$foreground'}"))
    if usage.upper_bound > usage.total:
        details.append((f"   ±{tokens_exact(usage.upper_bound - usage.total)}", "$text-muted"))
    for detail in details:
        if number.cell_length + len(detail[0]) <= width:
            number = Content.assemble(number, detail)
    return number


def table_lines(usage: ContextUsage, width: int, *, expanded: AbstractSet[str], hints: Mapping[str, str]) -> list[Line]:
    """The rows, messages grouped, and the free space at the end."""
    table = _Table(usage, width, expanded, hints)
    messages = [row for row in usage.rows if row.key in MESSAGE_ROWS]
    before = [row for row in usage.rows if row.key in BEFORE_MESSAGES]
    after = [row for row in usage.rows if row.key not in (*MESSAGE_ROWS, *BEFORE_MESSAGES)]
    lines = [table.header()] if table.with_source else []
    for row in before:
        lines += table.row(row)
    lines += table.group(messages)
    for row in after:
        lines += table.row(row)
    lines += table.rest()
    lines += table.left_out()
    lines += [Line(Content.styled(clip(f"! {warning}", width), "$text-warning")) for warning in usage.warnings]
    return lines


class _Table:
    """Column widths of a table, and the rows drawn to them."""

    def __init__(self, usage: ContextUsage, width: int, expanded: AbstractSet[str], hints: Mapping[str, str]) -> None:
        self.usage = usage
        self.width = width
        self.expanded = expanded
        self.hints = hints
        self.with_share = width >= 46
        self.with_source = width >= 66
        figures = 11 + (9 if self.with_share else 0) + (19 if self.with_source else 0)
        self.name_width = max(10, width - figures - 2)
        if self.with_source:
            self.name_width = min(24, self.name_width)

    def header(self) -> Line:
        hint = "what you can do"
        return Line(self._line("category", "tokens", share="share", how="how", hint=hint, style="$text-muted"))

    def row(self, row: UsageRow, *, indent: int = 0) -> list[Line]:
        look = CATEGORIES[row.key]
        unfolded = row.key in self.expanded
        name = ROW_NAMES.get(row.key, row.name) + self._fold(bool(row.items), unfolded)
        line = self._line(
            name,
            self._tokens(row.tokens, row.source),
            glyph=look.glyph,
            colour=look.colour,
            share=self._share(row.tokens) if not indent else "",
            how=row.source,
            hint=self.hints.get(row.key, ""),
            indent=indent,
        )
        lines = [Line(line, row.key, bool(row.items))]
        if unfolded:
            lines += self._items(row.items, indent + 2, row.key)
        return lines

    def group(self, rows: list[UsageRow]) -> list[Line]:
        """The line "messages" and, if unfolded, its parts."""
        tokens = sum(row.tokens for row in rows)
        sources = {row.source for row in rows if row.tokens} or {row.source for row in rows}
        how = sources.pop() if len(sources) == 1 else ("mixed" if sources else "")
        unfolded = "messages" in self.expanded
        name, hint = "messages" + self._fold(bool(rows), unfolded), self.hints.get("messages", "")
        line = self._line(name, self._tokens(tokens, how), share=self._share(tokens), how=how, hint=hint)
        lines = [Line(line, "messages", bool(rows))]
        if unfolded:
            for row in rows:
                lines += self.row(row, indent=2)
        return lines

    def left_out(self) -> list[Line]:
        """The line of what rolling context leaves out; sent and left out are the whole conversation."""
        usage = self.usage
        messages, tokens = usage.left_out
        if not (messages or usage.rolling):
            return []
        whole = f"{plural(messages, 'message')}; all of it {tokens_exact(usage.total + tokens, 'estimated')}"
        hint = whole if messages else "rolling context leaves nothing out"
        how, figure = ("estimated", self._tokens(tokens, "estimated")) if tokens else ("", "0")
        return [Line(self._line("not sent", figure, how=how, hint=hint), "left_out")]

    def rest(self) -> list[Line]:
        """Everything but messages: free, compaction buffer, output reserve; and the excess."""
        usage, space = self.usage, self.usage.space
        if usage.limits.context is None:
            unknown = clip("? the window is unknown: /window 128k sets it", self.width)
            return [Line(Content.styled(unknown, "$text-muted"), "free")]
        parts = (
            ("free", space.free, "until compaction" if space.buffer else ""),
            ("buffer", space.buffer or None, ""),
            ("reserve", space.reserve, "reserved for the answer"),
        )
        lines = []
        for key, tokens, about in parts:
            if tokens is not None:
                source = usage.source if key == "free" else "exact"
                figure, part, hint = tokens_exact(tokens, source), self._share(tokens), self.hints.get(key, about)
                look = CATEGORIES[key]
                text = self._line(ROW_NAMES[key], figure, glyph=look.glyph, colour=look.colour, share=part, hint=hint)
                lines.append(Line(text, key))
        if space.over:
            figure, part = tokens_exact(space.over, usage.source), self._share(space.over)
            hint = self.hints.get("over", "has to go before this can be sent")
            text = self._line("too much", figure, glyph="!", share=part, hint=hint, style="$text-error")
            lines.append(Line(text, "over"))
        return lines

    def _items(self, items: Sequence[UsageItem], indent: int, row: str) -> list[Line]:
        by_size = sorted(items, key=lambda item: item.tokens, reverse=True)
        lines = []
        for item in by_size[:ITEMS_SHOWN]:
            tokens = self._tokens(item.tokens, item.source)
            name = item.name if item.group in ("", BUILT_IN) else f"{item.group}: {item.name}"  # of a server's tool
            text = self._line(name, tokens, how=item.source, indent=indent, style="$text-muted")
            lines.append(Line(text, f"item:{row}:{item.ref or item.name}", item=item))
        if rest := by_size[ITEMS_SHOWN:]:
            tokens = tokens_exact(sum(item.tokens for item in rest), source_of(item.source for item in rest))
            more = self._line(f"{len(rest)} more", tokens, indent=indent, style="$text-muted")
            lines.append(Line(more, f"more:{row}" if row in MESSAGE_ROWS else ""))
        return lines

    def _tokens(self, tokens: int, how: str) -> str:
        return tokens_exact(tokens, "exact" if self.with_source else how)

    def _share(self, tokens: int) -> str:
        return share(tokens, self.usage.limits.context or self.usage.total)

    def _fold(self, foldable: bool, unfolded: bool) -> str:
        return (" ▾" if unfolded else " ▸") if foldable else ""

    def _line(
        self,
        name: str,
        tokens: str,
        *,
        glyph: str = " ",
        colour: str = "",
        share: str = "",
        how: str = "",
        hint: str = "",
        indent: int = 0,
        style: str = "",
    ) -> Content:
        available = self.name_width - indent
        text = pad(plain(name), available)
        figures = (
            f"{tokens:>11}" + (f"{share:>9}" if self.with_share else "") + (f"   {how:<16}" if self.with_source else "")
        )
        pieces = Content.assemble(
            " " * indent,
            (f"{glyph} ", f"$context-{colour}" if colour else style),
            (text, style or ("$foreground" if not indent else "$text-muted")),
            (figures[:11], style or "$foreground"),
            (figures[11:], style or "$text-muted"),
        )
        left_over = self.width - pieces.cell_length
        if hint and left_over >= min(len(hint), 16):
            pieces = Content.assemble(pieces, (clip(hint, left_over), style or "$text-muted"))
        return pieces.truncate(self.width)


def _spread(left: Content, right: Content, width: int) -> Content:
    gap = max(1, width - left.cell_length - right.cell_length)
    return Content.assemble(left, " " * gap, right).truncate(width, ellipsis=True)


def basis_lines(usage: ContextUsage, width: int) -> list[Content]:
    """How the total was obtained, how accurate the last estimate was, and what compactions saved."""
    basis = usage.basis
    facts = []
    if basis.last_error_percent is not None:
        which = "first" if basis.last_error_first else "last"
        facts.append(f"{which} estimate off by {signed_percent(basis.last_error_percent)}")
    if basis.factor is not None and (basis.measured_calls or basis.factor != 1.0):  # a factor on nothing is meaningless
        by_class = ""
        if len({f"{item.factor:.2f}" for item in basis.classes}) > 1:
            by_class = f" ({', '.join(f'{item.name} {item.factor:.2f}' for item in basis.classes)})"
        facts.append(f"this model: factor {basis.factor:.2f}{by_class}{_accuracy(basis)}")
    if basis.cleared:
        facts.append(f"the provider clears {tokens_exact(basis.cleared)} of old tool results by itself")
    if basis.compactions:
        saved = tokens_short(basis.compaction_saved, "estimated", strip=True)
        facts.append(f"{plural(basis.compactions, 'compaction')}, saved {saved}")
    lines = [*textwrap.wrap(f"basis   {_sum(usage)}", width), *joined(facts, width)]
    return [Content.styled(line, "$text-muted") for line in lines]


def _accuracy(basis: Basis) -> str:
    """How far off this model's estimates were, those of first calls apart: they have no measured call to go by."""
    later, first = basis.error_p95_percent, basis.first_error_p95_percent
    within = [] if later is None else [f"estimates within {percent(later, digits=1)}"]
    within += [] if first is None else [f"first estimates within {percent(first, digits=1)}"]
    return f", 95 % of {', of '.join(within)}" if within else ""


def _sum(usage: ContextUsage) -> str:
    """The total as a sum of measured and estimated parts."""
    basis = usage.basis
    if basis.last_input is None and basis.counted:
        return "counted by the server; no message yet"
    if basis.last_input is None:
        return "estimated: no call to this model has measured it yet"
    measured = basis.last_input
    text = f"{'counted by the server' if basis.counted else 'last input'} {tokens_exact(measured)}"
    if basis.last_output is not None and (back := basis.last_output_sent_back) is not None:
        measured += back
        sent = "all of it sent back" if back == basis.last_output else f"{tokens_exact(back)} of it sent back"
        text += f" + last output {tokens_exact(basis.last_output)} ({sent})"
    new = basis.new_messages or 0
    if basis.new_message_count:  # some of the new ones were measured in calls of their own
        new = max(new, usage.total - measured)
    text += f" + new {tokens_exact(new, 'estimated')}" if new else ""
    change = usage.total - measured - new
    if change < -1:  # one is rounding
        text += f" - not sent any more {tokens_exact(-change, usage.source)}"
    elif change > 1:
        text += f" + sent again {tokens_exact(change, usage.source)}"
    return text


def joined(facts: Iterable[str], width: int) -> list[str]:
    """Facts with dots between them, as many on a line of `width` cells as fit."""
    lines: list[str] = []
    for fact in facts:
        if lines and len(lines[-1]) + len(_DOT) + len(fact) <= width:
            lines[-1] += _DOT + fact
        else:
            lines += textwrap.wrap(fact, width)
    return lines


_DOT = "   ·   "
