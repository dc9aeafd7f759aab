"""`/mcp`: the servers, their state and the cost of their tools. Opening it changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.content import Content

from tui.screens.base import Hint
from tui.screens.rows import RowsPanel
from tui.views.tools_mcp import listed_tools
from tui.views.view import Row

if TYPE_CHECKING:
    from tui.chat.tool_calls.session_tools import ToolLine
    from tui.views.tools_mcp import McpView

HINTS: Mapping[str, Sequence[Hint]] = {
    "server": (("enter", "unfold", "choose"), ("o", "on/off", "switch"), ("r", "restart", "restart")),
    "tool": (("o", "on/off", "switch"),),
    "project": (("enter", "read it and decide", "choose"),),
}
"""Keys for the highlighted line."""

SIGN_IN: Hint = ("s", "sign in", "sign_in")


class McpPanel(RowsPanel[None, Row]):
    """Lists the servers; a server unfolds to its tools and its log. `command` runs a slash command on top of it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o,space", "switch", "on or off", id="mcp.switch"),
        Binding("r", "restart", "restart", id="mcp.restart"),
        Binding("s", "sign_in", "sign in", id="mcp.sign_in"),
        Binding("right,l", "unfold(True)", "unfold", id="mcp.unfold", show=False),
        Binding("left", "unfold(False)", "fold", id="mcp.fold", show=False),
        Binding("q", "close", "close", id="mcp.close", show=False),
    ]

    title_text = "MCP servers"

    def __init__(self, view: McpView, changed: Callable[[], None], command: Callable[[str], None]) -> None:
        super().__init__(view.session, changed)
        self.servers = view.servers
        self._view = view
        self.command = command
        self._tools: Sequence[ToolLine] = ()

    def on_mount(self) -> None:
        """Draw what is known, then with the tokens of the tools."""
        self.app.clear_notifications()  # server news is shown here
        failed = (line.status.name for line in self.servers.lines if line.status.state == "failed")
        self.expanded = frozenset(f"server:{name}" for name in failed)
        self.redraw()
        self.follow()

    def follow(self) -> None:
        """Count what is new, and draw."""
        self._load()

    @work(group="mcp", exclusive=True, exit_on_error=False)
    async def _load(self) -> None:
        with self.errors_noted("listing the tools"):
            self._tools = await listed_tools(self.session)
        self.redraw()

    def redraw(self) -> None:
        """Draw everything."""
        head, rows = self._view.drawn(self._tools, self.list_width, self.expanded)
        self.draw([Content.styled(line, "$text-muted") for line in head], rows)

    def hints(self) -> Sequence[Hint]:
        """What can be done with the highlighted server, tool or project file."""
        kind, name = self.chosen_item
        first = [SIGN_IN] if kind == "server" and self._wants_sign_in(name) else []
        return [*first, *HINTS.get(kind, ())]

    def action_choose(self) -> None:
        """Unfold a server, read the project's file, switch a tool."""
        match self.chosen_item:
            case "project", _:
                self.command("mcp project")
            case "server", _:
                self.toggle_fold()
            case "tool", _:
                self.action_switch()

    def action_switch(self) -> None:
        """Switch the server or tool under the cursor off, or on again."""
        self._change(*self.chosen_item, restart=False)

    def action_restart(self) -> None:
        """Restart the highlighted server."""
        kind, name = self.chosen_item
        if kind == "server":
            self._change(kind, name, restart=True)

    def _wants_sign_in(self, name: str) -> bool:
        """Whether a server failed that one can sign in to."""
        lines = (line for line in self.servers.lines if line.status.name == name)
        return any(line.status.state == "failed" and line.config.oauth is not None for line in lines)

    def action_sign_in(self) -> None:
        """Sign in to the highlighted server."""
        kind, name = self.chosen_item
        if kind == "server" and self._wants_sign_in(name):
            self.command(f"mcp login {name}")

    @work(group="mcp-change", exit_on_error=False)
    async def _change(self, kind: str, name: str, *, restart: bool) -> None:
        self._note = ""
        with self.errors_noted(f"changing {name}"):
            if kind == "tool":
                line = next((tool for tool in self._tools if tool.name == name), None)
                if line is not None:
                    await self.session.tools.switch(name, not line.on)
            elif kind == "server" and restart:
                await self.servers.restart(name)
            elif kind == "server":
                status = next(line.status for line in self.servers.lines if line.status.name == name)
                await self.servers.switch(name, status.state in ("off", "failed"))
        self.changed()
        self.follow()
