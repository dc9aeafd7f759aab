"""What servers say that do not compact, or can't read what they compacted."""

from __future__ import annotations

import pytest

from tui.providers.http.errors import classify_error
from tui.providers.http.server_compaction import names_seal, refuses_compacting, refuses_seal


@pytest.mark.parametrize(
    ("status", "text", "compacting", "seal", "named"),
    [
        (400, "Unknown parameter: 'context_management'.", True, False, False),
        (400, "Invalid 'context_management[0].compact_threshold': integer below minimum value.", True, False, False),
        (422, "body.context_management: Extra inputs are not permitted", True, False, False),
        (429, "rate limit reached for context_management requests", False, False, False),
        (400, "The encrypted content gAAA...9Qa== could not be verified.", False, True, False),
        (400, "The encrypted content for item cmp_0f3a could not be verified.", False, True, True),
        (404, "Item with id 'cmp_0f3a' not found.", False, True, True),
        (400, "Invalid value: 'compaction'. Supported values are: 'message', 'reasoning'.", False, True, True),
        (400, "This model's maximum context length is 8192 tokens.", False, False, False),
        (503, "compaction is overloaded", False, False, True),
    ],
)
def test_refusals(status: int, text: str, compacting: bool, seal: bool, named: bool) -> None:
    error = classify_error(status, {"error": {"message": text, "type": "invalid_request_error"}}, provider="box")
    assert (refuses_compacting(error), refuses_seal(error), names_seal(error)) == (compacting, seal, named)
