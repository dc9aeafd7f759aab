"""Every error text that was seen in the wild, and what it means."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.http import overflow_cases
from tests.providers.http.lookalike_cases import NOT_OVERFLOW, PAIRING, THINKING
from tests.providers.http.overflow_cases import Case, anthropic, openai
from tests.providers.http.overflow_gathered_cases import GATHERED, NOT_THE_CONTEXT
from tests.providers.http.overflow_local_cases import LOCAL
from tui.providers.http.errors import classify_error

OVERFLOW = overflow_cases.OVERFLOW + LOCAL + GATHERED
OTHERS = NOT_OVERFLOW + NOT_THE_CONTEXT


@pytest.mark.parametrize("case", OVERFLOW + OTHERS, ids=lambda case: case.name)
def test_every_known_text(case: Case) -> None:
    error = classify_error(case.status, case.body, provider=case.provider)
    assert (error.kind, error.limit, error.input_tokens, error.output_tokens) == (
        case.kind,
        case.limit,
        case.input,
        case.output,
    )
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    "case", [case for case in OVERFLOW if isinstance(case.body, dict | list)], ids=lambda case: case.name
)
@pytest.mark.parametrize("wrap", ["text", "list", "nested", "bytes"])
def test_the_shape_of_the_body_does_not_matter(case: Case, wrap: str) -> None:
    body: object = {
        "text": json.dumps(case.body),
        "list": [case.body],
        "nested": {"detail": {"upstream": json.dumps({"response": json.dumps(case.body)})}},
        "bytes": json.dumps(case.body).encode(),
    }[wrap]
    error = classify_error(case.status, body, provider=case.provider)
    assert (error.kind, error.limit, error.input_tokens) == (case.kind, case.limit, case.input)


@pytest.mark.parametrize("text", THINKING)
def test_signature_errors(text: str) -> None:
    assert classify_error(400, anthropic(text)).kind == "signature"


@pytest.mark.parametrize("text", PAIRING)
def test_pairing_errors_are_no_overflow(text: str) -> None:
    assert classify_error(400, anthropic(text)).kind == "bad_request"


def test_a_body_of_megabytes_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps({"message": "prompt is too long: 9000 tokens > 8000 maximum", "more": list(range(200_000))})
    with monkeypatch.context() as patch:
        patch.setattr("json.loads", pytest.fail)
        error = classify_error(400, body)
    assert (error.kind, error.limit) == ("overflow_input", 8000)
    assert len(str(error)) < 600


def test_a_body_may_be_plain_text_or_empty() -> None:
    error = classify_error(400, "prompt is too long: 213462 tokens > 200000 maximum")
    assert (error.kind, error.limit) == ("overflow_input", 200_000)
    assert str(classify_error(400, "")) == "HTTP 400: the server gave no reason."


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (200, {"error": {"code": "E1234"}}, "p: the server gave no reason (code E1234)."),
        (200, {"success": False}, "p: the server gave no reason."),
        (500, {"code": 500}, "p: HTTP 500: the server gave no reason."),
        (None, {"code": "sk-1234567890abcdef\x1b[31m"}, "p: the server gave no reason (code [key])."),
    ],
)
def test_an_error_without_a_reason_is_named_by_its_code(status: int | None, body: object, text: str) -> None:
    assert str(classify_error(status, body, provider="p")) == text


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "7"}, None, 7.0),
        ({"retry-after": "0.5"}, None, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, None, 0.25),
        ({"Retry-After": "Thu, 01 Jan 1970 00:17:00 GMT"}, None, 20.0),
        ({"Retry-After": "Thu, 01 Jan 1970 00:00:01 GMT"}, None, 0.0),
        ({"Retry-After": "soon"}, None, None),
        ({"Retry-After": "-3"}, None, None),
        ({"Retry-After": "nan"}, None, None),
        ({}, openai("Rate limit reached. Please try again in 1.2s.", None), 1.2),
        ({}, openai("Rate limit reached. Please try again in 20ms.", None), 0.02),
        ({}, openai("Rate limit reached. Please try again in 6m0s.", None), 360.0),
        ({}, openai("Quota exceeded. Please retry in 33.511577426s.", None), 33.511577426),  # Gemini
        ({}, openai("Too many requests, please wait 20 seconds before trying again.", None), 20.0),
        ({}, openai("Too many requests: available are 500 models, not 3 hosts.", None), None),
        ({}, openai("Rate limited, retry in 500 milliseconds.", None), 0.5),
        ({}, openai("Rate limited, retry after 1 hr 5 mins.", None), 3900.0),
        ({}, [{"error": {"code": 429, "details": [{"@type": "RetryInfo", "retryDelay": "33s"}]}}], 33.0),
        ({}, None, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], body: object, seconds: float | None) -> None:
    wait = classify_error(429, body, headers=headers, now=1000.0).retry_after
    assert wait is None if seconds is None else wait == pytest.approx(seconds)


def test_keys_never_show() -> None:
    error = classify_error(
        401, openai("Incorrect API key provided: sk-proj-abcdefghijklmnop1234.", None), provider="openai"
    )
    assert "abcdefghijklmnop" not in str(error)
    assert "[key]" in str(error)


def test_html_becomes_words() -> None:
    page = "<html>\n<head><title>502 Bad Gateway</title></head><body><center>nginx</center></body></html>"
    assert str(classify_error(502, page, provider="proxy")) == "proxy: HTTP 502: 502 Bad Gateway."
    page = "<html><title>Q&amp;A &#27;[31m&#x202e;</title></html>"
    assert str(classify_error(502, page, provider="proxy")) == "proxy: HTTP 502: Q&A [31m\ufffd."


@pytest.mark.parametrize(
    ("kind", "statuses"),
    [
        ("auth", (401, 402, 403)),
        ("not_found", (404,)),
        ("network", (408, 504, 524)),
        ("too_many_bytes", (413,)),
        ("rate_limit", (429,)),
        ("overloaded", (503, 529)),
        ("server", (500, 502, 520, 522)),
        ("bad_request", (302, 304, 400, 405, 422, 501, 505)),  # the same again, if it were asked again
    ],
)
def test_a_status_without_a_text_has_a_kind(kind: str, statuses: tuple[int, ...]) -> None:
    assert {status: classify_error(status, "").kind for status in statuses} == dict.fromkeys(statuses, kind)


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in str(classify_error(500, {"error": "\x1b]0;owned\x07 \u202e oops"}))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.none() | st.integers(100, 599), json_values, st.text(max_size=50))
def test_any_body_gives_one_line(status: int | None, body: object, message: str) -> None:
    error = classify_error(status, [body, message], provider="p")
    assert len(str(error).splitlines()) == 1
    assert len(str(error)) < 600


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("max_tokens: 16000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet", 8192),
        ("max_tokens is too large: 16000. This model supports at most 4096 completion tokens, whereas you", 4096),
        ("Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 16384, but got 20000", 16384),
        ("max_tokens: 40960 exceeds model limit 8192", 8192),
        ("'max_tokens' must be in range [1, 4096]", 4096),
        ("parameter max_tokens = 16000 out of range (0, 4096]", 4096),
        ("max_completion_tokens: must be at most 4096", 4096),
        ("max_tokens is too high. Max: 4096", 4096),
        ("Requested max_tokens 16000 exceeds model's max output 4096", 4096),
        ("The maximum value for max_tokens is 4096 but 16000 was given", 4096),
        ("max_tokens 不能超过 4096", 4096),
        ("`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than", 8192),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        ("Range of max_tokens should be [1, 8192]", 8192),
        ("max_tokens must be less than or equal to 16384, the maximum value for max_tokens is less than the", 16384),
        (
            "The parameter `max_tokens` specified in the request are not valid: integer above maximum value, expected "
            "a value <= 32768, but got 64000 instead. Request id: 0217",
            32768,
        ),
        (
            "Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from "
            "1 (inclusive) to 65537 (exclusive). Update the value and try again.",
            65536,
        ),
        ("The maximum tokens you requested exceeds the model limit of 4096. Try again with a lower value.", 4096),
        ("Input validation error: `max_new_tokens` must be <= 192. Given: 200", 192),
        ("max_tokens (current value: 16000) must be between 0 and 4000", 4000),  # neavo/KeywordGacha#111
        ("Model Parameter max_tokens should be less than or equal to 12288.0.", 12288),  # langgenius/dify#13451
        ("body\nmax_tokens\nInput should be less than or equal to 8192", 8192),  # pydantic, in pieces
        ("max_tokens (64000) exceeds the maximum output tokens for this model (8192)", 8192),
        ("The value of max_tokens exceeds the maximum of 4096", 4096),
    ],
)
def test_an_answer_longer_than_the_model_gives_names_no_window(text: str, most: int) -> None:
    error = classify_error(400, openai(text, "invalid_value"))
    assert (error.kind, error.most_output, error.limit, error.input_tokens) == ("overflow_output", most, None, None)
    assert all(classify_error(case.status, case.body).most_output is None for case in OVERFLOW + OTHERS)


@pytest.mark.parametrize("text", ["max_tokens is too large", "max_tokens 16000 out of range", "'max_tokens' too high"])
def test_an_answer_that_is_too_long_for_an_unnamed_limit(text: str) -> None:
    error = classify_error(400, openai(text, None))
    assert (error.kind, error.most_output, error.limit) == ("overflow_output", None, None)


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens has to be positive, temperature must be between 0 and 2",
        "body\nmax_tokens\nField required\ntop_k\nInput should be less than or equal to 64",
        "max_tokens exceeds maximum context: your prompt of 30000 tokens leaves a maximum of 2768",
        "max_tokens (4096) plus the input must be less than or equal to 8192",
        "max_tokens exceeds the context limit: 8192",
        "max_tokens and prompt exceed the limit of 8192",
        "max_tokens (4096) exceeds 2768 remaining of this conversation",
        "max_tokens=4096 too large: max 2768 left",
        "max_tokens 40960, input 30000: limit 65536 exceeded",
    ],
)
def test_a_number_of_something_else_is_not_the_longest_answer(text: str) -> None:
    assert classify_error(400, openai(text, "invalid_value")).most_output is None


def test_an_upstream_that_writes_its_reason_elsewhere() -> None:
    body = {
        "error": {"message": "Param Incorrect", "param": "max_tokens is too large: 9. This model supports at most 8 "}
    }
    body["error"]["param"] += "completion tokens, whereas you provided 9."
    error = classify_error(400, body)
    assert (error.kind, error.most_output) == ("overflow_output", 8)


def test_what_little_credit_pays_for() -> None:
    """OpenRouter sets the longest answer aside from the credit before it asks."""
    text = "This request requires more credits, or fewer max_tokens. You requested up to 64000 tokens, but can only "
    text += "afford 47. To increase, visit https://openrouter.ai/settings/credits"
    error = classify_error(402, openai(text, 402))
    assert (error.kind, error.most_output) == ("overflow_output", 47)
    assert str(error).endswith("Check the API key and the account.")


@pytest.mark.parametrize("piece", ["<html><script", "<html><title", "try again in 1s ", "1 in the ", "a", '{"a":'])
def test_a_body_of_megabytes_is_read_as_far_as_it_can_say_anything(piece: str) -> None:
    """Some of the patterns take time that grows with the square of what they are given; this ran for minutes."""
    body = {"error": {"message": piece * (1_000_000 // len(piece)), "code": "context_length_exceeded"}}
    error = classify_error(400, [body, json.dumps(body), piece * 1_000_000])
    assert error.kind == "overflow_input" and len(str(error)) < 600
    late = classify_error(400, {"detail": [{"msg": "prompt is too long", "input": "x" * 1_000_000}] * 3})
    assert late.kind == "overflow_input"
