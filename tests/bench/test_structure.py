"""The two reports on the program's structure: what they count, on packages small enough to count by hand."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.bench.structure import importers, read_package, report
from tests.bench.trace import SCENARIOS, Trace, run
from tui.messages import Message, Text


def write(folder: Path, **sources: str) -> Path:
    """A package `p` of these modules; those named `sub_...` are in a package `p.sub`."""
    package = folder / "p"
    for name, source in {"__init__": "", **sources}.items():
        path = package / f"{name.replace('sub_', 'sub/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, "utf-8")
    return package


def test_the_report_counts_lines_modules_folders_and_importers(tmp_path: Path) -> None:
    package = write(
        tmp_path,
        a="from p import b\nfrom p.sub import c\n",
        b="def f():\n    from p.sub.c import x\n",
        sub___init__="",
        sub_c="x = 1\n",
    )
    modules = read_package(package)
    assert {name: module.lines for name, module in modules.items()} == {
        "p": 0, "p.a": 2, "p.b": 2, "p.sub": 0, "p.sub.c": 1,
    }  # fmt: skip
    assert importers(modules)["p.sub.c"] == {"p.a", "p.b"}
    assert importers(modules)["p.b"] == {"p.a"}
    figures = [line.split() for line in report(package).splitlines()]
    assert ["modules", "in", "largest", "folder", "2", "(p)"] in figures
    assert figures[0] == ["lines", "5"]


def test_a_trace_records_every_thread_and_only_while_recording() -> None:
    trace = Trace()
    threading.setprofile(trace.profile)
    try:
        for recording in (False, True):
            trace.recording = recording
            thread = threading.Thread(target=lambda: Message("user", (Text("hi"),)).text)
            thread.start()
            thread.join()
            assert (("tui.messages", "Message.text") in trace.functions) is recording
    finally:
        threading.setprofile(None)


@pytest.mark.slow
def test_a_tool_call_enters_more_than_hello() -> None:
    quiet, called = (run(name) for name in ("hello", "tool-call"))
    assert ("tui.chat.turn.session", "ChatSession.send") in quiet.functions
    assert len(called.functions) > len(quiet.functions)
    assert any(module.startswith("tui.tools") for module in called.modules - quiet.modules)
    assert set(SCENARIOS) == {"hello", "tool-call", "hello-on-screen"}
