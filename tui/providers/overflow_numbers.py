"""The numbers in an overflow error: limit, input and output, in tokens. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.providers.wire import count_of

_LIMIT = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"exceed context limit: [\d,_]+ \+ [\d,_]+ > (?P<n>[\d,_]+)",
        r"maximum context length(?: is|\s*\()\s*(?P<n>[\d,_]+)",
        r"tokens? > (?P<n>[\d,_]+) maximum",
        r"context size \((?P<n>[\d,_]+) tokens",
        r"maximum number of tokens allowed \((?P<n>[\d,_]+)\)",
        r"maximum prompt length is (?P<n>[\d,_]+)",
        r"exceeds limit of (?P<n>[\d,_]+)",
        r"maximum model length of (?P<n>[\d,_]+)",
        r"context length of only (?P<n>[\d,_]+)",
        r"n_ctx \((?P<n>[\d,_]+)\)",
        r"(?P<n>[\d,_]+) maximum context length",
        r"token limit:? (?P<n>[\d,_]+)",
        r"configured limit of (?P<n>[\d,_]+)",
        r"exceeds the limit of (?P<n>[\d,_]+)",
        r"context length\s*\((?P<n>[\d,_]+) token",
        r"input length should be \[\d+, ?(?P<n>[\d,_]+)\]",
        r"max_new_tokens[`']? must be <= (?P<n>[\d,_]+)",
        r"while limit is (?P<n>[\d,_]+)",
    )
]
_INPUT = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"exceed context limit: (?P<n>[\d,_]+) \+",
        r"prompt is too long: (?P<n>[\d,_]+)",
        r"resulted in (?P<n>[\d,_]+) tokens",
        r"contains (?:at least )?(?P<n>[\d,_]+) (?:input )?tokens",
        r"request \((?P<n>[\d,_]+) tokens",
        r"input token count \((?P<n>[\d,_]+)\)",
        r"keep the first (?P<n>[\d,_]+)",
        r"n_keep \((?P<n>[\d,_]+)\)",
        r"has (?P<n>[\d,_]+) input tokens",
        r"\(length (?P<n>[\d,_]+)\)",
        r"requested: (?P<n>[\d,_]+)",
        r"prompt token count of (?P<n>[\d,_]+)",
        r"input (?:length )?\((?P<n>[\d,_]+) tokens\)",
        r"input prompt \((?P<n>[\d,_]+) tokens\)",
        r"given: (?P<n>[\d,_]+) [`']?inputs",
        r"current length is (?P<n>[\d,_]+)",
    )
]
_OUTPUT = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"exceed context limit: [\d,_]+ \+ (?P<n>[\d,_]+)",
        r"(?P<n>[\d,_]+) in the (?:completion|output)",
        r"requested (?P<n>[\d,_]+) output tokens",
        r"max_completion_tokens' is too large: (?P<n>[\d,_]+)",
        r"and (?P<n>[\d,_]+) [`']?max_new_tokens",
    )
]
# The longest answer of a model, for which less was asked than it would have written: Anthropic, OpenAI, Groq, DeepSeek,
# DashScope.
_MOST_OUTPUT = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"tokens: [\d,_]+ > (?P<n>[\d,_]+), which is the maximum allowed number of output tokens",
        r"supports at most (?P<n>[\d,_]+) (?:completion|output) tokens",
        r"max_(?:completion_|output_)?tokens'?: integer above maximum value\. expected a value <= (?P<n>[\d,_]+)",
        r"max_(?:completion_|output_)?tokens[`'\"]? must be less than or equal to [`'\"]?(?P<n>[\d,_]+)",
        r"range of max_tokens (?:is|should be) \[\d+, ?(?P<n>[\d,_]+)\]",
    )
]
# Several inputs add up: "6683 in the messages, 730 in the functions", "52139 of text input, 12757 of tool input".
_INPUT_PARTS = re.compile(
    r"(?P<n>[\d,_]+) (?:in the (?:messages|functions|tools|prompt)|of (?:\w+ )?input)", re.IGNORECASE
)
_TOTAL = re.compile(r"you requested (?:about )?(?P<n>[\d,_]+) tokens", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OverflowNumbers:
    """Tokens that an overflow text names; None where it names none."""

    limit: int | None = None
    input: int | None = None
    output: int | None = None


def overflow_numbers(text: str, pairs: list[tuple[str, object]] | None = None) -> OverflowNumbers:
    """Read limit, input and output (tokens) from an error's text; structured fields win over words."""
    fields = dict(pairs or [])
    parts = [to_int(match["n"]) for match in _INPUT_PARTS.finditer(text)]
    given = count_of(fields.get("n_prompt_tokens")) or (sum(parts) if parts else _first(_INPUT, text))
    output = _first(_OUTPUT, text)
    if output is None and given is not None and (total := _TOTAL.search(text)):
        output = max(0, to_int(total["n"]) - given) or None
    return OverflowNumbers(count_of(fields.get("n_ctx")) or _first(_LIMIT, text), given, output)


def longest_answer(text: str) -> int | None:
    """The tokens that a model's answers may have at most, where more were asked for; None for another refusal."""
    return _first(_MOST_OUTPUT, text)


def to_int(digits: str) -> int:
    """A number written with or without thousands separators; 0 for what is no count of tokens."""
    return count_of(digits.replace(",", "").replace("_", "")) or 0


def _first(patterns: list[re.Pattern[str]], text: str) -> int | None:
    for pattern in patterns:
        if match := pattern.search(text):
            return to_int(match["n"]) or None
    return None
