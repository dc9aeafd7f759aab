"""Classifies failed requests: kind, numbers, how long to wait, and one line for a person. Pure.

Patterns are from texts of real servers; `tests/providers/http/test_errors.py` has most of them, and similar ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from html import unescape
from itertools import islice
from typing import TypeAlias

from tui.providers.base import ErrorKind, ProviderError
from tui.providers.http.refusals import (
    AFFORDED,
    MAX_LENGTH,
    OVERFLOW_CODES,
    any_of,
    first_number,
    is_overflow,
    longest_answer,
    most_bytes,
    overflow_numbers,
    to_int,
)
from tui.providers.keys import one_line

MAX_TEXT = 16_000  # characters of a body that are searched

_TIER = any_of(
    r"extra usage is required for long context", r"usage credits required for 1m context", r"long context beta"
)
_RATE = any_of(
    r"rate[\s_-]?limit",
    r"per[\s_-]?(?:minute|min\b|hour|day|second)",
    r"\bTP[MD]\b",
    r"\bRP[MD]\b",
    r"too many (?:requests|tokens, please wait)",  # the latter is Bedrock's
    r"\bquota\b",
    r"throttl",
    r"resource_exhausted",
    r"concurren\w+ (?:limit|request)",
)
_BILLING = any_of(
    r"insufficient[_ ]quota", r"credit balance is too low", r"insufficient (?:balance|credits?|funds)", r"billing"
)
_FLAGGED = any_of(
    r"\bflagged\b", r"moderation", r"guardrail", r"usage (?:policy|policies|guidelines)", r"content policy"
)
_MEMORY = any_of(r"failed to find free space in the kv cache", r"no user query found in messages", r"out of memory")
_NOT_TAKEN = any_of(
    r"(?:image|audio|pdf|file) input is not supported", r"requires more (?:system )?memory", r"failed to load model"
)
_SLIP = any_of(r"tool_use_failed", r"failed to call a function")  # Groq, of a tool call that the model got wrong
_BYTES = any_of(
    r"request_too_large",
    r"maximum allowed number of bytes",
    r"(?:request entity|payload|request body|content) too large",
    r"total message size \d+ exceeds limit",
    r"string too long\. expected a string with maximum length \d{6,}",
    r"exceeds? (?:the )?maximum (?:request )?(?:size|bytes)",
    r"exceeds the limit: \d+ bytes",
    r"exceeds? \d+ MB maximum",
)
_LONG_ANSWER = any_of(
    r"max_(?:completion_|output_)?tokens[`'\"]?(?: value)?(?: \(?=? ?\d+\)?)?(?: is)? (?:too (?:large|high|big|long)"
    r"|out of range)"
)
_NO_MODEL = any_of(r"not a valid model id", r"\bmodel not exist", r"\bmodel\b.{0,100}\b(?:does not exist|not found)")
_SIGNATURE = any_of(
    r"invalid [`'\"]?signature",
    r"signature: field required",
    r"thinking[`'\"]? (?:or [`'\"]?redacted_thinking[`'\"]? )?blocks .{0,40}cannot be modified",
    r"expected [`'\"]?thinking[`'\"]?(?: or [`'\"]?redacted_thinking[`'\"]?)?, but found",
    r"encrypted content .{0,80}(?:could not be|cannot be) (?:verified|decrypted)",
    r"invalid_encrypted_content",
    r"item with id 'rs_[^']*' not found",
    r"of type 'reasoning' was provided without its required following item",
    r"provided without its required 'reasoning' item",
    r"thought[_ ]signature",
)
_AUTH_CODES = (
    *("authentication_error", "permission_error", "invalid_api_key"),
    *("authentication", "permission_denied", "payment_required"),  # OpenRouter's `error_type`
)


@dataclass(frozen=True, slots=True)
class Failure:
    """What a server says of a failed request.

    `status` is the HTTP status; None for an error inside a stream that names none. `waits`: it says how long to wait.
    """

    status: int | None
    text: str
    codes: set[str]
    waits: bool
    provider: str

    def says(self, pattern: str) -> bool:
        """Whether `pattern` matches somewhere in its text."""
        return re.search(pattern, self.text) is not None

    def has(self, *codes: str) -> bool:
        """Whether it has one of `codes`."""
        return not self.codes.isdisjoint(codes)


Rule: TypeAlias = tuple[ErrorKind, Collection[int | None], Callable[[Failure], bool]]  # kind, status, and what matches
_ANY = frozenset((None, *range(1000)))
RULES: tuple[Rule, ...] = (  # the first that matches counts
    ("long_context_tier", _ANY, lambda of: of.says(_TIER)),
    ("overflow_input", {403}, lambda of: is_overflow(of.text)),  # Together
    ("bad_request", {403}, lambda of: of.says(_FLAGGED)),
    ("auth", {401, 403}, lambda _: True),
    # OpenRouter: credit reserved by other requests is returned.
    ("rate_limit", {402}, lambda of: of.waits or "in_flight_budget" in of.text),
    ("auth", _ANY, lambda of: of.has("insufficient_quota", "billing_error", "exceeded_current_quota_error")),
    ("rate_limit", {429}, lambda of: of.waits),  # Gemini names the billing page in every 429, also in those that pass
    ("auth", {400, 402, 429}, lambda of: of.says(_BILLING)),
    ("auth", {402}, lambda _: True),
    # LiteLLM passes on as 503 what its upstream refused.
    ("overloaded", {498, 503, 529}, lambda of: not is_overflow(of.text)),
    ("overloaded", _ANY, lambda of: of.has("overloaded_error", "engine_overloaded", "engine_overloaded_error")),
    ("rate_limit", {429}, lambda _: True),
    ("rate_limit", _ANY, lambda of: of.has("rate_limit_error", "rate_limit_exceeded") or of.says(_RATE)),
    ("overflow_input", {404}, lambda of: of.has(*OVERFLOW_CODES)),
    ("not_found", {404}, lambda _: True),
    ("not_found", _ANY, lambda of: of.has("model_not_found", "not_found_error")),
    ("auth", _ANY, lambda of: of.has(*_AUTH_CODES)),
    ("server", _ANY, lambda of: of.says(_MEMORY)),
    # llama.cpp and Ollama answer 500; asking again would not help.
    ("bad_request", _ANY, lambda of: of.says(_NOT_TAKEN)),
    ("server", _ANY, lambda of: of.says(_SLIP)),  # it may succeed the next time
    ("too_many_bytes", _ANY, lambda of: of.says(_BYTES) and not is_overflow(of.text)),
    ("overflow_input", _ANY, lambda of: of.has(*OVERFLOW_CODES) or is_overflow(of.text)),
    ("overflow_input", {400, 413}, lambda of: of.provider == "cerebras" and not of.text),  # it gives no reason
    ("too_many_bytes", {413}, lambda _: True),
    ("signature", _ANY, lambda of: of.says(_SIGNATURE)),
    ("not_found", {400, 422}, lambda of: of.says(_NO_MODEL)),
    ("network", {408, 504, 524}, lambda _: True),
    ("bad_request", range(300, 500), lambda _: True),  # below 400: a redirect to nowhere
    ("bad_request", {501, 505}, lambda _: True),  # not implemented
    ("bad_request", _ANY, lambda of: of.has("invalid_request_error")),
    ("server", range(500, 1000), lambda _: True),
    ("server", _ANY, lambda of: of.has("server_error", "api_error", "internal_error", "internal_server_error")),
)


_HINTS: Mapping[ErrorKind, str] = {
    "auth": "Check the API key and the account.",
    "not_found": "Check the model's name with /model and the server's address.",
    "long_context_tier": "This account has no access to the long window: compact, or choose another model.",
    "overflow_input": "The conversation does not fit the model's window.",
    "overflow_output": "The asked-for answer length does not fit beside the conversation.",
}


_NEVER_PASSES = "One request is more than this account may ever send at once: /compact, or choose another model."

# OpenAI and Groq: "tokens per min (TPM): Limit 30000, Requested 45012".
_RATE_EXCEEDED = re.compile(r"\blimit:? ([\d,_]+)\b.{0,60}?\brequested:? ([\d,_]+)", re.IGNORECASE | re.DOTALL)


def classify_error(
    status: int | None,
    body: object,
    *,
    headers: Mapping[str, str] | None = None,
    provider: str = "",
    now: float = 0.0,
    url: str = "",
) -> ProviderError:
    """The error of a failed request: its kind, its numbers in tokens, and one line for a person.

    `status` is the HTTP status, None (or 200) for an error inside a stream. `body` is the body in any shape, decoded
    or not. `now` (seconds since the epoch) is needed only to read a Retry-After date. `url` is the address after
    redirects, without secrets.
    """
    pairs = body_values(body)
    text = "\n".join(value for _, value in pairs if isinstance(value, str)).strip()[:MAX_TEXT]
    codes = {str(value) for key, value in pairs if key in _CODE_KEYS and value is not None}
    wait = retry_after(headers or {}, text, pairs, now)
    inner = next((int(code) for code in sorted(codes) if re.fullmatch("[45][0-9]{2}", code)), None)
    failure = Failure(inner if status in (None, 200) else status, text, codes, wait is not None, provider)
    kinds = (kind for kind, statuses, matches in RULES if failure.status in statuses and matches(failure))
    kind: ErrorKind = next(kinds, "unknown")

    never_passes = kind == "rate_limit" and _exceeds_rate_alone(text)
    if never_passes:
        kind = "bad_request"
    limit = input_tokens = output_tokens = None
    most_output = longest_answer(text) if kind in ("bad_request", "overflow_input") else None
    if status == 402:
        most_output = first_number(AFFORDED, text)
    if most_output is not None or (kind == "bad_request" and failure.says(_LONG_ANSWER)):
        kind = "overflow_output"
    elif kind == "overflow_input":
        limit, input_tokens, output_tokens = overflow_numbers(text, dict(pairs))
        fits = limit is not None and input_tokens is not None and input_tokens < limit
        kind = "overflow_output" if fits and output_tokens else "overflow_input"

    reason = one_line(body_message(pairs))
    hint = _HINTS.get("auth" if status == 402 else kind, "")
    message = (
        f"{provider}:" if provider else "",
        f"HTTP {status}:" if status and status != 200 else "",
        _sentence(reason or f"the server gave no reason{_code_of(pairs, status)}"),
        _NEVER_PASSES if never_passes else nothing_there(status, reason, url) or hint,
    )
    return ProviderError(
        kind,
        " ".join(filter(None, message)),
        status=status,
        retry_after=wait if kind in ("rate_limit", "overloaded", "server", "unknown") else None,
        limit=limit,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        most_output=most_output,
        most_bytes=most_bytes(text) if kind == "too_many_bytes" else None,
        most_length=first_number(MAX_LENGTH, text) if kind == "too_many_bytes" else None,
    )


def _exceeds_rate_alone(text: str) -> bool:
    """Whether a text about a rate limit says that this one request is larger than the limit: it never passes."""
    match = _RATE_EXCEEDED.search(text)
    return match is not None and 0 < to_int(match[1]) < to_int(match[2])


def _code_of(pairs: list[tuple[str, object]], status: int | None) -> str:
    """The error code in a body as " (code 1234)"; "" if it has none, or only the HTTP `status`."""
    codes = [str(value) for key, value in pairs if key in ("code", "error_code", "error_type") and value]
    return f" (code {one_line(codes[0], 60)})" if codes and codes[0] != str(status) else ""


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


_MAX_DEPTH = 16
MAX_JSON = 500_000  # characters of a body that is parsed, in about 8 ms; a longer one is taken for text
MAX_VALUES = 1_000  # values read of a body
MAX_VALUE = 4_000  # characters of one of them
_CODE_KEYS = ("code", "type", "error_code", "error_type", "status")
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)


def unfold(body: object, depth: int = 0) -> Iterator[tuple[str, object]]:
    """All (key, scalar) pairs of `body`, depth first, parsing JSON in strings. The key of a bare value is ""."""
    if depth > _MAX_DEPTH:
        return
    match body:
        case bytes():
            yield from unfold(body.decode("utf-8", "replace"), depth)
        case str() if len(body) <= MAX_JSON and body.lstrip()[:1] in ("{", "["):
            try:
                value = json.loads(body)
            except (ValueError, RecursionError):
                yield "", body
            else:
                yield from unfold(value, depth + 1)
        case Mapping():
            for key, value in body.items():
                for inner, scalar in unfold(value, depth + 1):
                    yield inner or str(key), scalar
        case list():
            for value in body:
                yield from unfold(value, depth + 1)
        case _:
            yield "", body


def body_values(body: object) -> list[tuple[str, object]]:
    """The first results of `unfold`; the number is limited, since a body may have megabytes."""
    pairs = islice(unfold(body), MAX_VALUES)
    return [(key, value[:MAX_VALUE] if isinstance(value, str) else value) for key, value in pairs]


_TEXT_KEYS = ("message", "detail", "error", "msg", "error_msg", "status_msg", "raw", "error_description", "reason", "")


def body_message(pairs: list[tuple[str, object]]) -> str:
    """The most specific message in a body: the innermost `message`-like value, or the text of an HTML page."""
    for name in _TEXT_KEYS:
        texts = [value.strip() for key, value in pairs if key == name and isinstance(value, str) and value.strip()]
        if name == "message" and (raw := [value for key, value in pairs if key == "raw" and isinstance(value, str)]):
            texts += [value.strip() for value in raw]  # OpenRouter: the provider's own words
        if texts:
            text = texts[-1]
            if "<html" in text[:500].lower() or "<!doctype" in text[:100].lower():
                title = _TITLE.search(text)
                text = unescape(title.group(1) if title else _TAG.sub(" ", text))
            return text
    return ""


_WAIT = re.compile(
    r"(?i)(?:try again|retry|available|wait)\D{0,24}?"
    r"((?:\d+(?:\.\d+)?\s*(?:(?:ms|h|m|s)(?:ecs?)?|(?:milli)?seconds?|h(?:ou)?rs?|min(?:ute)?s?)(?![a-z])\s*)+)"
)
_WAIT_PART = re.compile(r"(?i)(\d+(?:\.\d+)?)\s*(ms|milli|h|m|s)")
_UNIT = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def retry_after(headers: Mapping[str, str], text: str, pairs: list[tuple[str, object]], now: float) -> float | None:
    """Seconds that the server asks to wait, from its headers or its body; None if it doesn't say.

    Reads `retry-after-ms`, `retry-after` (seconds or an HTTP date), texts such as "try again in 1m20.5s", and Google's
    `RetryInfo.retryDelay` ("33s"). `now` is in seconds since the epoch.
    """
    lower = {key.lower(): value.strip() for key, value in headers.items()}
    if (wait := _number(lower.get("retry-after-ms"))) is not None:
        return wait / 1000
    if value := lower.get("retry-after"):
        if (wait := _number(value)) is not None:
            return wait
        with suppress(ValueError, OverflowError):
            return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    if match := _WAIT.search(text):
        return sum(float(number) * _UNIT[unit.lower()] for number, unit in _WAIT_PART.findall(match.group(1)))
    delays = [value for key, value in pairs if key == "retryDelay" and isinstance(value, str)]
    return _number(delays[0].removesuffix("s")) if delays else None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None


# Texts of servers and frameworks for a missing path, as opposed to a missing model.
_NO_PATH = re.compile(
    r"\W*(?:404\W*)?(?:(?:file|page|path|route|resource|endpoint|url) )?not found\W*|.*\b404 page not found.*"
    r"|.*\binvalid url\b.*|.*\bunknown request url\b.*|.*\bunexpected endpoint\b.*|.*\bno route\b.*"
    r"|.*\bcannot (?:get|post) /.*",
    re.IGNORECASE | re.DOTALL,
)


def nothing_there(status: int | None, reason: str, url: str) -> str:
    """A hint for a server that has no such path, or "".

    Judged by the `reason` it gave. 405 also follows a redirect, after which HTTP uses GET. `url` is the address after
    redirects.
    """
    if not url or status not in (404, 405) or (status == 404 and reason and _NO_PATH.fullmatch(reason) is None):
        return ""
    if status == 404 and not reason:  # may still be about the model
        return f"Check the model's name with /model, and base_url: {url} was asked."
    return f"Nothing answers at {url}: check base_url, which for most servers ends in /v1."
