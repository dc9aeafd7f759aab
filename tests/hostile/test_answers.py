"""Answers that are odd, and refusals that waiting does not change."""

from __future__ import annotations

import pytest

from tests.providers.collect import collect
from tests.providers.serving import REQUEST, serving
from tui.providers.http.errors import classify_error


def piece(index: int, call_id: str | None, name: str | None, arguments: str) -> dict[str, object]:
    """A piece of a tool call."""
    call = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}


@pytest.mark.parametrize("ids_throughout", [True, False])
async def test_parallel_calls_with_one_id_stay_two(ids_throughout: bool) -> None:
    later = "call_1" if ids_throughout else None
    async with serving("openai-chat") as (server, provider):
        server.stream(
            piece(0, "call_1", "read", '{"path": '),
            piece(0, later, None, '"a"}'),
            piece(1, "call_1", "read", '{"path": '),
            piece(1, later, None, '"b"}'),
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        )
        got = await collect(provider, REQUEST)
    calls = list(got.calls.values())
    assert [call.arguments for call in calls] == ['{"path": "a"}', '{"path": "b"}']


def test_a_rate_limit_that_can_never_pass_is_not_waited_for() -> None:
    said = "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45012. Visit the rate page."
    error = classify_error(429, {"error": {"message": said, "code": "rate_limit_exceeded"}})
    assert error.kind == "bad_request" and error.retry_after is None and "/compact" in str(error)
    passing = "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 5012. Try again in 8s."
    assert classify_error(429, {"error": {"message": passing}}).kind == "rate_limit"
