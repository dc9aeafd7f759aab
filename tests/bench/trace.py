"""`python -m tests.bench trace [SCENARIO ...] [--list]`: which modules and functions of `tui` one turn enters.

Every scenario opens what it needs first; only the turn itself is traced, from the call (or the key) that sends the
message until the turn is over. Functions are counted once each, whichever thread runs them, lambdas and comprehensions
among them (from Python 3.12 on a list comprehension is no function of its own). `--list` prints them, by module.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import tui

PACKAGE = Path(tui.__file__).parent


@dataclass
class Trace:
    """The functions of `tui` that were entered while `recording`: (module, qualified name)."""

    functions: set[tuple[str, str]] = field(default_factory=set)
    recording: bool = False
    _seen: dict[int, CodeType] = field(default_factory=dict)  # by id: code objects of two files may be equal

    @property
    def modules(self) -> set[str]:
        """The modules these functions are in."""
        return {module for module, _ in self.functions}

    def profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Called by the interpreter for each call; see `sys.setprofile`."""
        code = frame.f_code
        if not self.recording or event != "call" or id(code) in self._seen:
            return
        self._seen[id(code)] = code
        path = Path(code.co_filename)
        if code.co_flags & inspect.CO_OPTIMIZED and path.is_relative_to(PACKAGE):
            module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
            self.functions.add((module, code.co_qualname))

    @contextmanager
    def record(self) -> Iterator[None]:
        """Records what is entered inside the block."""
        self.recording = True
        try:
            yield
        finally:
            self.recording = False


async def hello(folder: Path, trace: Trace) -> None:
    """A message and its answer, by the session alone: scripted provider, no screen."""
    from tests.chat.fakes import ScriptedProvider, drain, open_workspace

    async with open_workspace(folder, ScriptedProvider()) as workspace:
        session = await workspace.new_session()
        with trace.record():
            await drain(session.send("hello"))
        assert [message.role for message in session.messages] == ["user", "assistant"]


async def tool_call(folder: Path, trace: Trace) -> None:
    """A message, a tool call that asks for approval, its result, and the answer; no screen."""
    from tests.chat.fakes import ScriptedProvider, answer, open_workspace
    from tests.chat.tool_calls.tool_calls import FunctionTools, calls, results, turn

    source = FunctionTools("server", write=lambda _: "written")
    async with open_workspace(folder, ScriptedProvider([calls("write"), answer()]), tools=source) as workspace:
        session = await workspace.new_session()
        with trace.record():
            await turn(session, lambda _: "once")
        assert [result.text for result in results(session)] == ["written"]


async def hello_on_screen(folder: Path, trace: Trace) -> None:
    """The same message typed into the whole program, answered by the demo."""
    from tests.e2e.test_app import running, settings_in
    from tui.commands import all_commands

    async with running(settings_in(folder)) as run:
        await run.until(lambda: all_commands.cache_info().currsize > 0)  # the last thing that starting loads
        await run.pilot.pause()
        with trace.record():
            await run.type("hello")
            await run.press("enter")
            await run.answered()
            await run.pilot.pause()
        assert [message.role for message in run.session.messages] == ["user", "assistant"]


SCENARIOS: dict[str, Callable[[Path, Trace], Awaitable[None]]] = {
    "hello": hello,
    "tool-call": tool_call,
    "hello-on-screen": hello_on_screen,
}


def run(scenario: str) -> Trace:
    """Runs one scenario in a folder of its own, all threads traced from their start."""
    trace = Trace()

    async def within(folder: Path) -> None:
        await SCENARIOS[scenario](folder, trace)

    threading.setprofile(trace.profile)
    sys.setprofile(trace.profile)
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(within(Path(folder)))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return trace


def listing(trace: Trace) -> str:
    """The functions, by module."""
    lines = []
    for module in sorted(trace.modules):
        names = sorted(name for place, name in trace.functions if place == module)
        lines += [f"{module} ({len(names)})", *(f"    {name}" for name in names)]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Prints one line a scenario."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench trace", description=__doc__)
    parser.add_argument("scenario", nargs="*", help=", ".join(SCENARIOS))
    parser.add_argument("--list", action="store_true", help="also print the functions, by module")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.scenario if name not in SCENARIOS]:
        parser.error(f"no scenario {unknown[0]}: {', '.join(SCENARIOS)}")
    for name in options.scenario or SCENARIOS:
        trace = run(name)
        print(f"{name:<16} {len(trace.modules):>4} modules {len(trace.functions):>5} functions")
        if options.list:
            print(listing(trace))
    return 0
