"""MCP servers in this process, without a program or a network: by hand, or built with the SDK's low-level server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import anyio
import pytest

from tests.tools.mcp.mcp_running import START, make_hub
from tui.tools.mcp.questions import Ask
from tui.tools.mcp.server import McpServer

Json: TypeAlias = dict[str, Any]
Say: TypeAlias = "Callable[[Json], Any]"
Answer: TypeAlias = "Callable[[str, Json, Say], Any]"
"""(method, params, say) -> the result, or an object with "error" in it. `say` sends a message before that."""

TOOL: Json = {"name": "echo", "description": "Says it.", "inputSchema": {"type": "object"}}


def initialized(params: Json, **more: Any) -> Json:
    """The answer to `initialize` of a server that has tools, resources and prompts."""
    return {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}},
        "serverInfo": {"name": "by hand", "version": "1"},
        **more,
    }


def offering(**results: Any) -> Answer:
    """A server that answers each method of `results` ("tools_list") with that, and what it must with the least."""

    def answer(method: str, params: Json, say: Say) -> Any:
        result = results.get(method.replace("/", "_"))
        if result is not None:
            return result(params, say) if callable(result) else result
        match method:
            case "initialize":
                return initialized(params)
            case "tools/list":
                return {"tools": [TOOL]}
            case "resources/list":
                return {"resources": []}
            case "resources/templates/list":
                return {"resourceTemplates": []}
            case "prompts/list":
                return {"prompts": []}
            case _:
                return {"error": {"code": -32601, "message": "Method not found"}}

    return answer


@asynccontextmanager
async def by_hand(answer: Answer, answered: list[Json] | None = None) -> AsyncIterator[Any]:
    """The SDK's streams to a server that `answer` stands for; what it sends goes through JSON as on a pipe.

    `answered` gets what the client answers the server's own requests with.
    """
    from mcp.shared.memory import create_client_server_memory_streams
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    def message(content: Json) -> Any:
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(json.dumps(content), by_name=False))
        except ValueError as error:
            return error

    async with (
        create_client_server_memory_streams() as (client, (reading, writing)),
        anyio.create_task_group() as tasks,
    ):

        async def serve() -> None:
            async for item in reading:
                assert not isinstance(item, Exception)
                request = item.message.model_dump(by_alias=True, exclude_none=True)
                if "method" not in request:
                    if answered is not None:
                        answered.append(request)
                    continue
                messages: list[Json] = []
                result = answer(request["method"], request.get("params") or {}, messages.append)
                for content in messages:
                    await writing.send(message({"jsonrpc": "2.0", **content}))
                if "id" in request and result is not None:
                    kind = result if "error" in result else {"result": result}
                    await writing.send(message({"jsonrpc": "2.0", "id": request["id"], **kind}))

        tasks.start_soon(serve)
        yield client
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def by_sdk(server: Any) -> AsyncIterator[Any]:
    """The SDK's streams to a server that is built with it."""
    from mcp.shared.memory import create_client_server_memory_streams

    streams = create_client_server_memory_streams()
    async with streams as (client, (reading, writing)), anyio.create_task_group() as tasks:
        tasks.start_soon(server.run, reading, writing, server.create_initialization_options())
        yield client
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def connected(
    monkeypatch: pytest.MonkeyPatch,
    open_server: Callable[[], AbstractAsyncContextManager[Any]],
    *,
    ask: Ask | None = None,
    **config: Any,
) -> AsyncIterator[McpServer]:
    """A server as the program has it, "s", reached through the streams that `open_server` gives."""
    monkeypatch.setattr("tui.tools.mcp.connection.open_transport", lambda *_: open_server())
    hub = make_hub({"s": {"command": "none", **config}})
    hub.ask = ask
    await hub.start()
    await hub.wait_until_started(START)
    try:
        yield hub.servers["s"]
    finally:
        await hub.close()
