"""A session with an MCP server by the official SDK, and what the server asks and announces in it.

Loaded with the first server that starts: this module and those that only it imports need the SDK.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import mcp.types as types
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from tui import __version__
from tui.config.files import at_home
from tui.providers.http.bounds import time_limit
from tui.providers.keys import hold_secret, one_line, redact
from tui.text.clean import clean_text
from tui.text.numbers import plural
from tui.tools.base import ToolError, ToolOutput
from tui.tools.mcp.authorization import authorization
from tui.tools.mcp.config import ServerConfig, start_environment
from tui.tools.mcp.oauth import SignIn, TokenStore
from tui.tools.mcp.offer import (
    Content,
    TemplateVariable,
    error_output,
    output_of,
    prompt_text,
    resource_content,
    resource_templates,
    server_prompts,
    server_resources,
    server_tool,
)
from tui.tools.mcp.questions import Ask, LinkQuestion, Question, Reply, SampleQuestion, form_question
from tui.tools.mcp.status import GoneError, Issue, ServerLog, ServerStatus, TransportStatus, error_text, innermost
from tui.tools.mcp.transport import CLOSED, Normalizer, open_transport, watched

log = logging.getLogger(__name__)
sdk_log = logging.getLogger("mcp")
if not sdk_log.handlers:  # its lines quote what servers send, and would go to the terminal
    sdk_log.addHandler(logging.NullHandler())
    sdk_log.propagate = False

T = TypeVar("T")
OnEvent: TypeAlias = Callable[[Literal["changed", "gone"]], None]

MAX_TOOLS = 2_000  # of one server
MAX_INSTRUCTIONS = 100_000  # characters that are looked at
MAX_PAGES = 50  # pages read of a list, which bounds a list that never ends
START_WAIT = 60.0  # seconds for a server's first answer: some are downloaded first
SIGN_IN_WAIT = 1_800.0  # seconds a person gets to sign in: as long as codes last (RFC 8628, section 3.2)
COMPLETE_WAIT = 2.0  # seconds to wait for completions
PROGRESS_PAUSE = 0.2  # seconds between two progress texts of a tool: servers send thousands
MAX_PROGRESS = 80  # characters of a progress text

MAX_SUBSCRIBED = 32  # resources of one server whose changes are followed
LISTEN_AGAIN = 10.0  # seconds before a lost subscription is renewed

REJECTED = -1  # error code for sampling that the person rejected (MCP 2025-11-25, sampling: error handling)
MAX_TURNED_DOWN = 5  # questions turned down in a row after which a server may not ask again until it is restarted
MAX_MESSAGE = 4_000  # characters of a question, or of a log message
MAX_LOGGED = 100  # lines of log messages in a second


class Connection:
    """A session. To be used on the event loop it is opened on.

    `on_event` is called when a list has changed, and when the server has gone; `updated` with the URI of a resource
    that changed, if it was subscribed to. `ask` asks the person what the server wants to know, None if there is no one.
    """

    def __init__(
        self,
        config: ServerConfig,
        server_log: ServerLog,
        on_event: OnEvent,
        updated: Callable[[str], None],
        ask: Ask | None,
    ) -> None:
        self._config = config
        self._log = server_log
        self._on_event = on_event
        self._updated = updated
        self._ask = ask
        self._is_open = False
        self._normalizer = Normalizer()
        self._timeout = config.timeout
        self._limits: set[Callable[[float | None], None]] = set()  # they set the limits of the calls that run anew
        self._asking = asyncio.Lock()
        self._turned_down = 0  # questions in a row
        self._second, self._logged = 0, 0  # lines logged in the current second
        self._subscribed: set[str] = set()  # URIs
        self._listeners: list[asyncio.Task[None]] = []

    @contextlib.asynccontextmanager
    async def opened(self, status: TransportStatus, sign_in: SignIn | None, tokens: Path | None) -> AsyncIterator[None]:
        """Start the server, or connect to it, within `START_WAIT` seconds; end it with the context.

        `sign_in` signs in to it first; its tokens are stored in the folder `tokens`. Raises the SDK's errors,
        `TimeoutError`, `OSError` and `McpConfigError`.
        """
        config, auth = self._config.filled(start_environment()), None  # not kept: it has secrets
        for secret in config.secrets:
            hold_secret(secret)
        async with contextlib.AsyncExitStack() as stack:
            if config.transport != "stdio":
                async with asyncio.timeout(START_WAIT):  # a keyring may wait to be unlocked
                    store = TokenStore(tokens, config.url)
                    auth = await stack.enter_async_context(authorization(config, store, sign_in, status))
            transport = open_transport(config, self._log, status, auth)
            self._client = Client(
                watched(transport, self._normalizer, lambda: self._on_event("gone")),
                message_handler=self._notified,
                list_roots_callback=None if config.roots == () else self._list_roots,
                elicitation_callback=None if self._ask is None else self._elicit,
                sampling_callback=self._sample if self._ask is not None and config.sampling else None,
                client_info=types.Implementation(name="chatctx", version=__version__),
                cache=None,
            )
            async with asyncio.timeout(START_WAIT if sign_in is None else SIGN_IN_WAIT):
                await stack.enter_async_context(self._client)
            self._is_open = True
            try:
                yield
            finally:
                for task in self._listeners:
                    task.cancel()

    @property
    def stale(self) -> bool:
        """Whether the server has said that its tools changed, and was not asked for them since."""
        return self._normalizer.stale

    async def list_all(self) -> ServerStatus:
        """Everything the server offers now. A list that it announces but can't deliver is empty."""
        client, config = self._client, self._config
        has, info = client.server_capabilities, client.server_info
        tools = await self._listed(client.list_tools, "tools") if has.tools else []
        resources = await self._listed(client.list_resources, "resources") if has.resources else []
        templates = await self._listed(client.list_resource_templates, "resource_templates") if has.resources else []
        prompts = await self._listed(client.list_prompts, "prompts") if has.prompts else []
        issues = [replace(issue, text=one_line(issue.text)) for issue in self._normalizer.issues]
        if (more := len(tools) - MAX_TOOLS) > 0:
            issues.append(Issue(f"{plural(more, 'tool')} left out: it has over {MAX_TOOLS:,}"))
        return ServerStatus(
            config.name,
            "ready",
            about=one_line(f"{info.title or info.name} {info.version}") if info is not None else "",
            tools=tuple(server_tool(tool) for tool in tools[:MAX_TOOLS] if tool.name not in config.disabled_tools),
            resources=server_resources(config.name, resources),
            prompts=server_prompts(config.name, prompts),
            templates=resource_templates(config.name, templates),
            issues=tuple(issues),
            instructions=clean_text((client.instructions or "")[:MAX_INSTRUCTIONS]).strip(),
        )

    # -- calls -------------------------------------------------------------------------------------------------------

    async def call(self, name: str, arguments: Mapping[str, Any], report: Callable[[str], None]) -> ToolOutput:
        """Call a tool; it is cancelled, on the server too, `timeout` seconds after its last sign of life.

        `report` gets its progress, a few times a second at most. Raises `ToolError` and `GoneError`.
        """

        async def once(alive: ProgressFnT) -> types.CallToolResult:
            return await self._client.call_tool(name, dict(arguments), progress_callback=alive)

        with _errors(name):
            try:
                try:
                    return output_of(await self._answer(once, name, report))
                except MCPError as error:
                    if error.code != types.URL_ELICITATION_REQUIRED or not await self._pages_opened(error.error.data):
                        raise
                return output_of(await self._answer(once, name, report))  # the person has opened what it needed
            except MCPError as error:
                if _is_gone(error):
                    raise
                return error_output(error.error)

    async def read(self, uri: str) -> Content:
        """The content of a resource. Raises `ToolError` and `GoneError`."""
        with _errors(subject := "the resource"):
            result = await self._answer(lambda _alive: self._client.read_resource(uri), subject)
            return resource_content(result.contents)

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> Content:
        """A prompt's messages as one text. Raises `ToolError` and `GoneError`."""
        with _errors(subject := f"the prompt {name}"):
            result = await self._answer(lambda _alive: self._client.get_prompt(name, dict(arguments)), subject)
            return prompt_text(result.messages)

    async def complete(self, template: str, variable: TemplateVariable) -> Sequence[str]:
        """The server's completions for a variable of a URI template; nothing if it has none. Raises as `read`."""
        if self._client.server_capabilities.completions is None:
            return ()
        reference = types.ResourceTemplateReference(type="ref/resource", uri=template)
        argument = {"name": variable.name, "value": variable.value}
        with _errors("an ending"):
            async with asyncio.timeout(COMPLETE_WAIT):
                result = await self._client.complete(reference, argument, dict(variable.filled_in) or None)
            return result.completion.values

    async def _answer(
        self,
        work: Callable[[ProgressFnT], Awaitable[T]],
        subject: str,
        report: Callable[[str], None] = lambda _text: None,
    ) -> T:
        loop = asyncio.get_running_loop()
        reported_at = 0.0
        try:
            async with time_limit(self._patience()) as limit:
                self._limits.add(limit)

                async def alive(progress: float, total: float | None, message: str | None) -> None:
                    nonlocal reported_at
                    limit(self._patience())
                    if loop.time() - reported_at >= PROGRESS_PAUSE or progress == total:
                        reported_at = loop.time()
                        report(progress_text(progress, total, message))

                try:
                    return await work(alive)
                finally:
                    self._limits.discard(limit)
        except TimeoutError:
            raise ToolError(
                f"{subject} gave no sign of life for {self._timeout:g} seconds and was given up; the server's `timeout`"
                " in the configuration sets how long it may take"
            ) from None

    def _patience(self) -> float | None:
        waits_for_person = self._asking.locked()
        return None if waits_for_person else self._timeout

    def _reschedule(self) -> None:
        """Restart the timeouts of the calls, or suspend them while the person is asked: the server waits then."""
        for limit in self._limits:
            limit(self._patience())

    async def _listed(self, ask: Callable[..., Awaitable[Any]], key: str) -> list[Any]:
        """The items of all pages. Only without its tools a server can't be used."""
        items: list[Any] = []
        cursor: str | None = None
        try:
            for _ in range(MAX_PAGES):
                page = await ask(cursor=cursor)
                items += getattr(page, key)
                cursor = page.next_cursor
                if not cursor:
                    break
        except MCPError as error:
            if error.code == CLOSED or key == "tools":
                raise
        return items

    # -- changes -----------------------------------------------------------------------------------------------------

    def watch_lists(self) -> None:
        """Be told of changes of lists. Servers with an older protocol notify without being asked."""
        has = self._client.server_capabilities
        tools, prompts, resources = (bool(it and it.list_changed) for it in (has.tools, has.prompts, has.resources))
        if self._listens and (tools or prompts or resources):
            self._listen(tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources)

    async def subscribe(self, uri: str) -> None:
        """Subscribe to changes of a resource, if the server supports it. Raises the SDK's errors."""
        resources = self._client.server_capabilities.resources
        if resources is None or not resources.subscribe or uri in self._subscribed:
            return
        if len(self._subscribed) >= MAX_SUBSCRIBED:
            return
        self._subscribed.add(uri)
        if self._listens:
            self._listen(resource_subscriptions=(uri,))
        else:
            request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
            await self._client.session.send_request(request, types.EmptyResult)

    @property
    def _listens(self) -> bool:
        """Whether changes are announced on streams that the client opens (from MCP 2026-07-28 on)."""
        return self._client.protocol_version in MODERN_PROTOCOL_VERSIONS

    def _listen(self, **events: Any) -> None:
        """Keep a stream of these events open. They arrive as notifications do; some are missed when it is cut off."""

        async def listen() -> None:
            while True:
                try:
                    async with self._client.listen(**events) as subscription:
                        async for _ in subscription:
                            pass
                except (MCPError, TimeoutError) as error:
                    log.info("a server's changes are not announced: %s", error)
                    return
                except SubscriptionLost:
                    log.info("a server's change notifications were cut off; subscribing again")
                await asyncio.sleep(LISTEN_AGAIN)
                self._on_event("changed")

        self._listeners.append(asyncio.create_task(listen()))

    async def _notified(self, message: object) -> None:
        match message:
            case (
                types.ToolListChangedNotification()
                | types.PromptListChangedNotification()
                | types.ResourceListChangedNotification()
            ):
                self._on_event("changed")
            case types.ResourceUpdatedNotification():
                self._updated(message.params.uri)
            case types.LoggingMessageNotification(params=params):
                data = params.data
                text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
                logger = f" {params.logger}:" if params.logger else ""
                for logged in text[:MAX_MESSAGE].splitlines():
                    second = int(time.monotonic())
                    self._second, self._logged = second, self._logged + 1 if second == self._second else 1
                    if self._logged <= MAX_LOGGED:  # the rest of a flood is dropped
                        self._log.add(f"{params.level}:{logger} {logged}")

    # -- what the server asks ----------------------------------------------------------------------------------------

    async def _reply(self, question: Question) -> Reply:
        try:
            async with self._asking:
                if self._ask is None or not self._is_open or self._turned_down >= MAX_TURNED_DOWN:
                    return Reply("cancel", problem="there is no one to ask")
                self._reschedule()
                reply = await self._ask(question)
                self._turned_down = 0 if reply.action == "accept" else self._turned_down + 1
                return reply
        finally:
            self._reschedule()

    async def _list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        """The configured folders, or the working directory."""
        del context
        roots = self._config.roots
        folders = [Path.cwd()] if roots is None else [at_home(folder).absolute() for folder in roots]
        return types.ListRootsResult.model_validate(
            {"roots": [{"uri": folder.as_uri(), "name": folder.name or str(folder)} for folder in folders]}
        )

    async def _elicit(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        del context
        with _unsupported("asking for"):
            question = question_of(self._config.name, params)
        reply = await self._reply(question)
        content = None if reply.content is None else dict(reply.content)
        return types.ElicitResult.model_validate({"action": reply.action, "content": content})

    async def _pages_opened(self, data: object) -> bool:
        """Ask the person to open the addresses in a "URL elicitation required" error. True if all were opened."""
        try:
            needed = types.ElicitationRequiredErrorData.model_validate(data).elicitations
            questions = [question_of(self._config.name, params) for params in needed]
        except (ValidationError, ValueError):
            return False
        for question in questions:
            if (await self._reply(question)).action != "accept":
                return False
        return bool(questions)

    async def _sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        del context
        with _unsupported("sampling with"):
            question = sample_of(self._config.name, params)
        reply = await self._reply(question)
        if (sampled := reply.sampled) is None:
            raise MCPError(REJECTED, reply.problem or "the person did not allow it")
        content = types.TextContent(type="text", text=sampled.text)
        return types.CreateMessageResult(
            role="assistant", content=content, model=sampled.model, stop_reason=sampled.stop_reason
        )


@contextlib.contextmanager
def _unsupported(subject: str) -> Iterator[None]:
    """Raises `MCPError` for a question that is not supported, which raises ValueError."""
    try:
        yield
    except ValueError as error:
        raise MCPError(types.INVALID_PARAMS, f"chatctx does not support {subject} {error}") from None


def progress_text(done: float, total: float | None, message: str | None) -> str:
    """The progress of a tool, for a person."""
    amount = f"{done:,.6g}" + (f"/{total:,.6g}" if total else "")
    return f"{amount} {one_line(message, MAX_PROGRESS)}" if message else amount


@contextlib.contextmanager
def _errors(subject: str) -> Iterator[None]:
    """Raises `GoneError` or `ToolError` for the SDK's errors."""
    try:
        yield
    except (ToolError, GoneError):
        raise
    except MCPError as error:
        if _is_gone(error):
            raise GoneError(error.message) from None
        raise ToolError(f"{subject}: {one_line(str(error))}") from None
    except Exception as error:
        log.info("%s of an MCP server: %s", subject, redact(repr(error)))
        raise ToolError(f"{subject}: {error_text(innermost(error))}") from None


def _is_gone(error: MCPError) -> bool:
    """Whether the SDK reports the end of the connection, rather than the server an error."""
    return error.code == CLOSED or error.message == "Session terminated"


def question_of(server: str, params: types.ElicitRequestParams) -> Question:
    """The question for an elicitation. Raises ValueError for unsupported ones."""
    message = clean_text(params.message[:MAX_MESSAGE])
    if params.mode == "url":
        if not params.url.startswith(("https://", "http://")) or not params.url.isprintable():
            raise ValueError("an address that is not http or https")
        return LinkQuestion(server, message, params.url)
    return form_question(server, message, params.requested_schema)


def sample_of(server: str, params: types.CreateMessageRequestParams) -> SampleQuestion:
    """The question for a sampling request. Raises ValueError for content other than text."""
    messages = []
    for message in params.messages:
        texts = []
        for block in message.content_as_list:
            if block.type != "text":
                raise ValueError(f"content of the type {block.type}: text alone")
            texts.append(block.text)
        messages.append((message.role, "\n\n".join(texts)))
    if params.tools or not messages:
        raise ValueError("tools" if params.tools else "no messages")
    return SampleQuestion(server, params.system_prompt or "", tuple(messages), max(1, params.max_tokens))
