"""`/tools` and `/mcp`: the tools of the model, MCP servers, and what they cost. Opening them changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
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
    from tui.tools.approval import Remembered
    from tui.views.tools_mcp import McpView, ToolsView

HINTS: Mapping[str, Sequence[Hint]] = {
    "source": (("space", "all on or off", "switch"),),
    "tool": (("space", "on or off", "switch"), ("f", "forget your answer", "forget")),
    "answer": (("f", "forget: ask again", "forget"),),
}
"""Keys for the highlighted line of `/tools`."""

MCP_HINTS: Mapping[str, Sequence[Hint]] = {
    "server": (("enter", "unfold", "choose"), ("o", "on/off", "switch"), ("r", "restart", "restart")),
    "tool": (("o", "on/off", "switch"),),
    "project": (("enter", "read it and decide", "choose"),),
}
"""Keys for the highlighted line of `/mcp`."""

SIGN_IN: Hint = ("s", "sign in", "sign_in")


class ToolListPanel(RowsPanel[None, Row]):
    """Lists what offers tools. The lines are read again when something has changed."""

    _tools: Sequence[ToolLine] = ()

    def on_mount(self) -> None:
        """Read and draw."""
        self.follow()

    def follow(self) -> None:
        """Read everything again and draw."""
        self._load()

    @work(group="tools", exclusive=True, exit_on_error=False)
    async def _load(self) -> None:
        with self.errors_noted("listing the tools"):
            await self._read()
        self.redraw()

    async def _read(self) -> None:
        self._tools = await listed_tools(self.session)

    def _change(self, name: str, change: Awaitable[object]) -> None:
        """Change something about a tool or a server, and draw.

        A worker of the app, as those of a panel are cancelled when it closes: a server being restarted would stay off.
        """
        self.app.run_worker(self._finish_change(name, change), group="tools-change", exit_on_error=False)

    async def _finish_change(self, name: str, change: Awaitable[object]) -> None:
        self._note = ""
        with self.errors_noted(f"changing {name}"):
            await change
        self.changed()
        if self.is_attached:
            self.follow()
        elif self._note:
            self.app.notify(self._note, severity="warning", markup=False)


class ToolsPanel(ToolListPanel):
    """Lists the tools of a conversation."""

    max_width = 96

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,o", "switch", "on or off", id="tools.switch"),
        Binding("f,delete", "forget", "forget an approval", id="tools.forget"),
        Binding("q", "close", "close", id="tools.close", show=False),
    ]

    heading = "Tools"

    def __init__(self, view: ToolsView, changed: Callable[[], None]) -> None:
        super().__init__(view.session, changed)
        self._view = view
        self._answers: Sequence[Remembered] = ()

    async def _read(self) -> None:
        await super()._read()
        self._answers = await self.session.tools.remembered()

    def redraw(self) -> None:
        """Draw everything."""
        head, rows = self._view.drawn(self._tools, self._answers, self.list_width)
        self.draw(list(map(Content, head)), rows)

    def hints(self) -> Sequence[Hint]:
        """The keys for the highlighted tool, source or answer."""
        return HINTS.get(self.chosen_item[0], ())

    def action_choose(self) -> None:
        """Switch a tool; a whole source only its own key does."""
        if self.chosen_item[0] == "tool":
            self.action_switch()

    def action_switch(self) -> None:
        """Switch the highlighted tool, or all of the source, off or on."""
        kind, name = self.chosen_item
        if kind in ("tool", "source"):
            self._change(name, self._switch(kind, name))

    def action_forget(self) -> None:
        """Forget the stored answer for the highlighted tool."""
        kind, name = self.chosen_item
        if kind in ("tool", "answer"):
            self._change(name, self.session.tools.forget(name))

    async def _switch(self, kind: str, name: str) -> None:
        affected = [line for line in self._tools if (line.name if kind == "tool" else line.origin) == name]
        on = not any(line.on for line in affected)
        patterns = [line.name for line in affected if line.on is not on]
        if kind == "source" and all(tool.startswith(f"{name}__") for tool in patterns):
            patterns = [f"{name}__*"]  # of a server
        for pattern in patterns:
            await self.session.tools.switch(pattern, on)
        await self.session.refresh_usage()


class McpPanel(ToolListPanel):
    """Lists the servers; a server unfolds to its tools and its log. `command` runs a slash command on top of it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o,space", "switch", "on or off", id="mcp.switch"),
        Binding("r", "restart", "restart", id="mcp.restart"),
        Binding("s", "sign_in", "sign in", id="mcp.sign_in"),
        Binding("right,l", "unfold(True)", "unfold", id="mcp.unfold", show=False),
        Binding("left", "unfold(False)", "fold", id="mcp.fold", show=False),
        Binding("q", "close", "close", id="mcp.close", show=False),
    ]

    heading = "MCP servers"

    def __init__(self, view: McpView, changed: Callable[[], None], command: Callable[[str], None]) -> None:
        super().__init__(view.session, changed)
        self.servers = view.servers
        self._view = view
        self.command = command

    def on_mount(self) -> None:
        """Draw what is known. The base class's own handler, which is called too, reads the tokens of the tools."""
        self.app.clear_notifications()  # server news is shown here
        failed = (server.name for server in self.servers.listed if server.status.state == "failed")
        self.expanded = frozenset(f"server:{name}" for name in failed)
        self.redraw()

    def redraw(self) -> None:
        """Draw everything."""
        head, rows = self._view.drawn(self._tools, self.list_width, self.expanded)
        self.draw([Content.styled(line, "$text-muted") for line in head], rows)

    def hints(self) -> Sequence[Hint]:
        """The keys for the highlighted server, tool or project file."""
        kind, name = self.chosen_item
        first = [SIGN_IN] if kind == "server" and self._wants_sign_in(name) else []
        return [*first, *MCP_HINTS.get(kind, ())]

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
        kind, name = self.chosen_item
        if kind == "tool" and (on := next((tool.on for tool in self._tools if tool.name == name), None)) is not None:
            self._change(name, self.session.tools.switch(name, not on))
        elif kind == "server":
            states = {server.name: server.status.state for server in self.servers.listed}  # it may be gone by now
            self._change(name, self.servers.switch(name, states.get(name) in ("off", "failed")))

    def action_restart(self) -> None:
        """Restart the highlighted server."""
        kind, name = self.chosen_item
        if kind == "server":
            self._change(name, self.servers.restart(name))

    def _wants_sign_in(self, name: str) -> bool:
        """Whether a server failed that one can sign in to."""
        servers = (server for server in self.servers.listed if server.name == name)
        return any(server.status.state == "failed" and server.config.oauth is not None for server in servers)

    def action_sign_in(self) -> None:
        """Sign in to the highlighted server."""
        kind, name = self.chosen_item
        if kind == "server" and self._wants_sign_in(name):
            self.command(f"mcp login {name}")
