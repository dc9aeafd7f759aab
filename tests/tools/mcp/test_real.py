"""MCP servers that others wrote, over both transports: what they offer and what comes of calling it.

CI names the commands that start them (.ci/run): CHATCTX_MCP_TIME, CHATCTX_MCP_GIT and CHATCTX_MCP_TESTKIT from PyPI,
CHATCTX_MCP_EVERYTHING from npm. Elsewhere, what is not named is skipped.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine import free_port
from tests.tools.mcp.mcp_running import call, command, running, tool
from tui.tools.base import ToolError
from tui.tools.mcp.hub import McpHub
from tui.tools.mcp.server import McpServer

pytestmark = pytest.mark.slow

KEY = "let-me-in-0123456789"


def entry(variable: str, *arguments: str) -> dict[str, object]:
    program, *rest = command(variable)
    return {"command": program, "args": [*rest, *arguments]}


@pytest.fixture(scope="session")
def stdio() -> Iterator[McpHub]:
    """Servers of PyPI and npm that are programs here."""
    servers = {
        "time": entry("CHATCTX_MCP_TIME") | {"trustReadOnly": True},
        "git": entry("CHATCTX_MCP_GIT"),
        "everything": entry("CHATCTX_MCP_EVERYTHING"),
    }
    with running(servers) as hub:
        yield hub


@pytest.fixture(scope="session")
def over_http() -> Iterator[McpHub]:
    """A server of PyPI that speaks streamable HTTP and wants a key: with it, without, and at a wrong path."""
    port = free_port()
    program = subprocess.Popen(
        [*command("CHATCTX_MCP_TESTKIT"), "--transport", "http", "--port", str(port), "--auth", KEY],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.environ["CHATCTX_TEST_MCP_KEY"] = KEY
    url, headers = f"http://127.0.0.1:{port}/mcp", {"Authorization": "Bearer ${CHATCTX_TEST_MCP_KEY}"}
    servers = {
        "kit": {"url": url, "headers": headers},
        "stranger": {"url": url},
        "lost": {"url": url + "/nowhere", "headers": headers},
    }
    try:
        wait_for_port(port)
        with running(servers) as hub:
            yield hub
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        del os.environ["CHATCTX_TEST_MCP_KEY"]


def wait_for_port(port: int) -> None:
    import socket

    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nothing answers at port {port}")


def check_schemas(server: McpServer) -> None:
    for offered in server.tools():
        schema = offered.schema
        parameters = json.loads(schema.parameters)
        assert schema.origin == server.name
        assert len(schema.name) <= 64
        assert schema.name.replace("_", "").replace("-", "").isalnum()
        assert parameters["type"] == "object"
        assert isinstance(parameters["properties"], dict)
        assert schema.parameters == json.dumps(parameters, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


async def test_a_server_of_pypi_says_what_it_has_and_answers(stdio: McpHub) -> None:
    server = stdio.servers["time"]
    assert server.status.state == "ready", server.status.reason
    check_schemas(server)
    converted = await call(
        server, "convert_time", source_timezone="Etc/UTC", time="12:00", target_timezone="Asia/Kolkata"
    )
    assert not converted.is_error
    assert "17:30" in converted.text


async def test_what_a_server_says_of_itself_counts_only_where_the_person_said_so(stdio: McpHub) -> None:
    assert tool(stdio.servers["time"], "get_current_time").read_only  # trustReadOnly
    assert stdio.servers["git"].status.tools[0].read_only  # git_status says so too
    assert not tool(stdio.servers["git"], "git_status").read_only


async def test_an_error_of_a_tool_is_a_result_with_its_words(stdio: McpHub) -> None:
    wrong = await call(stdio.servers["time"], "get_current_time", timezone="Mars/Olympus")
    assert wrong.is_error
    assert "Mars/Olympus" in wrong.text


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(tmp_path)], check=True)
    (tmp_path / "new.txt").write_text("hello\n")
    return tmp_path


async def test_git_reads_a_repository(stdio: McpHub, repository: Path) -> None:
    status = await call(stdio.servers["git"], "git_status", repo_path=str(repository))
    assert "new.txt" in status.text


async def test_everything_a_result_can_be_of(stdio: McpHub) -> None:
    server = stdio.servers["everything"]
    assert server.status.state == "ready", server.status.reason
    check_schemas(server)
    assert (await call(server, "echo", message="[bold]hi[/bold]")).text == "Echo: [bold]hi[/bold]"
    picture = await call(server, "get-tiny-image")
    assert picture.images[0].media_type == "image/png"
    assert picture.images[0].data.startswith(b"\x89PNG")
    assert "MCP logo" in picture.text
    assert json.loads((await call(server, "get-structured-content", location="Chicago")).text)["conditions"]
    assert "[resource demo://" in (await call(server, "get-resource-reference", resourceType="Text", resourceId=1)).text
    assert "left out" in (await call(server, "get-resource-reference", resourceType="Blob", resourceId=1)).text
    assert "[resource demo://" in (await call(server, "get-resource-links", count=2)).text
    assert (await call(server, "echo")).is_error


async def test_a_servers_environment_is_short_and_holds_no_keys(stdio: McpHub, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = (await call(stdio.servers["everything"], "get-env")).text
    assert "PATH" in environment
    for name in os.environ:
        assert not (name.endswith("_API_KEY") and f'"{name}"' in environment)
    assert "CHATCTX_MCP_TIME" not in environment


async def test_resources_are_read_and_prompts_filled_in(stdio: McpHub) -> None:
    server = stdio.servers["everything"]
    resource = next(r for r in server.status.resources if r.name == "architecture.md")
    assert "Architecture" in (await server.read(resource.uri)).text
    prompt = next(p for p in server.status.prompts if p.name == "args-prompt")
    assert [(a.name, a.required) for a in prompt.arguments] == [("city", True), ("state", False)]
    assert "Paris" in (await server.prompt("args-prompt", {"city": "Paris"})).text
    with pytest.raises(ToolError, match="nowhere"):
        await server.read("demo://nowhere")


async def test_a_cancelled_call_ends_at_once_and_the_server_goes_on(stdio: McpHub) -> None:
    server = stdio.servers["everything"]
    running_call = asyncio.create_task(call(server, "trigger-long-running-operation", duration=60, steps=60))
    await asyncio.sleep(0)
    running_call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running_call
    assert (await call(server, "get-sum", a=2, b=3)).text.count("5") == 1


async def test_streamable_http_with_a_key_from_the_environment(over_http: McpHub) -> None:
    server = over_http.servers["kit"]
    assert server.status.state == "ready", server.status.reason
    assert len(server.tools()) == 65
    check_schemas(server)
    assert "42" in (await call(server, "math_add", a=40, b=2)).text
    assert (await call(server, "echo_error", message="as asked")).is_error
    assert json.loads((await call(server, "echo_empty")).text) == {"result": ""}  # structured, and no text with it
    assert (await call(server, "echo_multiple", messages=["one", "two"])).text == "one\ntwo"


async def test_five_megabytes_come_over_http_too(over_http: McpHub) -> None:
    answer = await call(over_http.servers["kit"], "echo_large", size_kb=5_000)
    assert 4_900_000 < len(answer.text) < 5_300_000


def test_what_is_wrong_with_a_remote_server_is_said_in_one_line(over_http: McpHub) -> None:
    stranger, lost = over_http.servers["stranger"].status, over_http.servers["lost"].status
    assert stranger.state == lost.state == "failed"
    assert "401 Unauthorized; check headers of mcpServers.stranger in servers.json" in stranger.reason
    assert "no MCP server at http://127.0.0.1" in lost.reason


def test_a_key_is_neither_in_the_configuration_shown_nor_in_any_text(over_http: McpHub) -> None:
    from tui.providers.keys import redact

    config = over_http.servers["kit"].config
    assert KEY not in repr(config)
    assert KEY not in config.shown
    assert config.variables == ("CHATCTX_TEST_MCP_KEY",)
    assert KEY not in redact(f"the server said: wrong key {KEY}")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_programs_end_with_this_one_even_when_it_is_killed(tmp_path: Path) -> None:
    """The server learns it from its standard input, so nothing here has to live for that."""
    program = entry("CHATCTX_MCP_TIME")
    code = f"""
import asyncio, json, sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests.tools.mcp.mcp_running import make_hub
async def main():
    hub = make_hub({{"time": json.loads({json.dumps(json.dumps(program))})}})
    await hub.start()
    await hub.wait_until_started(60)
    print(hub.servers["time"].status.state, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""
    ours = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert ours.stdout is not None
    assert ours.stdout.readline().strip() == "ready"
    children = [pid for pid, (_, parent) in processes().items() if parent == ours.pid]
    assert children
    ours.kill()
    ours.wait()
    ours.stdout.close()
    deadline = time.monotonic() + 20
    while any(processes().get(pid, ("Z", 0))[0] != "Z" for pid in children):  # not even its remains, or only those
        assert time.monotonic() < deadline, "the server lives on"
        time.sleep(0.05)


def processes() -> dict[int, tuple[str, int]]:
    """State and parent of every process (proc(5)); one that ends meanwhile is left out."""
    by_pid = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        by_pid[int(stat.parent.name)] = (fields[0], int(fields[1]))
    return by_pid
