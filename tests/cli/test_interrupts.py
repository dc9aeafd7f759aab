from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tui.cli import INTERRUPTED
from tui.cli.subcommands.ask import ask
from tui.config.settings import ProviderSettings, Settings
from tui.terminal.process import on_signals


@pytest.mark.parametrize("handlers", [True, False], ids=["a loop with handlers", "the loop of Windows"])
async def test_a_signal_is_a_call_on_the_loop(monkeypatch: pytest.MonkeyPatch, handlers: bool) -> None:
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    pressed = asyncio.Event()
    if not handlers:

        def none(*_: object) -> None:
            raise NotImplementedError

        monkeypatch.setattr(loop, "add_signal_handler", none)
    try:
        on_signals(("SIGINT",), pressed.set)
        signal.raise_signal(signal.SIGINT)
        await asyncio.wait_for(pressed.wait(), 5)
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


async def test_a_question_given_up_while_it_waits_to_ask_again_was_interrupted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = {"away": ProviderSettings(base_url="http://127.0.0.1:9/v1")}
    settings = Settings(model="away/m", providers=nobody, data_dir=tmp_path, config_file=tmp_path / "c.toml")
    before = signal.getsignal(signal.SIGINT)
    asking = asyncio.create_task(ask(settings, question="are you there"))
    errors = ""
    try:
        async with asyncio.timeout(20):
            while "Asking again" not in errors:
                await asyncio.sleep(0.01)
                errors += capsys.readouterr().err
            signal.raise_signal(signal.SIGINT)
            assert await asking == INTERRUPTED
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
    assert "/retry sends it" in capsys.readouterr().err
