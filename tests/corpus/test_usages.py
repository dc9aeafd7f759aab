"""1,577 recorded usage bodies, read as the recording's own project reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.corpus import corpus_root
from tui.providers.usage_reading import read_usage

pytestmark = pytest.mark.corpus

# Where our reading differs, and why.
PASSES = "several passes inside one call: theirs is what is billed (the sum), ours what the context holds (the last)"
HIDDEN = "the total shows output that completion_tokens leaves out (thoughts at Gemini's Chat endpoint); we count it"
DIFFERENT = {
    "models/cassettes/test_anthropic/test_anthropic_advisor_tool.yaml": PASSES,
    "models/cassettes/test_anthropic/test_anthropic_advisor_tool_message_replay.yaml": PASSES,
    "models/cassettes/test_anthropic/test_anthropic_advisor_tool_redacted.yaml": PASSES,
    "models/cassettes/test_openai/test_compatible_api_with_tool_calls_without_id.yaml": HIDDEN,
}

Reading = tuple[int | None, int | None, int | None, int | None, int | None]


def dialect(usage: dict[str, Any]) -> set[str]:
    """The reading the recording names for a body of this shape."""
    keys = usage.keys()
    if "input_tokens_details" in keys:
        return {"responses"}
    if "cache_read_input_tokens" in keys or "cache_creation_input_tokens" in keys:
        return {"anthropic"}
    if "prompt_tokens" in keys:
        return {"chat", "embeddings"}
    if "tokens" in keys:
        return {"tokens"}
    return {"default", "embeddings"}


def reasoning_is_extra(usage: dict[str, Any]) -> bool:
    """xAI's habit, which its reading expects: the reasoning stands beside `completion_tokens`, as the total shows."""
    reasoning = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
    return reasoning > 0 and usage["prompt_tokens"] + usage["completion_tokens"] + reasoning == usage["total_tokens"]


def expected(entry: dict[str, Any], usage: dict[str, Any]) -> Reading:
    """Their most detailed reading under that dialect. 0 and absent are the same there."""
    dialects = dialect(usage)
    best: dict[str, int] = {}
    for reading in entry["extracted"]:
        readers = [(item["provider_id"], item["api_flavor"]) for item in reading["extractors"]]
        if "chat" in dialects:
            extra = reasoning_is_extra(usage)
            readers = [pair for pair in readers if (pair[0] == "x-ai") == extra]
        if {name for pair in readers for name in pair} & dialects and len(reading["usage"]) > len(best):
            best = reading["usage"]
    fields = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "output_reasoning_tokens")
    values = [best.get(name) or None for name in fields]
    return (values[0], values[1], values[2], values[3], values[4])


def test_every_recorded_usage_body(say: Callable[[str], None]) -> None:
    entries = json.loads((corpus_root() / "streams/genai-prices/usages.json").read_text(encoding="utf-8"))
    equal, different = 0, []
    for entry in entries:
        body = entry["body"]
        usage = body.get("usage") or body.get("usageMetadata") or body.get("meta") or {}
        read = read_usage(usage)
        ours: Reading = (None, None, None, None, None)
        if read is not None:
            ours = (
                read.input_total or None,
                read.output_total or None,
                read.input_cached or None,
                read.input_cache_write or None,
                read.reasoning or None,
            )
        theirs = expected(entry, usage)
        if ours == theirs:
            equal += 1
        else:
            different.append((body["file"], theirs, ours, usage))
    unexplained = [line for line in different if line[0] not in DIFFERENT]
    say(f"{equal} of {len(entries)} usage bodies read as recorded, {len(different)} differ on purpose")
    assert unexplained == []
    assert (len(entries), equal) == (1577, 1572)
    for _, theirs, ours, usage in different:
        if "iterations" in usage:
            assert ours[0] == usage["iterations"][-1]["input_tokens"]
        else:
            assert ours[0] == theirs[0] and (ours[0] or 0) + (ours[1] or 0) == usage["total_tokens"]
