"""Questions carry the headers that the SDKs send with messages."""

from __future__ import annotations

import pytest

from tests.providers.serving import ANTHROPIC, CHAT, DIALECTS, REQUEST, RESPONSES, serving
from tui.providers.config import Dialect

WHOLE = {"openai-chat": CHAT, "anthropic": ANTHROPIC, "openai-responses": RESPONSES}
COMPARED = ("authorization", "x-api-key", "api-key", "anthropic-version", "x-extra", "openai-organization")


@pytest.mark.slow  # the SDKs are loaded
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_question_is_signed_as_a_message_is(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "key-123456")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    async with serving(dialect, key_env=("MY_KEY",), headers={"X-Extra": "1"}) as (server, provider):
        server.json({"data": [{"id": "m"}]})
        await provider.models()
        server.answers.clear()
        server.stream(*WHOLE[dialect], named=True)
        async for _ in provider.stream(REQUEST):
            pass
        question, message = ({name: asked.headers.get(name) for name in COMPARED} for asked in server.asked)
    assert question == message
    assert question["authorization"] == "Bearer key-123456"
    assert question["openai-organization"] is None
