"""The content of `/tools` and `/mcp`: tools, servers, their cost. Text from servers is shown as plain text."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from tui.messages import BUILT_IN
from tui.text.cells import clip, pad, plain
from tui.text.numbers import clock_time, plural, tokens_exact, tokens_short, total_of
from tui.views.call_text import visible
from tui.views.view import Row

if TYPE_CHECKING:
    from tui.chat.servers import Servers
    from tui.chat.tool_calls.session_tools import ToolLine, ToolPlan
    from tui.chat.turn.session import ChatSession
    from tui.context.usage.rows import UsageRow
    from tui.tools.approval import Remembered
    from tui.tools.mcp.config_files import ProjectFile
    from tui.tools.mcp.server import McpServer


ASIDE = 70  # cells; wider lines also show when a tool was last used


@dataclass(frozen=True, slots=True)
class ToolsView:
    """The tools of a session."""

    session: ChatSession
    title = "Tools"

    async def lines(self, width: int) -> Sequence[Content]:
        """Every tool under its source."""
        tools = await listed_tools(self.session)
        head, rows = self.drawn(tools, await self.session.tools.remembered(), width)
        return [*map(Content, head), *(row.content for row in rows)]

    def drawn(
        self, tools: Sequence[ToolLine], answers: Sequence[Remembered], width: int
    ) -> tuple[Sequence[str], Sequence[Row]]:
        """The lines above the list, and the list: tools under their sources, then answers for tools that are not here.

        Keys are "source:NAME", "tool:NAME" and "answer:NAME".
        """
        deferred = {tool.name for tool in self.session.tools.plan.deferred}
        rules, now = {answer.tool: answer.rule for answer in answers}, time.time()
        rows = [] if tools else [_line("There are no tools.", width)]
        for origin in dict.fromkeys(tool.origin for tool in tools):
            group = [tool for tool in tools if tool.origin == origin]
            name = "built in" if origin == BUILT_IN else f"MCP server {plain(origin)}"
            text = f"{name}: {sum(tool.on for tool in group)} of {len(group)} on"
            rows.append(_line(text, width, f"source:{origin}"))
            rows += [_tool(tool, rules.get(tool.name), width, now, tool.name in deferred) for tool in group]
        names = {tool.name for tool in tools}
        if absent := [answer for answer in answers if answer.tool not in names]:
            rows.append(_line("answers for tools that are not available now", width))
            for answer in absent:
                text = f"  {plain(answer.tool)}: {_rule(answer.rule, True)}"
                rows.append(_line(text, width, f"answer:{answer.tool}", "$foreground"))
        return wrapped(tools_summary(self.session, tools), width), rows


def deferred_text(plan: ToolPlan) -> str:
    """How many tools are deferred, and their cost."""
    return f"{len(plan.deferred):,} deferred, {tokens_short(plan.tokens, 'estimated')} not sent"


def tools_summary(session: ChatSession, tools: Sequence[ToolLine]) -> str:
    """One line above the list: what the tools add to every request by the latest measurement, or why there are none."""
    waiting = len(session.tools.plan.deferred)
    if not session.tools.takes_any:
        return "This model does not support tools, as far as known: none are offered."
    if session.tools.off_by_default and not any(tool.on for tool in tools):
        return "Off for this model, which is small or a demo: /tools on offers them anyway."
    row = _measured_row(session, "tools")
    tokens = row.tokens if row is not None else total_of(tool.tokens for tool in tools if tool.on)
    source = row.source if row is not None else "estimated"
    count = plural(sum(tool.on for tool in tools) - waiting, "tool")
    text = f"{count}, {tokens_exact(tokens, source)} tokens with every request ({source})"
    wait = "1 waits until the model searches for it" if waiting == 1 else f"{waiting} wait until they are searched for"
    return f"{text}; {wait}" if waiting else text


def _line(text: str, width: int, key: str = "", style: str = "$text-muted") -> Row:
    return Row(Content.styled(clip(text, width), style), key)


def _lines(text: str, width: int, style: str = "$text-muted", indent: str = "") -> list[Row]:
    return [Row(Content.styled(f"{indent}{line}", style)) for line in wrapped(text, width - len(indent))]


def _tool(line: ToolLine, remembered: str | None, width: int, now: float, waits: bool) -> Row:
    cost = tokens_short(line.tokens, line.source) if line.on and not waits else "waits" if line.on else "off"
    rule = _rule(line.rule, remembered is not None)
    if line.rule == "allow" and not line.read_only and remembered is None:
        rule = "runs, as allowed"  # by the config file, or for this conversation
    used = f"used {clock_time(line.used_at, now)}" if line.used_at else ""
    aside = f"  {pad(rule, 22)}{pad(used, 18)}" if width >= ASIDE else f"  {pad(rule, 15 if width >= 50 else 12)}"
    available = max(10, width - 4 - 7 - len(aside) - 1)
    name = plain(line.name.removeprefix(f"{line.origin}__"))
    return Row(
        Content.assemble(
            ("● " if line.on else "○ ", "$text-success" if line.on else "$text-muted"),
            (pad(name, available), "$foreground" if line.on else "$text-muted"),
            (f"{cost:>7}", "$foreground" if line.on else "$text-muted"),
            (aside, "$text-warning" if line.rule == "never" else "$text-muted"),
        ).truncate(width, ellipsis=True),
        f"tool:{line.name}",
    )


def _rule(rule: str, by_user: bool) -> str:
    words = {"allow": "runs", "ask": "asks first", "never": "never runs"}[rule]
    return f"{words}, you said" if by_user else words


# --- /mcp

LOG_SHOWN = 6
"""Lines shown of a server's log."""

ISSUES_SHOWN = 2
"""Lines on a folded server's unusable tools and resources."""

NARROW = 50
"""Cells; narrower lines don't spell out a normal state."""

NO_SERVERS = (
    "No servers yet. Write them into the config file, as [mcpServers.NAME] with command and args or url, or into"
    ' mcp.json beside it, as {"mcpServers": {…}}: the form other clients use.'
)

_GLYPHS = {"ready": "●", "starting": "◌", "reconnecting": "↻", "failed": "✗", "off": "○"}
_COLOURS = {"ready": "$text-success", "failed": "$text-error", "reconnecting": "$text-warning"}


@dataclass(frozen=True, slots=True)
class McpView:
    """The MCP servers, and the cost of their tools in the session."""

    servers: Servers
    session: ChatSession
    title = "MCP servers"

    async def lines(self, width: int) -> Sequence[Content]:
        """All servers with all details."""
        tools = await listed_tools(self.session)
        names = {f"server:{server.name}" for server in self.servers.listed}
        head, rows = self.drawn(tools, width, names)
        return [*map(Content, head), *(row.content for row in rows)]

    def drawn(
        self, tools: Sequence[ToolLine], width: int, expanded: AbstractSet[str]
    ) -> tuple[Sequence[str], Sequence[Row]]:
        """The lines above the list, and the list, with those servers unfolded that are `expanded`.

        Keys are "server:NAME", "tool:NAME" and "project".
        """
        servers, plan, project = self.servers.listed, self.session.tools.plan, self.servers.project
        deferred = {tool.name for tool in plan.deferred}
        row = _measured_row(self.session, "instructions")
        items = row.items if row is not None else ()
        costs = {item.ref: f"{tokens_exact(item.tokens, item.source)} tokens with every request" for item in items}
        rows = [] if project is None else _project(project, width)
        for server in servers:
            name = server.name
            unfolded, its_tools = f"server:{name}" in expanded, [tool for tool in tools if tool.origin == name]
            rows += _server(server, its_tools, width, unfolded, deferred)
            if unfolded:
                instructions = costs.get(name, "not sent") if server.status.instructions else ""
                rows += _details(server, its_tools, width, deferred, instructions)
        if not rows:
            rows = _lines(NO_SERVERS, width)
        names = {server.name for server in servers}
        sent = [tool for tool in tools if tool.origin in names and tool.on and tool.name not in deferred]
        tokens = tokens_short(total_of(tool.tokens for tool in sent), "estimated")
        head = f"{plural(len(sent), 'tool')}, {tokens} tokens with every request"
        if deferred:
            head += f"; {deferred_text(plan)}"
        return wrapped(head, width) if servers else [], rows


async def listed_tools(session: ChatSession) -> Sequence[ToolLine]:
    """Every tool with its cost in the latest measurement."""
    await session.tools.prepare()
    row = _measured_row(session, "tools")
    return await session.tools.lines(row.items if row is not None else ())


def _measured_row(session: ChatSession, key: str) -> UsageRow | None:
    return next((row for row in session.usage.rows if row.key == key), None) if session.usage is not None else None


def _project(project: ProjectFile, width: int) -> list[Row]:
    names = ", ".join(plain(server.name) for server in project.servers) or "nothing"
    name = plain(project.path.name)
    if project.agreed is None:
        text, style = f"! {name} would start: {names}. /mcp project shows it and asks.", "$text-warning"
    else:
        decision = "started, you agreed" if project.agreed else "not started, you said no"
        text, style = f"{name} ({names}): {decision}. /mcp project asks again.", "$text-muted"
    first, *rest = _lines(text, width, style)
    return [Row(first.content, "project"), *rest]


def _server(
    server: McpServer, tools: list[ToolLine], width: int, unfolded: bool, deferred: AbstractSet[str]
) -> list[Row]:
    """A server's line, why it is not ready, and what of it can't be used."""
    status = server.status
    line = _server_line(server, tools, width, "▾" if unfolded else "▸", deferred)
    rows = [Row(line, f"server:{status.name}", foldable=True)]
    if status.reason:
        rows += _lines(status.reason, width, _COLOURS.get(status.state, "$text-muted"), "  ")
    for issue in status.issues[: None if unfolded else ISSUES_SHOWN]:
        mark, style = ("! ", "$text-warning") if issue.fault else ("", "$text-muted")
        rows += _lines(f"{mark}{issue.text}", width, style, "  ")
    if not unfolded and (hidden := len(status.issues) - ISSUES_SHOWN) > 0:
        rows.append(_line(f"  ! {hidden:,} more like that", width, style="$text-warning"))
    return rows


def _server_line(
    server: McpServer, tools: list[ToolLine], width: int, sign: str, deferred: AbstractSet[str]
) -> Content:
    status = server.status
    colour = _COLOURS.get(status.state, "$text-muted")
    line = Content.assemble(
        (f"{_GLYPHS[status.state]} ", colour),
        (pad(plain(status.name), max(8, min(20, width // 4))), "$foreground"),
        (f" {sign} ", "$text-muted"),
    )
    if width >= NARROW or status.state != "ready":  # otherwise the glyph shows it
        state = "switched off" if status.state == "off" else status.state
        line = Content.assemble(line, (pad(state, 13), colour))
    figures = " " * 17
    if tools:
        on = [tool.tokens for tool in tools if tool.on]
        cost = tokens_short(total_of(on), "estimated") if on else "off"
        figures = f"{plural(len(tools), 'tool'):>9}{cost:>8}"
    if any(tool.name in deferred for tool in tools):
        figures += " deferred"
    line = Content.assemble(line, (figures, "$foreground"))
    more = [status.about] if status.about else []
    more += [plural(len(status.resources), "resource")] if status.resources else []
    more += [plural(len(status.prompts), "prompt")] if status.prompts else []
    if more and width - line.cell_length >= 16:  # otherwise a few letters
        line = Content.assemble(line, ("   " + plain(" · ".join(more)), "$text-muted"))
    return line.truncate(width, ellipsis=True)


def _details(
    server: McpServer, tools: list[ToolLine], width: int, deferred: AbstractSet[str], instructions: str
) -> list[Row]:
    config = server.config
    about = [f"{config.transport} · {config.shown}", f"from {config.where}"]
    about += [f"instructions · {instructions}"] if instructions else []
    rows = [_line(f"    {plain(text)}", width) for text in about if config.shown]
    rows += [_server_tool(tool, width, deferred) for tool in tools]
    if log := server.log.lines:
        where = f"log, all of it in {server.log.path}" if server.log.path else "log"
        rows.append(_line(f"    {plain(where)}", width))
        rows += [_line(f"    │ {plain(text)}", width) for text in log[-LOG_SHOWN:]]
    return rows


def _server_tool(tool: ToolLine, width: int, deferred: AbstractSet[str]) -> Row:
    name = plain(tool.name.removeprefix(f"{tool.origin}__"))
    if not tool.on:
        how = "off"
    elif tool.name in deferred:
        how = "deferred"
    else:
        how = {"allow": "runs", "ask": "asks", "never": "never runs"}[tool.rule]
    available = max(12, min(34, width - 30))
    line = Content.assemble(
        ("    " + ("● " if tool.on else "○ "), "$text-muted"),
        (pad(name, available), "$foreground" if tool.on else "$text-muted"),
        (tokens_exact(tool.tokens, tool.source).rjust(8), "$text-muted"),
        (f"  {how:<10}", "$text-muted"),
    )
    remaining = width - line.cell_length
    if remaining > 12:
        line = Content.assemble(line, (clip(plain(" ".join(tool.description.split())), remaining), "$text-muted"))
    return Row(line.truncate(width), f"tool:{tool.name}")


def project_text(project: ProjectFile) -> str:
    """Everything a person has to know before the programs in a project's file are started.

    Possible secrets are shown too: they are in the project's file, and hidden parts could be the harmful ones.
    """
    lines = [f"{project.path}", "comes with this folder and would start these programs here, as you:", ""]
    for server in project.servers:
        target = server.url or " ".join((server.command, *map(repr, server.args)))
        lines.append(f"{server.name}: {server.error or target}")
        if server.url:
            authority, *_ = re.split("[/?#]", server.url.partition("//")[2], maxsplit=1)
            lines.append(f"    on the host {authority.rpartition('@')[2] or server.url}")
        elif server.cwd:
            lines.append(f"    in {server.cwd}")
        if names := server.variables:
            lines.append(f"    gets from your environment: {', '.join(names)}")
        if server.env_file:
            lines.append(f"    sets the variables in {server.env_file}")
        lines += [f"    sets {name}={value}" for name, value in server.env.items()]
        lines += [f"    sends {name}: {value}" for name, value in server.headers.items()]
        if server.oauth is not None and server.oauth.client_id:
            lines.append(f"    signs in as {server.oauth.client_id}, with the secret {server.oauth.client_secret!r}")
    lines += ["", "Your answer is for this content of the file: a changed file asks again."]
    return "\n".join(map(visible, lines))


def wrapped(text: str, width: int) -> list[str]:
    """`text` in lines of `width` cells."""
    return [line.plain.rstrip() for line in Content(plain(text)).wrap(max(10, width))]
