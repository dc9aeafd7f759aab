"""What a server and this program say to each other beside calls and answers: progress, cancellation, roots."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.tools.mcp.in_memory import TOOL, Json, Say, by_hand, by_sdk, connected, initialized, offering
from tests.tools.mcp.mcp_running import call, until
from tui.tools.base import progress
from tui.tools.mcp.connection import progress_text


async def test_progress_is_told_while_a_tool_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.tools.mcp.connection.PROGRESS_PAUSE", 0.0)

    def called(params: Json, say: Say) -> Json:
        for done in (1, 2):
            token = params["_meta"]["progressToken"]
            more = {"progressToken": token, "progress": done, "total": 2, "message": "fetching\x1b[2J\npages"}
            say({"method": "notifications/progress", "params": more})
        return {"content": []}

    told: list[str] = []
    async with connected(monkeypatch, lambda: by_hand(offering(tools_call=called))) as server:
        progress.set(told.append)
        await call(server, "echo")
        await until(lambda: len(told) == 2)
    assert told == ["1/2 fetching pages", "2/2 fetching pages"]


async def test_a_flood_of_progress_is_told_a_few_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.tools.mcp.connection.PROGRESS_PAUSE", 1_000.0)

    def called(params: Json, say: Say) -> Json:
        for done in range(500):
            more = {"progressToken": params["_meta"]["progressToken"], "progress": done}
            say({"method": "notifications/progress", "params": more})
        return {"content": []}

    told: list[str] = []
    async with connected(monkeypatch, lambda: by_hand(offering(tools_call=called))) as server:
        progress.set(told.append)
        await call(server, "echo")
    assert len(told) <= 1


async def test_what_a_server_logs_is_in_its_log_cleaned_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def called(_params: Json, say: Say) -> Json:
        for data, more in (
            ("two\nlines \x1b[2J", {"logger": "db"}),
            ({"key": "sk-ant-api03-" + "x" * 40}, {}),
            *(("flood", {}),) * 500,
        ):
            say({"method": "notifications/message", "params": {"level": "warning", "data": data, **more}})
        return {"content": []}

    async with connected(monkeypatch, lambda: by_hand(offering(tools_call=called))) as server:
        await call(server, "echo")
        await until(lambda: "warning: flood" in server.log.lines)
        lines = server.log.lines
    assert lines[:3] == ("warning: db: two", "warning: db: lines", 'warning: {"key": "[key]"}')
    assert lines.count("warning: flood") < 200  # of 500: a hundred a second, and that second may end


@pytest.mark.parametrize(
    ("done", "total", "message", "text"),
    [(3, 10, None, "3/10"), (0.5, 1, "half", "0.5/1 half"), (1234567, None, None, "1.23457e+06"), (7, 0, "x", "7 x")],
)
def test_progress_in_words(done: float, total: float | None, message: str | None, text: str) -> None:
    assert progress_text(done, total, message) == text


async def test_a_call_that_is_cancelled_is_cancelled_on_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[str, Any]] = []
    hangs = offering(tools_call=lambda *_: None)

    def answer(method: str, params: Json, say: Say) -> Any:
        requests.append((method, params))
        return None if method == "tools/call" else hangs(method, params, say)

    async with connected(monkeypatch, lambda: by_hand(answer)) as server:
        task = asyncio.create_task(call(server, "echo"))
        await until(lambda: "tools/call" in [method for method, _ in requests])
        task.cancel()
        await until(lambda: "notifications/cancelled" in [method for method, _ in requests])
        assert server.status.state == "ready"


async def roots_of_a_server(monkeypatch: pytest.MonkeyPatch, **config: Any) -> tuple[Json, Json]:
    """The capabilities it is told, and the answer to its question for roots."""
    told: list[Json] = []
    answers: list[Json] = []

    def first(params: Json, say: Say) -> Json:
        told.append(params["capabilities"])
        return initialized(params)

    def listed(_params: Json, say: Say) -> Json:
        say({"id": "r1", "method": "roots/list"})
        return {"tools": [TOOL]}

    answer = offering(initialize=first, tools_list=listed)
    async with connected(monkeypatch, lambda: by_hand(answer, answers), **config):
        await until(lambda: bool(answers))
    return told[0], answers[0]


async def test_a_server_is_told_the_working_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    told, answer = await roots_of_a_server(monkeypatch)
    assert "roots" in told
    assert answer["result"] == {"roots": [{"uri": tmp_path.as_uri(), "name": tmp_path.name}]}


async def test_a_server_is_told_the_folders_that_are_set_and_none(monkeypatch: pytest.MonkeyPatch) -> None:
    _, answer = await roots_of_a_server(monkeypatch, roots=["/srv/a b"])
    assert answer["result"]["roots"][0]["uri"] == "file:///srv/a%20b"
    told, answer = await roots_of_a_server(monkeypatch, roots=[])
    assert "roots" not in told
    assert "error" in answer


PAGE = {"uri": "x://page", "name": "page"}


async def test_a_resource_that_changed_since_it_was_attached_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    subscribed: list[str] = []

    def subscribe(params: Json, say: Say) -> Json:
        subscribed.append(params["uri"])
        for uri in ("x://other", params["uri"]):
            say({"method": "notifications/resources/updated", "params": {"uri": uri}})
        return {}

    answers = offering(
        initialize=lambda params, _: initialized(params, capabilities={"resources": {"subscribe": True}}),
        resources_list={"resources": [PAGE]},
        resources_subscribe=subscribe,
    )
    async with connected(monkeypatch, lambda: by_hand(answers)) as server:
        assert server.status.updated == ()
        await server.follow("x://page")
        await until(lambda: server.status.updated == ("x://page",))
        await server.follow("x://page")  # attached again: as it is now
        assert server.status.updated == ()
        assert subscribed == ["x://page"]
        await server.restart()
        await until(lambda: subscribed == ["x://page", "x://page"])


async def test_a_server_that_tells_no_changes_is_not_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []
    answers = offering(resources_list={"resources": [PAGE]})

    def answer(method: str, params: Json, say: Say) -> Any:
        requests.append(method)
        return answers(method, params, say)

    async with connected(monkeypatch, lambda: by_hand(answer)) as server:
        await server.follow("x://page")
    assert "resources/subscribe" not in requests


async def test_a_server_of_the_newest_protocol_is_listened_to(monkeypatch: pytest.MonkeyPatch) -> None:
    import mcp.types as types
    from mcp.server import Server
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

    async def listed(_context: object, _params: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[types.Resource(uri="x://page", name="page")])

    async def subscribed(_context: object, _params: object) -> types.EmptyResult:
        return types.EmptyResult()

    monkeypatch.setattr("tui.tools.mcp.connection.LISTEN_AGAIN", 0.01)
    bus = InMemorySubscriptionBus()
    handler = ListenHandler(bus)
    program: Any = Server(
        "pages", on_list_resources=listed, on_subscribe_resource=subscribed, on_subscriptions_listen=handler
    )
    async with connected(monkeypatch, lambda: by_sdk(program)) as server:

        async def changed() -> None:
            await bus.publish(ResourceUpdated(uri="x://page"))

        async def ended() -> None:
            handler.close()

        for _ in range(2):
            await server.follow("x://page")
            for _ in range(200):  # until its subscription has got there
                await server._hub.run(changed())
                if server.status.updated:
                    break
                await asyncio.sleep(0.01)
            assert server.status.updated == ("x://page",)
            await server._hub.run(ended())  # the server ends the stream: it is opened again
