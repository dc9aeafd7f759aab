"""Detects refusals of requests longer than the context window, and the token counts they name. Pure.

Patterns are texts that `re` compiles, and caches, at the first refusal: compiling all of them takes 10 ms.

To support a new server's text: add it to `tests/providers/http/overflow_cases.py` with the numbers it names, then
extend `_OVERFLOW` (the words) and `_LIMIT`, `_INPUT` or `_OUTPUT` (the numbers) until the test passes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.providers.wire import count_of

OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "model_max_prompt_tokens_exceeded",
        "string_above_context",
        "1261",  # Z.ai
    }
)


def any_of(*patterns: str) -> str:
    """One case-insensitive pattern that matches where any of `patterns` does."""
    return "(?i)" + "|".join(f"(?:{pattern})" for pattern in patterns)


# What is too long, and for what. Servers combine these in many ways.
_MATTER = r"(?:prompt|input|context|messages?|conversation|request|tokens?)"
_PASSES = r"(?:exceed(?:s|ed)?|(?:long|larg|bigg|great)er than|more than)"
_WINDOW = (
    r"(?:context(?: (?:window|size|length|limit|budget))?|token limit|kv memory budget"
    r"|max(?:imum)?(?: (?!rate|request|output)\w+){0,2} (?:length|tokens?))"
)
_LIKELY = any_of(
    rf"\b{_MATTER}\b[^.]{{0,80}}?\b{_PASSES}\b[^.]{{0,60}}?\b{_WINDOW}\b",
    rf"{_WINDOW}[^.]{{0,20}}? (?:been |is |was )?exceeded",
    r"(?:prompt|input|context|conversation) (?:is )?too (?:long|large)",
)
# Similar texts that mean something else: quotas, Go's deadlines, file sizes, and lengths of names.
_ALLOWANCE = any_of(
    r"\b(?:daily|weekly|monthly)\b",
    r"\byour (?:[\w-]+ ){0,2}(?:plan|account|organi[sz]ation|api key|subscription|budget)\b",
    r"deadline exceeded",
    r"\b\d+ ?[KMG]i?B\b",
)
_FIELD = any_of(rf"(?:\b|_)(?:names?|ids?|description|title|field|keys?)\b[^.]{{0,40}}?\b{_PASSES}\b")
_TOKENS = any_of(r"token|context")
_OVERFLOW = any_of(
    r"context[\s_-]?(?:window|size|length)[\s_-]?exceed",
    r"maximum context length",
    r"maximum prompt length is",
    r"context (?:length|size) is (?:only )?[\d,_]+",
    r"(?:inputs?|prompts?)[`'\"]? must have less than \d+ tokens",
    r"input tokens exceed the configured limit",
    r"input token count .{0,40}(?:exceeds the maximum|only supports up to)",
    r"prompt token count of \S+ exceeds the limit",
    r"reduce the length of the (?:messages|prompt|input)",
    r"range of input length should be",
    r"is too long and exceeds limit of",
    r"trying to keep the first \d+ tokens when context",
    r"n_keep\b.{0,20}>= n_ctx",
    r"[`']?inputs[`']? tokens \+ [`']?max_new_tokens[`']? must be",
    r"max_tokens=\d+ cannot be greater than max_model_len",
    r"max_tokens must be at least 1, got -\d+",
    r"current length is \d+ while limit is",
    r"prompt 超长|上下文(?:长度|窗口)",  # GLM and its gateways in China
)


def is_overflow(text: str) -> bool:
    """Whether a refusal with this text means that the request is longer than the context window."""
    if re.search(_OVERFLOW, text):
        return True
    if not re.search(_LIKELY, text) or re.search(_ALLOWANCE, text):
        return False
    return re.search(_FIELD, text) is None or re.search(_TOKENS, text) is not None


def _patterns(*texts: str) -> list[str]:
    """Patterns in which `#` stands for the number they are for, `~` for any other."""
    number = r"[\d,_]+"
    return ["(?i)" + text.replace("#", f"(?P<n>{number})").replace("~", number) for text in texts]


_LIMIT = _patterns(
    r"exceed context limit: ~ \+ ~ > #",
    r"maximum context length(?: is| of|:|\s*\()\s*#",
    r"tokens? > # maximum",
    r"context size \(# tokens",
    r"context size is #",
    r"context length is only #",
    r"maximum number of tokens allowed \(#\)",
    r"maximum prompt length is #",
    r"exceeds limit of #",
    r"maximum model length of #",
    r"max_model_len=#",
    r"context length of only #",
    r"n_ctx(?: \(|: ?)#",
    r"# maximum context length",
    r"token limit:? #",
    r"configured limit of #",
    r"exceeds the limit of #",
    r"context window of #",
    r"context length\s*\(# token",
    r"maximum allowed (?:input )?length (?:of |\()#",
    r"must have less than # tokens",
    r"only supports up to #",
    r"input length should be \[\d+, ?#\]",
    r"max_new_tokens[`']? must be <= #",
    r"while limit is #",
    r"max length: ?#",
)
_INPUT = _patterns(
    r"exceed context limit: # \+",
    r"prompt is too long: #",
    r"resulted in # tokens",
    r"contains (?:at least )?# (?:input )?tokens",
    r"request \(# tokens",
    r"requested tokens \(#\)",
    r"input token count (?:\(|is )#",
    r"keep the first #",
    r"n_keep(?: \(|: ?)#",
    r"has # (?:input )?tokens",
    r"passed # input tokens",
    r"requested # tokens in the messages",
    r"\(length #\)",
    r"requested: #",
    r"prompt token count of #",
    r"input (?:length )?\(?# ?(?:tokens\)|\)|exceeds)",
    r"input prompt \(# tokens\)",
    r"given: #",
    r"current length is #",
    r"input_len=#",
)
_OUTPUT = _patterns(
    r"exceed context limit: ~ \+ #",
    r"# in the (?:completion|output)",
    r"#(?:\.0)? (?:tokens )?for the completion",
    r"requested # output tokens",
    r"tokens plus # 'max_tokens'",
    r"max_completion_tokens' is too large: #",
    r"max_tokens=# cannot be greater",
    r"and # [`']?max_new_tokens",
)
# The longest answer of a model, when more was requested. From public issues of clients of:
# Anthropic (anthropics/claude-code#24451), OpenAI Chat (tailcallhq/forgecode#1185) and Responses, Groq
# (RooCodeInc/Roo-Code#5729), DeepSeek (deepseek-ai/DeepSeek-V3#69), DashScope (open-webui/open-webui#10507), Volcengine
# (yiliqi78/TOKENICODE#3), TGI (huggingface/transformers#28523), Bedrock.
_MOST_OUTPUT = _patterns(
    r"tokens: ~ > #, which is the maximum allowed number of output tokens",
    r"supports at most # (?:completion|output) tokens",
    r"max_(?:completion_|output_)?tokens\W.{0,60}integer above maximum value[.,] expected a value <= #",
    r"max_(?:completion_|output_)?tokens[`'\"]? must be less than or equal to [`'\"]?#",
    r"range of max_tokens (?:is|should be) \[\d+, ?#\]",
    r"maximum tokens you requested exceeds the model limit of #",
    r"(?<!\+ )`max_new_tokens` must be <= #",
)
# Gemini names the first number that is too large.
_OUTPUT_END = _patterns(
    r"max_?output_?tokens value of ~ but the supported range is from \d+ \(inclusive\) to # \(exclusive\)"
)
# OpenRouter, of an account with little credit.
_AFFORDED = _patterns(r"requested up to ~ tokens, but can only afford #")
ANTHROPIC_BYTES = 32_000_000  # of a request: https://platform.claude.com/docs/en/api/overview, "Request size limits"
# Limits in bytes or characters: of the whole request (Kimi, Vertex), of one string or file (OpenAI, Anthropic).
_MOST_BYTES = _patterns(r"total message size ~ exceeds limit #", r"exceeds the limit: # bytes")
_MOST_LENGTH = _patterns(r"string with maximum length #", r"image exceeds ~ MB maximum: ~ bytes > # bytes")
# Several inputs add up: "6683 in the messages, 730 in the functions", "52139 of text input, 12757 of tool input".
_INPUT_PARTS = any_of(
    r"(?P<n>[\d,_]+) (?:in (?:the|your) (?:messages|functions|tools|prompt)|of (?:\w+ )?input|tokens from the input)"
)
_TOTAL = _patterns(r"you requested (?:about )?# tokens")


@dataclass(frozen=True, slots=True)
class OverflowNumbers:
    """Tokens named in an overflow text, or None."""

    limit: int | None = None
    input: int | None = None
    output: int | None = None


def overflow_numbers(text: str, pairs: list[tuple[str, object]] | None = None) -> OverflowNumbers:
    """Read limit, input and output (tokens) from an error's text; structured fields win over words."""
    fields = dict(pairs or [])
    parts = [to_int(match["n"]) for match in re.finditer(_INPUT_PARTS, text)]
    input_tokens = count_of(fields.get("n_prompt_tokens")) or (sum(parts) if parts else _first(_INPUT, text))
    output = _first(_OUTPUT, text)
    if output is None and input_tokens is not None and (total := _first(_TOTAL, text)):
        output = max(0, total - input_tokens) or None
    return OverflowNumbers(count_of(fields.get("n_ctx")) or _first(_LIMIT, text), input_tokens, output)


def longest_answer(text: str) -> int | None:
    """The longest answer of a model in tokens, from a refusal of a longer one; None for other refusals."""
    if (end := _first(_OUTPUT_END, text)) is not None:
        return end - 1
    return _first(_MOST_OUTPUT, text)


def affordable_answer(text: str) -> int | None:
    """The tokens of answer that an account's credit pays for, if more were requested; None for other refusals."""
    return _first(_AFFORDED, text)


def most_bytes(text: str) -> int | None:
    """The bytes that a request may have in all, where it had more; None where the refusal names none."""
    return _first(_MOST_BYTES, text) or (ANTHROPIC_BYTES if "request_too_large" in text else None)


def most_length(text: str) -> int | None:
    """What one string (characters) or file (bytes) of a request may have; None where the refusal names none."""
    return _first(_MOST_LENGTH, text)


def to_int(digits: str) -> int:
    """A number with or without thousands separators; 0 if it is not a number of tokens."""
    return count_of(digits.replace(",", "").replace("_", "")) or 0


def _first(patterns: list[str], text: str) -> int | None:
    for pattern in patterns:
        if match := re.search(pattern, text):
            return to_int(match["n"]) or None
    return None
