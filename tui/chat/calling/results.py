"""Converts tool output to message parts: capped, payloads described, images as attachments."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from tui.chat.attachments import AttachmentError, make_attachment
from tui.chat.store.database import StoreError
from tui.chat.store.store import SessionStore
from tui.context.counting.counting import TokenCounter
from tui.context.counting.tokenizers import heuristic_count
from tui.messages import Attachment, Part, ToolCall, ToolResult
from tui.tools.base import ToolImage, ToolOutput
from tui.tools.capping import cap_text, without_payloads

log = logging.getLogger(__name__)

WINDOW_SHARE = 0.25  # of the input budget, for all results of one step
LEAST_TOKENS = 200  # of a result, for any number of results
LARGEST_IMAGE = 5_000_000  # bytes: Anthropic's limit for one image, the lowest among the providers
MOST_IMAGES = 20  # of one result


@dataclass(frozen=True, slots=True)
class Results:
    """Makes message parts of tool results: `limit` in tokens, `images` if the model accepts them."""

    store: SessionStore
    counter: TokenCounter
    model: str
    limit: int
    images: bool

    def parts(self, call: ToolCall, output: ToolOutput) -> tuple[Part, ...]:
        """The result and its images. Error results keep their whole text, up to the limit. Not on the event loop."""
        readable = without_payloads(output.text)
        text = cap_text(readable, self.limit, self._count, output.more)
        pictures, notes = self._pictures(call, output.images)
        shown = "\n".join([*([text] if text.strip() else []), *notes])
        full = self._keep(output.text) if text is not output.text else ""
        return ToolResult(call.id, call.name, shown, output.is_error, full), *pictures

    def _count(self, text: str) -> int:
        tokens = self.counter.count_text(text, self.model)
        return heuristic_count(text) if tokens is None else tokens

    def _keep(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(data).hexdigest()
        return digest if self._put(digest, data) else ""

    def _put(self, digest: str, data: bytes) -> bool:
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
            try:
                attachment = make_attachment(name, image.data)
            except AttachmentError:
                notes.append(f"[{image.media_type}, {len(image.data):,} bytes: not a picture that can be shown]")
                continue
            if attachment.kind != "image":
                notes.append(f"[{attachment.media_type}, {attachment.size:,} bytes: not a picture]")
            elif not self.images:
                notes.append(f"[{attachment.media_type}, {_pixels(attachment)}: this model takes no images]")
            elif attachment.size > LARGEST_IMAGE or len(attachments) == MOST_IMAGES:
                notes.append(f"[{attachment.media_type}, {_pixels(attachment)}: too much to send along]")
            elif self._put(attachment.sha256, image.data):
                attachments.append(attachment)
            else:
                notes.append(f"[{attachment.media_type}, {_pixels(attachment)}: it could not be kept]")
        return attachments, notes


def _pixels(attachment: Attachment) -> str:
    return f"{attachment.width}×{attachment.height}, {attachment.size:,} bytes"


def result_limit(setting: int, max_input: int | None, calls: int) -> int:
    """Tokens for each of `calls` results of one step, by the setting and the input budget (None is unknown)."""
    if max_input is None:
        return setting
    return max(LEAST_TOKENS, min(setting, int(max_input * WINDOW_SHARE) // max(1, calls)))
