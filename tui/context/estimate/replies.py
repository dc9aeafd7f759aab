"""What a finished reply costs when it goes back: its output tokens, weighed against what it visibly holds."""

from __future__ import annotations

from typing import NamedTuple

from tui.context.counting.counting import MessageCount
from tui.messages import Message, Reasoning, Usage

UNSEEN_SHARE, UNSEEN_SLACK = 0.5, 32.0  # of a reply's estimate, tokens: above, more was billed than it shows
# Shares of a reply's counted text: a smaller reported output is that of a stream's beginning. In 1,900 recorded replies
# the text of a known vocabulary was never more than 1.25 times the output (JSON may be written otherwise than sent).
STALE_OUTPUT, STALE_KNOWN = 0.25, 0.75


class ReplyCost(NamedTuple):
    """A reply in tokens.

    `output` is what was reported of it, None where the reply is not whole or the number can't be its own; `reasoning`
    the part of it that is reasoning, `reasoning_known` says that the provider named it. `unseen` is what no part of the
    reply explains: reasoning billed without a word. `difference` is that between the output and what the reply visibly
    holds.
    """

    output: int | None
    reasoning: int
    reasoning_known: bool
    unseen: int = 0
    difference: float = 0.0


def cost_of_reply(reply: Message, count: MessageCount, usage: Usage, factor: float, *, known: bool) -> ReplyCost:
    """The cost of `reply`, estimated as `count`; `factor` is what the model's estimates are multiplied by.

    `known`: they are counted in the model's own vocabulary.
    """
    # A factor below 1 may come from wrong reports: too little text would make an honest output unexplained.
    visible = (count.size - count.split.get("reasoning", 0.0)) * max(1.0, factor)
    output = _output(reply, count, usage, factor, known=known)
    reasoning, known = _reasoning(reply, count, usage, visible, output)
    if output is None:
        return ReplyCost(None, reasoning, known)
    rest = output - reasoning - visible
    unseen = round(rest) if rest > UNSEEN_SHARE * visible + UNSEEN_SLACK else 0
    return ReplyCost(output, reasoning, known, unseen, abs(rest - unseen))


def _output(reply: Message, count: MessageCount, usage: Usage, factor: float, *, known: bool) -> int | None:
    """The reported output. Some logs and servers leave the count of a stream's beginning: one token for pages."""
    output = usage.output_total
    if reply.status != "complete" or output is None or not reply.parts:
        return None
    reasoning = count.split.get("reasoning", 0.0)  # its length is estimated where it is encrypted
    least = STALE_OUTPUT * factor * (count.size - reasoning)
    if known:
        least = max(least, STALE_KNOWN * (count.content - (reasoning - count.fixed)))
    if not usage.reasoning:
        least += STALE_OUTPUT * factor * reasoning
    return None if output - (usage.reasoning or 0) < least - 4 else output


def _reasoning(
    reply: Message, count: MessageCount, usage: Usage, visible: float, output: int | None
) -> tuple[int, bool]:
    """Reasoning tokens of a reply, and whether the provider reported them; `visible` are those of the rest."""
    if usage.reasoning is not None:
        return (usage.reasoning if output is None else min(usage.reasoning, output)), True
    blocks = [part for part in reply.parts if isinstance(part, Reasoning)]
    readable = count.split.get("reasoning", 0.0)
    if not blocks or output is None:
        return round(readable), not blocks or count.fixed > 0
    if any(_is_sealed(block) for block in blocks):
        # What is readable is a summary: the whole goes back inside the signature, and costs what it was billed.
        readable = max(readable, output - visible)
    # Both are estimated, and together they can't be more than the output.
    share = min(1.0, output / (readable + visible)) if readable else 0.0
    return round(share * readable), count.fixed > 0


def _is_sealed(block: Reasoning) -> bool:
    """Whether the provider takes the whole reasoning back in a form that only it can read."""
    return block.encrypted is not None or bool(block.signature or block.redacted)
