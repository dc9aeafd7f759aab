"""Bench rows of the accounting: counting, the number with many messages, opening a stored session."""

from __future__ import annotations

import asyncio
import hashlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import cycle
from pathlib import Path

import tui
from tests.bench.rows import BenchRow, both, fastest
from tests.bench.vocabularies import unpacked
from tui.chat.store.learned import StoredCounts
from tui.chat.store.store import SessionInfo, SessionStore
from tui.context.counting.bpe import ENCODINGS, BpeCounter, load_ranks
from tui.context.counting.counting import TokenCounter
from tui.context.counting.digests import CostBook
from tui.context.counting.tokenizers import get_tokenizer
from tui.context.estimate.calibration import CalibrationBook
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.measurements import ConversationStateTracker
from tui.context.usage.limits import BudgetSettings, ModelLimits
from tui.context.usage.usage import ContextUsage, calculate_context_usage
from tui.messages import Message, Request, SystemSection, Text, ToolCall, ToolResult, ToolSchema, Usage

LIMITS = ModelLimits(context=1_000_000)
MODEL = "gpt-5"
FRAME = 0.016  # seconds

_PROSE = """context window token measure request reply session store render widget stream budget trim compact summary
digest chain prefix anchor factor learn bound error usage cached input output reasoning schema tool result message"""
_WORDS = _PROSE.split()


def text_of(words: int, seed: int) -> str:
    """Made-up prose with some code in it."""
    chance = random.Random(seed)
    lines = []
    while words > 0:
        count = min(words, chance.randint(4, 18))
        line = " ".join(chance.choice(_WORDS) for _ in range(count))
        lines.append(f"    {line.replace(' ', '_', 2)}(x={chance.randint(0, 9999)})" if chance.random() < 0.2 else line)
        words -= count
    return "\n".join(lines)


def conversation(messages: int, words: int = 60) -> tuple[Message, ...]:
    """Turns of four messages: person, tool call, result, answer."""
    result = []
    for index in range(messages):
        text = text_of(words, index)
        kind = index % 4
        if kind == 0:
            result.append(Message("user", (Text(text),), id=f"{index:06}"))
        elif kind == 1:
            call = ToolCall(f"c{index}", "search_files", f'{{"pattern":"{index}"}}')
            result.append(Message("assistant", (Text(text[:80]), call), id=f"{index:06}"))
        elif kind == 2:
            result.append(Message("tool", (ToolResult(f"c{index - 1}", "search_files", text),), id=f"{index:06}"))
        else:
            result.append(Message("assistant", (Text(text),), id=f"{index:06}"))
    return tuple(result)


def request_of(messages: tuple[Message, ...], session: str = "bench") -> Request:
    """A request with a system prompt and three tools."""
    tools = tuple(ToolSchema(f"tool_{n}", "does something useful", '{"type":"object"}') for n in range(3))
    return Request(
        "openai", MODEL, messages, (SystemSection("system", "prompt", text_of(300, 1)),), tools, None, None, session
    )


def make_estimator(counter: TokenCounter | None = None) -> HybridTokenEstimator:
    """One that remembers nothing beyond the process."""
    return HybridTokenEstimator(counter or TokenCounter(), ConversationStateTracker(), CalibrationBook(), CostBook())


def usage_of(request: Request, estimator: HybridTokenEstimator) -> ContextUsage:
    """The number."""
    return calculate_context_usage(request, estimator=estimator, limits=LIMITS, settings=BudgetSettings())


def rows() -> Iterable[BenchRow]:
    """The rows of this group."""
    get_tokenizer(MODEL).load()
    yield from _counting()
    yield from _many_messages()
    yield _opening()
    yield _stall()


def _count_all(messages: Iterable[Message]) -> None:
    counter = TokenCounter()
    for message in messages:
        counter.count_message(message, MODEL)


def _counting() -> Iterable[BenchRow]:
    """New text against the bare vocabulary, and that against tiktoken: speed, and memory in a process of its own."""
    from tiktoken import Encoding

    bare = get_tokenizer(MODEL).load().classes
    small = [Message("user", (Text(text_of(300, seed)),)) for seed in range(500)]
    texts = [message.text for message in small]

    def counted() -> None:
        _count_all(small)

    def plain() -> list[int | None]:
        counter = TokenCounter()
        return [counter.count_text(text, MODEL) for text in texts]

    ours, raw = both(plain, lambda: [bare(text) for text in texts], rounds=25)
    yield BenchRow("count 500 new texts of 2 kB, against the bare vocabulary", ours, raw, 1.1)
    ours, raw = both(counted, lambda: [bare(text) for text in texts], rounds=25)
    yield BenchRow("... as messages: digested, cached, split", ours, raw, 1.5)
    large = text_of(150_000, 7)
    message = Message("user", (Text(large),))
    ours, raw = both(lambda: TokenCounter().count_message(message, MODEL), lambda: bare(large), rounds=25)
    yield BenchRow("count 1 MB of new text, against the bare vocabulary", ours, raw, 1.1)
    (pattern,) = ENCODINGS["o200k"].patterns
    ranks = dict(unpacked(load_ranks("o200k_base")))
    encode = Encoding("o200k", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}).encode_ordinary
    ours, raw = both(lambda: bare(large), lambda: len(encode(large)), rounds=9)
    yield BenchRow("the bare vocabulary, words seen before, against tiktoken", ours, raw, 2.0)
    code = "".join(path.read_text(encoding="utf-8") for path in sorted(Path(tui.__file__).parent.rglob("*.py")))
    fresh = [BpeCounter(ENCODINGS["o200k"]) for _ in range(5)]
    ours, raw = both(lambda: fresh.pop().classes(code), lambda: len(encode(code)), rounds=len(fresh))
    yield BenchRow("... no word seen before: this program's source", ours, raw, 4.0)
    yield BenchRow("memory to count with GPT's vocabulary, against tiktoken", *_memory(), 0.25, unit="MB")


_MEASURED = """
from tests.bench.accounting import resident_megabytes
{imports}
before = resident_megabytes()
{work}
print(resident_megabytes() - before)
"""


def resident_megabytes() -> float:
    """Of this process; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * 4_096 / 1e6


def _memory() -> tuple[float, float]:
    """Megabytes that our vocabulary takes, and tiktoken's."""
    ours = _MEASURED.format(
        imports="from tui.context.counting.tokenizers import get_tokenizer; import regex",
        work="get_tokenizer('gpt-5').count('hello, world ' * 1_000)",
    )
    theirs = _MEASURED.format(
        imports=(
            "from tests.bench.vocabularies import unpacked\nfrom tui.context.counting.bpe import load_ranks\n"
            "from tiktoken import Encoding"
        ),
        work=(
            "e = Encoding('o', pat_str=r'\\S+', mergeable_ranks=dict(unpacked(load_ranks('o200k_base'))), "
            "special_tokens={})"
        ),
    )
    results = []
    for code in (ours, theirs):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        results.append(max(0.1, float(done.stdout)))
    return results[0], results[1]


def _many_messages() -> Iterable[BenchRow]:
    """`ContextUsage` with everything counted, and with one more message than last time."""
    again: list[Callable[[], object]] = []
    growing: list[Callable[[], object]] = []
    for size in (10_000, 100):
        estimator = make_estimator()
        messages = conversation(size)
        request = request_of(messages, f"bench{size}")
        estimator.record(request, Message("assistant", (Text("Done."),)), Usage(size * 90, 5), learn=True, at=0.0)
        drafts = [
            request_of((*messages, Message("user", (Text(f"and then {n}?"),))), f"bench{size}") for n in range(99)
        ]
        for draft in drafts:
            usage_of(draft, estimator)  # counted once
        again.append(partial(usage_of, request, estimator))
        growing.append(partial(_next_usage, cycle(drafts), estimator))
    many, few = both(*again, rounds=15, times=20)
    yield BenchRow("ContextUsage of 10,000 messages, against 100", many, few, 3.0, FRAME)
    many, few = both(*growing, rounds=15, times=20)
    yield BenchRow("... with another last message each time", many, few, 3.0, FRAME)


def _next_usage(requests: Iterator[Request], estimator: HybridTokenEstimator) -> ContextUsage:
    return usage_of(next(requests), estimator)


def _opening() -> BenchRow:
    """Open the database, read a session of 10,000 messages and 5 million tokens, measure it; against counting."""
    texts = [text_of(430, seed) for seed in range(50)]  # words: about 500 tokens
    messages = tuple(
        Message("user" if n % 2 == 0 else "assistant", (Text(f"{n}. {texts[n % 50]}"),), id=f"{n:024}", created_at=n)
        for n in range(10_000)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        with closing(SessionStore(path)) as store:
            store.create_session(SessionInfo("s", "bench", "openai", "gpt-5", 0.0, 0.0))
            for message in messages:
                store.add_message("s", message)

        def opened() -> None:
            with closing(SessionStore(path)) as store:
                counter = TokenCounter(StoredCounts(store))
                usage = usage_of(request_of(tuple(store.messages("s")), "s"), make_estimator(counter))
            assert usage.total > 4_500_000, usage.total

        opened()  # counts, and stores that
        seconds = fastest(opened, rounds=3)
    counted = fastest(lambda: _count_all(messages), rounds=2)
    name = "a stored session (10,000 messages, 5 M tokens) read and measured, against counting"
    return BenchRow(name, seconds, counted, 1 / 2)


def _stall() -> BenchRow:
    """The longest time the event loop stood still while 5 MB were counted in a thread, against a frame."""
    texts = ["a" * 5_000_000, " " * 5_000_000, text_of(750_000, 3), "你好世界" * 420_000]

    async def longest(function: Callable[..., object], argument: object) -> float:
        working = asyncio.create_task(asyncio.to_thread(function, argument))
        gaps, last = [0.0], time.perf_counter()
        while not working.done():
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now
        return max(gaps)

    count = [get_tokenizer(MODEL).count, get_tokenizer("claude-sonnet-4-5").count]
    stalls = [min(asyncio.run(longest(count[index % 2], text)) for _ in range(5)) for index, text in enumerate(texts)]
    # A busy machine stalls without us: the same for a thread that works as long and never needs the interpreter.
    idle = max(asyncio.run(longest(partial(hashlib.pbkdf2_hmac, "sha256", b"x", b"y"), 1_000_000)) for _ in range(4))
    name = "longest stall of the event loop while 5 MB are counted, against a frame"
    return BenchRow(name, max(stalls), max(FRAME, idle), 1.0)
