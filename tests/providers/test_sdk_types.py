"""The bodies we build are what the official SDKs' own types describe."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.messages import assistant, tool, user
from tests.providers.wire_values import IMAGE, NOTE, PDF, TOOL, TOOL_TURN, request, thought
from tui.messages import Request, SystemSection, ToolCall, ToolResult
from tui.providers.config import ProviderConfig
from tui.providers.dialects import anthropic as anthropic_provider
from tui.providers.dialects import openai_chat as chat_provider
from tui.providers.dialects import openai_responses as responses_provider
from tui.providers.dialects.anthropic import with_cache_breakpoints

if TYPE_CHECKING:
    from pydantic import TypeAdapter

pytestmark = pytest.mark.slow  # the first test of each SDK builds a check of all its types

CONFIG = ProviderConfig("p", official=True)
PLOT = (
    user("Plot it"),
    assistant(ToolCall("c3", "look", "{}")),
    tool(ToolResult("c3", "look", "a plot"), IMAGE),
    assistant("Done."),
)
CONVERSATION = (user("See", IMAGE, PDF, NOTE), assistant("A cat."), *PLOT, *TOOL_TURN)


def full(model: str, **changes: Any) -> Request:
    """A request with everything in it, for `model`."""
    made = thought("hm", model=model, signature="sig", encrypted="enc", item_id="rs_1", redacted=None)
    hidden = thought("", model=model, redacted="blob", encrypted="enc2", item_id="rs_2")
    base = request(
        *CONVERSATION,
        assistant(made, hidden, "Done."),
        user("Thanks"),
        model=model,
        system=(SystemSection("system", "prompt", "Be brief."),),
        tools=(TOOL,),
        max_output=4000,
        session="s1",
    )
    return replace(base, **changes)


@cache
def adapter(params: Any) -> TypeAdapter[Any]:
    """Made once: that takes a hundred times as long as a check."""
    from pydantic import TypeAdapter

    return TypeAdapter(params)


def check(body: dict[str, Any], params: Any) -> None:
    assert set(body) <= set(params.__annotations__)
    adapter(params).validate_python(json.loads(json.dumps(body)))


@pytest.mark.parametrize("reasoning", [None, "off", "low", "high"])
@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-8", "claude-fable-5-1", "claude-haiku-5-5"])
def test_anthropic(model: str, reasoning: str | None) -> None:
    from anthropic.types import message_count_tokens_params, message_create_params

    style = anthropic_provider.AnthropicMessages(CONFIG).style(model)
    body = with_cache_breakpoints(anthropic_provider.to_wire(full(model, reasoning=reasoning), style))
    check(body, message_create_params.MessageCreateParamsStreaming)
    counted = {key: value for key, value in body.items() if key not in ("max_tokens", "stream")}
    check(counted, message_count_tokens_params.MessageCountTokensParams)


@pytest.mark.parametrize("reasoning", [None, "off", "low", "high"])
def test_chat(reasoning: str | None) -> None:
    from openai.types.chat import completion_create_params

    style = chat_provider.ChatStyle(config=CONFIG, max_tokens_field="max_completion_tokens")
    body = chat_provider.to_wire(full("gpt-5", reasoning=reasoning), style)
    check(body, completion_create_params.CompletionCreateParamsStreaming)


@pytest.mark.parametrize("reasoning", [None, "off", "low", "high"])
@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5", "gpt-5.6", "o4-mini"])
def test_responses(model: str, reasoning: str | None) -> None:
    from openai.types.responses import response_create_params

    body = responses_provider.to_wire(
        full(model, reasoning=reasoning), responses_provider.OpenAIResponses(CONFIG).style(model)
    )
    check(body, response_create_params.ResponseCreateParamsStreaming)
