"""The message that answers the calls of one reply, kept as each result comes: a kill loses none that was there."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from tui.chat.calling.results import Results
from tui.chat.conversation.conversation import Conversation
from tui.chat.store.database import StoreError
from tui.chat.store.ids import new_id
from tui.messages import Message, Part, ToolCall
from tui.tools.base import ToolOutput

log = logging.getLogger(__name__)


class StepResults:
    """Made for one step. Its row begins with the first result; a program that ends meanwhile leaves it as it is then.

    Nothing here may be used on the event loop.
    """

    def __init__(self, conversation: Conversation, results: Results, calls: Sequence[ToolCall]) -> None:
        self._conversation = conversation
        self._results = results
        self._calls = calls
        self._message = Message("tool", (), id=new_id(), status="streaming", created_at=time.time())
        self._parts: dict[int, tuple[Part, ...]] = {}
        self._ended = False
        self._lock = threading.Lock()

    def add(self, number: int, output: ToolOutput) -> None:
        """Keep what came of call `number`. On a full disk it waits for the whole message."""
        with self._lock:
            if self._ended:
                return  # the person ended the step while this thread was on its way
            self._parts[number] = self._results.parts(self._calls[number], output)
            try:
                self._conversation.write_grown(replace(self._message, parts=self._joined()))
            except StoreError as error:
                log.warning("a tool's result is not saved yet: %s", error)

    def message(self, outputs: Sequence[ToolOutput]) -> Message:
        """The whole message, not kept yet: `outputs` answers every call, in their order."""
        with self._lock:
            self._ended = True
            for number, (call, output) in enumerate(zip(self._calls, outputs, strict=True)):
                if number not in self._parts:
                    self._parts[number] = self._results.parts(call, output)
            return replace(self._message, parts=self._joined(), status="complete")

    def _joined(self) -> tuple[Part, ...]:
        return tuple(part for number in sorted(self._parts) for part in self._parts[number])
