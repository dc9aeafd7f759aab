"""Tools and MCP servers as a test of the screen wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from tui.chat.attachments import AttachmentError, make_attachment
from tui.chat.calling.session_tools import ToolLine
from tui.chat.server_files import ProjectFile
from tui.chat.servers import ServerLine
from tui.context.reduction.deferral import ToolPlan
from tui.context.usage.rows import UsageItem
from tui.messages import Attachment
from tui.tools.approval import Decision, Remembered
from tui.tools.base import ToolError
from tui.tools.mcp.patterns import Gap, ServerPattern
from tui.tools.mcp.results import Content, ServerPrompt, ServerResource


class FakeTools:
    """A conversation's tools: `listed` is what there is."""

    def __init__(self) -> None:
        self.listed: list[ToolLine] = []
        self.plan = ToolPlan(())
        self.takes_any = True
        self.off_by_default = False
        self.answers: list[tuple[str, Decision]] = []
        self.kept: list[Remembered] = []
        self.texts: dict[str, str] = {}

    async def prepare(self) -> None:
        """Nothing to count."""

    async def lines(self, items: Sequence[UsageItem] = ()) -> Sequence[ToolLine]:
        return self.listed

    async def switch(self, pattern: str, on: bool) -> list[str]:
        names = [line.name for line in self.listed if fnmatchcase(line.name, pattern)]
        self.listed = [replace(line, on=on) if line.name in names else line for line in self.listed]
        return names

    def approve(self, ask_id: str, decision: Decision) -> None:
        self.answers.append((ask_id, decision))

    async def remembered(self) -> list[Remembered]:
        return self.kept

    async def forget(self, name: str) -> None:
        self.kept = [answer for answer in self.kept if answer.tool != name]

    async def full_text(self, sha256: str) -> str | None:
        return self.texts.get(sha256)


class FakeServers:
    """MCP servers that do what the test says."""

    def __init__(self) -> None:
        self.lines: list[ServerLine] = []
        self.project: ProjectFile | None = None
        self.resources: list[ServerResource] = []
        self.readers: set[str] = set()
        self.patterns: list[ServerPattern] = []
        self.read: list[str] = []
        self.endings: dict[str, list[str]] = {}
        self.prompts: list[ServerPrompt] = []
        self.contents: dict[str, str] = {}
        self.said: list[str] = []
        self.did: list[tuple[str, str]] = []
        self._listeners: list[Callable[[str], None]] = []

    def on_change(self, listener: Callable[[str], None]) -> None:
        self._listeners.append(listener)

    def tell(self, name: str) -> None:
        """Its status is new."""
        for listener in self._listeners:
            listener(name)

    def news(self) -> list[str]:
        said, self.said = self.said, []
        return said

    async def agree(self, yes: bool) -> None:
        self.did.append(("agree", str(yes)))
        if self.project is not None:
            self.project = replace(self.project, word="yes" if yes else "no")

    async def switch(self, name: str, on: bool) -> None:
        self._find(name)
        self.did.append(("on" if on else "off", name))
        self.lines = [
            replace(line, status=replace(line.status, state="ready" if on else "off", reason=""))
            if line.status.name == name
            else line
            for line in self.lines
        ]

    async def restart(self, name: str) -> None:
        self._find(name)
        self.did.append(("restart", name))

    def _find(self, name: str) -> None:
        if all(line.status.name != name for line in self.lines):
            raise ToolError(f"There is no MCP server {name!r}; there is: none.")

    async def complete(self, pattern: ServerPattern, found: Gap) -> list[str]:
        return [value for value in self.endings.get(found.variable, []) if value.startswith(found.value)]

    async def attach(self, resource: ServerResource) -> list[Attachment]:
        self.read.append(resource.uri)
        text = self.contents.get(resource.uri)
        if text is None:
            raise AttachmentError(f"the resource: {resource.uri} is gone")
        return [make_attachment(f"{resource.server}:{resource.name}", text.encode())]

    async def prompt(self, prompt: ServerPrompt, arguments: Mapping[str, str]) -> Content:
        return Content(self.contents[prompt.name].format(**arguments))
