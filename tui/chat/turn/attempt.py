"""One request and its answer: streamed, stored as it arrives, measured, and logged."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from functools import partial

from tui.chat.attachments import with_bytes
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import Emit, Notice, ReplyDelta, ReplyStarted, SessionEvent, UsageChanged
from tui.chat.conversation.meter import Meter
from tui.chat.runtime.services import Services
from tui.chat.runtime.tasks import uninterrupted
from tui.chat.runtime.windows import Windows
from tui.chat.store.database import StoreError
from tui.chat.store.ids import new_id
from tui.chat.turn.stream import StreamProcessor
from tui.context.estimate.evidence import Verdict
from tui.context.usage.usage import ContextUsage, with_reply
from tui.messages import Message, Request, Usage
from tui.providers.base import ProviderError
from tui.providers.models.catalog import unpriced_terms

CHARACTERS_PER_TOKEN = 4.0  # of a streaming answer; it is measured at its end
LEAST_GROWTH, GROWTH = 32, 0.002  # tokens, and share of the request: minimal increment of the displayed number


class Attempt:
    """Sends `request`, which was measured as `usage`, once."""

    def __init__(
        self,
        conversation: Conversation,
        meter: Meter,
        services: Services,
        emit: Emit,
        request: Request,
        usage: ContextUsage,
    ) -> None:
        self._meter = meter
        self._services = services
        self._emit = emit
        self.request = request
        self._usage = usage
        self._verdict: Verdict | None = None  # on the reported input
        self._message = Message(
            "assistant",
            (),
            id=new_id(),
            status="streaming",
            created_at=time.time(),
            provider=request.provider,
            model=request.model,
        )
        self._processor = StreamProcessor(
            self._message, partial(conversation.write_events, self._message), self._arrive
        )
        self._size = self._shown = 0  # characters that arrived and will be sent back; tokens shown last

    @property
    def error(self) -> ProviderError | None:
        """The provider's error, if any."""
        return self._processor.error

    @property
    def arrived(self) -> bool:
        """Whether any part of an answer arrived."""
        return self._processor.arrived

    async def run(self) -> Message:
        """The answer, not yet in the history. If cancelled, it is what has arrived."""
        request, services = self.request, self._services
        complete = await asyncio.to_thread(with_bytes, request, services.store.blob)
        begin = partial(services.calls.begin, request, self._usage, message=self._message.id, kind="chat")
        call = await uninterrupted(asyncio.to_thread(begin))
        self._emit(ReplyStarted(self._message.id, request.provider, request.model))
        await self._processor.run(services.provider(request.provider).stream(complete))
        return await uninterrupted(self._finished(call))

    def _arrive(self, event: SessionEvent) -> None:
        """Forward `event`; the number grows by what will be sent back."""
        self._emit(event)
        if not isinstance(event, ReplyDelta) or event.kind == "reasoning":
            return  # reasoning: whether it is sent back is known at the end of the answer
        self._size += len(event.name) + len(event.text) * (1 if event.text.isascii() else 2)
        tokens = int(self._size / CHARACTERS_PER_TOKEN)
        if tokens - self._shown >= max(LEAST_GROWTH, GROWTH * self._usage.total):
            self._shown = tokens
            self._emit(UsageChanged(with_reply(self._usage, tokens)))

    async def _finished(self, call: str) -> Message:
        if self._processor.message.status == "complete":
            await self._services.windows.answered(self.request.provider, self.request.model)
        problem = self._processor.save_error
        try:
            await self._learn_answering()
        except StoreError as error:
            problem = problem or error
        reply = await self._measured()
        try:
            await asyncio.to_thread(self._log, call, reply)
            if notice := await asyncio.to_thread(
                usage_notice, self._usage, reply, self._verdict, self._services.windows
            ):
                self._emit(notice)
        except StoreError as error:  # must not lose the answer
            problem = problem or error
        if problem is not None:
            self._emit(Notice("error", f"{problem}. The answer is on screen; it is saved as soon as that works"))
        return reply

    async def _learn_answering(self) -> None:
        """Where a model of another family answers, its count, window and price hold. Raises `StoreError`."""
        provider, asked, answered = self.request.provider, self.request.model, self._processor.answered_by
        windows = self._services.windows
        if await asyncio.to_thread(windows.learn_answering, provider, asked, answered):
            await windows.find(provider, answered)
            text = f"{asked} is answered by {answered}: its tokens, window and price are that model's"
            self._emit(Notice("info", text))

    async def _measured(self) -> Message:
        """The reply with its usage, from which the accounting has learned."""
        request, reply, usage = self.request, self._processor.message, self._usage
        if reply.usage is None or not reply.usage.input_total:
            only_the_sum = (
                reply.usage is not None and reply.usage.passes
            )  # does not measure a single request, but is billed
            if reply.parts and not only_the_sum:
                output = await asyncio.to_thread(self._meter.count, reply)
                reply = replace(reply, usage=Usage(usage.total, output, source="estimated"))
            return reply
        outcome = await asyncio.to_thread(
            self._services.estimator.record,
            request,
            reply,
            reply.usage,
            window=self._services.windows.limits(request.provider, request.model).context,
            at=time.time(),
        )
        self._verdict = outcome.verdict
        return reply

    def _log(self, call: str, reply: Message) -> None:
        self._services.calls.finish(
            call,
            usage=reply.usage,
            seconds=self._processor.seconds,
            first_token_seconds=self._processor.first_event_seconds,
            finish_reason=reply.finish_reason,
            error=None if reply.status == "complete" else reply.error or reply.status,
            cost=self._cost(reply),
            unpriced=unpriced_terms(reply.usage, reply.provider, self._billed_model) if reply.usage else "",
            verdict=self._verdict,
            answered_by=self._processor.answered_by,
        )

    @property
    def _billed_model(self) -> str:
        return self._services.windows.answering(self.request.provider, self.request.model)

    def _cost(self, reply: Message) -> float | None:
        """By the provider's usage; for a stopped answer by what was sent and received."""
        return self._services.price(reply.usage or Usage(None, None), reply.provider, self._billed_model)


def usage_notice(usage: ContextUsage, reply: Message, verdict: Verdict | None, windows: Windows) -> Notice | None:
    """A notice about a call that was predicted as `usage`. Learns about the window."""
    reported = reply.usage
    if verdict is None or reported is None or reported.input_total is None:
        return None
    if verdict.kind == "cut":
        return _cut_notice(reply, verdict, windows)
    if verdict.kind == "doubted":
        if not windows.tell_once(reply.provider, reply.model, "doubted"):
            return None
        text = f"The server's token count is implausible: {verdict.reason}. The number shown is estimated (~)"
        return Notice("warning", text)
    if reported.cleared and reported.cleared > usage.basis.cleared:  # not again for the same model
        uses = f" of {reported.cleared_uses:,} tool calls" if reported.cleared_uses else ""
        return Notice(
            "info",
            f"{reply.provider} cleared {reported.cleared:,} tokens{uses} from the prompt by itself "
            "(context_management)",
        )
    return _window_notice(reply, verdict, windows)


def _cut_notice(reply: Message, verdict: Verdict, windows: Windows) -> Notice:
    """The server read only part of the prompt; if its window follows from that, it is used from now on."""
    seems = ""
    if verdict.window is not None:
        if windows.learn_cut(reply.provider, reply.model, verdict.window):
            seems = f" Its window seems to be {verdict.window:,} tokens, which chatctx uses from now on."
        else:
            seems = f" Its window seems to be {verdict.window:,} tokens, not what you set."
    return Notice(
        "warning",
        f"The server cut the prompt: {verdict.reason.removeprefix('the server ')}.{seems} "
        "Raise its window (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx), then tell chatctx with /window",
    )


def _window_notice(reply: Message, verdict: Verdict, windows: Windows) -> Notice | None:
    usage = reply.usage
    if usage is None or usage.input_total is None or reply.status != "complete":
        return None
    total = usage.input_total + (usage.output_total or 0)
    match windows.seen(reply.provider, reply.model, usage.input_total, usage.output_total or 0, sure=verdict.confirmed):
        case "raised":
            return Notice("info", f"This window is larger than assumed: {total:,} tokens fitted. /window shows it")
        case "against setting":
            return Notice("info", f"{total:,} tokens fitted, more than the window you set. /window reset goes by that")
        case _:
            return None
