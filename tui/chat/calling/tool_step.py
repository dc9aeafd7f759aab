"""One tool step: the calls of one reply, run and answered in their order."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence

from tui.chat.calling.session_tools import SessionTools
from tui.chat.conversation.events import SessionEvent, ToolFinished, ToolStarted
from tui.messages import ToolCall
from tui.tools.approval import Decision
from tui.tools.arguments import read_arguments
from tui.tools.base import Tool, ToolError, ToolOutput

log = logging.getLogger(__name__)

CANCELLED = ToolOutput("Cancelled by the person before it was done.", is_error=True)
REFUSED = ToolOutput(
    "The person did not allow this call. Don't try it again unless they ask for it: go on without it, or say what it"
    " would have been for.",
    is_error=True,
)
NEVER = ToolOutput("The person's rules never allow this tool: go on without it.", is_error=True)
AT_ONCE = 8  # calls that run side by side, however many the model asks for: some start programs
LAST_WAIT = 2.0  # seconds a cancelled tool gets to end


class ToolStep:
    """Runs calls. What may run at once runs side by side; what asks is asked and run one after the other.

    `keep` gets each call's number and what came of it, in a thread, before anybody is told that it is done.
    After `run`, or `cancel` in the middle of it, `outputs` answers every call.
    """

    def __init__(self, tools: SessionTools, calls: Sequence[ToolCall], keep: Callable[[int, ToolOutput], None]) -> None:
        self._tools = tools
        self._keep = keep
        self._calls = calls
        self._found: dict[int, ToolOutput] = {}
        self._events: asyncio.Queue[SessionEvent | None] = asyncio.Queue()
        self._work: asyncio.Task[None] | None = None
        self._places = asyncio.Semaphore(AT_ONCE)
        self.cancelled = False
        self.used: set[str] = set()

    @property
    def outputs(self) -> list[ToolOutput]:
        """What came of each call, in their order."""
        return [self._found.get(number, CANCELLED) for number in range(len(self._calls))]

    def cancel(self) -> None:
        """Stop now: what is done stays, everything else counts as cancelled."""
        self.cancelled = True
        if self._work is not None:
            self._work.cancel()

    async def run(self) -> AsyncGenerator[SessionEvent, None]:
        """Run everything; yields what a person should see of it. Raises `StoreError`."""
        if self.cancelled:
            return
        self._work = asyncio.create_task(self._all())
        try:
            while (event := await self._events.get()) is not None:
                yield event
        finally:
            self._work.cancel()
            await asyncio.wait([self._work], timeout=LAST_WAIT)
        if self._work.done() and not self._work.cancelled() and (error := self._work.exception()):
            raise error  # the store, if anything: what a tool raises is a result

    async def _all(self) -> None:
        at_once: list[asyncio.Task[None]] = []
        asking: list[tuple[int, Tool, ToolCall, str]] = []
        try:
            for number, call in enumerate(self._calls):
                tool, why = await self._look_at(number, call)
                if tool is not None and why is None:
                    at_once.append(asyncio.create_task(self._run_beside(number, call, tool)))
                elif tool is not None:
                    asking.append((number, tool, call, why or ""))
            for number, tool, call, why in asking:
                match await self._answered(call, tool, why):
                    case "no":
                        await self._done(number, call, REFUSED, 0.0)
                    case "never":
                        await self._done(number, call, NEVER, 0.0)
                    case _:
                        await self._run(number, call, tool, why)
            if at_once:
                await asyncio.gather(*at_once)
        finally:
            for task in at_once:
                task.cancel()
            if at_once:
                await asyncio.wait(at_once, timeout=LAST_WAIT)
            self._events.put_nowait(None)

    async def _answered(self, call: ToolCall, tool: Tool, why: str) -> Decision:
        """The person's word on a call; what they said of the one before may hold for it too."""
        match await asyncio.to_thread(self._tools.rule, tool, wary=bool(why)):
            case "allow":
                return "once"
            case "never":
                return "never"
            case "ask":
                return await self._tools.ask(call, tool, why, self._events.put_nowait)

    async def _look_at(self, number: int, call: ToolCall) -> tuple[Tool | None, str | None]:
        """The tool, and why to ask first ("" for no special reason, None for no need); no tool once it is answered."""
        try:
            tool = self._tools.find(call.name)
            if tool is None:
                raise ToolError(self._unknown(call.name))
            arguments = await asyncio.to_thread(read_arguments, call.arguments, tool.schema)
            wary = await asyncio.to_thread(tool.wary, arguments) if tool.wary is not None else ""
            rule = await asyncio.to_thread(self._tools.rule, tool, wary=bool(wary))
        except ToolError as error:
            await self._done(number, call, ToolOutput(str(error), is_error=True), 0.0)
            return None, None
        if rule == "never":
            await self._done(number, call, NEVER, 0.0)
            return None, None
        return tool, wary if rule == "ask" else None

    def _unknown(self, name: str) -> str:
        names = ", ".join(self._tools.names[:50])
        return f"There is no tool named {name[:100]!r}. There is: {names}." if names else "There are no tools here."

    async def _run_beside(self, number: int, call: ToolCall, tool: Tool) -> None:
        async with self._places:
            await self._run(number, call, tool)

    async def _run(self, number: int, call: ToolCall, tool: Tool, agreed: str = "") -> None:
        """`agreed`: the special reason for which this call asked first."""
        self._events.put_nowait(ToolStarted(call.id, call.name))
        self.used.add(call.name)
        began = time.monotonic()
        try:
            arguments = await asyncio.to_thread(read_arguments, call.arguments, tool.schema)
            agreed_run = tool.run_agreed if agreed else None
            output = await (agreed_run(arguments, agreed) if agreed_run else tool.run(arguments))
        except ToolError as error:
            output = ToolOutput(str(error), is_error=True)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            output = ToolOutput(f"{call.name} was cancelled on its own side.", is_error=True)
        except Exception as error:  # a tool is foreign code: whatever it raises is a result, never the end of a turn
            log.exception("tool %s failed", call.name)
            output = ToolOutput(f"{call.name} failed ({type(error).__name__}).", is_error=True)
        await self._done(number, call, output, time.monotonic() - began)

    async def _done(self, number: int, call: ToolCall, output: ToolOutput, seconds: float) -> None:
        self._found[number] = output
        await asyncio.to_thread(self._keep, number, output)
        self._events.put_nowait(ToolFinished(call.id, call.name, seconds, output.is_error))
