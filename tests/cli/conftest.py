"""Running `chatctx` with everything it stores in a folder of the test: as a process, or faster in this one."""

from __future__ import annotations

import gc
import io
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tui.cli.main import main
from tui.cli.start import LOGGERS

Run = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    """The environment: files in the test's folder, the demo as the model."""
    config = tmp_path / "config.toml"
    config.touch()
    return {
        "CHATCTX_CONFIG": str(config),
        "CHATCTX_DATA_DIR": str(tmp_path / "data"),
        "CHATCTX_LOG_DIR": str(tmp_path / "log"),
        "CHATCTX_MODEL": "demo",
    }


@pytest.fixture
def run(settings: dict[str, str]) -> Run:
    """Runs `chatctx` as a process with no keys; `env` changes its environment ("" unsets)."""

    def call(*args: str, stdin: str = "", cwd: Path | None = None, **env: str) -> CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY") and not k.startswith("CHATCTX_")}
        above = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
        return subprocess.run(
            [sys.executable, "-m", "tui", *args],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            cwd=cwd,
            env={**clean, "PYTHONPATH": os.pathsep.join(filter(None, above)), **settings, **env},
        )

    return call


@pytest.fixture
def run_here(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], quick_demo: None
) -> Run:
    """As `run`, in this process, without the start of Python. `stdin` is for all but `ask` and `--plain`."""

    def call(*args: str, stdin: str = "", **env: str) -> CompletedProcess[str]:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
            for name, value in (settings | env).items():
                patch.setenv(name, value)
            handlers: list[logging.Handler] = []
            loggers = [logging.getLogger(name) for name in LOGGERS]
            for logger in loggers:
                patch.setattr(logger, "handlers", handlers)
                patch.setattr(logger, "propagate", logger.propagate)  # to be restored
            try:
                code = main(args)
            finally:
                gc.enable()  # commands that end soon do without
                for logger in loggers:
                    logger.setLevel(logging.NOTSET)  # its setter clears what is cached of it
                for handler in handlers:
                    handler.close()
        output = capsys.readouterr()
        return CompletedProcess(args, code, output.out, output.err)

    return call


def one_line(text: str) -> str:
    """`text`, which is one line for a person."""
    assert text.count("\n") == 1, text
    assert "Traceback" not in text
    assert text.startswith("chatctx: ")
    return text
