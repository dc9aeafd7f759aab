"""`run`: the program as a process of its own, with everything it keeps in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs `chatctx` with no keys, and the demo as its model; `env` changes that ("" unsets)."""

    def call(*args: str, stdin: str = "", cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY") and not k.startswith("CHATCTX_")}
        config = tmp_path / "config.toml"
        config.touch()
        settings = {
            "CHATCTX_CONFIG": str(config),
            "CHATCTX_DATA_DIR": str(tmp_path / "data"),
            "CHATCTX_LOG_DIR": str(tmp_path / "log"),
            "CHATCTX_MODEL": "demo",
        }
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


def one_line(text: str) -> str:
    """`text`, which is one line for a person."""
    assert text.count("\n") == 1, text
    assert "Traceback" not in text
    assert text.startswith("chatctx: ")
    return text
