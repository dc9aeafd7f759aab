"""Digests of what is sent: a message, a chain of messages, the preamble (system prompt and tools).

SHA-256 over a canonical encoding in which every field is preceded by its length, so that no two projections share one.
Message ids, timestamps and status are not sent, and so not part of it.

A message has two digests. `body` leaves out reasoning: many models take reasoning back only inside the open tool loop,
so it leaves all earlier replies at once, and a measurement must still be found (see tracker.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple, assert_never

from tui.messages import (
    Attachment,
    Message,
    Part,
    ProviderItem,
    Reasoning,
    Refusal,
    Source,
    SystemSection,
    Text,
    ToolCall,
    ToolResult,
    ToolSchema,
)

CHAIN_START = sha256(b"chatctx chain 1").digest()


class MessageDigest(NamedTuple):
    """`full` covers all that is sent, `body` leaves out reasoning. Equal for a message without reasoning."""

    full: bytes
    body: bytes


def _encode(kind: bytes, *fields: str | None) -> bytes:
    pieces = [kind]
    for field in fields:
        if field is None:
            pieces.append(b"-")
        else:
            data = field.encode("utf-8", "surrogatepass")
            pieces.append(b"%d:" % len(data))
            pieces.append(data)
    pieces.append(b";")
    return b"".join(pieces)


def _part(part: Part) -> bytes:
    match part:
        case Text(text):
            return _encode(b"T", text)
        case Source(url):
            return _encode(b"S", url)
        case ProviderItem(kind, provider, data):
            return _encode(b"I", kind, provider, data)
        case ToolCall(call_id, name, arguments, extra):
            return _encode(b"C", call_id, name, arguments, extra)
        case ToolResult(call_id, name, text, is_error):
            return _encode(b"E" if is_error else b"R", call_id, name, text)
        case Reasoning():
            return _encode(b"N", part.text, part.signature, part.redacted, part.encrypted, part.item_id, part.details)
        case Attachment():
            return _encode(b"A", part.kind, part.name, part.media_type, part.sha256, part.text)
        case Refusal(text):
            return _encode(b"F", text)
        case _:
            assert_never(part)


def message_digest(message: Message) -> MessageDigest:
    """The digests of one projected message."""
    role = message.role.encode() + b"|"
    if len(message.parts) == 1 and isinstance(text := message.parts[0], Text):  # most are, and this takes half as long
        data = text.text.encode("utf-8", "surrogatepass")
        whole = sha256(b"%bT%d:%b;" % (role, len(data), data)).digest()
        return MessageDigest(whole, whole)
    body = sha256(role)
    thoughts = []
    for index, part in enumerate(message.parts):
        if isinstance(part, Reasoning):
            thoughts.append(b"%d " % index + _part(part))
        else:
            body.update(_part(part))
    plain = body.digest()
    return MessageDigest(sha256(plain + b"".join(thoughts)).digest() if thoughts else plain, plain)


def chain(before: bytes, digest: bytes) -> bytes:
    """The chain digest of messages up to one with `digest`; `before` is that of the messages before it."""
    return sha256(before + digest).digest()


def system_digest(section: SystemSection) -> bytes:
    """Digest of one section of the system prompt."""
    return sha256(_encode(b"S", section.kind, section.name, section.text)).digest()


def tool_digest(tool: ToolSchema) -> bytes:
    """Digest of one tool. Its origin is not sent, and so not part of it."""
    return sha256(_encode(b"O", tool.name, tool.description, tool.parameters)).digest()


def preamble_digest(system: Iterable[SystemSection], tools: Iterable[ToolSchema]) -> bytes:
    """Digest of system prompt and tools, in their order."""
    hasher = sha256(b"chatctx preamble 1")
    for section in system:
        hasher.update(system_digest(section))
    hasher.update(b"tools")
    for tool in tools:
        hasher.update(tool_digest(tool))
    return hasher.digest()
