"""What the reported usage of a call says beside its numbers: a cut prompt, cleared results, a larger window."""

from __future__ import annotations

from tui.chat.conversation.events import Notice
from tui.chat.runtime.windows import Windows
from tui.context.usage.usage import ContextUsage
from tui.messages import Message, Usage

TRUNCATED_BELOW = 0.6  # silent truncation: reported input under this share of the prediction ...
TRUNCATED_ABOVE = 0.5  # ... while the prediction is over this share of the window


def truncated(usage: ContextUsage, reported: Usage, window: int | None) -> bool:
    """The server read far less than was sent, and did not say that it cleared anything.

    `window` (tokens) as it is known now: after the first answer more may be known than before it.
    """
    if window is None or reported.input_total is None:
        return False
    actual = reported.input_total + (reported.cleared or 0)
    return actual < TRUNCATED_BELOW * usage.total and usage.total > TRUNCATED_ABOVE * window


def usage_notice(usage: ContextUsage, reply: Message, windows: Windows) -> Notice | None:
    """What a person should know of a call that was predicted as `usage`. Raises what is learned about the window."""
    reported = reply.usage
    if reported is None or reported.source != "provider" or reported.input_total is None:
        return None
    if truncated(usage, reported, windows.known(reply.provider, reply.model).context):
        return Notice(
            "warning",
            f"The server cut the prompt: it read {reported.input_total:,} of about {usage.total:,} tokens. "
            "Raise its window (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx), then tell chatctx with /window",
        )
    if reported.cleared and reported.cleared > usage.basis.cleared:  # not again with every request of the same
        uses = f" of {reported.cleared_uses:,} tool calls" if reported.cleared_uses else ""
        return Notice(
            "info",
            f"{reply.provider} cleared {reported.cleared:,} tokens{uses} from the prompt by itself "
            "(context_management)",
        )
    given, output = reported.input_total, reported.output_total or 0
    if reply.status == "complete" and windows.seen(reply.provider, reply.model, given, output):
        return Notice(
            "info", f"This window is larger than believed: {given + output:,} tokens fitted. /window shows it"
        )
    return None
