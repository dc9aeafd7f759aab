"""The content of `/tools`: tools, their cost, and whether they ask first. Text from servers is shown as plain text."""

from __future__ import annotations

import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from tui.text.cells import clip, pad, plain
from tui.text.numbers import approx, clock_time, plural, tokens_exact, tokens_short
from tui.views.mcp_lines import deferred_tools, listed_tools, wrapped
from tui.views.view import Row

if TYPE_CHECKING:
    from tui.chat.calling.session_tools import ToolLine
    from tui.chat.turn.session import ChatSession
    from tui.tools.approval import Remembered

ASIDE = 70  # cells; wider lines also show when a tool was last used


@dataclass(frozen=True, slots=True)
class ToolsView:
    """The tools of a session."""

    session: ChatSession
    title = "Tools"

    async def lines(self, width: int) -> Sequence[Content]:
        """Every tool under its source."""
        tools = await listed_tools(self.session)
        answers = await self.session.tools.remembered()
        rows = tool_rows(tools, answers, width, time.time(), deferred_tools(self.session).names)
        head = wrapped(tools_summary(self.session, tools), width)
        return [*map(Content, head), *(row.content for row in rows)]


def tools_summary(session: ChatSession, tools: Sequence[ToolLine]) -> str:
    """One line above the list: what the tools add to every request by the latest measurement, or why there are none."""
    waiting = len(session.tools.plan.deferred)
    if not session.tools.takes_any:
        return "This model calls no tools, as far as is known: none are offered."
    if session.tools.off_by_default and not any(tool.on for tool in tools):
        return "Off for this model, which is small or a demo: /tools on offers them all the same."
    row = next((row for row in session.usage.rows if row.key == "tools"), None) if session.usage is not None else None
    tokens = row.tokens if row is not None else sum(tool.tokens or 0 for tool in tools if tool.on)
    source = row.source if row is not None else "estimated"
    count = plural(sum(tool.on for tool in tools) - waiting, "tool")
    text = f"{count}, {approx(source)}{tokens_exact(tokens)} tokens with every request ({source})"
    wait = "1 waits until the model searches for it" if waiting == 1 else f"{waiting} wait until they are searched for"
    return f"{text}; {wait}" if waiting else text


def tool_rows(
    lines: Sequence[ToolLine],
    answers: Sequence[Remembered],
    width: int,
    now: float,
    waiting: AbstractSet[str] = frozenset(),
) -> list[Row]:
    """Tools under their sources, then stored answers for tools that are not available now.

    Keys are "source:NAME", "tool:NAME" and "answer:NAME".

    `waiting` are deferred tools: not sent until the model searches for them.
    """
    rules = {answer.tool: answer.rule for answer in answers}
    rows: list[Row] = []
    for origin in dict.fromkeys(line.origin for line in lines):
        group = [line for line in lines if line.origin == origin]
        on = sum(line.on for line in group)
        name = "built in" if origin == "built-in" else f"MCP server {plain(origin)}"
        rows.append(
            Row(Content.styled(clip(f"{name}: {on} of {len(group)} on", width), "$text-muted"), f"source:{origin}")
        )
        rows += [_tool(line, rules.get(line.name), width, now, line.name in waiting) for line in group]
    names = {line.name for line in lines}
    if other := [answer for answer in answers if answer.tool not in names]:
        rows.append(Row(Content.styled(clip("answers for tools that are not here now", width), "$text-muted")))
        rows += [
            Row(
                Content.styled(clip(f"  {plain(a.tool)}: {_rule(a.rule, True)}", width), "$foreground"),
                f"answer:{a.tool}",
            )
            for a in other
        ]
    if not lines:
        rows.insert(0, Row(Content.styled(clip("There are no tools.", width), "$text-muted")))
    return rows


def _tool(line: ToolLine, remembered: str | None, width: int, now: float, waits: bool) -> Row:
    mark = approx(line.source) if line.tokens is not None else ""
    cost = f"{mark}{tokens_short(line.tokens)}" if line.on and not waits else "waits" if line.on else "off"
    rule = _rule(line.rule, remembered is not None)
    if line.rule == "allow" and not line.read_only and remembered is None:
        rule = "runs, as allowed"  # by the config file, or for this conversation
    used = f"used {clock_time(line.used_at, now)}" if line.used_at else ""
    aside = f"  {pad(rule, 22)}{pad(used, 18)}" if width >= ASIDE else f"  {pad(rule, 15 if width >= 50 else 12)}"
    room = max(10, width - 4 - 7 - len(aside) - 1)
    name = plain(line.name.removeprefix(f"{line.origin}__"))
    return Row(
        Content.assemble(
            ("● " if line.on else "○ ", "$text-success" if line.on else "$text-muted"),
            (pad(name, room), "$foreground" if line.on else "$text-muted"),
            (f"{cost:>7}", "$foreground" if line.on else "$text-muted"),
            (aside, "$text-warning" if line.rule == "never" else "$text-muted"),
        ).truncate(width, ellipsis=True),
        f"tool:{line.name}",
    )


def _rule(rule: str, by_user: bool) -> str:
    words = {"allow": "runs", "ask": "asks first", "never": "never runs"}[rule]
    return f"{words}, you said" if by_user else words
