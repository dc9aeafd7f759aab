"""Deferred tools through whole conversations: found, loaded, called, and the same again after a restart."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.chat.fakes import Answer, ScriptedProvider, answer, drain, open_workspace
from tests.tools.mcp.many_tools import describe
from tui.config.settings import ToolSettings
from tui.context.usage.limits import Tokens
from tui.messages import Request, ToolResult, ToolSchema
from tui.providers.base import StreamEnd, StreamEvent, ToolCallDelta
from tui.tools.base import Tool, ToolOutput
from tui.tools.tool_search import SEARCH
from tui.views.context_table import ContextView

PARAMETERS = '{"properties":{"identifier":{"type":"string"}},"required":["identifier"],"type":"object"}'


class Erp:
    """A server with many tools; `count` may change."""

    def __init__(self, count: int = 100) -> None:
        self.name = "erp"
        self.count = count

    def tools(self) -> Sequence[Tool]:
        return [
            Tool(ToolSchema(f"erp__operation_{n}", describe(n), PARAMETERS, "erp"), True, self.run)
            for n in range(self.count)
        ]

    async def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
        return ToolOutput(f"done with {arguments['identifier']}")


def calls(name: str, **arguments: object) -> Answer:
    return [ToolCallDelta(0, "c1", name, json.dumps(arguments)), StreamEnd("tool_calls", "tool_calls")]


def results(provider: ScriptedProvider) -> list[ToolResult]:
    return [p for m in provider.requests[-1].messages for p in m.parts if isinstance(p, ToolResult)]


async def test_a_tool_is_searched_loaded_and_called_and_the_rest_is_never_sent(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        [
            calls(SEARCH, query="export a report", limit=2),
            calls("erp__operation_47", identifier="R7"),
            answer("Exported."),
        ]
    )
    async with open_workspace(tmp_path, provider, sources=[Erp()]) as workspace:
        session = await workspace.new_session()
        await drain(session.send("Export report R7."))
        first, second, third = provider.requests
        assert [tool.name for tool in first.tools] == [SEARCH]
        assert "erp (100)" in first.tools[0].description
        assert second.tools[:1] == first.tools  # the beginning stays what it was
        assert second.tools[1].name == "erp__operation_47"
        assert len(second.tools) == 3
        assert third.tools == second.tools
        search_result, done = results(provider)
        assert not search_result.is_error
        assert "erp__operation_47: Export one report" in search_result.text
        assert done.text == "done with R7"
        assert len(session.tools.plan.deferred) == 98
        assert session.usage is not None
        assert session.usage.budget.max_input is not None
        assert provider.refused == 0
        session_id = session.id

    again = ScriptedProvider()
    async with open_workspace(tmp_path, again, sources=[Erp()]) as workspace:
        session = await workspace.resume(session_id)
        await drain(session.send("And R8?"))
        assert again.requests[0].tools == third.tools


async def test_where_everything_fits_or_nothing_is_to_wait_there_is_no_search(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=200_000)
    async with open_workspace(tmp_path / "large", provider, sources=[Erp()]) as workspace:
        session = await workspace.new_session()
        await drain(session.send("Hello."))
        assert len(provider.requests[0].tools) == 100
    provider = ScriptedProvider(window=30_000)
    async with open_workspace(tmp_path / "off", provider, sources=[Erp()]) as workspace:
        workspace.services.settings = replace(workspace.settings, tools=ToolSettings(defer="off"))
        session = await workspace.new_session()
        await drain(session.send("Hello."))
        assert len(provider.requests[0].tools) == 100


async def test_what_a_schema_costs_is_counted_before_it_is_sent(tmp_path: Path) -> None:
    """By its length it would fit: a token has four characters in most texts, and one or two in this."""

    class Digits(Erp):
        def tools(self) -> Sequence[Tool]:
            return [Tool(ToolSchema("erp__digits", "7 3 9 " * 100, "{}", "erp"), True, self.run)]

    provider = ScriptedProvider()
    waits = ToolSettings(defer=Tokens(300))
    async with open_workspace(tmp_path, provider, sources=[Digits()], tool_settings=waits) as workspace:
        await drain((await workspace.new_session()).send("Hello."))
        assert [tool.name for tool in provider.requests[0].tools] == [SEARCH]


async def test_a_model_that_invents_a_name_hears_what_there_is_and_one_that_remembers_may_call(tmp_path: Path) -> None:
    """A tool that waits is there all the same: its call runs, its schema need not have been sent."""
    provider = ScriptedProvider([calls("erp__nothing"), calls("erp__operation_3", identifier="X"), answer()])
    async with open_workspace(tmp_path, provider, sources=[Erp()]) as workspace:
        session = await workspace.new_session()
        await drain(session.send("Go."))
        wrong, right = results(provider)
        assert wrong.is_error
        assert SEARCH in wrong.text
        assert right.text == "done with X"


async def test_a_switch_that_means_others_does_not_cut_off_what_waits(tmp_path: Path) -> None:
    provider = ScriptedProvider([calls(SEARCH, query="export a report"), answer()])
    async with open_workspace(tmp_path, provider, sources=[Erp()]) as workspace:
        session = await workspace.new_session()
        await session.tools.switch("*", False)
        assert session.tools.find(SEARCH) is None
        await session.tools.switch("erp__*", True)
        await drain(session.send("Go."))
        assert not results(provider)[0].is_error


async def test_a_server_that_grows_while_the_conversation_runs_goes_from_sent_to_deferred(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    source = Erp(2)
    async with open_workspace(tmp_path, provider, sources=[source]) as workspace:
        session = await workspace.new_session()
        await drain(session.send("Hello."))
        source.count = 100
        await drain(session.send("And now?"))
        assert [tool.name for tool in provider.requests[0].tools] == ["erp__operation_0", "erp__operation_1"]
        assert [tool.name for tool in provider.requests[1].tools] == [SEARCH]


async def test_a_fork_begins_with_what_was_loaded_by_then(tmp_path: Path) -> None:
    provider = ScriptedProvider([answer("Hello."), calls(SEARCH, query="export a report"), answer("Found.")])
    async with open_workspace(tmp_path, provider, sources=[Erp()]) as workspace:
        session = await workspace.new_session()
        await drain(session.send("Hi."))
        early = session.messages[-1].id
        await drain(session.send("Search."))
        late = session.messages[-1].id
        assert [t.name for t in (await workspace.fork(session.id, early)).tools.plan.sent] == [SEARCH]
        assert (await workspace.fork(session.id, late)).tools.plan.sent == session.tools.plan.sent
        assert len(session.tools.plan.sent) == 6


async def test_a_schema_is_counted_as_the_provider_sends_it(tmp_path: Path) -> None:
    """A server's schema of two branches becomes one object: that is what the request holds, before and after it."""

    class Branches(ScriptedProvider):
        def tools_sent(self, model: str, tools: Sequence[ToolSchema]) -> tuple[ToolSchema, ...]:
            return tuple(replace(tool, parameters='{"properties":{},"type":"object"}') for tool in tools)

    provider = Branches([answer("Yes.")])
    async with open_workspace(tmp_path, provider, sources=[Erp(2)]) as workspace:
        session = await workspace.new_session()
        await drain(session.send("Hello"))
        (request,) = provider.requests  # what the estimator was given, too
        assert {tool.parameters for tool in request.tools} == {'{"properties":{},"type":"object"}'}


async def test_a_report_is_of_the_schemas_that_were_sent_after_a_refusal(tmp_path: Path) -> None:
    """The provider asks again by itself, with shorter schemas; the request it was given has the long ones."""

    class Refused(ScriptedProvider):
        short = False

        def tools_sent(self, model: str, tools: Sequence[ToolSchema]) -> tuple[ToolSchema, ...]:
            return tuple(replace(tool, description="") for tool in tools) if self.short else tuple(tools)

        async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
            self.short = True
            async for event in super().stream(replace(request, tools=self.tools_sent("m", request.tools))):
                yield event

    async with open_workspace(tmp_path, Refused([answer("Yes.")]), sources=[Erp(2)]) as workspace:
        session = await workspace.new_session()
        await drain(session.send("Hello"))
        base = workspace.services.estimator.situation(session.conversation.request()).base
        assert (base.kind, base.covered, base.uncertain) == ("prefix", 2, 0)


async def test_context_says_what_is_deferred_as_lines(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(), sources=[Erp()]) as workspace:
        session = await workspace.new_session()
        text = " ".join(line.plain for line in await ContextView(session, workspace).lines(80))
        assert "not sent until the model searches for them): erp 100" in text
