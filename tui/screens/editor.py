"""The draft in the person's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path


class EditorError(Exception):
    """The editor did not do. `str()` is one line for a person; the draft is as it was."""


def edit(text: str) -> str:
    """Let $VISUAL or $EDITOR change `text`. Blocks until it ends: the terminal is its own meanwhile.

    Raises `EditorError`.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "draft.md"
        path.write_text(f"{text}\n" if text else "", encoding="utf-8", errors="replace")
        try:
            done = subprocess.run([*shlex.split(editor), str(path)], check=False)
        except (OSError, ValueError) as error:
            raise EditorError(f"The editor {editor!r} could not be started ({error}): set EDITOR.") from None
        if done.returncode:
            raise EditorError(f"The editor {editor!r} ended with code {done.returncode}; the draft is as it was.")
        return path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
