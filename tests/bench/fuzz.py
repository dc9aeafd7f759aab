"""`python -m tests.bench fuzz`: damaged and hostile input for everything that reads what others wrote.

The event streams of three dialects, the session files of other programs, the config file, and what a terminal sends.
Whatever comes, a reader raises only what it says, takes less than `MAX_SECONDS` of processor time, and the process
stays below `MAX_MEMORY`. Exit code 1 when it did not.
"""

from __future__ import annotations

import argparse
import copy
import inspect
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import hypothesis
import tomlkit
from hypothesis import strategies as st
from textual.events import Key, Paste

from tests.providers.serving import WHOLE
from tests.providers.test_odd_shapes import CHAT, MESSAGES, ODD, RESPONSES
from tests.terminal.test_input import TERMINALS
from tui.chat.interchange.following import Follower
from tui.chat.interchange.foreign import read_recordings
from tui.chat.interchange.importing import import_session
from tui.chat.interchange.recording import RecordingError
from tui.chat.store.codec import PartsBuilder, dump, dump_events, load_events
from tui.chat.store.store import SessionStore
from tui.config.settings import ConfigError, load_settings
from tui.messages import Message
from tui.providers.base import ProviderError
from tui.providers.dialects.anthropic import AnthropicReader
from tui.providers.dialects.dialect import Reader
from tui.providers.dialects.openai_chat import ChatReader
from tui.providers.dialects.openai_responses import ResponsesReader
from tui.providers.http.sse import SSEDecoder, TooLargeError, check_json_cost
from tui.providers.http.transport import _json_event
from tui.providers.registry import all_configs
from tui.terminal.input import PASTE_END, PASTE_START, TerminalParser
from tui.text.clean import clean_text

MAX_SECONDS = 2.0  # of processor time for one input
MAX_MEMORY = 1_000_000_000  # bytes, of the whole process
MAX_STREAM = 4_000_000  # bytes: `max_response` here
FOREIGN = ("foreign", "formats", "codex", "claude", "pi", "gemini", "opencode")  # their tests write the files to damage

ODD_VALUES = st.one_of(st.sampled_from(ODD), st.text(max_size=8), st.integers(), st.floats(), st.booleans())


INSERTED = (b"\n\n", b"\r", b"\0", b"\xff\xfe", b"[" * 3_000)


@st.composite
def damaged(draw: st.DrawFn, value: Any) -> Any:
    """`value` (JSON) with a few values replaced, left out, doubled, or swapped for others of it."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(0, 4))):
        holder: Any = None
        key: Any = None
        place = value
        while isinstance(place, dict | list) and place and (holder is None or draw(st.integers(0, 3))):
            holder, key = place, draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
            place = holder[key]
        if holder is None:
            break
        match draw(st.sampled_from(("odd", "gone", "twice", "deep", "long"))):
            case "odd":
                holder[key] = copy.deepcopy(draw(ODD_VALUES))
            case "gone":
                del holder[key]
            case "twice" if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(place))
            case "deep":
                holder[key] = json.loads("[" * 500 + "]" * 500)
            case "long":
                holder[key] = "x" * draw(st.sampled_from((100, 70_000)))
    return value


@st.composite
def torn(draw: st.DrawFn, data: bytes) -> bytes:
    """`data` with a few bytes changed, left out, put in or doubled."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(changed)))
        match draw(st.sampled_from(("set", "cut", "insert", "double", "end"))):
            case "set" if at < len(changed):
                changed[at] = draw(st.integers(0, 255))
            case "cut":
                del changed[at : at + draw(st.integers(1, 50))]
            case "insert":
                changed[at:at] = draw(
                    st.binary(max_size=20) | st.sampled_from((b"\n\n", b"\r", b"\0", b"\xff\xfe", b"[" * 3_000))
                )
            case "double":
                changed[at:at] = changed[max(0, at - 40) : at]
            case "end":
                del changed[at:]
    return bytes(changed)


# -- event streams -----------------------------------------------------------------------------------------------------

STREAMS: dict[str, list[Any]] = {
    "openai-chat": [*WHOLE["openai-chat"][:-2], CHAT, *WHOLE["openai-chat"][-2:]],
    "anthropic": [*WHOLE["anthropic"][:-2], *MESSAGES, *WHOLE["anthropic"][-2:]],
    "openai-responses": [*WHOLE["openai-responses"][:-1], *RESPONSES],
}
READERS: dict[str, Callable[[], Reader]] = {
    "openai-chat": ChatReader,
    "anthropic": AnthropicReader,
    "openai-responses": ResponsesReader,
}


@st.composite
def streams(draw: st.DrawFn) -> tuple[str, bytes]:
    """A dialect, and a damaged stream of it."""
    dialect = draw(st.sampled_from(sorted(STREAMS)))
    events = draw(damaged(STREAMS[dialect]))
    if draw(st.booleans()):
        events = draw(st.permutations(events))
    named = draw(st.booleans())
    lines = [
        (f"event: {event.get('type')}\n" if named and isinstance(event, dict) else "")
        + f"data: {json.dumps(event)}\n\n"
        for event in events
    ]
    return dialect, draw(torn("".join(lines).encode()))


def read_stream(example: tuple[str, bytes]) -> None:
    """Reads as `transport` does; what came can be stored, and read from there."""
    dialect, data = example
    reader = READERS[dialect]()
    decoder, builder, events = SSEDecoder(MAX_STREAM), PartsBuilder("p", "m"), []
    with suppress(ProviderError, TooLargeError, ValueError, RecursionError):  # no JSON: the transport classifies it
        for sent in decoder.feed(data):
            check_json_cost(sent.data, MAX_STREAM)
            if (value := _json_event(sent, "p")) is not None:
                events += _checked(partial(reader.feed, value))
        events += _checked(reader.finish)
    for event in load_events(dump_events(events)):
        builder.apply(event)
    dump(Message("assistant", builder.parts()))


def _checked(read: Callable[[], Iterable[Any]]) -> list[Any]:
    """A ValueError of a reader is a fault, unlike one of `json`."""
    try:
        return list(read())
    except (ValueError, RecursionError) as error:
        raise AssertionError(f"the reader: {error!r}") from error


# -- files of other programs -------------------------------------------------------------------------------------------


@cache
def sessions() -> list[tuple[str, bytes]]:
    """Name and content of a session file of each program."""
    files: dict[bytes, str] = {}
    for module in FOREIGN:
        tests = import_module(f"tests.chat.interchange.foreign.test_{module}")
        for name, test in vars(tests).items():
            if name.startswith("test_") and list(inspect.signature(test).parameters) == ["tmp_path"]:
                with tempfile.TemporaryDirectory() as folder:
                    test(Path(folder))
                    files |= {path.read_bytes(): path.name for path in Path(folder).rglob("*") if path.is_file()}
    return sorted((name, content) for content, name in files.items() if len(content) < 200_000)


@st.composite
def session_files(draw: st.DrawFn) -> tuple[str, bytes]:
    """The name of a session file, and its damaged content."""
    name, content = draw(st.sampled_from(sessions()))
    with suppress(ValueError):
        lines = [json.loads(line) for line in content.decode().splitlines()]
        content = "\n".join(map(json.dumps, draw(damaged(lines)))).encode()
    return name, draw(torn(content))


@cache
def _place() -> tuple[Path, SessionStore]:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    return folder, SessionStore(folder / "chatctx.db")


def read_session(example: tuple[str, bytes]) -> None:
    """Reads the file, imports what is in it, and follows it."""
    name, content = example
    folder, store = _place()
    path = folder / name
    path.write_bytes(content)
    with suppress(RecordingError):
        follower = Follower(path, session="ses_1")  # of opencode's database
        follower.poll()
        follower.state()
    try:
        recordings = list(read_recordings(path))
    except RecordingError:
        return
    for recording in recordings[:3]:
        with suppress(RecordingError):
            import_session(store, recording, providers=("openai", "anthropic"), again=True)


# -- the config file ---------------------------------------------------------------------------------------------------

CONFIG = {
    "model": "openai/gpt-5.4",
    "theme": "dark",
    "rolling_context": True,
    "compaction": "85%",
    "compaction_target": "40%",
    "reserve_output": 16_000,
    "memory_files": ["AGENTS.md"],
    "providers": {"x": {"base_url": "http://127.0.0.1:1/v1", "dialect": "anthropic", "api_key_command": "echo"}},
    "models": {"x/y": {"window": 8_000, "compaction": 6_000}},
    "keys": {"chat.stop": "ctrl+x"},
    "tools": {"allow": ["/srv"], "steps": 50, "rules": {"read_file": "allow"}},
    "mcpServers": {"s": {"command": "x", "args": ["a"], "env": {"A": "b"}, "timeout": 4}},
}


@st.composite
def config_files(draw: st.DrawFn) -> bytes:
    """A damaged config file."""
    text = json.dumps(CONFIG)
    with suppress(Exception):  # what is no TOML (null, a float without end) stays as it was
        text = tomlkit.dumps(draw(damaged(CONFIG)))
    return draw(torn(text.encode("utf-8", "surrogatepass")))


def read_config(content: bytes) -> None:
    """Reads it as the program does at its start."""
    path = _place()[0] / "config.toml"
    path.write_bytes(content)
    with suppress(ConfigError):
        settings = load_settings({"CHATCTX_CONFIG": str(path), "CHATCTX_DATA_DIR": str(path.parent)})
        try:
            all_configs(settings.providers, gguf=settings.gguf, window=None)
        except ValueError as error:
            assert str(error), "no reason"


# -- what a terminal sends ---------------------------------------------------------------------------------------------

KEYS = sorted({sequence for terminal in TERMINALS.values() for sequence in terminal.values() if sequence != "\x1b"})
HOSTILE = ("\x1b[201", "\x1b", "\x1b[200~", "\r", "\x1b[A", "\x03", "/export x\r", "\x1b]52;c;?\x07", "é\u202e🙂")
PASTES = st.lists(st.text(max_size=9) | st.sampled_from(HOSTILE), max_size=6).map("".join)


@st.composite
def typing(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """What arrives, cut anywhere, and the pastes in it."""
    pasted = [text for text in draw(st.lists(PASTES, max_size=3)) if PASTE_END not in text + PASTE_END[:-1]]
    sent = "".join(draw(st.sampled_from(["", *KEYS])) + PASTE_START + text + PASTE_END for text in pasted)
    sent += draw(st.sampled_from(["", *KEYS]))
    cuts = sorted(draw(st.lists(st.integers(0, len(sent)), max_size=8)))
    return [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True) if a < b], pasted


def read_typing(example: tuple[list[str], list[str]]) -> None:
    """Each paste is one event with its text, whatever is in it, and no key comes of it."""
    pieces, pasted = example
    parser = TerminalParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    assert [event.text for event in events if isinstance(event, Paste)] == [clean_text(text) for text in pasted]
    assert sum(isinstance(event, Key) for event in events) <= sum(map(len, KEYS))


# -- the program -------------------------------------------------------------------------------------------------------

TARGETS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], None]]] = {
    "streams": (streams(), read_stream),
    "sessions": (st.deferred(session_files), read_session),
    "config": (config_files(), read_config),
    "terminal": (typing(), read_typing),
}


def attack(name: str, examples: int, seed: int) -> None:
    """Try `examples` inputs of one kind. Raises what the reader should not have raised."""
    strategy, read = TARGETS[name]

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples, database=None, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(strategy)
    def tried(example: Any) -> None:
        began = time.process_time()
        read(example)
        assert (took := time.process_time() - began) < MAX_SECONDS, f"{took:.1f} s"

    tried()


def memory() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(arguments: Sequence[str]) -> int:
    """Attack what was asked for, for so long."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)}; all of them")
    parser.add_argument("--minutes", type=float, default=2.0, help="for each")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3)))
    options = parser.parse_args(arguments)
    chance = random.Random(options.seed)
    failed = 0
    for name in options.targets or TARGETS:
        end, rounds = time.monotonic() + 60 * options.minutes, 0
        try:
            while time.monotonic() < end:
                attack(name, 300, chance.randrange(2**32))
                rounds += 1
        except BaseException as error:
            if not isinstance(error, Exception | BaseExceptionGroup):
                raise
            failed += 1
            sys.excepthook(type(error), error, error.__traceback__)
        print(f"{name}: {rounds * 300:,} inputs, {memory() / 1e6:,.0f} MB", flush=True)
    return 1 if failed or memory() > MAX_MEMORY else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
