"""A tool step: runs the calls of one reply, concurrently or one after the other, and answers them in a message."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from tui.chat.calling.results import Results
from tui.chat.calling.session_tools import SessionTools
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import Emit, ToolFinished, ToolProgress, ToolStarted
from tui.chat.runtime.tasks import uninterrupted
from tui.chat.store.database import StoreError
from tui.chat.store.ids import new_id
from tui.config.tools import Rule
from tui.messages import Message, Part, ToolCall
from tui.tools.approval import Decision
from tui.tools.arguments import read_arguments
from tui.tools.base import Tool, ToolError, ToolOutput, progress

log = logging.getLogger(__name__)

CANCELLED = ToolOutput("Cancelled by the person before it was done.", is_error=True)
REFUSED = ToolOutput(
    "The person did not allow this call. Don't try it again unless they ask for it: go on without it, or say what it"
    " would have been for.",
    is_error=True,
)
NEVER = ToolOutput("The person's rules never allow this tool: go on without it.", is_error=True)
AT_ONCE = 8  # calls that run concurrently: some start programs
LAST_WAIT = 2.0  # seconds for a cancelled tool to end


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that can run: `number` is its position in the reply; `reason` why it asks in any case, "" for none."""

    number: int
    call: ToolCall
    tool: Tool
    arguments: Mapping[str, Any]
    rule: Rule
    reason: str


class ToolStep:
    """Runs `calls`: those that need no approval concurrently, the others one after the other.

    `unrun` answers calls that are not run, by their number. Each result is stored as it arrives, before it is reported,
    so that a kill loses none. After `run`, or after its cancellation, `message` answers every call.
    """

    def __init__(
        self,
        tools: SessionTools,
        conversation: Conversation,
        results: Results,
        calls: Sequence[ToolCall],
        emit: Emit,
        unrun: Mapping[int, ToolOutput] = MappingProxyType({}),
    ) -> None:
        self._tools = tools
        self._calls = calls
        self._unrun = unrun
        self._emit = emit
        self._message = StepMessage(conversation, results, calls)
        self._tasks: list[asyncio.Task[None]] = []
        self._places = asyncio.Semaphore(AT_ONCE)
        self._ended = False
        self.used: set[str] = set()  # names of the tools that were run

    def message(self) -> Message:
        """The results of all calls, in order, not stored yet. Not on the event loop."""
        return self._message.whole()

    async def run(self) -> None:
        """Run everything. Raises `StoreError`; errors of tools become results."""
        asking: list[Pending] = []
        try:
            for number, call in enumerate(self._calls):
                if number in self._unrun:
                    await self._done(number, call, self._unrun[number], 0.0)
                    continue
                pending = await self._examined(number, call)
                if pending is None:
                    continue
                if pending.rule == "allow":
                    self._start(self._run_beside(pending))
                else:
                    asking.append(pending)
            for pending in asking:
                match await self._decision(pending):
                    case "no":
                        await self._done(pending.number, pending.call, REFUSED, 0.0)
                    case "never":
                        await self._done(pending.number, pending.call, NEVER, 0.0)
                    case _:
                        await asyncio.wait([self._start(self._run(pending))])
            if self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await uninterrupted(_ended(self._tasks))
            self._ended = True
        for task in self._tasks:
            task.result()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    async def _examined(self, number: int, call: ToolCall) -> Pending | None:
        """The call with its arguments and whether it runs, asks or is refused; None if it is answered already."""
        try:
            tool = self._tools.find(call.name)
            if tool is None:
                raise ToolError(self._unknown(call.name))
            pending = await asyncio.to_thread(self._examine, number, call, tool)
        except ToolError as error:
            await self._done(number, call, ToolOutput(str(error), is_error=True), 0.0)
            return None
        if pending.rule == "never":
            await self._done(number, call, NEVER, 0.0)
            return None
        return pending

    def _examine(self, number: int, call: ToolCall, tool: Tool) -> Pending:
        arguments = read_arguments(call.arguments, tool.schema)
        try:
            reason = tool.ask_reason(arguments) if tool.ask_reason is not None else ""
        except Exception as error:  # third-party code, which may read files: as in `_run`
            log.exception("tool %s can't be examined", call.name)
            raise ToolError(f"{call.name} failed ({type(error).__name__}).") from None
        return Pending(number, call, tool, arguments, self._tools.rule(tool, must_ask=bool(reason)), reason)

    async def _decision(self, pending: Pending) -> Decision:
        """The person's decision on a call; that on an earlier one may apply to it too."""
        match await asyncio.to_thread(self._tools.rule, pending.tool, must_ask=bool(pending.reason)):
            case "allow":
                return "once"
            case "never":
                return "never"
            case "ask":
                return await self._tools.ask(pending.call, pending.tool, pending.arguments, pending.reason)

    def _unknown(self, name: str) -> str:
        names = ", ".join(self._tools.names[:50])
        return f"There is no tool named {name[:100]!r}. There is: {names}." if names else "There are no tools here."

    async def _run_beside(self, pending: Pending) -> None:
        async with self._places:
            await self._run(pending)

    async def _run(self, pending: Pending) -> None:
        call, tool = pending.call, pending.tool
        self._emit(ToolStarted(call.id, call.name))
        progress.set(lambda text: self._emit(ToolProgress(call.id, text)))  # for this task alone
        self.used.add(call.name)
        began = time.monotonic()
        try:
            if pending.reason and tool.run_approved is not None:
                output = await tool.run_approved(pending.arguments, pending.reason)
            else:
                output = await tool.run(pending.arguments)
        except ToolError as error:
            output = ToolOutput(str(error), is_error=True)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            output = ToolOutput(f"{call.name} was cancelled on its own side.", is_error=True)
        except (
            Exception
        ) as error:  # a tool is third-party code: whatever it raises becomes a result and never ends the turn
            log.exception("tool %s failed", call.name)
            output = ToolOutput(f"{call.name} failed ({type(error).__name__}).", is_error=True)
        await self._done(pending.number, call, output, time.monotonic() - began)

    async def _done(self, number: int, call: ToolCall, output: ToolOutput, seconds: float) -> None:
        if self._ended:
            return  # a tool that ignored its cancellation
        self._message.put(number, output)
        await uninterrupted(asyncio.to_thread(self._message.save, number))
        self._emit(ToolFinished(call.id, call.name, seconds, output.is_error))


class StepMessage:
    """The message that answers the calls of one reply.

    It is stored with the first result, and updated with each one: if the program dies, the results so far are stored.
    """

    def __init__(self, conversation: Conversation, results: Results, calls: Sequence[ToolCall]) -> None:
        self._conversation = conversation
        self._results = results
        self._calls = calls
        self._message = Message("tool", (), id=new_id(), status="streaming", created_at=time.time())
        self._outputs: dict[int, ToolOutput] = {}
        self._parts: dict[int, tuple[Part, ...]] = {}
        self._ended = False
        self._lock = threading.Lock()

    def put(self, number: int, output: ToolOutput) -> None:
        """Add the result of call `number`."""
        self._outputs[number] = output

    def save(self, number: int) -> None:
        """Store it. On a full disk it waits until the message is complete. Not on the event loop."""
        with self._lock:
            if self._ended:
                return  # the step was cancelled while this thread was starting
            self._parts[number] = self._results.parts(self._calls[number], self._outputs[number])
            try:
                self._conversation.write_grown(replace(self._message, parts=self._joined()))
            except StoreError as error:
                log.warning("a tool's result is not saved yet: %s", error)

    def whole(self) -> Message:
        """The message, not stored yet, with an answer to every call. Not on the event loop."""
        with self._lock:
            self._ended = True
            for number, call in enumerate(self._calls):
                if number not in self._parts:
                    self._parts[number] = self._results.parts(call, self._outputs.get(number, CANCELLED))
            return replace(self._message, parts=self._joined(), status="complete")

    def _joined(self) -> tuple[Part, ...]:
        return tuple(part for number in sorted(self._parts) for part in self._parts[number])


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    await asyncio.wait(tasks, timeout=LAST_WAIT)
