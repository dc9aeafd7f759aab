"""The real model, made to call a tool, through the whole loop: its call is run, its next answer has read the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import drain
from tests.real.conftest import StartServer, send_also
from tui.chat.conversation.events import TurnFailed
from tui.chat.workspace import Workspace
from tui.config.settings import ProviderSettings, Settings
from tui.messages import ToolCall, ToolResult, ToolSchema
from tui.providers.base import Provider
from tui.providers.config import Dialect
from tui.tools.base import Tool, ToolOutput

# Calls as `<function=name>{arguments}</function>`: the form for which llama.cpp holds a forced choice by a grammar
# that allows no text before the call. In others a small model talks on until it has to stop.
TEMPLATE = """\
{{- '<|im_start|>system\\nYou are a helpful assistant.' }}
{%- for tool in tools or [] %}{{ '\\n' + (tool | tojson) }}{% endfor %}
{{- '<|im_end|>\\n' }}
{%- for message in messages %}
{{- '<|im_start|>' + ('user' if message.role == 'tool' else message.role) + '\\n' }}
{{- message.content if message.content is string else '' }}
{%- for call in message.tool_calls or [] %}
{{- '<function=' + call.function.name + '>' }}{{ call.function.arguments | tojson }}{{ '</function>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "calls.jinja"
    path.write_text(TEMPLATE)
    return path


class Weather:
    """One tool that reads; from its first call on the model is free to answer."""

    name = "built-in"

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        self.cities: list[str] = []

    def tools(self) -> Sequence[Tool]:
        parameters = (
            '{"properties":{"city":{"enum":["Rome","Oslo"],"type":"string"}},"required":["city"],"type":"object"}'
        )
        return [Tool(ToolSchema("weather", "The weather in a city.", parameters), True, self.run)]

    async def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
        self.cities.append(arguments["city"])
        self.body["tool_choice"] = "none"
        return ToolOutput(f"In {arguments['city']} it rains, 9 degrees. " * 10)


# Not "anthropic": under /v1/messages llama.cpp ends the forced answer with "does not match the expected … format".
@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
async def test_a_call_is_run_and_its_result_is_read(
    llama_server: StartServer, template: Path, tmp_path: Path, dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = llama_server(template=template)
    since = server.mark()
    body = {"tool_choice": "required", "parallel_tool_calls": False, "temperature": 0}
    weather = Weather(body)
    send_also(monkeypatch, body)

    class Forced(Workspace):
        def provider(self, name: str) -> Provider:
            if name not in self._providers:
                self._providers[name] = server.provider(dialect, name)
            return self._providers[name]

    providers = {"real": ProviderSettings(base_url=server.url)}
    settings = Settings(
        model=f"real/{server.model}", providers=providers, data_dir=tmp_path, log_dir=tmp_path, reserve_output=48
    )
    workspace = await Forced.open(settings)
    try:
        workspace.services.tools.sources = {weather.name: weather}
        session = await workspace.new_session()
        events = await drain(session.send("How is the weather?"))
        assert not [event for event in events if isinstance(event, TurnFailed)]
        assert len(weather.cities) == 1
        called, answered = session.messages[1], session.messages[2]
        [call] = [part for part in called.parts if isinstance(part, ToolCall)]
        [result] = [part for part in answered.parts if isinstance(part, ToolResult)]
        assert (call.name, call.id) == ("weather", result.call_id)
        first, second = workspace.services.calls.rows(session.id)
        assert first.input_total is not None
        assert second.input_total is not None
        assert second.input_total - first.input_total > 60  # the result was read
        assert second.predicted is not None
        assert abs(second.predicted - second.input_total) < 0.2 * second.input_total
        assert session.messages[-1].role == "assistant"
    finally:
        await workspace.close()
    assert server.refusals(since) == []
