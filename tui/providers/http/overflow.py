"""Which error is an overflow, and the numbers in it: the one classifier of failed requests. Pure.

The texts are those the providers' servers write; each pattern stands for at least one text in
`tests/providers/http/test_overflow.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tui.providers.base import ErrorKind, ProviderError
from tui.providers.http.error_text import MOST_VALUE, body_message, one_line, retry_after, retry_delay, said_in
from tui.providers.http.overflow_numbers import OverflowNumbers, affordable_answer, longest_answer, overflow_numbers
from tui.providers.http.route import nothing_there

MOST_TEXT = 16_000  # characters of a body that are looked through


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_TIER = _any(
    r"extra usage is required for long context", r"usage credits required for 1m context", r"long context beta"
)
_RATE = _any(
    r"rate[\s_-]?limit",
    r"per[\s_-]?(?:minute|min\b|hour|day|second)",
    r"\bTP[MD]\b",
    r"\bRP[MD]\b",
    r"too many requests",
    r"\bquota\b",
    r"throttl",
    r"resource_exhausted",
    r"concurren\w+ (?:limit|request)",
)
_BILLING = _any(
    r"insufficient[_ ]quota", r"credit balance is too low", r"insufficient (?:balance|credits?|funds)", r"billing"
)
_FLAGGED = _any(r"\bflagged\b", r"moderation", r"guardrail", r"usage (?:policy|policies|guidelines)", r"content policy")
_MEMORY = _any(r"failed to find free space in the kv cache", r"no user query found in messages", r"out of memory")
_NOT_TAKEN = _any(
    r"(?:image|audio|pdf|file) input is not supported", r"requires more (?:system )?memory", r"failed to load model"
)
_SLIP = _any(r"tool_use_failed", r"failed to call a function")  # Groq, of a tool call that the model got wrong
_BYTES = _any(
    r"request_too_large",
    r"maximum allowed number of bytes",
    r"(?:request entity|payload|request body|content) too large",
    r"total message size \d+ exceeds limit",
    r"string too long\. expected a string with maximum length \d{6,}",
    r"exceeds? (?:the )?maximum (?:request )?(?:size|bytes)",
    r"exceeds the limit: \d+ bytes",
    r"exceeds? \d+ MB maximum",
)
_NO_MODEL = _any(r"not a valid model id", r"\bmodel not exist", r"\bmodel\b.{0,100}\b(?:does not exist|not found)")
_SIGNATURE = _any(
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
_CODES = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "model_max_prompt_tokens_exceeded",
    "string_above_context",
    "1261",  # Z.ai
}
_AUTH_CODES = {
    "authentication_error",
    "permission_error",
    "invalid_api_key",
    "authentication",  # these three: OpenRouter's `error_type`
    "permission_denied",
    "payment_required",
}
# What may be too much, and what it may be too much for. Servers put these together in ever new words.
_MATTER = r"(?:prompt|input|context|messages?|conversation|request|tokens?)"
_PASSES = r"(?:exceed(?:s|ed)?|(?:long|larg|bigg|great)er than|more than)"
_ROOM = (
    r"(?:context(?: (?:window|size|length|limit|budget))?|token limit|kv memory budget"
    r"|max(?:imum)?(?: (?!rate|request|output)\w+){0,2} (?:length|tokens?))"
)
_LIKELY = _any(
    rf"\b{_MATTER}\b[^.]{{0,80}}?\b{_PASSES}\b[^.]{{0,60}}?\b{_ROOM}\b",
    rf"{_ROOM}[^.]{{0,20}}? (?:been |is |was )?exceeded",
    r"(?:prompt|input|context|conversation) (?:is )?too (?:long|large)",
)
# What is put together alike: allowances, the deadlines of Go, sizes of files, and lengths of names.
_ALLOWANCE = _any(
    r"\b(?:daily|weekly|monthly)\b",
    r"\byour (?:[\w-]+ ){0,2}(?:plan|account|organi[sz]ation|api key|subscription|budget)\b",
    r"deadline exceeded",
    r"\b\d+ ?[KMG]i?B\b",
)
_FIELD = _any(rf"(?:\b|_)(?:names?|ids?|description|title|field|keys?)\b[^.]{{0,40}}?\b{_PASSES}\b")
_TOKENS = _any(r"token|context")
_OVERFLOW = _any(
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


def _is_overflow(text: str) -> bool:
    """Whether a refusal with this text means that the request is too long for the context window."""
    if _OVERFLOW.search(text):
        return True
    if not _LIKELY.search(text) or _ALLOWANCE.search(text):
        return False
    return _FIELD.search(text) is None or _TOKENS.search(text) is not None


def _overflow_kind(numbers: OverflowNumbers) -> ErrorKind:
    """Output is to blame where the named input alone would fit."""
    if numbers.limit is None or numbers.input is None or not numbers.output:
        return "overflow_input"
    return "overflow_output" if numbers.input < numbers.limit else "overflow_input"


def kind_of(
    status: int | None, text: str, codes: set[str], provider: str = "", *, wait: float | None = None
) -> ErrorKind:
    """The kind of a failed request from its HTTP status (None: inside a stream), all its text, and its codes.

    `wait` is how long the server asks to wait, in seconds.
    """
    match status:
        case _ if _TIER.search(text):
            return "long_context_tier"
        case 403 if _is_overflow(text):
            return "overflow_input"  # Together
        case 403 if _FLAGGED.search(text):
            return "bad_request"
        case 401 | 403 | 407:
            return "auth"
        case 402 if wait is not None or "in_flight_budget" in text:
            return "rate_limit"  # OpenRouter: what other requests have reserved of the credit comes back
        case _ if codes & {"insufficient_quota", "billing_error", "exceeded_current_quota_error"}:
            return "auth"
        case 429 if wait is not None:
            return "rate_limit"  # Gemini names the billing page in every 429, also in those that pass
        case 400 | 402 | 429 if _BILLING.search(text):
            return "auth"
        case 402:
            return "auth"
        case 498 | 503 | 529 if not _is_overflow(text):  # LiteLLM passes on as 503 what its upstream refused
            return "overloaded"
        case _ if codes & {"overloaded_error", "engine_overloaded", "engine_overloaded_error"}:
            return "overloaded"
        case 429:
            return "rate_limit"
        case _ if codes & {"rate_limit_error", "rate_limit_exceeded"} or _RATE.search(text):
            return "rate_limit"
        case 404 if not codes & _CODES:
            return "not_found"
        case _ if "model_not_found" in codes or "not_found_error" in codes:
            return "not_found"
        case _ if codes & _AUTH_CODES:
            return "auth"
        case _ if _MEMORY.search(text):
            return "server"
        case _ if _NOT_TAKEN.search(text):
            return "bad_request"  # llama.cpp and Ollama answer 500; asking again would not help
        case _ if _SLIP.search(text):
            return "server"  # it may get it right the next time
        case _ if _BYTES.search(text):
            return "too_many_bytes"
        case _ if codes & _CODES or _is_overflow(text):
            return "overflow_input"
        case 400 | 413 if provider == "cerebras" and not text.strip():
            return "overflow_input"  # Cerebras refuses too long prompts without a body
        case 413:
            return "too_many_bytes"
        case _ if _SIGNATURE.search(text):
            return "signature"
        case 400 | 422 if _NO_MODEL.search(text):
            return "not_found"
        case 408 | 504 | 524:
            return "network"
        case int() if 400 <= status < 500:
            return "bad_request"
        case _ if "invalid_request_error" in codes:
            return "bad_request"
        case _:
            return "server"


_HINTS: Mapping[ErrorKind, str] = {
    "auth": "Check the API key and the account.",
    "not_found": "Check the model's name with /model and the server's address.",
    "long_context_tier": "This account has no access to the long window: compact, or choose another model.",
    "overflow_input": "The conversation does not fit the model's window.",
    "overflow_output": "The asked-for answer length does not fit beside the conversation.",
    "too_many_bytes": "The request is too large in bytes: leave out the largest attachment.",
}


_STATUS = re.compile(r"[45][0-9]{2}")


def _inner_status(codes: set[str]) -> int | None:
    """The HTTP status that an error inside a stream names as its code."""
    return next((int(code) for code in sorted(codes) if _STATUS.fullmatch(code)), None)


def classify_error(
    status: int | None,
    body: object,
    *,
    message: str = "",
    headers: Mapping[str, str] | None = None,
    provider: str = "",
    now: float = 0.0,
    asked: str = "",
) -> ProviderError:
    """The error of a failed request: its kind, its numbers in tokens, and one line for a person.

    `status` is the HTTP status, None (or 200) for an error inside a stream. `body` is the decoded body in any shape,
    `message` what the SDK made of it. `now` (seconds since the epoch) is needed only to read a Retry-After date.
    `asked` is the address that was asked, without secrets.
    """
    pairs, message = said_in(body), message[:MOST_VALUE]
    words = [value for _, value in pairs if isinstance(value, str)]
    said = body_message(pairs) or (message if words or not message.startswith("Error code:") else "")
    text = "\n".join([*words, message if not message.startswith("Error code:") else ""]).strip()[:MOST_TEXT]
    codes = {
        str(value)
        for key, value in pairs
        if key in ("code", "type", "error_code", "error_type", "status") and value is not None
    }
    wait = retry_after(headers or {}, text, now)
    if wait is None:
        wait = retry_delay(pairs)
    kind = kind_of(_inner_status(codes) if status in (None, 200) else status, text, codes, provider, wait=wait)
    numbers = OverflowNumbers()
    most_output = longest_answer(text) if kind in ("bad_request", "overflow_input") else None
    if status == 402:
        most_output = affordable_answer(text)
    if most_output is not None:
        kind = "overflow_output"
    elif kind in ("overflow_input", "overflow_output"):
        numbers = overflow_numbers(text, pairs)
        kind = _overflow_kind(numbers)
    lead = f"{provider}: " if provider else ""
    state = f"HTTP {status}: " if status and status != 200 else ""
    line = one_line(said) or "the server gave no reason"
    told: ErrorKind = "auth" if status == 402 else kind
    hint = nothing_there(status, one_line(said), asked) or _HINTS.get(told, "")
    return ProviderError(
        kind,
        f"{lead}{state}{line}{'' if line.endswith(('.', '!', '?', '…')) else '.'} {hint}".rstrip(),
        status=status,
        retry_after=wait if kind in ("rate_limit", "overloaded", "server") else None,
        limit=numbers.limit,
        input_tokens=numbers.input,
        output_tokens=numbers.output,
        most_output=most_output,
    )
