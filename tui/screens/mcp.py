"""`/mcp`: the servers, their state and the cost of their tools. Opening it changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui.screens.base import CLOSE, SHORT, Hint, KeyLine, Panel, key_line
from tui.text.cells import plain
from tui.views.mcp_lines import Row, deferred_tools, instruction_words, listed_tools, mcp_rows, summary, wrapped

if TYPE_CHECKING:
    from tui.chat.calling.session_tools import ToolLine
    from tui.views.mcp_lines import McpView

log = logging.getLogger(__name__)


HINTS: Mapping[str, Sequence[Hint]] = {
    "server": (("enter", "unfold", "choose"), ("o", "on/off", "switch"), ("r", "restart", "restart")),
    "tool": (("o", "on/off", "switch"),),
    "project": (("enter", "read it and decide", "choose"),),
}
"""Keys for the highlighted line."""

SIGN_IN: Hint = ("s", "sign in", "sign_in")


class McpPanel(Panel[None]):
    """Lists the servers; a server unfolds to its tools and its log.

    `command` runs a slash command on top of it; `changed` is called when the request may have changed.
    """

    DEFAULT_CSS = """
    McpPanel .mcp-head, McpPanel .mcp-keys { height: auto; }
    McpPanel .mcp-head { margin-bottom: 1; color: $text-muted; }
    McpPanel .mcp-keys { margin-top: 1; }
    McpPanel OptionList {
        height: auto; border: none; padding: 0; background: transparent; scrollbar-size-vertical: 1;
    }
    McpPanel OptionList > .option-list--option-disabled { color: $text-muted; background: transparent; }
    McpPanel.-short .mcp-head, McpPanel.-short .mcp-keys { margin: 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o,space", "switch", "on or off", id="mcp.switch"),
        Binding("r", "restart", "restart", id="mcp.restart"),
        Binding("s", "sign_in", "sign in", id="mcp.sign_in"),
        Binding("right,l", "unfold(True)", "unfold", id="mcp.unfold", show=False),
        Binding("left", "unfold(False)", "fold", id="mcp.fold", show=False),
        Binding("q", "close", "close", id="mcp.close", show=False),
    ]

    def __init__(
        self,
        view: McpView,
        *,
        command: Callable[[str], None] = lambda _command: None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self.servers = view.servers
        self.session = view.session
        self.command = command
        self.changed = changed
        self.expanded: frozenset[str] = frozenset()
        self._tools: list[ToolLine] = []
        self._rows: list[Row] = []
        self._note = ""

    def compose(self) -> ComposeResult:
        """The lines scroll; the sum and the keys stay."""
        with Vertical(classes="panel") as panel:
            panel.border_title = "MCP servers"
            yield Static("", classes="mcp-head", markup=False)
            yield OptionList(compact=True)
            yield KeyLine("mcp-keys")

    def on_mount(self) -> None:
        """Draw what is known, then with the tokens of the tools."""
        self.app.clear_notifications()  # server news is shown here
        self.query_one(OptionList).focus()
        self.expanded = frozenset(line.status.name for line in self.servers.lines if line.status.state == "failed")
        self.redraw()
        self.follow()

    def on_resize(self, _event: events.Resize) -> None:
        """Draw for the new size."""
        self.redraw()

    def on_screen_suspend(self) -> None:
        """Hide below a question, since overlapping frames are hard to read."""
        self.query_one(".panel").visible = False

    def on_screen_resume(self) -> None:
        """Show again."""
        self.query_one(".panel").visible = True

    def follow(self) -> None:
        """Count what is new, and draw."""
        self._load()

    @work(group="mcp", exclusive=True, exit_on_error=False)
    async def _load(self) -> None:
        try:
            self._tools = list(await listed_tools(self.session))
        except Exception as error:
            log.exception("the tools could not be listed")
            self._note = plain(str(error)) or type(error).__name__
        self.redraw()

    def redraw(self) -> None:
        """Draw everything."""
        width = self.list_width
        lines = self.servers.lines
        deferred = deferred_tools(self.session)
        head = wrapped(summary(self._tools, lines, deferred), width) if lines else [""]
        self.query_one(".mcp-head", Static).update("\n".join(head))
        around = len(head) + (3 if self.app.size.height < SHORT else 8)  # borders, keys, and lines kept free
        self.query_one(OptionList).styles.max_height = max(2, self.app.size.height - around)
        self._show(
            mcp_rows(
                lines,
                self._tools,
                width,
                expanded=self.expanded,
                deferred=deferred,
                project=self.servers.project,
                instructions=instruction_words(self.servers, self.session),
            )
        )
        self._keys()

    def _show(self, rows: list[Row]) -> None:
        options = self.query_one(OptionList)
        at = options.highlighted
        chosen = self._rows[at].key if at is not None and at < len(self._rows) else ""
        self._rows = rows
        options.clear_options()
        options.add_options(Option(row.content, disabled=not row.key) for row in rows)
        choosable = [index for index, row in enumerate(rows) if row.key]
        same = [index for index in choosable if rows[index].key == chosen]
        options.highlighted = next(iter([*same, *choosable]), None)

    def _chosen(self) -> tuple[str, str]:
        """The highlighted item: ("server" | "tool" | "project" | "", name)."""
        at = self.query_one(OptionList).highlighted
        kind, _, name = (self._rows[at].key if at is not None and at < len(self._rows) else "").partition(":")
        return kind, name

    def _keys(self) -> None:
        kind, name = self._chosen()
        first = [SIGN_IN] if kind == "server" and self._wants_sign_in(name) else []
        hints = [*first, *HINTS.get(kind, ()), CLOSE]
        keys = key_line(self, hints, self.list_width)
        self.query_one(".mcp-keys", Static).update(
            Content.styled(plain(self._note), "$text-muted") if self._note else keys
        )

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Update the keys for this line."""
        event.stop()
        self._keys()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter or a click: unfold a server, read the project's file, switch a tool."""
        event.stop()
        self.action_choose()

    def action_choose(self) -> None:
        """Enter on the highlighted line."""
        kind, name = self._chosen()
        match kind:
            case "project":
                self.command("mcp project")
            case "server":
                self.expanded = self.expanded ^ {name}
                self.redraw()
            case "tool":
                self.action_switch()

    def action_unfold(self, on: bool) -> None:
        """Unfold or fold the server under the cursor."""
        kind, name = self._chosen()
        if kind == "server":
            self.expanded = self.expanded | {name} if on else self.expanded - {name}
            self.redraw()

    def action_switch(self) -> None:
        """Switch the server or tool under the cursor off, or on again."""
        self._change(*self._chosen(), restart=False)

    def action_restart(self) -> None:
        """Restart the highlighted server."""
        kind, name = self._chosen()
        if kind == "server":
            self._change(kind, name, restart=True)

    def _wants_sign_in(self, name: str) -> bool:
        """Whether a server failed that one can sign in to."""
        lines = (line for line in self.servers.lines if line.status.name == name)
        return any(line.status.state == "failed" and line.config.oauth is not None for line in lines)

    def action_sign_in(self) -> None:
        """Sign in to the highlighted server."""
        kind, name = self._chosen()
        if kind == "server" and self._wants_sign_in(name):
            self.command(f"mcp login {name}")

    @work(group="mcp-change", exit_on_error=False)
    async def _change(self, kind: str, name: str, *, restart: bool) -> None:
        self._note = ""
        try:
            if kind == "tool":
                line = next((tool for tool in self._tools if tool.name == name), None)
                if line is not None:
                    await self.session.tools.switch(name, not line.on)
            elif kind == "server" and restart:
                await self.servers.restart(name)
            elif kind == "server":
                status = next(line.status for line in self.servers.lines if line.status.name == name)
                await self.servers.switch(name, status.state in ("off", "failed"))
        except Exception as error:
            log.exception("%s could not be changed", name)
            self._note = " ".join(plain(str(error)).split()) or type(error).__name__
        self.changed()
        self.follow()
