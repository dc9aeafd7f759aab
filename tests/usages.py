"""The numbers of `/context` as plain values, for tests of what is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tui.context.usage.limits import Budget, ModelLimits
from tui.context.usage.rows import MessageTokens, UsageItem, UsageRow
from tui.context.usage.usage import Basis, ContextUsage
from tui.text.labels import MESSAGE_ROWS


def make_usage(
    total: int = 52_100,
    window: int | None = 200_000,
    *,
    source: str = "exact",
    rows: Sequence[UsageRow] | None = None,
    rolling: bool = False,
    messages: Mapping[str, MessageTokens] | None = None,
) -> ContextUsage:
    """Numbers that keep the promises of `ContextUsage`, for any total and window."""
    if rows is None:
        system, tools = min(4_000, total), min(8_000, max(0, total - 4_000))
        rest = max(0, total - system - tools)
        shares = [rest * part // 100 for part in (15, 24, 8, 5, 46)]
        rows = (
            UsageRow("system", "System prompt", system, "estimated"),
            UsageRow(
                "tools", "Tools", tools, "estimated",
                (UsageItem("read_file", tools // 3, "estimated", "read_file"),
                 UsageItem("search", tools - tools // 3, "estimated", "search", "github")),
            ),
            UsageRow("user", "User messages", shares[0], "derived", (UsageItem("hi", shares[0], "derived", "m1"),)),
            UsageRow("assistant", "Assistant", shares[1], "derived", (UsageItem("ho", shares[1], "derived", "m2"),)),
            UsageRow("reasoning", "Reasoning sent back", shares[2], "derived"),
            UsageRow("tool_calls", "Tool calls", shares[3], "derived"),
            UsageRow("tool_results", "Tool results", shares[4], "derived"),
            UsageRow("attachments", "Attachments", rest - sum(shares), "estimated"),
        )  # fmt: skip
    messages = by_message(rows) if messages is None else messages
    limits = ModelLimits(window, source="probe" if window else "unknown", detail="models API" if window else "")
    basis = Basis(total - 2_100, 2_000, 2_000, 100, 1, 0.1, 1.31, 0.6, 31, 1, 84_000) if total > 2_100 else Basis()
    budget = Budget(None, None, None, None)
    if window:
        reserve = min(16_000, window // 4)
        most = window - reserve
        budget = Budget(window, most, reserve, None if rolling else most * 85 // 100)
    return ContextUsage(
        "s1", "anthropic", "claude-x", limits, budget, total, total + 180,
        "exact" if source == "exact" else "estimated", basis, tuple(rows), messages=messages,
    )  # fmt: skip


def by_message(rows: Sequence[UsageRow]) -> dict[str, MessageTokens]:
    """The tokens of single messages in `rows`, each with the source of its last part."""
    tokens: dict[str, MessageTokens] = {}
    for row in rows:
        for item in row.items if row.key in MESSAGE_ROWS else ():
            if item.ref:
                before = tokens.get(item.ref, MessageTokens(0, item.source))
                tokens[item.ref] = MessageTokens(before.tokens + item.tokens, item.source)
    return tokens
