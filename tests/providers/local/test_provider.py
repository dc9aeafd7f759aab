"""The embedded server's child process, without a model."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from threading import Timer

import pytest

from tui.providers.local import provider as local
from tui.providers.local.provider import LocalServer


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
async def test_a_start_that_is_cancelled_ends_the_child_while_it_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited for the model, with the event loop stopped. Here the file comes slowly, and is no model."""
    monkeypatch.setattr(local, "missing_part", lambda gguf: None)
    os.mkfifo(tmp_path / "m.gguf")
    pipe = os.open(tmp_path / "m.gguf", os.O_RDWR)
    late = Timer(2, os.write, (pipe, b"none"))
    late.start()
    server = LocalServer(tmp_path / "m.gguf")
    starting = asyncio.create_task(server.start())
    await asyncio.sleep(0)
    process = server._process
    assert process is not None
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    late.cancel()
    late.join()
    os.close(pipe)
    assert process.returncode == -signal.SIGKILL and not server.running
