"""Servers that send what MCP does not have, or not like that: it costs that piece, never what stands beside it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.tools.mcp.in_memory import TOOL, Answer, Json, Say, by_hand, connected, initialized, offering
from tests.tools.mcp.mcp_running import call, until
from tui.tools.base import ToolError
from tui.tools.mcp.transport import CLOSED, SERVER_ERROR, Normalizer

PLAIN = '{"properties":{},"type":"object"}'


async def offered(monkeypatch: pytest.MonkeyPatch, *tools: object) -> tuple[dict[str, str], list[str]]:
    """The schemas that are offered of such tools beside a proper one, by name, and the issues."""
    async with connected(monkeypatch, lambda: by_hand(offering(tools_list={"tools": [*tools, TOOL]}))) as server:
        assert server.status.state == "ready", server.status.reason
        return (
            {tool.schema.name: tool.schema.parameters for tool in server.tools()},
            [issue.text for issue in server.status.issues],
        )


@pytest.mark.parametrize(
    ("odd", "parameters", "issue"),
    [
        ({}, PLAIN, "tool 'odd': it has no input schema; it is offered without parameters"),
        ({"inputSchema": None}, PLAIN, "tool 'odd': it has no input schema; it is offered without parameters"),
        ({"inputSchema": []}, PLAIN, "tool 'odd': its input schema is not an object; it is offered without parameters"),
        ({"inputSchema": {}}, PLAIN, ""),
        (
            {"inputSchema": {"anyOf": [{"required": ["a"]}]}},
            '{"anyOf":[{"required":["a"]}],"properties":{},"type":"object"}',
            "",
        ),
        ({"inputSchema": {"type": "object"}, "outputSchema": {"properties": {}}}, PLAIN, ""),
        ({"inputSchema": {"type": "object"}, "outputSchema": 7}, PLAIN, ""),
        ({"inputSchema": {"type": "object"}, "annotations": "none", "icons": 5, "_meta": 1}, PLAIN, ""),
        ({"inputSchema": {"type": "object"}, "description": ["a", "b"]}, PLAIN, ""),
        (
            {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": {}}},
            None,
            "tool 'odd' is left out: annotations.readOnlyHint: Input should be a valid boolean",
        ),
        (  # as PHP writes an empty object
            {"inputSchema": {"type": "object", "properties": []}},
            None,
            "tool 'odd' is left out: inputSchema.properties: Input should be a valid dictionary",
        ),
        (
            {"inputSchema": {"type": "object", "required": "a"}},
            None,
            "tool 'odd' is left out: inputSchema.required: Input should be a valid list",
        ),
        (
            {"inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
            None,
            "tool 'odd' is not offered: it runs only as a task, which chatctx does not do",
        ),
    ],
)
async def test_an_odd_tool_is_offered_or_named_and_the_others_are_there(
    monkeypatch: pytest.MonkeyPatch, odd: Json, parameters: str | None, issue: str
) -> None:
    schemas, issues = await offered(monkeypatch, {"name": "odd", **odd})
    assert schemas.pop("s__echo") == PLAIN
    assert schemas == ({} if parameters is None else {"s__odd": parameters})
    assert issues == ([issue] if issue else [])


@pytest.mark.parametrize(
    ("odd", "issue"),
    [
        ({"inputSchema": {"type": "object"}}, "tool number 1 is left out: name: Field required"),
        ({"name": 7, "inputSchema": {}}, "tool number 1 is left out: name: Input should be a valid string"),
        ("a word", "tool number 1 is left out: Input should be a valid dictionary or instance of Tool"),
        (None, "tool number 1 is left out: Input should be a valid dictionary or instance of Tool"),
    ],
)
async def test_a_tool_without_a_name_is_left_out_by_its_number(
    monkeypatch: pytest.MonkeyPatch, odd: object, issue: str
) -> None:
    schemas, issues = await offered(monkeypatch, odd)
    assert (list(schemas), issues) == (["s__echo"], [issue])


async def test_odd_names_are_offered_under_names_that_providers_take(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("", "with blank", "a/b.c", "ünï", "x" * 200)
    schemas, issues = await offered(monkeypatch, *({"name": name, "inputSchema": {}} for name in names))
    assert len(schemas) == len(names) + 1
    assert all(len(name) <= 64 and name.isascii() for name in schemas)
    assert issues == []


@pytest.mark.parametrize(
    "odd",
    [
        {"instructions": None},
        {"instructions": ["Be", "brief"]},
        {"serverInfo": None},
        {"serverInfo": {"name": "x"}},
        {"serverInfo": "x"},
        {"capabilities": None},
        {"capabilities": []},
    ],
)
async def test_an_odd_introduction_keeps_no_server_from_working(monkeypatch: pytest.MonkeyPatch, odd: Json) -> None:
    answers = offering(initialize=lambda params, _: initialized(params) | odd)
    async with connected(monkeypatch, lambda: by_hand(answers)) as server:
        assert server.status.state == "ready", server.status.reason
        assert [tool.schema.name for tool in server.tools()] == ["s__echo"]


async def test_lists_that_are_none_are_empty_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = offering(tools_list={"tools": None}, resources_list={"resources": [{"name": "r"}, {"uri": "x://1"}]})
    async with connected(monkeypatch, lambda: by_hand(answer)) as server:
        assert (server.status.state, server.tools(), server.status.resources) == ("ready", (), ())
        assert [issue.text for issue in server.status.issues] == [
            "tools/list was answered without a list of tools",
            "resource 'r' is left out: uri: Field required",
            "resource 'x://1' is left out: name: Field required",
        ]


@pytest.mark.parametrize(
    ("result", "text", "is_error"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "video", "data": "x" * 5000}]},
         'a\n[content of an unknown type "video", 5.0 kB, left out]', False),
        ({"content": [{"type": "markdown", "text": "# A"}]},
         '[content of an unknown type "markdown", 35 B]\n# A', False),
        ({"content": [{"text": "no type"}]}, "[content of an unknown type null, 19 B]\nno type", False),
        ({"content": [{"type": "image", "data": "eA=="}, {"type": "text", "text": "b"}]},
         "[image: not as MCP has it (mimeType: Field required), left out]\nb", False),
        ({"content": [{"type": "image", "text": "a cat"}, {"type": "text", "text": 5}]},
         "[image: not as MCP has it (data: Field required), left out]\na cat\n"
         "[text: not as MCP has it (text: Input should be a valid string), left out]", False),
        ({"content": ["bare", 5]}, "bare\n5", False),
        ({"content": "bare"}, "bare", False),
        ({"content": None, "isError": True}, "", True),
        ({"content": [], "isError": "yes"}, "", True),
        ({"toolResult": {"a": 1}}, '{\n "toolResult": {\n  "a": 1\n }\n}', False),
        ({}, "", False),
        ({"structuredContent": {"a": 1}}, '{\n "a": 1\n}', False),
        ({"content": [{"type": "text", "text": "Done."}], "structuredContent": {"id": 7}},
         'Done.\n\n{\n "id": 7\n}', False),
        ({"content": [{"type": "text", "text": '{"id":7}'}], "structuredContent": {"id": 7}}, '{"id":7}', False),
        ({"content": [{"type": "text", "text": "7"}], "structuredContent": {"result": 7}}, "7", False),
        ({"content": [{"type": "text", "text": "word"}], "structuredContent": {"result": "word"}}, "word", False),
        ({"content": [{"type": "text", "text": "1"}, {"type": "text", "text": "2"}],
          "structuredContent": {"result": [1, 2]}}, "1\n2", False),
        ({"content": [{"type": "text", "text": "1"}, {"type": "text", "text": "2"}],
          "structuredContent": {"result": [{"type": "text", "text": "1", "_meta": None},
                                           {"type": "text", "text": "2", "_meta": None}]}}, "1\n2", False),
        ({"content": [{"type": "text", "text": "two"}], "structuredContent": [1, 2]},
         'two\n\n{\n "result": [\n  1,\n  2\n ]\n}', False),
        ({"error": {"code": -32000, "message": "Quota is used up"}}, "Quota is used up", True),
        ({"error": {"code": -32602, "message": "Bad arguments", "data": {"field": "a"}}},
         'Bad arguments\n{\n "field": "a"\n}', True),
        ({"error": {"code": 418, "message": "line one\nline two " + "x" * 500}},
         "line one\nline two " + "x" * 500, True),
        ({"error": {"code": -1, "message": ""}}, "Error -1", True),
    ],
)  # fmt: skip
async def test_a_result_comes_whole(
    monkeypatch: pytest.MonkeyPatch, result: Json, text: str, *, is_error: bool
) -> None:
    tool = {**TOOL, "outputSchema": {"type": "object", "required": ["never"]}}
    answer = offering(tools_list={"tools": [tool]}, tools_call=result)
    async with connected(monkeypatch, lambda: by_hand(answer)) as server:
        output = await call(server, "echo")
        assert (output.text, output.is_error) == (text, is_error)
        assert server.status.state == "ready"  # an error of a tool is none of the connection


async def test_a_prompt_with_an_unknown_block_keeps_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [
        {"role": "user", "content": {"type": "text", "text": "Look:"}},
        {"role": "user", "content": {"type": "hologram"}},
    ]
    answer = offering(prompts_list={"prompts": [{"name": "p"}, {"title": "?"}]}, prompts_get={"messages": messages})
    async with connected(monkeypatch, lambda: by_hand(answer)) as server:
        assert [prompt.name for prompt in server.status.prompts] == ["p"]
        assert (await server.prompt("p", {})).text == 'Look:\n\n[content of an unknown type "hologram", 20 B, left out]'


async def test_an_error_of_the_servers_own_outside_of_tools_leaves_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = offering(resources_read={"error": {"code": -32000, "message": "no such page"}})
    async with connected(monkeypatch, lambda: by_hand(answer)) as server:
        with pytest.raises(ToolError, match="the resource: no such page"):
            await server.read("x://1")
        assert server.status.state == "ready"


def growing() -> Answer:
    """A server that has one tool more after each call, and says so before it answers."""
    calls = 0

    def called(_params: Json, say: Say) -> Any:
        nonlocal calls
        calls += 1
        say({"method": "notifications/tools/list_changed"})
        return {"content": [{"type": "text", "text": "done"}]}

    def listed(_params: Json, _say: Say) -> Any:
        return {"tools": [TOOL, *({**TOOL, "name": f"more_{n}"} for n in range(calls))]}

    return offering(tools_call=called, tools_list=listed)


async def test_a_list_that_changed_during_a_call_is_read_before_the_next_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui.tools.mcp.server.DEBOUNCE", 30.0)  # nobody waits for the end of a burst
    async with connected(monkeypatch, lambda: by_hand(growing())) as server:
        for number in range(3):
            await call(server, "echo")
            await server.wait_until_current()
            assert [tool.schema.name for tool in server.tools()] == [
                "s__echo",
                *(f"s__more_{n}" for n in range(number + 1)),
            ]
        await server.wait_until_current()  # nothing is new: at once
        await until(lambda: server.status.state == "ready")


async def test_a_server_that_changes_with_every_list_is_asked_ever_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.tools.mcp.server.DEBOUNCE", 0.01)  # then 0.02, 0.04, ...
    lists = 0

    def listed(_params: Json, say: Say) -> Any:
        nonlocal lists
        lists += 1
        say({"method": "notifications/tools/list_changed"})
        return {"tools": [TOOL]}

    async with connected(monkeypatch, lambda: by_hand(offering(tools_list=listed))):
        await until(lambda: lists > 1)
        await asyncio.sleep(0.3)
    assert lists < 10  # without that: about thirty


@pytest.mark.parametrize(("message", "code"), [("Quota is used up", SERVER_ERROR), ("SSE stream failed: x", CLOSED)])
def test_only_the_sdk_s_own_errors_say_that_a_connection_is_closed(message: str, code: int) -> None:
    from mcp.shared.message import SessionMessage
    from mcp.types import ErrorData, JSONRPCError

    error = JSONRPCError(jsonrpc="2.0", id=1, error=ErrorData(code=CLOSED, message=message))
    assert Normalizer().received(SessionMessage(error)).message.error.code == code


def test_requests_that_nobody_answers_are_forgotten_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCRequest, JSONRPCResponse

    monkeypatch.setattr("tui.tools.mcp.transport._MAX_PENDING", 3)
    normalizer = Normalizer()
    for number in range(9):
        normalizer.sent(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/call")))
    answer = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=8, result={"content": "bare"}))
    assert normalizer.received(answer).message.result["content"] == [{"type": "text", "text": "bare"}]
    late = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=0, result={"content": "bare"}))
    assert normalizer.received(late).message.result["content"] == "bare"
