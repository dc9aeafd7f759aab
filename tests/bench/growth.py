"""What a turn costs with a conversation before it: processor time of the whole program, against sending it once.

The program runs headless and talks to a server in a process of its own, so its processor time is everything but the
server's. The reference is what any client has to do for the same turn: the request, its wire form, its JSON.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

from tests.bench.rows import BenchRow, fastest

SIZES = (100, 1_000, 10_000, 50_000)
TURNS = 5
SLACK = 0.040  # seconds beside one and a half times the reference: the screen, the store, the stream
SERVER = """
import socketserver
from http.server import BaseHTTPRequestHandler

USAGE = '{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":12}}'
CHUNK = '{"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":%s}]}'

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        words = [CHUNK % (f"word {n} ", "null") for n in range(12)] + [CHUNK % ("", '"stop"'), USAGE % (len(body) // 5)]
        data = "".join(f"data: {word}\\n\\n" for word in [*words, "[DONE]"]).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass

with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""


def rows() -> Iterable[BenchRow]:
    """A row for each size."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
            for size in SIZES:
                yield from _of_size(size, url)
            yield from _of_size(10_000, url, rolling=True)
        finally:
            server.terminate()


def _of_size(size: int, url: str, *, rolling: bool = False) -> Iterable[BenchRow]:
    with tempfile.TemporaryDirectory() as folder:
        turn, sent, first, floor = asyncio.run(measured(Path(folder), size, url, rolling=rolling))
    name = f"a turn after {size:,} messages{', most of them left out' if rolling else ''}"
    yield BenchRow(f"{name}, against request, wire and JSON", turn, floor, 1.5 + SLACK / floor)
    if size == 10_000 and not rolling:
        yield BenchRow("... Enter to the answer's first word", sent, floor, 10, at_most=0.040)
        yield BenchRow("... the same, first turn of a run", first, floor, 10, at_most=0.090)


async def measured(folder: Path, size: int, url: str, *, rolling: bool = False) -> tuple[float, float, float, float]:
    """Processor seconds of a turn, until the answer's first word, of the first such one, and of the reference.

    `rolling`: in a window of 200,000 tokens, with rolling context.
    """
    from tests.e2e.test_app import opener, settings_in
    from tui.app import ChatApp
    from tui.chat.conversation.projection import build_request
    from tui.config.settings import ModelSettings, ProviderSettings
    from tui.providers.config import ProviderConfig
    from tui.providers.dialects.openai_chat import OpenAIChat, to_wire
    from tui.widgets.transcript.transcript import Transcript

    settings = settings_in(
        folder,
        "bench/model",
        providers={"bench": ProviderSettings("openai-compatible", url)},
        models={"bench/model": ModelSettings(window=200_000 if rolling else 20_000_000)},
    )
    fill(folder, size, rolling=rolling)
    first_words: list[float] = []
    original = Transcript.delta

    def delta(view: Transcript, *arguments: Any) -> None:
        first_words.append(time.process_time())
        original(view, *arguments)

    turns: list[tuple[float, float]] = []
    app = ChatApp(settings, opener(settings, "s"))
    with mock.patch.object(Transcript, "delta", delta):
        async with app.run_test(size=(120, 40)) as pilot:
            await _quiet()
            for number in range(TURNS + 1):
                app.chat.composer.value = f"question {number}"
                await _quiet()
                first_words.clear()
                began = time.process_time()
                await pilot.press("enter")
                await _quiet()
                turns.append((time.process_time() - began, first_words[0] - began))
            session = app.chat.session
            assert session is not None
            assert len(session.messages) == size + 2 * (TURNS + 1)
            assert all(message.status == "complete" for message in session.messages)
            conversation = session.conversation
            style = OpenAIChat(ProviderConfig("bench", "openai-chat", url)).style("model")

            def once() -> bytes:
                request = build_request(list(conversation.messages), conversation.state, conversation.target)
                return json.dumps(to_wire(request, style)).encode()

            floor = fastest(once, rounds=3)
    warm = turns[1:]
    return median(turn for turn, _ in warm), median(sent for _, sent in warm), turns[0][1], floor


async def _quiet() -> None:
    """Wait until nothing works any more, in a thread neither."""
    last = -1.0
    while time.process_time() - last > 0.004:
        last = time.process_time()
        await asyncio.sleep(0.15)


def fill(folder: Path, size: int, *, rolling: bool = False) -> None:
    """A stored session "s" of `size` messages of 400 characters."""
    from tests.bench.accounting import text_of
    from tui.chat.store.database import new_id
    from tui.chat.store.store import SessionInfo, SessionStore
    from tui.messages import Message, Role, Text

    store = SessionStore(folder / "chatctx.db")
    with store.transaction():
        store.create_session(SessionInfo("s", "bench", "bench", "model", time.time(), time.time(), rolling=rolling))
        for number in range(size):
            text = f"{number}. {text_of(48, number % 100)}"
            role: Role = "assistant" if number % 2 else "user"
            store.add_message("s", Message(role, (Text(text),), new_id(), created_at=1.0 + number))
    store.close()
