"""`chatctx watch --line` as the `statusLine` command of Claude Code: a line for the JSON on standard input.

It runs at every change, so it imports next to nothing: no command line parser, no tokenizer.
"""

from __future__ import annotations

import json
import re
import select
import sys

from tui.text.numbers import money, percent, plural, tokens_short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TAIL_BYTES = 400_000  # bytes at the end of the transcript, which contain the last calls
COMPACTS_AT = 0.8  # share of the window, as in `chatctx watch`
SMALL_WINDOW, LARGE_WINDOW = 200_000, 1_000_000  # tokens, of Claude, as in `chatctx watch`
SOMETIMES_LARGE, ALWAYS_LARGE = (4, 6), (5, 0)  # version of Claude from which on its window is the large one
MAX_INPUT = 1_000_000  # bytes of standard input
PIPE_SECONDS = 0.2  # to wait for a pipe
COUNTS = ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens", "output_tokens")

_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[.-](\d{1,2}))?(?!\d)")


def run() -> int | None:
    """Print the line. Returns 0, or 2 for input that is not Claude Code's; None if there is no input."""
    if not (text := _piped()):
        return None
    try:
        line = status_line(json.loads(text))
    except (ValueError, AttributeError, TypeError, LookupError, ArithmeticError, RecursionError):
        sys.stderr.write("chatctx: standard input is not the JSON that Claude Code passes to a statusLine command\n")
        return 2
    sys.stdout.write(line + "\n")
    return 0


def _piped() -> str:
    """The text on standard input; "" from a terminal, or from a pipe without a writer."""
    try:
        if sys.stdin.isatty() or not select.select([sys.stdin], [], [], PIPE_SECONDS)[0]:
            return ""
    except (OSError, ValueError):
        pass  # not a file descriptor: it can be read at once
    return sys.stdin.read(MAX_INPUT).strip()


def status_line(status: Mapping[str, Any]) -> str:
    """The line for Claude Code's status: tokens of the window, calls until compaction, cache, cost of the session."""
    report, model = status.get("context_window") or {}, (status.get("model") or {}).get("id") or ""
    calls = [(sum(counts[:3]), counts[0], name) for counts, name in _calls(str(status.get("transcript_path") or ""))]
    most = max((total for total, _, _ in calls), default=0)
    inputs = _grown([total for total, _, _ in calls])
    usage = report.get("current_usage")
    if isinstance(usage, dict):
        counts = [_count(usage.get(name)) for name in COUNTS]
        total, cached = sum(counts), counts[0]
    elif calls:
        total, cached, _ = calls[-1]
    else:
        return "no call yet"
    if status.get("exceeds_200k_tokens"):
        most = max(most, SMALL_WINDOW + 1)
    size = _count(report.get("context_window_size"))
    window, mark = (size, "") if size else _window(model or (calls[-1][2] if calls else ""), most)
    pace = (inputs[-1] - inputs[0]) / (len(inputs) - 1) if len(inputs) > 1 else 0
    line = line_text(
        total,
        window,
        calls_left=int((COMPACTS_AT * window - total) / pace) if window and pace > 0 else None,
        cached_share=cached / (inputs[-1] if inputs else total) if cached and total else None,
        window_mark=mark,
    )
    cost = (status.get("cost") or {}).get("total_cost_usd")
    if isinstance(cost, int | float) and cost is not True and 0 <= cost < 1e6:
        line += f" · {money(cost)} this session"
    return line


def line_text(
    total: int,
    window: int | None,
    *,
    calls_left: int | None,
    cached_share: float | None,
    mark: str = "",
    window_mark: str = "",
) -> str:
    """Tokens of the window, calls until compaction, share of the cache. The marks precede uncertain numbers."""
    parts = [f"{mark}{tokens_short(total)}/{window_mark}{tokens_short(window or None, strip=True)}"]
    if window:
        parts[0] += f" {percent(100 * total / window)}"
    if calls_left is not None:
        parts.append(f"{plural(max(0, calls_left), 'call')} left")
    if cached_share is not None:
        parts.append(f"{percent(100 * cached_share)} cached")
    return " · ".join(parts)


def _calls(path: str) -> list[tuple[list[int], str]]:
    """The counts and the model of the last calls in a transcript, oldest first."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - importing pathlib would take a fifth of the available time
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            lines = file.read().split(b"\n")
    except OSError:
        return []
    calls = []
    for line in lines:
        if b'"usage"' in line and b'"isSidechain":true' not in line:
            try:
                message = json.loads(line)["message"]
                calls.append(([_count(message["usage"].get(name)) for name in COUNTS], str(message.get("model") or "")))
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                continue  # not a call
    return [call for call in calls if sum(call[0][:3])]


def _grown(totals: list[int]) -> list[int]:
    """The different inputs since the context last shrank."""
    inputs: list[int] = []
    for total in totals:
        if inputs and total < 0.7 * inputs[-1]:
            inputs.clear()
        if inputs[-1:] != [total]:
            inputs.append(total)
    return inputs


def _window(model: str, most: int) -> tuple[int | None, str]:
    """The window of a model that was sent `most` tokens, None if it is not known; "~" where it is likely, not certain.

    Claude Code may not say that a model was chosen with `[1m]`.
    """
    if version := _CLAUDE.search(model.lower()):
        release = int(version[1]), int(version[2] or 0)
        if most > SMALL_WINDOW or "[1m]" in model or release >= ALWAYS_LARGE:
            return LARGE_WINDOW, ""
        return (SMALL_WINDOW, "") if release < SOMETIMES_LARGE else (LARGE_WINDOW, "~")
    from tui.providers.windows import table_window

    window = table_window(model)
    return (window[0] if window else None), ""


def _count(value: object) -> int:
    """`value` if it is a number of tokens, else 0: as in `tui.providers.wire`, which takes longer to import."""
    return value if type(value) is int and 0 <= value < 2**53 else 0
