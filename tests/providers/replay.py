"""A loopback HTTP server that answers with what it was given, byte for byte, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

End: TypeAlias = Literal["clean", "cut", "short", "hang"]


@dataclass(frozen=True)
class Answer:
    """What to send. `end`: "clean", "cut" (breaks inside the transfer coding), "short" (just ends), "hang"."""

    pieces: Sequence[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "text/event-stream"
    end: End = "clean"


@dataclass(frozen=True)
class ReceivedRequest:
    """A request that came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class ReplayServer:
    """Gives its answers in turn; the last one again and again. `by_path` answers win, and `respond` before all."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.by_path: dict[str, Answer] = {}
        self.respond: Callable[[ReceivedRequest], Answer] | None = None
        self.requests: list[ReceivedRequest] = []
        self.hung_up = asyncio.Event()  # a client went away before it had everything
        self.url = ""
        self.tasks: set[asyncio.Task[Any]] = set()

    def stream(self, *payloads: object, done: bool = True, end: End = "clean", named: bool = False) -> None:
        """Answer next with these JSON payloads as server-sent events. `named`: each with an `event:` line."""
        pieces = [sse(payload, named=named) for payload in payloads]
        if done:
            pieces.append(b"data: [DONE]\n\n")
        self.answers.append(Answer(pieces, end=end))

    def json(
        self, body: object, status: int = 200, headers: dict[str, str] | None = None, path: str | None = None
    ) -> None:
        """Answer with JSON: next, or always at `path`."""
        answer = Answer([json.dumps(body).encode()], status, headers or {}, "application/json")
        if path is None:
            self.answers.append(answer)
        else:
            self.by_path[path] = answer

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            self.tasks.add(task)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            self.hung_up.set()
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        line = await reader.readline()
        if not line:
            return False
        method, path, version = line.decode().split()
        headers: dict[str, str] = {}
        while (line := await reader.readline()).strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.requests.append(ReceivedRequest(method, path, headers, json.loads(body) if body else None))
        answer = self.respond(self.requests[-1]) if self.respond else self.by_path.get(path.partition("?")[0])
        if answer is None:
            answer = (
                self.answers.pop(0)
                if len(self.answers) > 1
                else self.answers[0]
                if self.answers
                else Answer(status=404)
            )
        await self._send(answer, reader, writer)
        return answer.end == "clean" and version != "HTTP/1.0"  # which ends with its answer

    async def _send(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = {"content-type": answer.content_type, **answer.headers}
        head["connection" if answer.end == "short" else "transfer-encoding"] = (
            "close" if answer.end == "short" else "chunked"
        )
        lines = [f"HTTP/1.1 {answer.status} X", *(f"{name}: {value}" for name, value in head.items()), "", ""]
        writer.write("\r\n".join(lines).encode())
        for piece in answer.pieces:
            writer.write(piece if answer.end == "short" else b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        match answer.end:
            case "clean":
                writer.write(b"0\r\n\r\n")
                await writer.drain()
            case "cut":
                writer.write(b"5\r\nab")
                await writer.drain()
            case "hang":
                await reader.read()  # until the client hangs up
                self.hung_up.set()


def sse(payload: object, *, named: bool = False) -> bytes:
    """One server-sent event."""
    name = f"event: {payload['type']}\n" if named and isinstance(payload, dict) and "type" in payload else ""
    return f"{name}data: {json.dumps(payload)}\n\n".encode()


@asynccontextmanager
async def replay_server() -> AsyncIterator[ReplayServer]:
    """A running server; `url` is its address without a path."""
    replay = ReplayServer()
    server = await asyncio.start_server(replay.handle, "127.0.0.1", 0)
    replay.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield replay
    finally:
        server.close()
        for task in replay.tasks:
            task.cancel()
        await asyncio.gather(*replay.tasks, return_exceptions=True)


@asynccontextmanager
async def model_server(*models: str) -> AsyncIterator[ReplayServer]:
    """A running server that lists these models."""
    async with replay_server() as server:
        server.json({"data": [{"id": model} for model in models]}, path="/v1/models")
        yield server
