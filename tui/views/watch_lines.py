"""The content of `chatctx watch` for another program's session. Pure: a `Followed` in, lines out."""

from __future__ import annotations

from textual.content import Content

from tui.chat.interchange.following import Followed
from tui.context.usage.usage import ContextUsage
from tui.text.cells import clip, plain
from tui.text.names import PREAMBLE_ROWS
from tui.text.numbers import approx, money, percent, plural, size_text, tokens_exact, tokens_short
from tui.views.context.picture import picture_lines

_GROUPS = (
    ("tools and system", (*PREAMBLE_ROWS, "hidden", "unattributed")),
    ("messages", ("user", "assistant", "reasoning", "tool_calls", "attachments", "summaries")),
    ("results", ("tool_results",)),
)


def watch_lines(followed: Followed, width: int) -> list[Content]:
    """The panel, no line wider than `width` cells."""
    usage = followed.usage
    window = f"{tokens_short(usage.limits.context, strip=True)} window" if usage.limits.context else "window unknown"
    source = f" ({usage.limits.detail})" if usage.limits.detail else ""
    tail = f" · {usage.model} · {window}{source}"
    head = clip(f"{followed.program} · {plain(followed.title)}", max(20, width - len(tail)))
    lines = [
        Content.styled(clip(head + tail, width), "$text-muted"),
        _number(followed, width),
        *picture_lines(usage, width, 1),
    ]
    groups = [(name, _tokens(usage, keys)) for name, keys in _GROUPS]
    parts = [f"{name} {tokens_exact(tokens)}" for name, tokens in groups if tokens]
    lines.append(Content(clip("  " + "   ".join(parts), width)))
    lines += [Content(clip(line, width)) for line in _filled(_sentences(followed), width)]
    return lines


def status_text(followed: Followed) -> str:
    """The session on one line, for another program's status line."""
    usage = followed.usage
    parts = [f"{approx(usage.source)}{tokens_short(usage.total)}/{tokens_short(usage.limits.context, strip=True)}"]
    if usage.percent is not None:
        parts[0] += f" {percent(usage.percent)}"
    if followed.calls_left is not None:
        parts.append(f"{followed.calls_left:,} calls left")
    if followed.cached_share is not None:
        parts.append(f"{percent(100 * followed.cached_share)} cached")
    if followed.cost_today is not None:
        parts.append(f"{money(followed.cost_today)} today")
    return " · ".join(parts)


def _number(followed: Followed, width: int) -> Content:
    usage = followed.usage
    number = f"{approx(usage.source)}{tokens_exact(usage.total)} / {tokens_exact(usage.limits.context)} tokens"
    line = Content.styled(number, "bold")
    details = ["" if usage.percent is None else percent(usage.percent)]
    if usage.upper_bound > usage.total:
        details.append(f"±{tokens_exact(usage.upper_bound - usage.total)}")
    for detail in [*details, "next request"]:
        if detail and line.cell_length + len(detail) + 3 <= width:
            line = Content.assemble(line, f"   {detail}")
    return line


def _tokens(usage: ContextUsage, keys: tuple[str, ...]) -> int:
    return sum(row.tokens for row in usage.rows if row.key in keys)


def _sentences(followed: Followed) -> list[str]:
    sentences = []
    if followed.compacts_at is not None:
        sentences.append(f"its compaction at ~{tokens_short(followed.compacts_at)}")
    if followed.calls_left is not None:
        sentences.append(f"about {plural(followed.calls_left, 'call')} away at this pace")
    if followed.cached_share is not None:
        sentences.append(f"{percent(100 * followed.cached_share)} of the last request from the cache")
    if followed.cost_today is not None:
        sentences.append(f"today {money(followed.cost_today)}")
    forecast = f"forecasts: {plural(len(followed.forecasts), 'call')}"
    if followed.within_percent is not None:
        forecast += f", 95 % within {percent(followed.within_percent, digits=1)}"
    sentences.append(forecast)
    if followed.skipped:
        sentences.append(f"the first {size_text(followed.skipped)} of the file were not read")
    if followed.subagents:
        tokens = tokens_exact(followed.subagent_tokens)
        sentences.append(f"{plural(followed.subagents, 'subagent')}, {tokens} tokens of their own")
    return sentences


def _filled(sentences: list[str], width: int) -> list[str]:
    """`sentences` on lines of `width` cells, as many per line as fit."""
    lines: list[str] = []
    for sentence in sentences:
        joined = f"{lines[-1]}   ·   {sentence}" if lines else sentence
        if lines and len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(sentence)
    return lines
