"""MCP servers as they may be on an ordinary day, for pictures."""

from __future__ import annotations

from pathlib import Path

from tests.screens import scenes
from tests.screens.scenarios import Scenario
from tests.screens.tooling import Tooling
from tui.chat.servers import ServerLine
from tui.chat.tool_calls.session_tools import ToolLine, ToolPlan
from tui.messages import ToolSchema
from tui.tools.mcp.config import ServerConfig
from tui.tools.mcp.config_files import ProjectFile
from tui.tools.mcp.offer import ServerResource
from tui.tools.mcp.status import ServerStatus

HOME = "~/.config/chatctx/config.toml"
NO_PROGRAM = f"there is no program postgres-mcp; install it, or correct command of mcpServers.postgres in {HOME}"


def scenario() -> Scenario:
    """Five servers: ready, with deferred tools, coming back, failed, off; and a project's file that waits."""
    tooling = Tooling()
    guide = ServerResource("docs", "guide.md", "doc://guide", "How it works", "text/markdown")
    tooling.servers = [
        _line(
            "docs", ServerStatus("docs", "ready", about="Docs 1.2", resources=(guide,)), "https://docs.example.com/mcp"
        ),
        _line("erp", ServerStatus("erp", "ready", about="Operations 9")),
        _line("files", ServerStatus("files", "off")),
        _line("mail", ServerStatus("mail", "reconnecting", "it ended (Segmentation fault)")),
        _line("postgres", ServerStatus("postgres", "failed", NO_PROGRAM)),
    ]
    tooling.listed = [
        _tool("docs", "search", 212, "Look for words in all documents"),
        _tool("docs", "open", 148, "A document by its address"),
        *[_tool("erp", f"operation_{number}", 155, "What is done in the warehouse") for number in range(187)],
        _tool("mail", "send", 301, "Send a message to somebody"),
    ]
    waiting = tuple(ToolSchema(f"erp__operation_{number}", "", "{}", "erp") for number in range(187))
    tooling.plan = ToolPlan((), waiting, 187 * 155)
    server = ServerConfig("build", "/home/me/parser/.mcp.json", command="./tools/build-server")
    tooling.project = ProjectFile(Path("/home/me/parser/.mcp.json"), "00", (server,))
    return tooling.on(scenes.scenario())


def _line(name: str, status: ServerStatus, url: str = "") -> ServerLine:
    config = ServerConfig(name, HOME, "http" if url else "stdio", command=f"{name}-mcp", args=("--verbose",), url=url)
    return ServerLine(status, config, ("listening",) if name == "docs" else (), Path(f"/log/mcp-{name}.log"))


def _tool(server: str, name: str, tokens: int, what: str) -> ToolLine:
    return ToolLine(f"{server}__{name}", server, what, tokens, "estimated", True, "ask", False, 0.0)
