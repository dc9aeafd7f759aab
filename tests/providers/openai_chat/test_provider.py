"""A request as Gemini's own API counts it."""

from __future__ import annotations

from tests.providers.wire_values import IMAGE, TOOL, TOOL_TURN, request, user
from tui.messages import SystemSection
from tui.providers.config import ChatStyle
from tui.providers.openai_chat.provider import gemini_body
from tui.providers.openai_chat.wire import to_wire


def test_a_request_as_gemini_counts_it() -> None:
    system = (SystemSection("system", "prompt", "Be brief."),)
    asked = request(*TOOL_TURN[:3], user("And this?", IMAGE), model="models/g", system=system, tools=(TOOL,))
    body = gemini_body(to_wire(asked, ChatStyle()))["generateContentRequest"]
    assert body["model"] == "models/g"
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    [declaration] = body["tools"][0]["functionDeclarations"]
    assert (declaration["name"], declaration["parametersJsonSchema"]["type"]) == ("look", "object")
    assert [content["role"] for content in body["contents"]] == ["user", "model", "user"]
    question, calls, answers = (content["parts"] for content in body["contents"])
    assert question == [{"text": "Read both"}]
    assert calls == [
        {"text": "Looking."},
        {"functionCall": {"name": "look", "args": {"path": "a"}}},
        {"functionCall": {"name": "look", "args": {"path": "b"}}},
    ]
    assert answers[0] == {"functionResponse": {"name": "look", "response": {"output": "A"}}}
    assert answers[-2:] == [
        {"text": "And this?"},
        {"inlineData": {"mimeType": "image/png", "data": "aW1n"}},
    ]
