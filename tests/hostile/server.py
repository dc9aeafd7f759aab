"""A model server that attacks whoever asks it: bodies without end, bombs, bytes that trickle."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TypeAlias

from tests.providers.serving import pieces
from tui.providers.config import Dialect

Attack: TypeAlias = Callable[[asyncio.StreamWriter, Dialect], Awaitable[None]]

MANY = 1_000_000_000  # bytes that an attack sends if nobody stops it


@asynccontextmanager
async def hostile_server(attack: Attack, dialect: Dialect) -> AsyncIterator[str]:
    """A server whose every answer is `attack`, but for paths `/calm/...` and `/NAME/...` of `FLOODS`; its address."""
    tasks: set[asyncio.Task[None] | None] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next((line for line in head.lower().splitlines() if line.startswith("content-length:")), ":0")
            await reader.readexactly(int(length.partition(":")[2]))
            name = head.split("/")[1]
            if name == "calm":
                await begin(writer, "text/event-stream")
                writer.write(b"".join(pieces(dialect)))
            else:
                await next((flood for flood in FLOODS if flood.__name__ == name), attack)(writer, dialect)
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)


async def begin(writer: asyncio.StreamWriter, content_type: str, status: int = 200, *more: str) -> None:
    """The head of an answer whose body ends with the connection."""
    lines = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", "connection: close", *more, "", ""]
    writer.write("\r\n".join(lines).encode())
    await writer.drain()


async def flood(writer: asyncio.StreamWriter, piece: bytes) -> None:
    """`piece` again and again, up to `MANY` bytes."""
    for _ in range(MANY // len(piece)):
        writer.write(piece)
        await writer.drain()


def bomb(begin: bytes = b"") -> Iterator[bytes]:
    """`MANY` spaces after `begin`, compressed a thousandfold."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    yield packer.compress(begin)
    block = b" " * 1_000_000
    for _ in range(MANY // len(block)):
        yield packer.compress(block)
    yield packer.flush()


def delta(dialect: Dialect, text: str) -> bytes:
    """An event with a piece of the answer's text."""
    event = {
        "openai-chat": {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": text}}]},
        "anthropic": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        "openai-responses": {
            "type": "response.output_text.delta", "output_index": 0, "item_id": "m1", "delta": text
        },
    }[dialect]  # fmt: skip
    return b"data: " + json.dumps(event).encode() + b"\n\n"


# -- answers without end -------------------------------------------------------------------------------------------


async def gzip_body(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
    """1 GB of JSON in 1 MB of gzip."""
    await begin(writer, "application/json", 200, "content-encoding: gzip")
    for piece in bomb(b'{"choices": ['):
        writer.write(piece)
        await writer.drain()


async def gzip_error(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
    """An error whose body is a bomb, as an event stream, which a whole answer is not expected to be."""
    await begin(writer, "text/event-stream", 400, "content-encoding: gzip")
    for piece in bomb(b'{"error": "'):
        writer.write(piece)
        await writer.drain()


async def gzip_event(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
    """A bomb in one event."""
    await begin(writer, "text/event-stream", 200, "content-encoding: gzip")
    for piece in bomb(b"data: "):
        writer.write(piece)
        await writer.drain()


async def endless_line(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
    """An event that is one line without end."""
    await begin(writer, "text/event-stream")
    writer.write(b"data: ")
    await flood(writer, b"x" * 65_536)


async def endless_event(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
    """An event of lines without end."""
    await begin(writer, "text/event-stream")
    await flood(writer, b"data: x\n" * 8192)


async def endless_header(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
    """A header that never ends."""
    writer.write(b"HTTP/1.1 200 OK\r\nx-long: ")
    await flood(writer, b"x" * 65_536)


async def endless_headers(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
    """Headers that never end."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    await flood(writer, b"x-another: x\r\n" * 4096)


async def wide_event(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
    """A line of which every character takes four bytes in memory because of one of them."""
    await begin(writer, "text/event-stream")
    writer.write("data: \U0001f600".encode())
    await flood(writer, b"x" * 65_536)


async def nested_event(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
    """An event below the limit which, as JSON, takes 25 times its length in memory."""
    await begin(writer, "text/event-stream")
    writer.write(b'data: {"a": [' + b"[]," * 4_000_000 + b"[]]}\n\n")
    await flood(writer, b"data: {}\n\n" * 8192)


async def nested_body(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
    """The same in an answer that is no stream."""
    await begin(writer, "application/json")
    writer.write(b'{"choices": [' + b"{}," * 4_000_000 + b"{}]}")


async def endless_answer(writer: asyncio.StreamWriter, dialect: Dialect) -> None:
    """Text without end, in events of a fair size."""
    await begin(writer, "text/event-stream")
    writer.write(b"".join(pieces(dialect, {"openai-chat": 1, "anthropic": 2, "openai-responses": 2}[dialect])))
    await flood(writer, delta(dialect, "x" * 50_000))


async def endless_tokens(writer: asyncio.StreamWriter, dialect: Dialect) -> None:
    """Text without end, a character an event."""
    await begin(writer, "text/event-stream")
    writer.write(b"".join(pieces(dialect, {"openai-chat": 1, "anthropic": 2, "openai-responses": 2}[dialect])))
    await flood(writer, delta(dialect, "x") * 200)


FLOODS: tuple[Attack, ...] = (
    gzip_body,
    gzip_error,
    gzip_event,
    endless_line,
    endless_event,
    wide_event,
    nested_event,
    nested_body,
    endless_answer,
    endless_tokens,
)


# -- bytes that trickle --------------------------------------------------------------------------------------------


async def trickle(writer: asyncio.StreamWriter, piece: bytes = b"x") -> None:
    """`piece` twenty times a second, for a minute."""
    for _ in range(1200):
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.05)


async def slow_head(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
    """A header that never ends."""
    writer.write(b"HTTP/1.1 200 OK\r\nx-long: ")
    await trickle(writer)


async def slow_line(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
    """An event that comes byte by byte."""
    await begin(writer, "text/event-stream")
    writer.write(b"data: ")
    await trickle(writer)


async def slow_body(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
    """JSON that comes byte by byte."""
    await begin(writer, "application/json")
    writer.write(b'{"choices": [')
    await trickle(writer, b" ")


async def slow_error(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
    """An error that comes byte by byte."""
    await begin(writer, "application/json", 400)
    await trickle(writer, b" ")


TRICKLES: tuple[Attack, ...] = (slow_head, slow_line, slow_body, slow_error)


async def pings(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
    """Signs of life, and no answer."""
    await begin(writer, "text/event-stream")
    await trickle(writer, b": ping\n\n")
