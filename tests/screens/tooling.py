"""Tools and MCP servers in states that real ones reach only with luck. Nothing runs: what they offer and say is set."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tests.screens.scenarios import SESSION, Scenario, override
from tui.chat.conversation.history import RecordKind
from tui.chat.runtime.services import USED
from tui.chat.workspace import Workspace
from tui.messages import BUILT_IN, ToolSchema
from tui.tools.approval import Remembered
from tui.tools.base import Tool, ToolError, ToolOutput
from tui.tools.mcp.config import ServerConfig
from tui.tools.mcp.config_files import Configured, ProjectFile
from tui.tools.mcp.offer import Content, TemplateVariable
from tui.tools.mcp.server import McpServer
from tui.tools.mcp.status import ServerLog, ServerStatus

if TYPE_CHECKING:
    from tui.tools.mcp.connection import Connection


async def not_run(_arguments: Mapping[str, Any]) -> ToolOutput:
    """No test of the screen runs a tool."""
    raise AssertionError


def tool(name: str, origin: str = BUILT_IN, *, read_only: bool = False) -> Tool:
    """A tool that is only listed."""
    return Tool(ToolSchema(name, f"What {name} does", "{}", origin), read_only, not_run)


@dataclass
class Listed:
    """A source of tools."""

    listed: list[Tool]
    name: str = BUILT_IN

    def tools(self) -> Sequence[Tool]:
        """All of them."""
        return self.listed


@dataclass
class SetServer:
    """A server's configuration and status, with the lines of its log."""

    config: ServerConfig
    status: ServerStatus
    log: Sequence[str] = ()


@dataclass
class Tooling:
    """What is set of the tools and servers of a program.

    `tokens` are the sizes of tools, by name. `contents` are what resources (by URI) and prompts (by name) hold,
    `endings` the completions of the variables of URI templates.
    """

    sources: Sequence[Listed] = ()
    tokens: Mapping[str, int] = field(default_factory=dict)
    off: Sequence[str] = ()  # patterns of names
    answers: Sequence[Remembered] = ()  # that hold for all conversations
    used: Mapping[str, float] = field(default_factory=dict)  # seconds since the epoch, by name

    servers: Sequence[SetServer] = ()
    project: ProjectFile | None = None
    contents: Mapping[str, str] = field(default_factory=dict)
    endings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    read_uris: list[str] = field(default_factory=list)

    def scenario(self, **values: Any) -> Scenario:
        """A conversation with these tools and servers."""
        return self.on(Scenario(**values))

    def on(self, scenario: Scenario) -> Scenario:
        """`scenario` with these tools and servers."""
        return replace(scenario, tools=self.sources, prepare=self._prepare)

    def _prepare(self, workspace: Workspace) -> None:
        box, store = workspace.services.tools, workspace.store
        for pattern in self.off:
            store.add_record(SESSION, RecordKind.TOOLS, {"name": pattern, "on": False})
        for answer in self.answers:
            box.remember(answer)
        store.put_state(USED, json.dumps(dict(self.used)))
        counter = workspace.services.counter
        override(counter, count_tool=lambda schema, _model: self.tokens.get(schema.name, 100))
        servers = workspace.servers
        servers.configured = Configured(project=self.project)
        for one in self.servers:
            server = servers.hub.add(one.config)
            server.log = ServerLog(None)
            for line in one.log:
                server.log.add(line)
            server.log.path = Path("/log") / f"mcp-{one.config.name}.log"
            override(server, _run_connection=partial(self._connected, server, one.status))
            self._set(server, one.status)

    def _set(self, server: McpServer, status: ServerStatus) -> None:
        server._offered = server._tools_of(status)
        server.status = status
        server._connection = cast("Connection", self) if status.state == "ready" else None
        server._start_ended.set()

    async def _connected(self, server: McpServer, status: ServerStatus) -> None:
        """One connection, which the person ends."""
        self._set(server, status)
        server._hub.status_changed(server.name)
        assert await server._signals.get() == "stop"

    def tell(self, workspace: Workspace, status: ServerStatus) -> None:
        """The status of a server is new."""
        self._set(workspace.servers.server(status.name), status)
        workspace.servers._heard(status.name)

    # -- as the connection of each server --------------------------------------------------------------------------

    stale = False

    async def read(self, uri: str) -> Content:
        self.read_uris.append(uri)
        if uri not in self.contents:
            raise ToolError(f"the resource: {uri} is gone")
        return Content(self.contents[uri])

    async def subscribe(self, uri: str) -> None:
        """Nothing changes."""

    async def complete(self, _template: str, variable: TemplateVariable) -> Sequence[str]:
        return [value for value in self.endings.get(variable.name, ()) if value.startswith(variable.value)]

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> Content:
        return Content(self.contents[name].format(**arguments))
