"""A connection to an MCP server by the official SDK, which is loaded with the first one."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from tui.providers.keys import hold_secret
from tui.text.clean import clean_text
from tui.tools.base import ToolError
from tui.tools.mcp.config import NotInstalledError, ServerConfig, start_environment
from tui.tools.mcp.log import ServerLog
from tui.tools.mcp.normalize import CLOSED, Issue, Normalizer
from tui.tools.mcp.oauth import SignIn, TokenStore
from tui.tools.mcp.offer import (
    TemplateVariable,
    resource_templates,
    server_prompts,
    server_resources,
    server_tool,
)
from tui.tools.mcp.questions import Ask
from tui.tools.mcp.requests import Notifications, ServerRequests
from tui.tools.mcp.status import ServerStatus, line
from tui.tools.mcp.transport import TransportStatus, open_transport, watched

if TYPE_CHECKING:
    import mcp.types as types
    from mcp import Client
    from mcp.shared.dispatcher import ProgressFnT

log = logging.getLogger(__name__)

T = TypeVar("T")
OnEvent: TypeAlias = Callable[[Literal["changed", "gone"]], None]

MOST_TOOLS = 2_000  # of one server
LONGEST_INSTRUCTIONS = 100_000  # characters that are looked at
MOST_PAGES = 50  # pages read of a list, which bounds a list that never ends
START_WAIT = 60.0  # seconds for a server's first answer: some are downloaded first
SIGN_IN_WAIT = 1_800.0  # seconds a person gets to sign in: as long as codes last (RFC 8628, section 3.2)
COMPLETE_WAIT = 2.0  # seconds to wait for completions
PROGRESS_PAUSE = 0.2  # seconds between two progress texts of a tool: servers send thousands
LONGEST_PROGRESS = 80  # characters of a progress text

MOST_SUBSCRIBED = 32  # resources of one server whose changes are followed
LISTEN_AGAIN = 10.0  # seconds before a lost subscription is renewed


class Connection:
    """An open session. To be used on the event loop it was opened on."""

    def __init__(self, client: Client, normalizer: Normalizer, requests: ServerRequests, config: ServerConfig) -> None:
        self._client = client
        self._normalizer = normalizer
        self._requests = requests
        self._config = config
        self._timeout = config.timeout
        self._limits: set[asyncio.Timeout] = set()  # of the calls that run
        self._questions = 0  # waiting for the person
        self._subscribed: set[str] = set()  # URIs
        self._listeners: list[asyncio.Task[None]] = []

    @contextlib.contextmanager
    def without_timeout(self) -> Iterator[None]:
        """Suspend the timeouts of calls: the server waits for the person."""
        self._questions += 1
        self._reschedule()
        try:
            yield
        finally:
            self._questions -= 1
            self._reschedule()

    def _reschedule(self) -> None:
        for limit in self._limits:
            limit.reschedule(self._deadline())

    def _deadline(self) -> float | None:
        return None if self._questions else asyncio.get_running_loop().time() + self._timeout

    @property
    def stale(self) -> bool:
        """Whether the server has said that its tools changed, and was not asked for them since."""
        return self._normalizer.stale

    async def list_all(self) -> ServerStatus:
        """Everything the server offers now. A list that it announces but can't deliver is empty."""
        client, config = self._client, self._config
        has, info = client.server_capabilities, client.server_info
        tools = await self._pages(client.list_tools, lambda page: page.tools) if has.tools else ()
        resources: Sequence[types.Resource] = ()
        templates: Sequence[types.ResourceTemplate] = ()
        prompts: Sequence[types.Prompt] = ()
        if has.resources:
            resources = await self._optional(self._pages(client.list_resources, lambda page: page.resources))
            ask = client.list_resource_templates
            templates = await self._optional(self._pages(ask, lambda page: page.resource_templates))
        if has.prompts:
            prompts = await self._optional(self._pages(client.list_prompts, lambda page: page.prompts))
        issues = [replace(issue, text=line(issue.text)) for issue in self._normalizer.issues]
        if (more := len(tools) - MOST_TOOLS) > 0:
            issues.append(Issue(f"{more:,} tools are left out: it has over {MOST_TOOLS:,}"))
        return ServerStatus(
            config.name,
            "ready",
            about=line(f"{info.title or info.name} {info.version}") if info is not None else "",
            tools=tuple(server_tool(tool) for tool in tools[:MOST_TOOLS] if tool.name not in config.disabled_tools),
            resources=server_resources(config.name, resources),
            prompts=server_prompts(config.name, prompts),
            templates=resource_templates(config.name, templates),
            issues=tuple(issues),
            instructions=clean_text((client.instructions or "")[:LONGEST_INSTRUCTIONS]).strip(),
        )

    async def call(
        self, name: str, arguments: Mapping[str, Any], report: Callable[[str], None]
    ) -> types.CallToolResult:
        """Call a tool; it is cancelled, on the server too, `timeout` seconds after its last sign of life.

        `report` gets its progress, a few times a second at most.
        """
        from mcp.shared.exceptions import MCPError
        from mcp.types import URL_ELICITATION_REQUIRED

        async def once(alive: ProgressFnT) -> types.CallToolResult:
            return await self._client.call_tool(name, dict(arguments), progress_callback=alive)

        try:
            return await self._with_timeout(once, name, report)
        except MCPError as error:
            if error.code != URL_ELICITATION_REQUIRED or not await self._requests.opened(error.error.data):
                raise
        return await self._with_timeout(once, name, report)  # the person has opened what the server needed

    async def read(self, uri: str) -> types.ReadResourceResult:
        """The content of a resource."""
        return await self._with_timeout(lambda _alive: self._client.read_resource(uri), "the resource")

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
        """The messages of a prompt."""
        return await self._with_timeout(lambda _alive: self._client.get_prompt(name, dict(arguments)), "the prompt")

    async def complete(self, template: str, variable: TemplateVariable) -> Sequence[str]:
        """The server's completions for a variable of a URI template; nothing if it has none."""
        from mcp.types import ResourceTemplateReference

        if self._client.server_capabilities.completions is None:
            return ()
        reference = ResourceTemplateReference(type="ref/resource", uri=template)
        argument = {"name": variable.name, "value": variable.value}
        async with asyncio.timeout(COMPLETE_WAIT):
            result = await self._client.complete(reference, argument, dict(variable.filled_in) or None)
        return result.completion.values

    def watch_lists(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever a list changes. Servers with an older protocol notify without being asked."""
        has = self._client.server_capabilities
        tools, prompts, resources = (bool(it and it.list_changed) for it in (has.tools, has.prompts, has.resources))
        if self._listens and (tools or prompts or resources):
            self._listen(
                changed, tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
            )

    async def subscribe(self, uri: str) -> None:
        """Subscribe to changes of a resource, if the server supports it. Raises the SDK's errors."""
        import mcp.types as types

        resources = self._client.server_capabilities.resources
        if resources is None or not resources.subscribe or uri in self._subscribed:
            return
        if len(self._subscribed) >= MOST_SUBSCRIBED:
            return
        self._subscribed.add(uri)
        if self._listens:
            self._listen(lambda: None, resource_subscriptions=(uri,))  # the notification comes as all others do
            return
        request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
        await self._client.session.send_request(request, types.EmptyResult)

    @property
    def _listens(self) -> bool:
        """Whether changes are announced on streams that the client opens (from MCP 2026-07-28 on)."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        return self._client.protocol_version in MODERN_PROTOCOL_VERSIONS

    def _listen(self, changed: Callable[[], None], **events: Any) -> None:
        """Call `changed` at each of these events, until `close`, and whenever some may have been missed."""
        from mcp.client.subscriptions import SubscriptionLost
        from mcp.shared.exceptions import MCPError

        async def listen() -> None:
            while True:
                try:
                    async with self._client.listen(**events) as subscription:
                        async for _ in subscription:
                            changed()
                except (MCPError, TimeoutError) as error:
                    log.info("a server's changes are not announced: %s", error)
                    return
                except SubscriptionLost:
                    log.info("a server's change notifications were cut off; subscribing again")
                await asyncio.sleep(LISTEN_AGAIN)
                changed()

        self._listeners.append(asyncio.create_task(listen()))

    def close(self) -> None:
        """The connection ends."""
        for task in self._listeners:
            task.cancel()

    async def _with_timeout(
        self, work: Callable[[ProgressFnT], Awaitable[T]], what: str, report: Callable[[str], None] = lambda _text: None
    ) -> T:
        loop = asyncio.get_running_loop()
        reported_at = 0.0
        try:
            async with asyncio.timeout_at(self._deadline()) as limit:
                self._limits.add(limit)

                async def alive(progress: float, total: float | None, message: str | None) -> None:
                    nonlocal reported_at
                    limit.reschedule(self._deadline())
                    if loop.time() - reported_at >= PROGRESS_PAUSE or progress == total:
                        reported_at = loop.time()
                        report(progress_text(progress, total, message))

                try:
                    return await work(alive)
                finally:
                    self._limits.discard(limit)
        except TimeoutError:
            raise ToolError(
                f"{what} gave no sign of life for {self._timeout:g} seconds and was given up; the server's `timeout`"
                " in the configuration sets how long it may take"
            ) from None

    async def _pages(self, ask: Callable[..., Awaitable[Any]], items: Callable[[Any], Sequence[T]]) -> Sequence[T]:
        listed: list[T] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await ask(cursor=cursor)
            listed += items(page)
            cursor = page.next_cursor
            if not cursor:
                break
        return listed

    async def _optional(self, ask: Awaitable[Sequence[T]]) -> Sequence[T]:
        from mcp.shared.exceptions import MCPError

        try:
            return await ask
        except MCPError as error:
            if error.code == CLOSED:
                raise
            return ()


def progress_text(done: float, total: float | None, message: str | None) -> str:
    """The progress of a tool, for a person."""
    amount = f"{done:,.6g}" + (f"/{total:,.6g}" if total else "")
    return f"{amount} {line(message, LONGEST_PROGRESS)}" if message else amount


@contextlib.asynccontextmanager
async def connect(
    config: ServerConfig,
    log: ServerLog,
    on_event: OnEvent,
    status: TransportStatus,
    *,
    updated: Callable[[str], None] = lambda _uri: None,
    ask: Ask | None = None,
    sign_in: SignIn | None = None,
    tokens: Path | None = None,
) -> AsyncIterator[Connection]:
    """Start the server, or connect to it, within `START_WAIT` seconds; end it with the context.

    `on_event` is called when a list has changed, and when the server has gone. Raises the SDK's errors, `TimeoutError`,
    `OSError`, `McpConfigError` and `NotInstalledError`.

    `updated` is called with the URI of a resource that changed, if it was subscribed to. `ask` asks the person what the
    server wants to know. `sign_in` signs in to it first; its tokens are stored in the folder `tokens`.
    """
    filled = config.filled(start_environment())  # not kept: it has secrets
    for secret in filled.secrets:
        hold_secret(secret)
    _load_sdk()
    import mcp.types as types
    from mcp import Client

    from tui import __version__
    from tui.tools.mcp.authorization import authorization

    async with contextlib.AsyncExitStack() as stack:
        auth = None
        if config.transport != "stdio":
            async with asyncio.timeout(START_WAIT):  # a keyring may wait to be unlocked
                store = TokenStore(tokens, filled.url)
                auth = await stack.enter_async_context(authorization(filled, store, sign_in, status))
        transport = open_transport(filled, log, status, auth)
        normalizer = Normalizer()
        requests = ServerRequests(config, ask)
        notified = Notifications(lambda: on_event("changed"), updated, log.add)
        client = Client(
            watched(transport, normalizer, lambda: on_event("gone")),
            message_handler=notified.message,
            list_roots_callback=requests.list_roots if requests.roots else None,
            elicitation_callback=requests.elicit if ask is not None else None,
            sampling_callback=requests.sample if ask is not None and config.sampling else None,
            client_info=types.Implementation(name="chatctx", version=__version__),
            cache=None,
        )
        async with asyncio.timeout(START_WAIT if sign_in is None else SIGN_IN_WAIT):
            await stack.enter_async_context(client)
        requests.connection = connection = Connection(client, normalizer, requests, config)
        stack.callback(connection.close)
        yield connection


def _load_sdk() -> None:
    if importlib.util.find_spec("mcp") is None:
        raise NotInstalledError("MCP servers need a part that is not installed: pip install 'chatctx[mcp]'")
    logger = logging.getLogger("mcp")
    if not logger.handlers:  # its log lines quote what servers send, and would go to the terminal
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
