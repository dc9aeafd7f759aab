"""How numbers are written on screen: tokens, shares, money, ages. Pure text, no styles."""

from __future__ import annotations

import math


def tokens_exact(tokens: int | None) -> str:
    """Tokens with thousands separators, "?" where unknown: 52100 -> "52,100"."""
    return "?" if tokens is None else f"{tokens:,}"


def tokens_short(tokens: int | None, *, strip: bool = False) -> str:
    """Tokens in at most five cells: 840, 1.2k, 52.1k, 104k, 1.05M; "?" where unknown.

    `strip` drops a ".0" (for sizes that don't move, such as a window: 32k instead of 32.0k).
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
    elif size < 9_995_000:
        text = f"{size / 1_000_000:.2f}M"
    else:
        text = f"{size / 1_000_000:.0f}M"
    if strip:
        text = text.replace(".00M", "M").replace(".0k", "k")
    return f"-{text}" if tokens < 0 else text


def share(part: int, whole: int | None, *, digits: int = 1) -> str:
    """`part` of `whole` as "20.1 %"; empty where the whole is unknown or zero."""
    if not whole:
        return ""
    return f"{100 * part / whole:.{digits}f} %"


def percent(value: float | None, *, digits: int = 0) -> str:
    """A percentage as "26 %"; "?" where it is unknown or not a number. Never rounds up to 100 what is below."""
    if value is None or not math.isfinite(value):
        return "?"
    if 99 < value < 100 and digits == 0:
        value = 99
    return f"{max(0.0, value):.{digits}f} %"


def money(dollars: float | None) -> str:
    """Dollars, two places, more for small change; empty where unknown."""
    if dollars is None or not math.isfinite(dollars):
        return ""
    return f"${dollars:.2f}" if dollars >= 0.01 or dollars == 0 else f"${dollars:.4f}"


def spent(cost: float | None, priced: float) -> str:
    """What calls cost in dollars, `priced` of it known: "$0.42", "$0.42+?" where the price of some is unknown, "?"."""
    return money(cost) or (f"{money(priced)}+?" if priced else "?")


def dollars(price: float) -> str:
    """A list price in dollars, as short as it can be said: "3", "0.25", "free"."""
    return f"{price:.4g}" if price else "free"


def duration(seconds: float) -> str:
    """Seconds as a person says them: 6 s, 1 m 05 s, 2 h 10 m."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} m {whole % 60:02d} s"
    return f"{whole // 3_600} h {whole % 3_600 // 60:02d} m"


def age(then: float, now: float) -> str:
    """How long ago `then` was (both seconds since the epoch): "now", "5 m", "3 h", "2 d", "6 w"."""
    gap = max(0.0, now - then)
    if then <= 0:
        return ""
    for limit, size, unit in ((3_600, 60, "m"), (86_400, 3_600, "h"), (604_800, 86_400, "d")):
        if gap < limit:
            count = int(gap / size)
            return "now" if unit == "m" and count == 0 else f"{count} {unit}"
    return f"{int(gap / 604_800)} w"


def bytes_short(size: int) -> str:
    """A size in bytes as "12 kB" or "1.0 MB" (decimal units)."""
    if size < 1_000:
        return f"{size} B"
    if size < 1_000_000:
        return f"{size / 1_000:.0f} kB"
    return f"{size / 1_000_000:.1f} MB"
