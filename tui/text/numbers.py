"""How numbers are written (tokens, sizes, times, money, percentages), summed and divided. Pure text without styles."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import NamedTuple

SURE = frozenset({"exact", "measured", "counted", "derived", "provider", "vocabulary"})
"""Sources of a token count without `~`: reported by the provider, a difference of reported numbers, or a text counted
in the model's own vocabulary."""

_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_AGES = ((604_800, "wk"), (86_400, "d"), (3_600, "h"), (60, "min"))
_FULL_HOURS = 48 * 3_600  # seconds up to which hours are counted, not days


def tokens_exact(tokens: int | None, source: str = "exact") -> str:
    """Tokens with thousands separators, 52100 -> "52,100"; "~52,100" if `source` is not `SURE`, "?" if unknown."""
    return "?" if tokens is None else f"{_mark(source)}{tokens:,}"


def tokens_short(tokens: int | None, source: str = "exact", *, strip: bool = False) -> str:
    """A count in at most five cells: 840, 1.2k, 52.1k, 104k, 1.05M, 3.20B; with "~" and "?" as in `tokens_exact`.

    `strip` drops a ".0" (for sizes that don't change, such as a window: 32k instead of 32.0k).
    """
    if tokens is None:
        return "?"
    size = abs(tokens)
    if size < 1_000:
        text = str(size)
    elif size < 99_950:
        text = f"{size / 1_000:.1f}k"
    elif size < 999_500:
        text = f"{size / 1_000:.0f}k"
    elif size < 999_500_000:
        text = f"{size / 1_000_000:.{_places(size / 1_000_000)}f}M"
    else:
        text = f"{size / 1_000_000_000:.{_places(size / 1_000_000_000)}f}B"
    if strip:
        text = re.sub(r"\.0+(?=[kMB])", "", text)
    return f"{_mark(source)}{'-' if tokens < 0 else ''}{text}"


def _places(value: float) -> int:
    return 2 if value < 9.995 else 1 if value < 99.95 else 0


def _mark(source: str) -> str:
    return "" if source in SURE else "~"


def source_of(sources: Iterable[str]) -> str:
    """The source of a sum of counts: "exact" if all of them are `SURE`."""
    return "exact" if SURE.issuperset(sources) else "estimated"


def total_of(counts: Iterable[int | None]) -> int | None:
    """The sum; None if one of them is unknown."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def tokens_labelled(count: tuple[int | None, str] | None) -> str:
    """A count and its source as "2.3k tok" or "~2.3k tok"; "" if unknown."""
    if count is None or count[0] is None:
        return ""
    return f"{tokens_short(*count)} tok"


def plural(number: int, noun: str) -> str:
    """`1 line`, `2,100 lines`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def share(part: float, whole: float | None, *, digits: int = 1) -> str:
    """`part` of `whole` as "20.1 %"; "" if the whole is unknown or zero."""
    return percent(100 * part / whole, digits=digits) if whole else ""


def percent(value: float | None, *, digits: int = 0) -> str:
    """A percentage as "26 %"; "?" if unknown or not a number. Values below 100 are never rounded up to it."""
    if value is None or not math.isfinite(value):
        return "?"
    text = f"{max(0.0, value):.{digits}f}"
    if value < 100 <= float(text):
        text = f"{100 - 10**-digits:.{digits}f}"
    return f"{text} %"


def signed_percent(value: float, *, digits: int = 1) -> str:
    """A difference in percent as "+0.1 %" or "-85 %"; what rounds to zero is "+0 %"."""
    return f"{round(value, digits) + 0.0:+.{digits}f} %"


def change_percent(before: float, after: float) -> str:
    """The relative change as "-85 %"; "" if it was zero before."""
    return signed_percent(100 * (after - before) / before, digits=0) if before > 0 else ""


def money(dollars: float | None) -> str:
    """Dollars with two decimals, four below a cent; "" if unknown. A cost is never shown as zero."""
    if dollars is None or not math.isfinite(dollars):
        return ""
    if 0 < dollars < 0.00005:
        return "<$0.0001"
    return f"${dollars:,.2f}" if dollars >= 0.00995 or dollars == 0 else f"${dollars:.4f}"


class Cost(NamedTuple):
    """The cost of calls in US dollars. `total` is None if a price is unknown, `priced` is the sum of the known ones.

    `estimated`: some calls were stopped, and are priced by what was sent and received.
    """

    total: float | None
    priced: float
    estimated: bool = False


def spent(cost: Cost) -> str:
    """The cost of calls in dollars: "$0.42", "~$0.42", "$0.42+?" if some prices are unknown, "?"."""
    figure = money(cost.total) or (f"{money(cost.priced)}+?" if cost.priced else "?")
    return f"~{figure}" if cost.estimated and cost.priced else figure


def price_per_million(dollars: float) -> str:
    """A list price (dollars per million tokens), in its shortest form: "3", "0.25", "free"."""
    if dollars == 0:
        return "free"
    return f"{dollars:,.4f}".rstrip("0").rstrip(".") if dollars >= 0.00005 else "<0.0001"


def duration(seconds: float, *, tenths: bool = False) -> str:
    """A time span in its two largest units: "<1 s", "6 s", "1 min 5 s", "2 h", "3 d 4 h". Rounds down.

    With `tenths` less than a minute has one decimal: "0.4 s", "12.3 s".
    """
    if tenths and 0 <= seconds < 60:
        return f"{int(seconds * 10) / 10:.1f} s"
    if 0 < seconds < 1:
        return "<1 s"
    rest = max(0, int(seconds))
    units = _SPANS if rest >= _FULL_HOURS else _SPANS[1:]
    first = next((index for index, (size, _) in enumerate(units) if rest >= size), len(units) - 1)
    pieces: list[str] = []
    for size, unit in units[first : first + 2]:
        count, rest = divmod(rest, size)
        if count or not pieces:
            pieces.append(f"{count} {unit}")
    return " ".join(pieces)


def age(then: float, now: float) -> str:
    """How long ago `then` was (both seconds since the epoch): "now", "5 min", "3 h", "2 d", "6 wk"; "" for unknown."""
    if then <= 0:
        return ""
    gap = now - then
    return next((f"{int(gap / size)} {unit}" for size, unit in _AGES if gap >= size), "now")


def clock_time(at: float, now: float) -> str:
    """`14:02`, `3 Nov 14:02`, `3 Nov 2025`, in local time; "" for unknown. Both in seconds since the epoch."""
    if at <= 0:
        return ""
    then, today = datetime.fromtimestamp(at), datetime.fromtimestamp(now)
    if then.date() == today.date():
        return f"{then:%H:%M}"
    return f"{day_text(then)} {then:%H:%M}" if then.year == today.year else f"{day_text(then)} {then:%Y}"


def day_text(day: date) -> str:
    """`3 Nov`."""
    return f"{day.day} {day:%b}"


def timestamp(at: float) -> str:
    """`2026-11-03 14:02` in local time. `at` in seconds since the epoch."""
    return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M}"


def size_text(size: int) -> str:
    """A size in bytes, decimal units: "840 B", "4.2 kB", "42 kB", "1.0 MB"."""
    if size < 1_000:
        return f"{size} B"
    value, unit = size / 1_000, "kB"
    for larger in ("MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1_000, larger
    return f"{value:.{1 if value < 9.95 else 0}f} {unit}"


def apportion(total: int, weights: Sequence[float]) -> list[int]:
    """Divide `total` into whole numbers by `weights` (none negative), by largest remainder; the sum is exact.

    If all weights are 0 the first gets everything.
    """
    if not weights:
        return []
    weight_total = sum(weights)
    if weight_total <= 0:
        return [total, *[0] * (len(weights) - 1)]
    shares = [total * weight / weight_total for weight in weights]
    parts = [int(share) for share in shares]
    missing = total - sum(parts)
    by_rest = sorted(range(len(weights)), key=lambda index: parts[index] - shares[index])
    for index in by_rest[: max(0, missing)]:
        parts[index] += 1
    for index in reversed(by_rest):  # only reached through rounding of very large numbers
        if sum(parts) <= total:
            break
        parts[index] -= min(parts[index], sum(parts) - total)
    return parts
