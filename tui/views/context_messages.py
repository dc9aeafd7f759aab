"""The messages view of `/context`: what each message costs in the next request. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from tui.messages import Attachment, Message, Reasoning, Refusal, Text, ToolCall, ToolResult
from tui.text.cells import clip, pad, plain
from tui.text.numbers import age, tokens_exact
from tui.views.context_picture import category

if TYPE_CHECKING:
    from tui.context.counting.costs import CountSource
    from tui.context.usage.usage import ContextUsage


@dataclass(frozen=True, slots=True)
class MessageLine:
    """A message in the list. `tokens` is None if it is not part of the next request (`left_out` says why)."""

    id: str
    key: str  # category, for glyph and colour
    preview: str
    created_at: float
    tokens: int | None
    source: CountSource
    left_out: str = ""
    pinned: bool = False


_NOT_SENT = {
    "set aside": "It was set aside when you went back and is not sent",
    "compacted": "A summary stands for it",
    "trimmed": "Rolling context leaves it out already",
}


def why_not(left_out: str, *, pin: bool) -> str:
    """Why a message can't be pinned, or left out; "" if it can. `left_out` says why it is not sent."""
    reason = _NOT_SENT.get(left_out)
    return "" if reason is None else f"{reason}: nothing to {'pin' if pin else 'leave out'}."


def message_lines(
    messages: Iterable[Message],
    usage: ContextUsage | None,
    *,
    not_sent: Mapping[str, str],
    pinned: AbstractSet[str] = frozenset(),
    by_size: bool = False,
) -> list[MessageLine]:
    """All messages in order, or the most expensive first."""
    counts = dict(usage.messages) if usage is not None else {}
    lines = []
    for message in messages:
        count = counts.get(message.id)
        left_out = not_sent.get(message.id, "")
        lines.append(
            MessageLine(
                message.id, _key(message), preview(message), message.created_at,
                count.tokens if count is not None and left_out in ("", "trimmed") else None,
                count.source if count is not None else "estimated", left_out, message.id in pinned,
            )
        )  # fmt: skip
    if by_size:
        lines.sort(key=lambda line: -(line.tokens or 0))
    return lines


def _key(message: Message) -> str:
    if message.kind == "summary":
        return "summaries"
    return {"user": "user", "assistant": "assistant", "tool": "tool_results"}[message.role]


def preview(message: Message, length: int = 200) -> str:
    """The beginning of a message on one line."""
    for part in message.parts:
        match part:
            case Text(text) | Refusal(text) if text.strip():
                return _start(text, length)
            case ToolResult(name=name, text=text):
                return _start(f"{name}: {text}", length)
            case ToolCall(name=name, arguments=arguments):
                return _start(f"calls {name} {arguments}", length)
            case Attachment(name=name):
                return _start(name, length)
            case Reasoning(text=text) if len(message.parts) == 1:
                return _start(f"thought: {text}", length)
            case _:
                continue
    return f"({message.status})" if message.status != "complete" else "(empty)"


def _start(text: str, length: int) -> str:
    return plain(" ".join(text[: 4 * length].split()))[:length]


def message_line(line: MessageLine, width: int, now: float) -> Content:
    """One line: glyph, text, tokens, source of the figure, age. If narrow, without the last two."""
    look = category(line.key)
    wide = width >= 72
    tokens = "" if line.tokens is None else tokens_exact(line.tokens, line.source)
    state = line.left_out or (line.source if line.tokens is not None else "")
    available = width - 2 - 2 - 10 - ((12 + 6) if wide else 0)
    muted = "$text-muted" if line.left_out else "$foreground"
    return Content.assemble(
        (look.glyph + " ", f"$context-{look.colour}"),
        ("◆ " if line.pinned else "  ", "$text-accent"),
        (pad(plain(line.preview), max(1, available)), muted),
        (f"{tokens:>10}", muted),
        (f"  {clip(state, 10):<10}{age(line.created_at, now):>6}" if wide else "", "$text-muted"),
    )


def listed(lines: Sequence[MessageLine]) -> str:
    """A summary of the list, for its title."""
    out = sum(1 for line in lines if line.left_out)
    return f"{len(lines):,} messages" + (f", {out:,} not sent any more" if out else "")
