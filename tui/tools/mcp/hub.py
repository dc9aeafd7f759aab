"""All MCP servers of a running program."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # loaded with the first server that is added
    from tui.tools.mcp.config import ServerConfig
    from tui.tools.mcp.offer import CachedOffer
    from tui.tools.mcp.questions import Ask, Question, Reply
    from tui.tools.mcp.server import McpServer

T = TypeVar("T")

END_WAIT = 5.0  # seconds for the thread to end; it is a daemon, so anything that hangs dies with the process


class McpHub:
    """The servers, on an event loop in a thread of their own; managed from the program's loop.

    `changed` is called there with the name of a server whose status changed. No server is started, and the SDK not
    loaded, before `start`. `log_dir` None writes no log files, `tokens` (a folder) None stores no sign-ins.
    """

    def __init__(self, changed: Callable[[str], None], log_dir: Path | None = None, tokens: Path | None = None) -> None:
        self._changed = changed
        self.log_dir = log_dir
        self.tokens = tokens
        self._home: asyncio.AbstractEventLoop | None = None  # the loop that work came from last
        self._loop: asyncio.AbstractEventLoop | None = None  # the servers'
        self._thread = threading.Thread(target=self._main, name="mcp", daemon=True)
        self._news = asyncio.Event()
        self.servers: dict[str, McpServer] = {}
        self._asking = asyncio.Lock()  # one question at a time, whichever server asks
        self.ask: Ask | None = None  # asks the person, on the program's own loop; set before the start

    def add(self, config: ServerConfig, cached: CachedOffer | None = None, *, on: bool = True) -> McpServer:
        """Add a server without starting it. `cached` is offered until it lists what it has now."""
        from tui.tools.mcp.server import McpServer

        server = self.servers[config.name] = McpServer(self, config, cached, on=on)
        return server

    async def start(self) -> None:
        """Start every enabled server in the background."""
        await asyncio.gather(*(s.start() for s in self.servers.values() if s.status.state == "starting"))

    async def wait_until_started(self, seconds: float) -> None:
        """Wait until every server has listed its tools or failed; at most `seconds`.

        Servers with cached tools are not waited for.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.until(
                    lambda: all(s.status.state != "starting" or s.status.tools for s in self.servers.values())
                )

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition on the status of servers."""
        while not condition():
            self._news.clear()
            await self._news.wait()

    async def wait_until_current(self) -> None:
        """Wait a moment for lists that servers have said are new."""
        await asyncio.gather(*(server.wait_until_current() for server in self.servers.values()))

    async def close(self) -> None:
        """Stop all servers and the thread. Idempotent."""
        if self._thread.is_alive():  # all of them, including those about to start
            await asyncio.gather(*(server.stop() for server in self.servers.values()))
        for server in self.servers.values():
            server.log.close()
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            await asyncio.to_thread(self._thread.join, END_WAIT)

    # -- the thread ----------------------------------------------------------------------------------------------------

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the servers' thread and await its result here. If this is cancelled, so is the work."""
        self._home = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread.start()
        if self._loop.is_closed():
            work.close()
            raise RuntimeError("the thread of the MCP servers has ended")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _main(self) -> None:
        loop = self._loop
        assert loop is not None  # created by `run`
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.get_loop().run_forever()

    async def ask_person(self, question: Question) -> Reply:
        """Ask with `ask`, one question at a time. In the servers' thread."""

        async def asked() -> Reply:
            assert self.ask is not None  # it is never taken away
            async with self._asking:
                return await self.ask(question)

        assert self._home is not None  # whoever started the servers
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asked(), self._home))

    def status_changed(self, name: str) -> None:
        """Tell of a server's new status. In the servers' thread."""
        self.on_home_loop(self._changed, name)
        self.on_home_loop(self._news.set)  # those who wait find what that has changed

    def on_home_loop(self, act: Callable[..., object], *args: object) -> None:
        """Call `act` on the program's loop. In the servers' thread."""
        if self._home is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                self._home.call_soon_threadsafe(act, *args)
