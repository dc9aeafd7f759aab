"""What tests need of a machine: a free port, programs that are not there, a terminal."""

from __future__ import annotations

import io
import socket
from pathlib import Path


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def program(folder: Path, name: str, script: str) -> None:
    """A program in `folder` that runs a shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True
