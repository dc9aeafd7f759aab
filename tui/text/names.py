"""Short wording of figures and names, as the transcript shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from tui.text.clean import clean_line

MEASURED = frozenset({"measured", "counted", "derived"})
"""Sources of a token count that need no `~`: the provider said it, or a difference of what it said."""

# Parts of a model's name that don't help a reader: dates, sizes, quantisations, tuning words.
_NOISE = re.compile(
    r"^(\d{4,8}|\d+(\.\d+)?[bm]|instruct|chat|it|latest|preview|gguf|i?q\d.*|f16|bf16|fp8|awq|gptq)$", re.I
)
_MAIN_ARGUMENTS = ("path", "file", "file_path", "filename", "command", "query", "pattern", "url", "name")
_LOOKED_FOR = ("pattern", "query")
_SUMMARY_LENGTH = 60


def compact(number: int) -> str:
    """A count in at most five characters: 840, 1.2k, 38.4k, 121k, 1.2M."""
    if number < 1_000:
        return str(number)
    if number < 99_950:
        return f"{number / 1_000:.1f}k"
    if number < 999_500:
        return f"{number / 1_000:.0f}k"
    return f"{number / 1_000_000:.1f}M"


def tokens_text(count: tuple[int | None, str] | None) -> str:
    """Tokens with their unit; `~` before what was not measured, "" where nothing is known."""
    if count is None or count[0] is None:
        return ""
    return f"{'' if count[1] in MEASURED else '~'}{compact(count[0])} tok"


def plural(number: int, noun: str) -> str:
    """`1 line`, `210 lines`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size_text(size: int) -> str:
    """A size in bytes as people write it (decimal units)."""
    if size < 1_000:
        return f"{size} B"
    value, unit = (size / 1_000, "kB") if size < 999_500 else (size / 1_000_000, "MB")
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:,.0f} {unit}"


def seconds_text(seconds: float) -> str:
    """`6 s`, `2 min 5 s`; under a second counts as one."""
    whole = max(1, round(seconds))
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def time_text(at: float, now: float) -> str:
    """`14:02`, `3 Nov 14:02`, `3 Nov 2025`, in local time; "" for unknown. Both in seconds since the epoch."""
    if at <= 0:
        return ""
    then, today = datetime.fromtimestamp(at), datetime.fromtimestamp(now)
    if then.date() == today.date():
        return f"{then:%H:%M}"
    return f"{then.day} {then:%b %H:%M}" if then.year == today.year else f"{then.day} {then:%b %Y}"


def short_model(model: str) -> str:
    """A model's name for a label: no vendor, no date, no size: `openai/gpt-5-mini-2025-08-07` gives `gpt-5-mini`."""
    name = clean_line(model).rsplit("/", 1)[-1].split(":", 1)[0]
    name = re.sub(r"\.(gguf|bin|safetensors)$", "", name, flags=re.I)
    words = re.split(r"[-_ ]", name)
    kept = [words[0]]
    for index, word in enumerate(words[1:], 1):
        if not word or _NOISE.match(word) or (re.fullmatch(r"\d{2}", word) and index > 2):
            break
        kept.append(word)
    return "-".join(kept)[:32] or "assistant"


def arguments_summary(arguments: str) -> str:
    """The part of a tool call's JSON arguments that tells what it is about, on one line."""
    import json  # not before the first frame

    from tui.text.json_text import parse_json

    try:
        parsed: object = parse_json(arguments or "{}")
    except ValueError:
        parsed = arguments
    if isinstance(parsed, Mapping):
        chosen = next((parsed[name] for name in _MAIN_ARGUMENTS if isinstance(parsed.get(name), str)), None)
        if chosen is None:
            chosen = next((value for value in parsed.values() if isinstance(value, str)), None)
        text = chosen if chosen is not None else ("" if not parsed else json.dumps(parsed, ensure_ascii=False))
        looked_for = next((parsed[name] for name in _LOOKED_FOR if isinstance(parsed.get(name), str)), None)
        if looked_for is not None and looked_for != text:  # a search: what for comes before where
            text = f"{looked_for} in {text}"
    else:
        text = str(parsed)
    line = clean_line(str(text)[: 4 * _SUMMARY_LENGTH])
    return line if len(line) <= _SUMMARY_LENGTH else line[: _SUMMARY_LENGTH - 1] + "…"
