"""Rows about the transcript: streaming, opening, resizing, typing, each beside its reference in the same process.

The app runs headless at 120x40: terminal output itself is not part of any figure. The reference for streaming is
Textual's own `MarkdownStream` on the first 4 KB, its CPU time multiplied by the length (its true cost grows faster).
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.events import Key
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Markdown

from tests.bench.rows import BenchRow
from tui.messages import Message, Text
from tui.widgets.transcript.transcript import Transcript

DELTA_CHARS, DELTAS_PER_SECOND = 4, 250
SIZE = (120, 40)
SECTION = """## Part {number}

The loop stops **one short**: `range(len(tokens) - 1)` never visits the last one, so *everything after the final comma*
is lost. See [the manual](https://example.org/manual) for what it should do instead, and mind the order.

1. Use the full range
2. Add a test that fails without it
   - with one token
   - with none at all

```python
def parse_{number}(tokens: list[str]) -> list[Node]:
    return [node(token) for token in tokens if token]  # nothing is dropped now
```

| model | input | output |
|:------|------:|-------:|
| small | {number} | 12.5 |
| large | 3.00 | 15.0 |

> Quoted: it worked on my machine.

"""
CODE = """def function_{number}(first, second):
    value = first * {number} + second  # comment
    return f"{{value}}"

"""


def rows() -> list[BenchRow]:
    """All rows; takes about two minutes, because text streams in at the speed of a fast model."""
    return asyncio.run(_rows())


async def _rows() -> list[BenchRow]:
    return [*await _streaming(), *await _opening(), *await _changing(), *await _typing()]


def mixed(length: int) -> str:
    """Markdown of every kind, `length` characters."""
    return "".join([SECTION.format(number=number) for number in range(length // 400 + 1)])[:length]


def fence(length: int) -> str:
    """One code block, `length` characters."""
    return ("```python\n" + "".join([CODE.format(number=number) for number in range(length // 80)]))[:length]


def conversation(count: int) -> list[Message]:
    """Questions and answers, `count` of them together."""
    return [
        Message("assistant", (Text(SECTION.format(number=number) * 2),), f"m{number}", model="m")
        if number % 2
        else Message("user", (Text(f"Question {number} about the parser and its tests?"),), f"m{number}")
        for number in range(count)
    ]


class ProbeInput(Input):
    """Tells when a typed character has been drawn."""

    drawn: asyncio.Event

    def render_line(self, y: int) -> Strip:
        """Draw, and tell."""
        strip = super().render_line(y)
        if self.value and self.value in strip.text:
            self.drawn.set()
        return strip


class Host(App[None]):
    """A transcript (or another widget in its place) above an input."""

    CSS = "Input { height: 3; }"

    def __init__(self, content: Widget) -> None:
        super().__init__()
        self.content, self.probe = content, ProbeInput()
        self.probe.drawn = asyncio.Event()

    def compose(self) -> ComposeResult:
        """The two widgets."""
        yield self.content
        yield self.probe


@asynccontextmanager
async def transcript(count: int) -> AsyncIterator[tuple[Host, Transcript]]:
    """A running app with `count` messages."""
    view = Transcript()
    app = Host(view)
    async with app.run_test(size=SIZE) as pilot:
        view.set_messages(conversation(count))
        app.probe.focus()
        await pilot.pause(0.2)
        yield app, view


async def _refreshed(app: Host) -> None:
    done = asyncio.Event()
    app.screen.call_after_refresh(done.set)
    await done.wait()


async def _paced(source: str, write: Callable[[str], Awaitable[None]]) -> tuple[float, float]:
    """Stream `source` in; CPU seconds it took, 95th percentile of the event loop's lag in seconds."""
    lags: list[float] = []

    async def probe() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.002)
            lags.append(time.perf_counter() - began - 0.002)

    task = asyncio.create_task(probe())
    cpu, began = time.process_time(), time.perf_counter()
    for number, position in enumerate(range(0, len(source), DELTA_CHARS)):
        await write(source[position : position + DELTA_CHARS])
        await asyncio.sleep(max(0.0, began + (number + 1) / DELTAS_PER_SECOND - time.perf_counter()))
    await asyncio.sleep(0.2)
    used = time.process_time() - cpu
    task.cancel()
    return used, statistics.quantiles(lags, n=20)[-1]


async def _ours(source: str) -> tuple[float, float]:
    async with transcript(100) as (_, view):
        view.start_reply("live", "p", "m")

        async def write(text: str) -> None:
            view.delta("live", "text", text)

        result = await _paced(source, write)
        view.finish_reply(Message("assistant", (Text(source),), "live", model="m"))
    return result


async def _markdown_stream(source: str) -> tuple[float, float]:
    markdown = Markdown()
    app = Host(VerticalScroll(markdown))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(0.2)
        stream = Markdown.get_stream(markdown)
        result = await _paced(source, stream.write)
        await stream.stop()
    return result


async def _streaming() -> list[BenchRow]:
    rows: list[BenchRow] = []
    kinds: Sequence[tuple[str, str, float]] = (("32 KB mixed", mixed(32_768), 8.0), ("16 KB fence", fence(16_384), 7.0))
    for name, source, most in kinds:
        piece = source[:4_096]
        cpu, lag = await _ours(source)
        reference_cpu, reference_lag = await _markdown_stream(piece)
        scaled = reference_cpu * len(source) / len(piece)
        rows += [
            BenchRow(f"stream {name}, 250 deltas/s: CPU", cpu, scaled, 0.5, most),
            BenchRow(f"stream {name}, 250 deltas/s: p95 lag", lag, reference_lag, 1.0, 0.010),
        ]
    return rows


async def _open(count: int) -> float:
    messages = conversation(count)
    view = Transcript()
    app = Host(view)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(0.2)
        best = float("inf")
        for _ in range(3):
            view.set_messages([])
            await _refreshed(app)
            began = time.perf_counter()
            view.set_messages(messages)
            await _refreshed(app)
            best = min(best, time.perf_counter() - began)
    return best


async def _opening() -> list[BenchRow]:
    ten, thousand, most = await _open(10), await _open(1_000), await _open(10_000)
    return [
        BenchRow("open 1,000 messages, against 10", thousand, ten, 5.0, 0.3),
        BenchRow("open 10,000 messages, against 10", most, ten, 30.0, 0.5),
        BenchRow("page up in 10,000 messages, against 100", await _pages(10_000), await _pages(100), 1.5, 0.1),
    ]


async def _pages(count: int) -> float:
    """Seconds of a page up, the median of twenty into messages never drawn before."""
    async with transcript(count) as (app, view):
        times: list[float] = []
        for _ in range(20):
            began = time.perf_counter()
            view.scroll_page_up()
            await _refreshed(app)
            times.append(time.perf_counter() - began)
    return statistics.median(times)


async def _change(count: int, change: Callable[[Host, int], None], shown: Callable[[Transcript], object]) -> float:
    async with transcript(count) as (app, view):
        times: list[float] = []
        for number in range(6):
            before = shown(view)
            began = time.perf_counter()
            change(app, number)
            await _refreshed(app)
            while shown(view) == before:
                await _refreshed(app)
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def _other_theme(app: Host, number: int) -> None:
    app.theme = "nord" if number % 2 == 0 else "textual-light"


async def _resize(count: int) -> float:
    async with transcript(count) as (app, view):
        times: list[float] = []
        for number in range(6):
            width = 100 if number % 2 == 0 else 80
            view.styles.width = width
            began = time.perf_counter()
            await _refreshed(app)
            while view.document.width != width - 4:
                await _refreshed(app)
            times.append(time.perf_counter() - began)
    return statistics.median(times)


async def _changing() -> list[BenchRow]:
    themes = [await _change(count, _other_theme, lambda view: view.document.palette.base) for count in (0, 1_000)]
    sizes = [await _resize(count) for count in (2, 1_000)]
    return [
        BenchRow("theme change with 1,000 messages, against none", themes[1], themes[0], 2.0, 0.2),
        BenchRow("resize with 1,000 messages, against 2", sizes[1], sizes[0], 3.0, 0.2),
    ]


async def _keys(app: Host, rounds: int) -> list[float]:
    """Seconds from a key to its glyph in the input, for each of `rounds` keys."""
    times: list[float] = []
    for number in range(rounds):
        letter = "abcdefghij"[number % 10]
        if number % 10 == 0:
            app.probe.value = ""
            await _refreshed(app)
        app.probe.drawn.clear()
        began = time.perf_counter()
        app.post_message(Key(letter, letter))
        await app.probe.drawn.wait()
        times.append(time.perf_counter() - began)
        await asyncio.sleep(0.005)
    return times


async def _typing() -> list[BenchRow]:
    """In turns in one app, so that a busy machine disturbs both alike."""
    empty: list[float] = []
    full: list[float] = []
    messages = conversation(10_000)
    async with transcript(0) as (app, view):
        for block in range(20):
            view.set_messages(messages if block % 2 else [])
            await _refreshed(app)
            (full if block % 2 else empty).extend(await _keys(app, 40))
    name = "key to glyph with 10,000 messages, against none"
    return [
        BenchRow(f"{name}: median", statistics.median(full), statistics.median(empty), 1.1),
        BenchRow(f"{name}: p99", statistics.quantiles(full, n=100)[-1], statistics.quantiles(empty, n=100)[-1], 1.5),
    ]
