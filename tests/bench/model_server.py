"""A model server on loopback that answers at once, in each dialect that clients speak, and notes when it was asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

MODEL = "bench-model"
WINDOW = 200_000  # tokens


class ModelServer:
    """Serves Chat Completions, Responses and Messages while the context is open. `asked` are `perf_counter` seconds.

    Every question is answered with `text`, `piece` characters an event, `rate` events a second (0: all at once).
    """

    def __init__(self, text: str = "Hello there.", piece: int = 40, rate: float = 0.0) -> None:
        self.text = text
        self.piece = piece
        self.rate = rate
        self.request_times: list[float] = []
        self.answered = 0
        self._changed = threading.Condition()

    def __enter__(self) -> ModelServer:
        handler = type("Handler", (_Handler,), {"model_server": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The address, without `/v1`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def note(self, *, end: bool = False) -> None:
        """A question has come, or its answer is sent."""
        with self._changed:
            if end:
                self.answered += 1
            else:
                self.request_times.append(time.perf_counter())
            self._changed.notify_all()

    def wait(self, answers: int, seconds: float = 60.0) -> None:
        """Until so many answers were sent. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.answered >= answers, seconds):
                raise TimeoutError(f"{self.answered} answers instead of {answers} after {seconds:g} s")

    def pieces(self) -> list[str]:
        """The answer as its events carry it."""
        return [self.text[start : start + self.piece] for start in range(0, len(self.text), self.piece)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as servers do: otherwise a client waits 40 ms for each body after the first
    model_server: ClassVar[ModelServer]

    def handle(self) -> None:
        with suppress(ConnectionError):  # the client was killed
            super().handle()

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        if self.path.split("?")[0].endswith("/models"):
            entry = {"id": MODEL, "object": "model", "owned_by": "bench", "created": 1, "type": "model"}
            limits = {"context_length": WINDOW, "max_input_tokens": WINDOW, "max_tokens": 8_000, "display_name": MODEL}
            self._send(json.dumps({"object": "list", "data": [entry | limits], "has_more": False}).encode())
        else:
            self._send(b"{}", 404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = self.path.split("?")[0]
        words = len(json.dumps(body)) // 4
        if path.endswith(("/count_tokens", "/input_tokens")):
            self._send(json.dumps({"input_tokens": words}).encode())
        elif path.endswith("/chat/completions"):
            self._answer(_chat(self.model_server.pieces(), words), body, _chat_whole)
        elif path.endswith("/responses"):
            self._answer(_responses(self.model_server.pieces(), words), body, None)
        elif path.endswith("/messages"):
            self._answer(_messages(self.model_server.pieces(), words), body, None)
        else:
            self._send(b"{}", 404)

    def _answer(self, events: Iterable[dict[str, Any]], body: dict[str, Any], whole: Any) -> None:
        self.model_server.note()
        if whole is not None and not body.get("stream"):
            self._send(json.dumps(whole(self.model_server.text)).encode())
        else:
            lines = (
                (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n"
                for event in events
            )
            end = "" if body.get("stream") and whole is None else "data: [DONE]\n\n"
            if self.model_server.rate:
                self._stream([*lines, end], self.model_server.rate)
            else:
                self._send(("".join(lines) + end).encode(), kind="text/event-stream")
        self.model_server.note(end=True)

    def _stream(self, lines: Sequence[str], rate: float) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        began = time.perf_counter()
        for number, line in enumerate(lines):
            time.sleep(max(0.0, began + number / rate - time.perf_counter()))
            self.wfile.write(line.encode())
        self.close_connection = True

    def _send(self, data: bytes, status: int = 200, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _chat(pieces: Iterable[str], words: int) -> Iterator[dict[str, Any]]:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    for text in pieces:
        yield head | {"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}]}
    yield head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    yield head | {"choices": [], "usage": {"prompt_tokens": words, "completion_tokens": 9, "total_tokens": words + 9}}


def _chat_whole(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18},
    }


def _responses(pieces: Iterable[str], words: int) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": {"id": "r", "model": MODEL}}
    item = {"type": "message", "id": "m", "role": "assistant", "content": []}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    for text in pieces:
        yield {
            "type": "response.output_text.delta",
            "output_index": 0,
            "content_index": 0,
            "item_id": "m",
            "delta": text,
        }
    usage = {"input_tokens": words, "output_tokens": 9, "total_tokens": words + 9}
    yield {"type": "response.completed", "response": {"id": "r", "model": MODEL, "usage": usage}}


def _messages(pieces: Iterable[str], words: int) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": words, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": MODEL, "content": [], "usage": usage}
    yield {"type": "message_start", "message": message}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for text in pieces:
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
    yield {"type": "message_stop"}
