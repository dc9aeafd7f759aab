"""`chatctx watch --line` as Claude Code's `statusLine` command: its JSON on standard input, one line back.

Claude Code runs it at every change, so it imports nothing but `json`: no command line parser, no tokenizer.
"""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TAIL_BYTES = 400_000  # bytes at the end of the transcript, which contain the last calls
COMPACTS_AT = 0.8  # share of the window, as in `chatctx watch`
MOST_INPUT = 1_000_000  # bytes of standard input


def run() -> int:
    """Read the status, print the line. Returns the exit code: 0, or 2 for input that is not Claude Code's."""
    try:
        status = json.loads(sys.stdin.read(MOST_INPUT))
        line = status_line(status)
    except (ValueError, AttributeError, TypeError, LookupError):
        sys.stderr.write("chatctx: standard input is not the status that Claude Code gives to a statusLine command\n")
        return 2
    sys.stdout.write(line + "\n")
    return 0


def status_line(status: Mapping[str, Any]) -> str:
    """The line for Claude Code's status: tokens of the window, calls until compaction, cache, cost of the session."""
    window = status.get("context_window") or {}
    size = window.get("context_window_size")
    inputs, cached = _last_calls(str(status.get("transcript_path") or ""))
    usage = window.get("current_usage")
    if isinstance(usage, dict):
        read, written = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
        total = (usage.get("input_tokens") or 0) + read + written + (usage.get("output_tokens") or 0)
        cached = read
    elif inputs:
        total = inputs[-1]
    else:
        return "no call yet"
    parts = [f"{_short(total)}/{_short(size) if size else '?'}"]
    if size:
        parts[0] += f" {100 * total / size:.0f} %"
        pace = (inputs[-1] - inputs[0]) / (len(inputs) - 1) if len(inputs) > 1 else 0
        if pace > 0:
            parts.append(f"{max(0, int((COMPACTS_AT * size - total) / pace)):,} calls left")
    if cached and total:
        parts.append(f"{100 * cached / (inputs[-1] if inputs else total):.0f} % cached")
    cost = (status.get("cost") or {}).get("total_cost_usd")
    if isinstance(cost, int | float):
        parts.append(f"${cost:.2f} this session")
    return " · ".join(parts)


def _last_calls(path: str) -> tuple[list[int], int]:
    """Input tokens of the last calls, oldest first, since the context last shrank; and the cached part of the last."""
    inputs: list[int] = []
    cached = 0
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - importing pathlib would take a fifth of the available time
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            lines = file.read().split(b"\n")
    except OSError:
        return inputs, cached
    for line in lines:
        if b'"usage"' not in line or b'"isSidechain":true' in line:
            continue
        try:
            usage = json.loads(line)["message"]["usage"]
            cached = usage.get("cache_read_input_tokens") or 0
            total = usage["input_tokens"] + cached + (usage.get("cache_creation_input_tokens") or 0)
        except (ValueError, LookupError, TypeError):
            continue
        if inputs and total < 0.7 * inputs[-1]:
            inputs.clear()
        if total and inputs[-1:] != [total]:
            inputs.append(total)
    return inputs, cached


def _short(tokens: int) -> str:
    """ "164k", "1M": as in `tui.text.numbers`, which takes longer to import than this takes to run."""
    if tokens >= 999_500:
        return f"{tokens / 1_000_000:.2f}".rstrip("0").rstrip(".") + "M"
    return f"{tokens / 1000:.0f}k" if tokens >= 1000 else str(tokens)
