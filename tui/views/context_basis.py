"""How the total came about, in words: the lines below the table of `/context`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual.content import Content

from tui.text.numbers import percent, plural, signed_percent, tokens_exact, tokens_short

if TYPE_CHECKING:
    from tui.context.usage.usage import Basis, ContextUsage


def basis_lines(usage: ContextUsage, width: int) -> list[Content]:
    """How the total came about, how good the last estimate was, and what compactions saved."""
    basis = usage.basis
    facts = []
    if basis.last_error_percent is not None:
        facts.append(f"last estimate off by {signed_percent(basis.last_error_percent)}")
    if basis.factor is not None and (basis.measured_calls or basis.factor != 1.0):  # 1.00 of nothing says nothing
        learned = (
            f", 95 % of estimates within {percent(basis.error_p95_percent, digits=1)}"
            if basis.error_p95_percent
            else ""
        )
        facts.append(f"this model: factor {basis.factor:.2f}{_by_class(basis)}{learned}")
    if basis.cleared:
        facts.append(f"the provider clears {tokens_exact(basis.cleared)} of old tool results by itself")
    if basis.compactions:
        facts.append(
            f"{plural(basis.compactions, 'compaction')}, saved {tokens_short(basis.compaction_saved, strip=True)}"
        )
    return [Content.styled(line, "$text-muted") for line in _fill([f"basis   {_sum(usage)}", *facts], width)]


def _by_class(basis: Basis) -> str:
    """The factors of the conversation's classes of text where they differ."""
    if len({f"{item.factor:.2f}" for item in basis.classes}) < 2:
        return ""
    return f" ({', '.join(f'{item.name} {item.factor:.2f}' for item in basis.classes)})"


def _sum(usage: ContextUsage) -> str:
    """The total as a sum, each part as far as the next request has it."""
    basis = usage.basis
    if basis.last_input is None:
        return "estimated: no call to this model has measured it yet"
    known = basis.last_input
    text = f"{'counted by the server' if basis.counted else 'last input'} {tokens_exact(known)}"
    if basis.last_output is not None and (back := basis.last_output_sent_back) is not None:
        known += back
        sent = "all of it sent back" if back == basis.last_output else f"{tokens_exact(back)} of it sent back"
        text += f" + last output {tokens_exact(basis.last_output)} ({sent})"
    new = basis.new_messages or 0
    text += f" + new ~{tokens_exact(new)}" if new else ""
    change = usage.total - known - new
    about = "" if usage.source == "exact" else "~"
    if change < -1:  # one is rounding
        text += f" - not sent any more {about}{tokens_exact(-change)}"
    elif change > 1:
        text += f" + sent again {about}{tokens_exact(change)}"
    return text


def _fill(sentences: Iterable[str], width: int) -> list[str]:
    """The first sentence on its own line, the rest joined by dots; a line breaks between two facts."""
    first, *rest = sentences
    lines = textwrap.wrap(first, width) or [""]
    line = ""
    for fact in rest:
        joined = f"{line}   ·   {fact}" if line else fact
        if len(joined) > width and line:
            lines += textwrap.wrap(line, width)
            joined = fact
        line = joined
    return lines + textwrap.wrap(line, width)
