"""`chatctx import`: sessions from files, our own and those of Claude Code, pi and Gemini CLI."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from pathlib import Path

from tui.chat.interchange.foreign import read_recording
from tui.chat.interchange.import_known import AlreadyHereError
from tui.chat.interchange.importing import Imported, import_measured
from tui.chat.interchange.recording import RecordingError
from tui.chat.store.store import SessionStore
from tui.cli import FAILED, complain
from tui.cli.listing import write
from tui.config.settings import Settings
from tui.providers.models.catalog import dollars
from tui.providers.registry import all_configs
from tui.text.cells import plain

PAUSE = 0.2  # seconds between two signs of life


def run(args: Namespace, settings: Settings) -> int:
    """Import every file, each whole or not at all. 1 where one could not be read; the others are there.

    What was imported before is said, and is no failure.
    """
    store = SessionStore(settings.database)
    done: list[tuple[Path, Imported]] = []
    failed = False
    try:
        known = set(all_configs(settings.providers))
        for path in args.files:
            with _Progress(path.name) as progress:
                try:
                    recording = read_recording(path)
                    imported = import_measured(
                        store, recording, providers=known, price=dollars, system=settings.system, progress=progress,
                        again=args.again,
                    )  # fmt: skip
                except RecordingError as error:
                    failed = failed or not isinstance(error, AlreadyHereError)
                    progress.clear()
                    named = str(error).startswith((path.name, str(path)))
                    complain(str(error) if named else f"{path.name}: {error}")
                    continue
            done.append((path, imported))
            if not args.json:
                write(_line(path, imported))
    finally:
        store.close()
    if args.json:
        write(json.dumps([_entry(path, imported) for path, imported in done]))
    elif done:
        unsent = [imported.unsent for _, imported in done if imported.unsent]
        if unsent:
            size = f"~{min(unsent):,}" if len(unsent) == 1 else f"~{min(unsent):,} to ~{max(unsent):,}"
            write(f"System prompts and tools of other programs ({size} tokens) are not in their files nor sent here.")
        write(f"Open one with: chatctx --resume {done[-1][1].info.id}")
    return FAILED if failed else 0


def _line(path: Path, imported: Imported) -> str:
    info = imported.info
    title = plain(info.title)
    copy = " (a copy: its id was taken)" if imported.copy_of else ""
    return (
        f"{info.id}  {info.messages:,} messages, {imported.calls:,} calls, {info.provider}/{info.model}"
        f"  {title or path.name}{copy}"
    )


def _entry(path: Path, imported: Imported) -> dict[str, object]:
    info = imported.info
    return {
        "file": str(path),
        "source": imported.source,
        "session": info.id,
        "title": info.title,
        "provider": info.provider,
        "model": info.model,
        "messages": info.messages,
        "calls": imported.calls,
        "not_in_file_tokens": imported.unsent,
        "copy_of": imported.copy_of or None,
    }


class _Progress:
    """One line on a terminal that says how far it is; nothing where standard error is none."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._shown = 0.0
        self._on = sys.stderr.isatty()

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def __call__(self, done: int, all_: int) -> None:
        now = time.monotonic()
        if self._on and now - self._shown >= PAUSE:
            self._shown = now
            sys.stderr.write(f"\r\x1b[K{self._name}: {done:,} of {all_:,} calls measured")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._on and self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = 0.0
