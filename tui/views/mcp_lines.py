"""The content of `/mcp`: servers and their tools. Everything from a server is shown as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from textual.content import Content

from tui.text.cells import clip, pad, plain
from tui.text.numbers import approx, tokens_exact, tokens_short
from tui.views.call_text import visible
from tui.views.view import Row

if TYPE_CHECKING:
    from tui.chat.calling.session_tools import ToolLine
    from tui.chat.server_files import ProjectFile
    from tui.chat.servers import ServerLine, Servers
    from tui.chat.turn.session import ChatSession

LOG_SHOWN = 6
"""Lines shown of a server's log."""

ISSUES_SHOWN = 2
"""Lines on a folded server's unusable tools and resources."""

NARROW = 50
"""Cells; narrower lines don't spell out a normal state."""

_GLYPHS = {"ready": "●", "starting": "◌", "reconnecting": "↻", "failed": "✗", "off": "○"}
_COLOURS = {"ready": "$text-success", "failed": "$text-error", "reconnecting": "$text-warning"}
_STATES = {"off": "switched off"}


@dataclass(frozen=True, slots=True)
class Deferred:
    """Tools that are not sent: how many, how many tokens, and their names."""

    names: AbstractSet[str] = frozenset()
    tokens: int = 0


NOTHING_DEFERRED = Deferred()


@dataclass(frozen=True, slots=True)
class McpView:
    """The MCP servers, and the cost of their tools in the session."""

    servers: Servers
    session: ChatSession
    title = "MCP servers"

    async def lines(self, width: int) -> Sequence[Content]:
        """All servers with all details."""
        servers, project = self.servers.lines, self.servers.project
        tools = await listed_tools(self.session)
        deferred = deferred_tools(self.session)
        names = {f"server:{server.status.name}" for server in servers}
        instructions = instruction_words(self.servers, self.session)
        rows = mcp_rows(
            servers, tools, width, expanded=names, deferred=deferred, project=project, instructions=instructions
        )
        head = wrapped(summary(tools, servers, deferred), width) if servers else []
        return [*map(Content, head), *(row.content for row in rows)]


async def listed_tools(session: ChatSession) -> Sequence[ToolLine]:
    """Every tool with its cost in the latest measurement."""
    await session.tools.prepare()
    usage = session.usage
    items = next((row.items for row in usage.rows if row.key == "tools"), ()) if usage is not None else ()
    return await session.tools.lines(items)


def deferred_tools(session: ChatSession) -> Deferred:
    """The tools that are not sent until the model searches for them."""
    plan = session.tools.plan
    return Deferred(frozenset(tool.name for tool in plan.deferred), plan.tokens)


def instruction_words(servers: Servers, session: ChatSession) -> Mapping[str, str]:
    """What becomes of each server's instructions, for those that have some."""
    usage = session.usage
    items = next((row.items for row in usage.rows if row.key == "instructions"), ()) if usage is not None else ()
    costs = {item.ref: f"{approx(item.source)}{tokens_exact(item.tokens)} tokens with every request" for item in items}
    return {
        line.status.name: costs.get(line.status.name, "not sent") for line in servers.lines if line.status.instructions
    }


def mcp_rows(
    servers: Sequence[ServerLine],
    tools: Sequence[ToolLine],
    width: int,
    *,
    expanded: AbstractSet[str],
    deferred: Deferred = NOTHING_DEFERRED,
    project: ProjectFile | None = None,
    instructions: Mapping[str, str] = MappingProxyType({}),
) -> list[Row]:
    """The lines of the panel, no wider than `width` cells. Keys are "server:NAME", "tool:NAME" and "project"."""
    by_server: dict[str, list[ToolLine]] = {}
    for tool in tools:
        by_server.setdefault(tool.origin, []).append(tool)
    rows = _project(project, width)
    for server in servers:
        name = server.status.name
        unfolded, own_tools = f"server:{name}" in expanded, by_server.get(name, [])
        rows += _server(server, own_tools, width, unfolded, deferred)
        if unfolded:
            rows += _details(server, own_tools, width, deferred, instructions.get(name, ""))
    if not servers and not rows:
        rows += [
            Row(Content.styled(line, "$text-muted"))
            for line in wrapped(
                "No servers yet. Write them into the config file, as [mcpServers.NAME] with command and args or url, or"
                ' into mcp.json beside it, as {"mcpServers": {…}}: the form other clients use.',
                width,
            )
        ]
    return rows


def summary(tools: Iterable[ToolLine], servers: Sequence[ServerLine], deferred: Deferred) -> str:
    """One line: what servers add to every request, and what is deferred."""
    names = {server.status.name for server in servers}
    sent = [t for t in tools if t.origin in names and t.on and t.name not in deferred.names]
    line = f"{_count(len(sent), 'tool')}, ~{tokens_short(sum(t.tokens or 0 for t in sent))} tokens with every request"
    if deferred.names:
        line += f"; {deferred_words(len(deferred.names), deferred.tokens)}"
    return line


def deferred_words(count: int, tokens: int) -> str:
    """The tools deferred until the model searches for them."""
    return f"{count:,} deferred, ~{tokens_short(tokens)} not sent"


def _project(project: ProjectFile | None, width: int) -> list[Row]:
    if project is None:
        return []
    names = ", ".join(plain(server.name) for server in project.servers) or "nothing"
    if project.word != "unsaid":
        decision = "not started, you said no" if project.word == "no" else "started, you agreed"
        text = f"{plain(project.path.name)} ({names}): {decision}. /mcp project asks again."
        return [Row(Content.styled(clip(text, width), "$text-muted"), "project")]
    text = f"! {plain(project.path.name)} would start: {names}. /mcp project shows it and asks."
    return [Row(Content.styled(clip(text, width), "$text-warning"), "project")]


def _server(server: ServerLine, tools: list[ToolLine], width: int, unfolded: bool, deferred: Deferred) -> list[Row]:
    status = server.status
    sign = "▾" if unfolded else "▸"
    state = _STATES.get(status.state, status.state)
    colour = _COLOURS.get(status.state, "$text-muted")
    line = Content.assemble(
        (f"{_GLYPHS[status.state]} ", colour),
        (pad(plain(status.name), max(8, min(20, width // 4))), "$foreground"),
        (f" {sign} ", "$text-muted"),
    )
    if width >= NARROW or status.state != "ready":  # otherwise the glyph shows it
        line = Content.assemble(line, (pad(state, 13), colour))
    cost = sum(t.tokens or 0 for t in tools if t.on)
    share = "" if not tools else f"~{tokens_short(cost)}" if any(t.on for t in tools) else "off"
    waits = " deferred" if any(t.name in deferred.names for t in tools) else ""
    count = _count(len(tools), "tool") if tools else ""
    line = Content.assemble(line, (f"{count:>9}{share:>8}{waits}", "$foreground"))
    more = [status.about] if status.about else []
    more += [_count(len(status.resources), "resource")] if status.resources else []
    more += [_count(len(status.prompts), "prompt")] if status.prompts else []
    if more:
        line = Content.assemble(line, ("   " + plain(" · ".join(more)), "$text-muted"))
    rows = [Row(line.truncate(width, ellipsis=True), f"server:{status.name}", foldable=True)]
    if status.reason:
        rows += [Row(Content.styled(f"  {text}", colour)) for text in wrapped(status.reason, width - 2)]
    for issue in status.issues[: None if unfolded else ISSUES_SHOWN]:
        mark, style = ("! ", "$text-warning") if issue.fault else ("", "$text-muted")
        rows += [Row(Content.styled(f"  {text}", style)) for text in wrapped(f"{mark}{issue.text}", width - 2)]
    if not unfolded and (hidden := len(status.issues) - ISSUES_SHOWN) > 0:
        rows.append(Row(Content.styled(f"  ! {hidden:,} more like that", "$text-warning")))
    return rows


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("s" if number != 1 else "")


def _details(server: ServerLine, tools: list[ToolLine], width: int, deferred: Deferred, instructions: str) -> list[Row]:
    config = server.config
    about = [f"{config.transport} · {config.shown}", f"from {config.where}"]
    about += [f"instructions · {instructions}"] if instructions else []
    rows = [Row(Content.styled(f"    {clip(plain(text), width - 4)}", "$text-muted")) for text in about if config.shown]
    rows += [_tool(tool, width, deferred) for tool in tools]
    if server.log:
        where = f"log, all of it in {server.log_file}" if server.log_file else "log"
        rows.append(Row(Content.styled(f"    {clip(plain(where), width - 4)}", "$text-muted")))
        rows += [
            Row(Content.styled(f"    │ {clip(plain(text), width - 6)}", "$text-muted"))
            for text in server.log[-LOG_SHOWN:]
        ]
    return rows


def _tool(tool: ToolLine, width: int, deferred: Deferred) -> Row:
    name = plain(tool.name.removeprefix(f"{tool.origin}__"))
    if not tool.on:
        how = "off"
    elif tool.name in deferred.names:
        how = "deferred"
    else:
        how = {"allow": "runs", "ask": "asks", "never": "never runs"}[tool.rule]
    room = max(12, min(34, width - 30))
    line = Content.assemble(
        ("    " + ("● " if tool.on else "○ "), "$text-muted"),
        (pad(name, room), "$foreground" if tool.on else "$text-muted"),
        (f"{approx(tool.source)}{tokens_exact(tool.tokens)}".rjust(8), "$text-muted"),
        (f"  {how:<10}", "$text-muted"),
    )
    left = width - line.cell_length
    if left > 12:
        line = Content.assemble(line, (clip(plain(" ".join(tool.description.split())), left), "$text-muted"))
    return Row(line.truncate(width), f"tool:{tool.name}")


def project_text(project: ProjectFile) -> str:
    """Everything a person has to know before the programs in a project's file are started.

    Possible secrets are shown too: they are in the project's file, and hidden parts could be the harmful ones.
    """
    lines = [f"{project.path}", "comes with this folder and would start, on this machine and as you:", ""]
    for server in project.servers:
        what = server.url or " ".join((server.command, *map(repr, server.args)))
        lines.append(f"{server.name}: {server.error or what}")
        if server.cwd:
            lines.append(f"    in {server.cwd}")
        if names := server.variables:
            lines.append(f"    is given from your environment: {', '.join(names)}")
        if server.env_file:
            lines.append(f"    sets what the file {server.env_file} says")
        lines += [f"    sets {name}={value}" for name, value in server.env.items()]
        lines += [f"    sends {name}: {value}" for name, value in server.headers.items()]
    lines += ["", "What you say holds for this content of the file: when it changes you are asked again."]
    return "\n".join(map(visible, lines))


def wrapped(text: str, width: int) -> list[str]:
    """`text` in lines of `width` cells."""
    return [line.plain.rstrip() for line in Content(plain(text)).wrap(max(10, width))]
