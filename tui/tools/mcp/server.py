"""One MCP server: starts it, watches it, restarts it when it dies; what it offers, and its calls."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from tui.messages import ToolSchema
from tui.providers.keys import one_line, redact
from tui.tools.base import Tool, ToolError, ToolOutput, progress
from tui.tools.mcp.config import McpConfigError, ServerConfig, start_environment
from tui.tools.mcp.oauth import SignIn, TokenStore
from tui.tools.mcp.offer import CachedOffer, ServerTool, TemplateVariable, offered_name
from tui.tools.mcp.status import (
    GoneError,
    ServerLog,
    ServerStatus,
    State,
    TransportStatus,
    failure_reason,
    log_name,
)

if TYPE_CHECKING:
    from tui.tools.mcp.connection import Connection
    from tui.tools.mcp.hub import McpHub
    from tui.tools.mcp.offer import Content

log = logging.getLogger(__name__)

T = TypeVar("T")
Signal: TypeAlias = Literal["changed", "now", "gone", "stop"]
"""To an open connection: lists have changed, their change is waited for, the server has ended, the person stops it."""

ATTEMPTS = 5  # consecutive failed starts before the person is asked to act
STEADY = 60.0  # seconds after which a connection counts as working, and the attempts are reset
BACKOFF = 1.0  # seconds before the second attempt; doubled for each further one
DEBOUNCE = 0.05  # seconds between a change notification and listing again: changes come in bursts
MAX_DEBOUNCE = 5.0  # maximum of that, doubled each time, for a server that keeps changing
CURRENT_WAIT = 5.0  # seconds that the next request waits for a list which has changed
MAX_CHANGES = 10_000
"""Changes within one such time after which a server is stopped: handling them would take all the time."""

CALL_WAIT = 60.0  # seconds a call waits for a starting server, and a server may take for listing


class McpServer:
    """A source of tools. Its connection lives in the hub's thread; public methods are for the program's own loop.

    `cached` is what it offered in its last run, `on` says whether it is to be started.
    """

    def __init__(
        self, hub: McpHub, config: ServerConfig, cached: CachedOffer | None = None, *, on: bool = True
    ) -> None:
        self._hub = hub
        self._sign_in: SignIn | None = None
        self.config = config
        self.log = ServerLog(None if hub.log_dir is None else hub.log_dir / log_name(config.name))
        state: State = "failed" if config.error else "starting" if on else "off"
        offer = cached or CachedOffer()
        self.status = ServerStatus(config.name, state, config.error, tools=offer.tools, instructions=offer.instructions)
        self._task: asyncio.Task[None] | None = None
        self._listing = False  # an open connection lists its tools again
        self._connection: Connection | None = None
        self._transport_status = TransportStatus()
        self._signals: asyncio.Queue[Signal] = asyncio.Queue()
        self._start_ended = asyncio.Event()
        self._listed = asyncio.Event()
        self._followed: set[str] = set()  # URIs of resources that were attached
        if state != "starting":
            self._start_ended.set()
        self._offered = self._tools_of(self.status)

    # -- as a source of tools ----------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The server's name in the configuration."""
        return self.config.name

    def tools(self) -> Sequence[Tool]:
        """Tools that can be called: cached ones until it is ready, none once it has failed or is off."""
        return self._offered if self.status.state in ("starting", "ready", "reconnecting") else ()

    # -- for the program -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start it in the background; see `status`."""
        if not self.config.error:
            await self._hub.run(self._start())

    async def stop(self) -> None:
        """Stop it and withdraw its tools."""
        await self._hub.run(self._end())

    async def restart(self, sign_in: SignIn | None = None) -> None:
        """Restart it; with `sign_in` let the person sign in. Returns at once; `status` has the progress."""
        if self.config.error:
            return
        await self.stop()
        self._sign_in = sign_in
        await self.start()

    async def sign_out(self) -> str | None:
        """Forget the person's sign-in, restart it if it is on, and have the tokens revoked.

        Returns why they were not, "" if they were, None if there were none. Raises `ToolError`, OSError.
        """
        try:
            config = self.config.filled(start_environment())
        except McpConfigError as error:
            raise ToolError(str(error)) from None
        store, is_on = TokenStore(self._hub.tokens, config.url), self.status.state != "off"
        await self.stop()
        data = await asyncio.to_thread(store.read)
        await asyncio.to_thread(store.forget)
        if is_on:
            await self.start()
        if not data.get("tokens") or importlib.util.find_spec("mcp") is None:
            return None
        from tui.tools.mcp.authorization import revoke

        return await self._hub.run(revoke(config, store, data))

    async def wait_until_current(self) -> None:
        """Wait until the tools that it has said are new are read; at most `CURRENT_WAIT` seconds."""
        connection = self._connection
        if connection is not None and (connection.stale or self._listing):
            await self._hub.run(self._wait_until_current())

    async def read(self, uri: str) -> Content:
        """The content of a resource. Raises `ToolError`."""
        return await self._hub.run(self._ask("the resource", lambda connection: connection.read(uri)))

    async def follow(self, uri: str) -> None:
        """Follow an attached resource: `status.updated` has it once it changed, if the server announces changes."""
        await self._hub.run(self._follow(uri))

    async def complete(self, template: str, variable: TemplateVariable) -> Sequence[str]:
        """Completions for the address of an unlisted resource. Raises `ToolError`."""
        return await self._hub.run(self._ask("an ending", lambda connection: connection.complete(template, variable)))

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> Content:
        """A prompt's messages as one text. Raises `ToolError`."""
        return await self._hub.run(
            self._ask(f"the prompt {name}", lambda connection: connection.prompt(name, arguments))
        )

    async def _run_tool(self, tool: ServerTool, arguments: Mapping[str, Any]) -> ToolOutput:
        """Call `tool` if it is still the one that was offered: the person's approval is for that one only."""
        report = partial(self._hub.on_home_loop, progress.get())

        async def ask(connection: Connection) -> ToolOutput:
            if tool not in self.status.tools:
                raise ToolError(
                    f"{tool.name} was not run: the server {self.name} has changed it since it was offered. Call it"
                    " again as it is described now, if it is still there."
                )
            return await connection.call(tool.name, arguments, report)

        return await self._hub.run(self._ask(tool.name, ask))

    # -- in the thread: the connection -------------------------------------------------------------------------------

    async def _start(self) -> None:
        if self._task is None or self._task.done():
            self._set_state("starting")
            self._task = asyncio.create_task(self._keep_open())

    async def _end(self) -> None:
        task, self._task = self._task, None
        if task is not None and not task.done():
            if self._connection is not None and not self._listing:
                self._signals.put_nowait("stop")
            else:  # a server that does not answer must not delay the exit
                task.cancel()  # once only: the SDK kills the program when it exits
            await asyncio.wait([task])
        self._set_state("off")

    async def _keep_open(self) -> None:
        attempt = 0
        loop = asyncio.get_running_loop()
        while True:
            began, self._transport_status = loop.time(), TransportStatus()
            try:
                await self._run_connection()
                return  # stopped
            except Exception as error:
                was_ready = self.status.state == "ready"
                reason, is_final = await self._failure(error, ready=was_ready)
            log.info("MCP server %s: %s", self.name, reason)
            if self._task is None:
                return  # stopped while it failed
            attempt = 1 if was_ready and loop.time() - began > STEADY else attempt + 1
            if attempt > ATTEMPTS or (not was_ready and (is_final or self.config.transport == "stdio")):
                self._set_state("failed", reason)
                return
            self._set_state("reconnecting", reason)
            await asyncio.sleep(BACKOFF * 2 ** (attempt - 1))

    async def _run_connection(self) -> None:
        """One connection, from start to end."""
        if importlib.util.find_spec("mcp") is None:
            raise McpConfigError("MCP servers need a part that is not installed: pip install 'chatctx[mcp]'")
        from tui.tools.mcp.connection import Connection

        self._signals = signals = asyncio.Queue[Signal]()
        sign_in, self._sign_in = self._sign_in, None
        ask = None if self._hub.ask is None else self._hub.ask_person
        connection = Connection(self.config, self.log, signals.put_nowait, self._resource_updated, ask)
        async with connection.opened(self._transport_status, sign_in, self._hub.tokens):
            await self._list_all(connection)
            for uri in tuple(self._followed):  # of the connection before
                await self._follow(uri)
            connection.watch_lists()
            loop, pause = asyncio.get_running_loop(), DEBOUNCE
            try:
                listed_at = loop.time()
                while await _changes(signals, pause):
                    self._listing = True
                    await self._list_all(connection)
                    self._listing = False
                    self._listed.set()
                    quiet = loop.time() - listed_at > 2 * MAX_DEBOUNCE
                    listed_at, pause = loop.time(), DEBOUNCE if quiet else min(2 * pause, MAX_DEBOUNCE)
            finally:
                self._connection, self._listing = None, False
                self._listed.set()
                self._start_ended.clear()

    # -- in the thread: calls ------------------------------------------------------------------------------------------

    async def _wait_until_current(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CURRENT_WAIT):
                while (connection := self._connection) is not None and (connection.stale or self._listing):
                    self._listed.clear()
                    self._signals.put_nowait("now")
                    await self._listed.wait()

    async def _ask(self, subject: str, ask: Callable[[Connection], Awaitable[T]]) -> T:
        """Ask the server once it is connected. Raises `ToolError`."""
        try:
            async with asyncio.timeout(CALL_WAIT):  # not `wait_for`: in Python 3.11 it can lose a cancellation
                await self._start_ended.wait()
        except TimeoutError:
            raise ToolError(f"The server {self.name} is still starting: try again later.") from None
        if self._connection is None:
            reason = self.status.reason or "it is switched off"
            raise ToolError(f"The server {self.name} does not run: {reason}")
        try:
            return await ask(self._connection)
        except GoneError as error:
            self._signals.put_nowait("gone")
            reason, _ = await self._failure(error, ready=True)
            if self._transport_status.sign_in_needed:
                raise ToolError(f"{subject} was not run by the server {self.name}: {reason}") from None
            raise ToolError(
                f"The server {self.name} went away during {subject}: {reason}. It is being started again; whether the"
                " call took effect is not known."
            ) from None

    # -- in the thread: what it offers, how it is --------------------------------------------------------------------

    async def _follow(self, uri: str) -> None:
        self._followed.add(uri)
        if uri in self.status.updated:
            self.status = replace(self.status, updated=tuple(other for other in self.status.updated if other != uri))
        try:
            if self._connection is not None:
                await self._connection.subscribe(uri)
        except Exception as error:  # the resource was read; only its changes are not announced
            log.info("MCP server %s: %s", self.name, redact(repr(error)))

    def _resource_updated(self, uri: str) -> None:
        if uri in self._followed and uri not in self.status.updated:
            self.status = replace(self.status, updated=(*self.status.updated, uri))
            self._hub.status_changed(self.name)

    async def _list_all(self, connection: Connection) -> None:
        async with asyncio.timeout(CALL_WAIT):
            status = await connection.list_all()
        before = self.status
        self._offered = self._tools_of(status)  # first: who sees that the server is ready, in another thread, sees them
        self.status = replace(status, updated=before.updated)
        self._connection = connection
        self._start_ended.set()
        if self.status != before:
            self._hub.status_changed(self.name)

    def _tools_of(self, status: ServerStatus) -> tuple[Tool, ...]:
        return tuple(
            Tool(
                ToolSchema(offered_name(self.name, tool.name), tool.description, tool.parameters, self.name),
                read_only=tool.read_only and self.config.trust_read_only,
                run=partial(self._run_tool, tool),
            )
            for tool in status.tools
        )

    def _set_state(self, state: State, reason: str = "") -> None:
        self.status = replace(self.status, state=state, reason=reason)
        if state in ("failed", "off"):
            self._start_ended.set()
        else:
            self._start_ended.clear()
        self._hub.status_changed(self.name)

    async def _failure(self, error: Exception, *, ready: bool) -> tuple[str, bool]:
        """The result of `failure_reason`, with the line in which a program said why it ended."""
        reason, is_final = failure_reason(error, self.config, self._transport_status, ready=ready)
        if not is_final and self.config.transport == "stdio":
            await self.log.wait_for_output()
            reason += f" ({one_line(last_line).rstrip('.')})" if (last_line := self.log.reason) else ""
        return reason, is_final


async def _changes(signals: asyncio.Queue[Signal], pause: float) -> bool:
    """Wait for a change, then `pause` seconds for further ones; False if it is stopped. Raises `GoneError`."""
    changes = 0
    while (signal := await signals.get()) == "now":
        pass  # what was waited for has been read
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(pause):
            while signal == "changed":
                signal = await signals.get()
                changes += 1
                if changes > MAX_CHANGES:
                    raise RuntimeError("it announces changes without end")
    if signal == "gone":
        raise GoneError
    return signal != "stop"
