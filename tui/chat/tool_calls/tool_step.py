"""A tool step: runs the calls of one reply, concurrently or one after the other, and answers them in a message."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tui.chat.attachments import make_attachment, picture_size
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import Emit, ToolFinished, ToolProgress, ToolStarted
from tui.chat.runtime.services import uninterrupted
from tui.chat.store.database import StoreError, new_id
from tui.chat.store.store import SessionStore
from tui.chat.tool_calls.session_tools import SessionTools
from tui.config.settings import Rule
from tui.context.counting.counting import TokenCounter
from tui.messages import Attachment, Message, Part, ToolCall, ToolResult
from tui.tools.approval import Decision
from tui.tools.arguments import read_arguments
from tui.tools.base import Tool, ToolError, ToolImage, ToolOutput, progress
from tui.tools.capping import cap_text, without_payloads

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

WINDOW_SHARE = 0.25  # of the input budget, for all results of one step
MIN_TOKENS = 200  # of a result, for any number of results
MAX_IMAGE = 5_000_000  # bytes: Anthropic's limit for one image, the lowest among the providers
MAX_IMAGES = 20  # of one result


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that can run: `number` is its position in the reply; `reason` why it asks in any case, "" for none."""

    number: int
    call: ToolCall
    tool: Tool
    arguments: Mapping[str, Any]
    rule: Rule
    reason: str


@dataclass(eq=False)
class ToolStep:
    """Runs `calls`: those that need no approval concurrently, the others one after the other.

    `not_run` answers calls that are not run, by their number. The message that answers the calls is stored with the
    first result and again with each one, before that is reported, so that a kill loses none. After `run`, or after its
    cancellation, `message` answers every call.
    """

    tools: SessionTools
    conversation: Conversation
    results: Results
    calls: Sequence[ToolCall]
    emit: Emit
    not_run: Mapping[int, ToolOutput]
    used: set[str] = field(default_factory=set)  # names of the tools that were run
    _outputs: dict[int, ToolOutput] = field(default_factory=dict)
    _parts: dict[int, tuple[Part, ...]] = field(default_factory=dict)
    _writing: threading.Lock = field(default_factory=threading.Lock)  # guards `_parts`
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _ended: bool = False

    def __post_init__(self) -> None:
        self._message = Message("tool", (), id=new_id(), status="streaming", created_at=time.time())

    async def run(self) -> None:
        """Run everything. Raises `StoreError`; errors of tools become results."""
        asking: list[Pending] = []
        try:
            for number, call in enumerate(self.calls):
                if number in self.not_run:
                    await self._done(number, self.not_run[number])
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
                        await self._done(pending.number, REFUSED)
                    case "never":
                        await self._done(pending.number, NEVER)
                    case _:
                        await asyncio.wait([self._start(self._run(pending))])
            if self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await uninterrupted(asyncio.wait(self._tasks, timeout=LAST_WAIT))
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
            tool = self.tools.find(call.name)
            if tool is None:
                names = ", ".join(self.tools.names[:50])
                there = f"There is no tool named {call.name[:100]!r}. The tools are: {names}."
                raise ToolError(there if names else "There are no tools here.")
            pending = await asyncio.to_thread(self._examine, number, call, tool)
        except ToolError as error:
            await self._done(number, ToolOutput(str(error), is_error=True))
            return None
        if pending.rule == "never":
            await self._done(number, NEVER)
            return None
        return pending

    def _examine(self, number: int, call: ToolCall, tool: Tool) -> Pending:
        arguments = read_arguments(call.arguments, tool.schema)
        try:
            reason = tool.ask_reason(arguments) if tool.ask_reason is not None else ""
        except Exception as error:  # third-party code, which may read files: as in `_run`
            log.exception("tool %s can't be examined", call.name)
            raise ToolError(f"{call.name} failed ({type(error).__name__}).") from None
        return Pending(number, call, tool, arguments, self.tools.rule(tool, must_ask=bool(reason)), reason)

    async def _decision(self, pending: Pending) -> Decision:
        """The person's decision on a call; that on an earlier one may apply to it too."""
        rule = await asyncio.to_thread(self.tools.rule, pending.tool, must_ask=bool(pending.reason))
        if rule == "ask":
            return await self.tools.ask(pending.call, pending.tool, pending.arguments, pending.reason)
        return "once" if rule == "allow" else "never"

    async def _run_beside(self, pending: Pending) -> None:
        async with self._places:
            await self._run(pending)

    async def _run(self, pending: Pending) -> None:
        call, tool = pending.call, pending.tool
        self.emit(ToolStarted(call.id, call.name))
        progress.set(lambda text: self.emit(ToolProgress(call.id, text)))  # for this task alone
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
            output = ToolOutput(f"{call.name} was cancelled, but not by the person.", is_error=True)
        except Exception as error:  # a tool is third-party code: its error becomes a result, and never ends the turn
            log.exception("tool %s failed", call.name)
            output = ToolOutput(f"{call.name} failed ({type(error).__name__}).", is_error=True)
        await self._done(pending.number, output, time.monotonic() - began)

    async def _done(self, number: int, output: ToolOutput, seconds: float = 0.0) -> None:
        if self._ended:
            return  # a tool that ignored its cancellation
        call = self.calls[number]
        self._outputs[number] = output
        await uninterrupted(asyncio.to_thread(self._save, number))
        self.emit(ToolFinished(call.id, call.name, seconds, output.is_error))

    def _save(self, number: int) -> None:
        """Store the results so far. On a full disk they wait until the message is complete."""
        with self._writing:
            if self._ended:
                return  # the step was cancelled while this thread was starting
            self._parts[number] = self.results.parts(self.calls[number], self._outputs[number])
            try:
                conversation = self.conversation
                conversation.store.add_message(conversation.info.id, replace(self._message, parts=self._joined()))
            except StoreError as error:
                log.warning("a tool's result is not saved yet: %s", error)

    def message(self, why: str = "") -> Message:
        """The results of all calls, in order, not stored yet. Not on the event loop.

        `why` the step was cancelled, if it was; "" says that the person did.
        """
        cancelled = ToolOutput(f"Cancelled before it was done: {why}.", is_error=True) if why else CANCELLED
        with self._writing:
            for number, call in enumerate(self.calls):
                if number not in self._parts:
                    self._parts[number] = self.results.parts(call, self._outputs.get(number, cancelled))
            return replace(self._message, parts=self._joined(), status="complete")

    def _joined(self) -> tuple[Part, ...]:
        return tuple(part for number in sorted(self._parts) for part in self._parts[number])


@dataclass(frozen=True, slots=True)
class Results:
    """Makes message parts of tool output: `limit` in tokens, `images` if the model accepts them.

    Text is capped and payloads in it are described; images become attachments.
    """

    store: SessionStore
    counter: TokenCounter
    model: str
    limit: int
    images: bool

    def parts(self, call: ToolCall, output: ToolOutput) -> tuple[Part, ...]:
        """The result and its images. Error results keep their whole text, up to the limit. Not on the event loop."""
        readable = without_payloads(output.text)
        text = cap_text(readable, self.limit, lambda part: self.counter.count_text(part, self.model), output.more)
        pictures, notes = self._pictures(call, output.images)
        shown = "\n".join([*([text] if text.strip() else []), *notes])
        full = ""
        if text is not output.text:
            data = output.text.encode("utf-8", "surrogatepass")
            digest = hashlib.sha256(data).hexdigest()
            full = digest if self._store(digest, data) else ""
        return ToolResult(call.id, call.name, shown, output.is_error, full), *pictures

    def _store(self, digest: str, data: bytes) -> bool:
        """Store the bytes; returns whether that worked. On a full disk the message is kept in memory, without them."""
        try:
            self.store.put_blob(digest, data)
        except StoreError as error:
            log.warning("part of a result was not kept: %s", error)
            return False
        return True

    def _pictures(self, call: ToolCall, images: Sequence[ToolImage]) -> tuple[list[Attachment], list[str]]:
        """The images as attachments, and notes for those that can't be attached."""
        attachments: list[Attachment] = []
        notes: list[str] = []
        for number, image in enumerate(images, 1):
            name = f"{call.name}-{number}.{image.media_type.rpartition('/')[2] or 'png'}"
            if picture_size(image.data) is None:
                notes.append(f"[{image.media_type}, {len(image.data):,} bytes: not a picture that can be shown]")
                continue
            attachment, problem = make_attachment(name, image.data), ""
            if not self.images:
                problem = "this model takes no images"
            elif attachment.size > MAX_IMAGE or len(attachments) == MAX_IMAGES:
                problem = "too much to send along"
            elif not self._store(attachment.sha256, image.data):
                problem = "it could not be stored"
            if problem:
                about = f"{attachment.media_type}, {attachment.width}×{attachment.height}, {attachment.size:,} bytes"
                notes.append(f"[{about}: {problem}]")
            else:
                attachments.append(attachment)
        return attachments, notes


def result_limit(setting: int, max_input: int | None, calls: int) -> int:
    """Tokens for each of `calls` results of one step, by the setting and the input budget (None is unknown)."""
    if max_input is None:
        return setting
    return max(MIN_TOKENS, min(setting, int(max_input * WINDOW_SHARE) // max(1, calls)))
