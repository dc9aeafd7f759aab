"""MCP servers as they may be on an ordinary day, for pictures."""

from __future__ import annotations

from pathlib import Path

from tests.screens import scenes
from tests.screens.scenarios import Scenario
from tests.screens.tooling import SetServer, Tooling
from tui.tools.mcp.config import ServerConfig
from tui.tools.mcp.config_files import ProjectFile
from tui.tools.mcp.offer import ServerResource, ServerTool
from tui.tools.mcp.status import ServerStatus

HOME = "~/.config/chatctx/config.toml"
NO_PROGRAM = f"there is no program postgres-mcp; install it, or correct command of mcpServers.postgres in {HOME}"


def scenario() -> Scenario:
    """Five servers: ready, with deferred tools, coming back, failed, off; and a project's file that waits."""
    guide = ServerResource("docs", "guide.md", "doc://guide", "How it works", "text/markdown")
    operations = [f"operation_{number}" for number in range(187)]
    tools = {
        "docs": (_tool("search", "Look for words in all documents"), _tool("open", "A document by its address")),
        "erp": tuple(_tool(name, "What is done in the warehouse") for name in operations),
        "mail": (_tool("send", "Send a message to somebody"),),
    }
    build = ServerConfig("build", "/home/me/parser/.mcp.json", command="./tools/build-server")
    tooling = Tooling(
        servers=[
            _server(
                ServerStatus("docs", "ready", about="Docs 1.2", resources=(guide,), tools=tools["docs"]),
                "https://docs.example.com/mcp",
            ),
            _server(ServerStatus("erp", "ready", about="Operations 9", tools=tools["erp"])),
            _server(ServerStatus("files", "off")),
            _server(ServerStatus("mail", "reconnecting", "it ended (Segmentation fault)", tools=tools["mail"])),
            _server(ServerStatus("postgres", "failed", NO_PROGRAM)),
        ],
        tokens={"docs__search": 212, "docs__open": 148, "mail__send": 301}
        | {f"erp__{name}": 155 for name in operations},
        project=ProjectFile(Path("/home/me/parser/.mcp.json"), "00", (build,)),
    )
    return tooling.on(scenes.scenario())


def _tool(name: str, description: str) -> ServerTool:
    return ServerTool(name, description, "{}", read_only=False)


def _server(status: ServerStatus, url: str = "") -> SetServer:
    name = status.name
    config = ServerConfig(name, HOME, "http" if url else "stdio", command=f"{name}-mcp", args=("--verbose",), url=url)
    return SetServer(config, status, ("listening",) if name == "docs" else ())
