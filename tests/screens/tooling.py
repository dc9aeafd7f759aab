"""Tools and MCP servers in states that real ones reach only with luck: a session's tools and the servers, as set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from tests.screens.scenarios import Scenario
from tui.chat.attachments import AttachmentError, make_attachment
from tui.chat.servers import ServerLine, Servers
from tui.chat.tool_calls.session_tools import SessionTools, ToolLine, ToolPlan
from tui.chat.turn.session import ChatSession
from tui.chat.workspace import Workspace
from tui.context.usage.rows import UsageItem
from tui.messages import Attachment
from tui.tools.approval import Remembered
from tui.tools.base import ToolError
from tui.tools.mcp.config_files import ProjectFile
from tui.tools.mcp.offer import Content, ResourceTemplate, ServerPrompt, ServerResource, TemplateVariable


@dataclass
class Tooling:
    """What a test sets, and what was done with it. `listed` tools switch, `servers` do nothing but their lines."""

    listed: list[ToolLine] = field(default_factory=list)
    plan: ToolPlan = field(default_factory=lambda: ToolPlan(()))
    takes_any: bool = True
    off_by_default: bool = False
    answers: list[Remembered] = field(default_factory=list)  # that hold for all conversations
    texts: dict[str, str] = field(default_factory=dict)  # whole results, by hash
    switched: list[tuple[str, bool]] = field(default_factory=list)

    servers: list[ServerLine] = field(default_factory=list)
    project: ProjectFile | None = None
    resources: list[ServerResource] = field(default_factory=list)
    readers: set[str] = field(default_factory=set)
    templates: list[ResourceTemplate] = field(default_factory=list)
    endings: dict[str, list[str]] = field(default_factory=dict)
    prompts: list[ServerPrompt] = field(default_factory=list)
    contents: dict[str, str] = field(default_factory=dict)
    news: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)  # addresses of resources
    did: list[tuple[str, str]] = field(default_factory=list)

    def scenario(self, **values: Any) -> Scenario:
        """A conversation with these tools and servers."""
        return self.on(Scenario(**values))

    def on(self, scenario: Scenario) -> Scenario:
        """`scenario` with these tools and servers."""

        def prepare(workspace: Workspace) -> None:
            workspace.servers = SetServers(workspace, self)

        def begin(session: ChatSession) -> None:
            session.tools = SetTools(session, self)

        return replace(scenario, prepare=prepare, begin=begin)

    def tell(self, workspace: Workspace, name: str) -> None:
        """The status of a server is new."""
        for listener in workspace.servers._listeners:
            listener(name)


class SetTools(SessionTools):
    """The tools of a session, as set."""

    def __init__(self, session: ChatSession, tooling: Tooling) -> None:
        self._set = tooling
        super().__init__(session.conversation, session._services, session._emit)

    async def prepare(self) -> None:
        """There is nothing to count."""

    @property
    def plan(self) -> ToolPlan:
        return self._set.plan

    @property
    def takes_any(self) -> bool:
        return self._set.takes_any

    @property
    def off_by_default(self) -> bool:
        return self._set.off_by_default

    async def lines(self, items: Sequence[UsageItem] = ()) -> Sequence[ToolLine]:
        return self._set.listed

    async def switch(self, pattern: str, on: bool) -> list[str]:
        self._set.switched.append((pattern, on))
        names = [line.name for line in self._set.listed if fnmatchcase(line.name, pattern)]
        self._set.listed = [replace(line, on=on) if line.name in names else line for line in self._set.listed]
        return names

    async def remembered(self) -> Sequence[Remembered]:
        return self._set.answers

    async def forget(self, name: str) -> None:
        self._set.answers = [answer for answer in self._set.answers if answer.tool != name]

    async def full_text(self, sha256: str) -> str | None:
        return self._set.texts.get(sha256)


class SetServers(Servers):
    """The servers of a program, as set: none of them runs."""

    def __init__(self, workspace: Workspace, tooling: Tooling) -> None:
        self._set = tooling
        super().__init__(workspace.settings, workspace.store, workspace.services.tools)

    @property
    def lines(self) -> Sequence[ServerLine]:
        return self._set.servers

    @property
    def project(self) -> ProjectFile | None:
        return self._set.project

    @property
    def resources(self) -> Sequence[ServerResource]:
        return self._set.resources

    @property
    def readers(self) -> AbstractSet[str]:
        return self._set.readers

    @property
    def templates(self) -> Sequence[ResourceTemplate]:
        return self._set.templates

    @property
    def prompts(self) -> Sequence[ServerPrompt]:
        return self._set.prompts

    def news(self) -> list[str]:
        news, self._set.news = self._set.news, []
        return news

    async def agree(self, yes: bool) -> None:
        self._set.did.append(("agree", str(yes)))
        if self._set.project is not None:
            self._set.project = replace(self._set.project, agreed=yes)

    async def switch(self, name: str, on: bool) -> None:
        self._find(name)
        self._set.did.append(("on" if on else "off", name))
        state = replace(
            next(line.status for line in self.lines if line.status.name == name),
            state="ready" if on else "off",
            reason="",
        )
        self._set.servers = [replace(line, status=state) if line.status.name == name else line for line in self.lines]

    async def restart(self, name: str) -> None:
        self._find(name)
        self._set.did.append(("restart", name))

    def _find(self, name: str) -> None:
        if all(line.status.name != name for line in self.lines):
            raise ToolError(f"There is no MCP server {name!r}; the servers are: none.")

    async def complete(self, template: ResourceTemplate, variable: TemplateVariable) -> Sequence[str]:
        return [value for value in self._set.endings.get(variable.name, []) if value.startswith(variable.value)]

    async def attach(self, resource: ServerResource) -> list[Attachment]:
        self._set.read.append(resource.uri)
        text = self._set.contents.get(resource.uri)
        if text is None:
            raise AttachmentError(f"the resource: {resource.uri} is gone")
        return [make_attachment(f"{resource.server}:{resource.name}", text.encode())]

    async def prompt(self, prompt: ServerPrompt, arguments: Mapping[str, str]) -> Content:
        return Content(self._set.contents[prompt.name].format(**arguments))
