"""The MCP servers of a running program: which are running, their stored state, and notices about them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui.chat.attachments import AttachmentError, make_attachment
from tui.chat.store.codec import MALFORMED
from tui.chat.store.database import StoreError
from tui.chat.store.store import SessionStore
from tui.config.settings import Settings
from tui.context.counting.digests import text_digest
from tui.context.counting.tokenizers import heuristic_count
from tui.messages import Attachment, SystemSection
from tui.text.labels import mention_of, mentioned_names
from tui.tools.base import ToolError
from tui.tools.capping import cap_text
from tui.tools.mcp.config_files import Configured, ProjectFile, find_servers
from tui.tools.mcp.hub import McpHub

if TYPE_CHECKING:  # loaded with the first server that is added
    from tui.tools.mcp.config import ServerConfig
    from tui.tools.mcp.oauth import SignIn
    from tui.tools.mcp.offer import (
        CachedOffer,
        ResourceTemplate,
        ServerPrompt,
        ServerResource,
        TemplateVariable,
    )
    from tui.tools.mcp.questions import Ask
    from tui.tools.mcp.server import McpServer
    from tui.tools.mcp.status import ServerStatus

log = logging.getLogger(__name__)

SWITCHED = "mcp_switched"  # key in the store's state: {server: on}
INSTRUCTING = "mcp_instructing"  # key in the store's state: {server: whether its instructions are sent}
AGREED = "mcp_agreed"  # key in the store's state: {path of a project's file: [hash of its content, yes or no]}
CACHED_TOOLS = "mcp_known:"  # + server: {"of": fingerprint, "tools": [...]}: offered until it lists its current ones
MAX_CACHED = 1_000_000  # characters of that


class Servers:
    """Nothing runs before `start`. `hub` has the servers themselves."""

    def __init__(self, settings: Settings, store: SessionStore) -> None:
        self._settings = settings
        self._store = store
        self.hub = McpHub(
            self._heard,
            settings.log_dir if settings.log_dir.name else None,
            settings.data_dir / "mcp-sign-in" if settings.data_dir.name else None,
        )
        self._listeners: list[Callable[[str], None]] = []
        self._cached: dict[str, CachedOffer] = {}
        self._instructing: dict[str, bool] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._announced: set[str] = set()
        self._ended = False
        self.configured = Configured()

    async def load(self, folder: Path) -> None:
        """Read the configuration, including that of a project in `folder`; tools of the last run are offered."""
        self.configured, switched, self._cached, self._instructing = await asyncio.to_thread(self._read, folder)
        for config in self.configured.servers:
            on = switched.get(config.name, not config.disabled)
            self.hub.add(config, self._cached[config.name], on=on)

    def start(self, ask: Ask | None = None) -> None:
        """Start the servers in the background. `ask` asks the person their questions; None: no one can be asked."""
        self.hub.ask = ask or self.hub.ask
        if self.hub.servers:
            self._later(self.hub.start())

    async def close(self) -> None:
        """Stop them all without notifications, at exit. Idempotent."""
        self._listeners.clear()
        self._ended = True
        for task in self._tasks:
            task.cancel()
        await self.hub.close()

    # -- the servers -----------------------------------------------------------------------------------------------

    @property
    def listed(self) -> Sequence[McpServer]:
        """Every server, by name."""
        return [server for _, server in sorted(self.hub.servers.items())]

    @property
    def project(self) -> ProjectFile | None:
        """The project's own file, if any."""
        return self.configured.project

    async def until(self, name: str, condition: Callable[[ServerStatus], bool]) -> None:
        """Wait for a condition on a server's status. Raises `ToolError`."""
        await self.hub.until(lambda: condition(self.server(name).status))

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with a server's name when its status has changed."""
        self._listeners.append(listener)

    def news(self) -> list[str]:
        """Lines for the person, each once: a project's file that needs consent, errors."""
        lines = [f"MCP: {problem}." for problem in self.configured.problems]
        project = self.project
        if project is not None and project.agreed is None:
            names = ", ".join(server.name for server in project.servers) or "nothing"
            lines.append(f"{project.path} names MCP servers ({names}). Nothing of it was started: /mcp asks you.")
        for status in (server.status for server in self.listed):
            if status.state == "failed":
                stop = "" if status.reason.endswith((".", "?")) else "."
                lines.append(f"MCP server {status.name}: {status.reason}{stop} /mcp shows more.")
            lines += [f"MCP server {status.name}: {issue.text}." for issue in status.issues if issue.fault]
            lines += [_updated_line(status, uri) for uri in status.updated]
        return self._new(lines)

    def absent(self) -> list[str]:
        """Servers that are still starting, so that a request is sent without their tools; each line once."""
        lines = []
        for status in (server.status for server in self.listed):
            if status.state in ("starting", "reconnecting") and not status.tools:
                why = f" ({status.reason.rstrip('.')})" if status.reason else ""
                lines.append(
                    f"MCP server {status.name} was not ready in time{why}: its tools were not offered. [tools] wait"
                    " sets how long to wait."
                )
        return self._new(lines)

    def _new(self, lines: Sequence[str]) -> list[str]:
        new = [line for line in lines if line not in self._announced]
        self._announced.update(new)
        return new

    # -- changing ----------------------------------------------------------------------------------------------------

    async def agree(self, yes: bool) -> None:
        """Answer for the project's file as it was read; "yes" starts its servers now."""
        project = self.project
        if project is None:
            return
        await asyncio.to_thread(self._put, AGREED, str(project.path), [project.sha256, yes])
        self.configured = replace(self.configured, project=replace(project, agreed=yes))
        names = [server.name for server in project.servers]
        if not yes:
            for name in names:
                server = self.hub.servers.get(name)
                if server is not None and server.config.where == str(project.path):
                    await server.stop()
                    server.log.close()
                    del self.hub.servers[name]
            return
        for config in project.servers:
            if config.name not in self.hub.servers:
                self.hub.add(config, on=not config.disabled)
        self.start()

    async def switch(self, name: str, on: bool) -> None:
        """Start or stop a server, and store that. Raises `ToolError` if there is none of that name."""
        server = self.server(name)
        await asyncio.to_thread(self._put, SWITCHED, name, on)
        await (server.start() if on else server.stop())

    async def restart(self, name: str) -> None:
        """Restart a server. Raises `ToolError`."""
        server = self.server(name)
        self._announced = {line for line in self._announced if not line.startswith(f"MCP server {name}:")}
        await server.restart()

    async def sign_in(self, name: str, *, by_code: bool) -> SignIn:
        """Let the person sign in to a server, `by_code` if it has codes. Raises `ToolError` if it has no sign-in."""
        from tui.tools.mcp.oauth import SignIn

        server, attempt = self.server(name), SignIn(by_code=by_code)
        if server.config.transport == "stdio" or server.config.oauth is None or server.config.error:
            kind = "only servers with a url and no Authorization header have one"
            raise ToolError(f"There is no sign-in to {name}: {kind}.")
        await server.restart(attempt)
        return attempt

    def server(self, name: str) -> McpServer:
        """One of them. Raises `ToolError`."""
        if name not in self.hub.servers:
            names = ", ".join(sorted(self.hub.servers))
            others = f"; the servers are: {names}" if names else ": none is configured"
            raise ToolError(f"There is no MCP server {name!r}{others}.")
        return self.hub.servers[name]

    # -- instructions ------------------------------------------------------------------------------------------------

    def instructions(self) -> Sequence[SystemSection]:
        """The instructions of the servers whose tools are offered, as sections of the system prompt."""
        limit = self._settings.tools.instructions
        if limit == "off":
            return ()
        sections = []
        for server in self.listed:
            name = server.name
            text = server.status.instructions if server.tools() else ""
            if text and self.instructs(name):
                capped = f"Instructions from the MCP server {name}:\n\n{_capped(text, limit)}"
                sections.append(SystemSection("instructions", name, capped))
        return sections

    def instructs(self, name: str) -> bool:
        """Whether this server's instructions go to the model, by the last switch, else by its configuration."""
        server = self.hub.servers.get(name)
        return server is not None and self._instructing.get(name, server.config.instructions)

    async def switch_instructions(self, name: str, on: bool) -> None:
        """Send a server's instructions from now on, or no longer; remembered. Raises `ToolError`."""
        self.server(name)
        await asyncio.to_thread(self._put, INSTRUCTING, name, on)
        self._instructing[name] = on

    # -- resources and prompts ---------------------------------------------------------------------------------------

    @property
    def ready(self) -> Sequence[ServerStatus]:
        """The status of each ready server."""
        return [server.status for server in self.listed if server.status.state == "ready"]

    @property
    def resources(self) -> Sequence[ServerResource]:
        """The resources listed by all ready servers."""
        return [resource for status in self.ready for resource in status.resources]

    @property
    def readers(self) -> AbstractSet[str]:
        """The ready servers that have resources, including those with URI templates only."""
        return {status.name for status in self.ready if status.resources or status.templates}

    @property
    def templates(self) -> Sequence[ResourceTemplate]:
        """The URI templates of all ready servers."""
        return [template for status in self.ready for template in status.templates]

    @property
    def prompts(self) -> Sequence[ServerPrompt]:
        """The prompts of all ready servers."""
        return [prompt for status in self.ready for prompt in status.prompts]

    async def complete(self, template: ResourceTemplate, variable: TemplateVariable) -> Sequence[str]:
        """The server's completions for the variable of a URI template; nothing on errors."""
        try:
            return await self.server(template.server).complete(template.template, variable)
        except ToolError as error:
            log.info("no completions from %s: %s", template.server, error)
            return ()

    def mentioned(self, text: str) -> list[ServerResource]:
        """The resources mentioned in `text` as `@server:name` or `@server:uri`, without duplicates.

        A URI need not be listed by the server: servers also have resources by URI template.
        """
        resources, listed = {}, self.resources
        by_name = {f"{r.server}:{r.name}": r for r in reversed(listed)} | {f"{r.server}:{r.uri}": r for r in listed}
        for candidates in mentioned_names(text):
            named = next((by_name[name] for name in candidates if name in by_name), None)
            if named := named or self._by_template(candidates[-1]):
                resources[f"{named.server} {named.uri}"] = named
        return list(resources.values())

    def _by_template(self, name: str) -> ServerResource | None:
        from tui.tools.mcp.offer import ServerResource

        server, _, uri = name.partition(":")
        heads = [template.head for template in self.templates if template.server == server and template.head]
        is_address = "://" in uri or any(uri.startswith(head) and uri != head for head in heads)
        return ServerResource(server, uri, uri, "", "") if server in self.readers and is_address else None

    async def attach(self, resource: ServerResource) -> list[Attachment]:
        """A resource's content as attachments. Raises `AttachmentError`."""
        try:
            content = await self.server(resource.server).read(resource.uri)
        except ToolError as error:
            raise AttachmentError(str(error).rstrip(".")) from None
        name = f"{resource.server}:{resource.name}"
        attachments = [make_attachment(name, image.data) for image in content.images]
        for attachment, image in zip(attachments, content.images, strict=True):
            await asyncio.to_thread(self._store.put_blob, attachment.sha256, image.data)
        if content.text or not attachments:
            attachments.insert(0, make_attachment(name, content.text.encode("utf-8", "replace")))
        return attachments

    async def follow(self, resource: ServerResource) -> None:
        """The resource is sent: `news` reports its changes, if its server announces them."""
        server = self.hub.servers.get(resource.server)
        if server is not None:
            self._announced.discard(_updated_line(server.status, resource.uri))
            await server.follow(resource.uri)

    # -- internals ---------------------------------------------------------------------------------------------------

    def _heard(self, name: str) -> None:
        """A server's status has changed."""
        if self._ended:
            return
        server = self.hub.servers.get(name)
        if server is not None and server.status.state == "ready":
            from tui.tools.mcp.offer import CachedOffer

            offer = CachedOffer(server.status.tools, server.status.instructions)
            if offer != self._cached.get(name):
                self._cached[name] = offer
                self._later(asyncio.to_thread(self._keep, server.config, offer))
        for listener in self._listeners:
            listener(name)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _read(self, folder: Path) -> tuple[Configured, dict[str, bool], dict[str, CachedOffer], dict[str, bool]]:
        settings = self._settings
        answers: dict[str, tuple[str, bool]] = {}
        for path, answer in self._store.state(AGREED).items():
            with suppress(*MALFORMED):  # such a file is asked about again
                answers[path] = str(answer[0]), bool(answer[1])
        configured = find_servers(settings.mcp_servers, settings.config_file, folder, answers)
        cached = {config.name: self._cached_offer(config) for config in configured.servers}
        return configured, self._store.state(SWITCHED), cached, self._store.state(INSTRUCTING)

    def _cached_offer(self, config: ServerConfig) -> CachedOffer:
        from tui.tools.mcp.offer import CachedOffer, ServerTool

        stored = self._store.state(CACHED_TOOLS + config.name)
        if stored.get("of") != fingerprint(config):
            return CachedOffer()
        try:
            tools = [ServerTool(**tool) for tool in stored["tools"] if tool["name"] not in config.disabled_tools]
        except (KeyError, TypeError) as error:
            log.info("what is remembered of %s can't be read (%s): it is asked again", config.name, error)
            return CachedOffer()
        return CachedOffer(tuple(tools), str(stored.get("instructions", "")))

    def _keep(self, config: ServerConfig, offer: CachedOffer) -> None:
        text = json.dumps({"of": fingerprint(config), **asdict(offer)})
        try:
            self._store.put_state(CACHED_TOOLS + config.name, text if len(text) <= MAX_CACHED else None)
        except StoreError as error:
            log.info("the tools of %s are not remembered: %s", config.name, error)

    def _put(self, key: str, name: str, value: object) -> None:
        self._store.change_state(key, lambda values: {**values, name: value})


@lru_cache(maxsize=256)
def _capped(text: str, limit: int) -> str:
    """`text` in about `limit` tokens of any model: it has to be the same for all of them."""
    return cap_text(text, limit, heuristic_count, "[tools] instructions in the configuration sets the limit")


def _updated_line(status: ServerStatus, uri: str) -> str:
    name = next((resource.name for resource in status.resources if resource.uri == uri), uri)
    mention = mention_of(f"{status.name}:{name}")
    return f"{status.name}:{name} has changed since it was attached; {mention} attaches it as it is now."


def fingerprint(config: ServerConfig) -> str:
    """Detects changes of a server's configuration, from the parts that are no secrets."""
    return text_digest("\0".join((config.transport, config.shown, config.cwd or "", *sorted(config.env))))
