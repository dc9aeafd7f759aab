"""Files named in the draft with `@path`: which ones there are, and which ones are meant."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tui.commands.registry import match
from tui.config.paths import at_home, is_file
from tui.text.numbers import size_text
from tui.widgets.composer.completion import Choice

MOST_FILES = 20_000
"""Files of the working directory looked at for completion."""

OFFERED = 40
FRESH = 10.0
"""Seconds for which a listing is used again."""

_SKIPPED = {"node_modules", "__pycache__", "target", "dist", "build", "venv", "site-packages"}
_MENTION = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]+)"|(\S+))')
_OPEN = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]*)|([^\s"]*))$')


def open_mention(before: str) -> str | None:
    """What was typed of a path after `@`, up to the cursor; None where no mention is being typed."""
    found = _OPEN.search(before)
    return (found.group(1) or found.group(2) or "") if found else None


def with_mention(text: str, cursor: int, path: str, *, more: bool = False) -> tuple[str, int]:
    """`text` with the mention before `cursor` completed to `path`, and where the cursor goes; `more` is to follow."""
    found = _OPEN.search(text[:cursor])
    if found is None:
        return text, cursor
    mention = f'@"{path}"' if " " in path else f"@{path}"
    if more or path.endswith("/"):
        mention = mention.rstrip('"')  # a folder: the file in it is still to be named
    else:
        mention += " "
    return text[: found.start()] + mention + text[cursor:].lstrip(" "), found.start() + len(mention)


def choice(text: str, cursor: int, offer: Choice) -> Choice:
    """An offered path as a choice that completes the draft."""
    completed, place = with_mention(text, cursor, offer.text, more=offer.cursor is not None)
    return Choice(completed, offer.label, offer.help, place)


def mentioned_names(text: str) -> list[tuple[str, ...]]:
    """What `text` mentions with `@`: each as it may be meant, whole or without the punctuation after it."""
    found = _MENTION.findall(text)
    return [(quoted,) if quoted else (plain, plain.rstrip(".,;:!?)]}'\"")) for quoted, plain in found]


def mentioned(text: str, folder: Path) -> list[Path]:
    """The files named in `text` that are there, each once. What is no file is only text."""
    found: dict[Path, None] = {}
    for candidates in mentioned_names(text):
        for name in candidates:
            path = folder / at_home(name)
            if is_file(path):
                found[path] = None
                break
    return list(found)


class FileIndex:
    """The files below a folder, for completion. Call it off the event loop."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: list[str] = []
        self._read = float("-inf")

    def offers(self, typed: str) -> list[Choice]:
        """Files that fit what was typed, best first; outside the folder, those of the directory that was named."""
        if typed.startswith(("/", "~", "..")):
            return self._elsewhere(typed)
        if time.monotonic() - self._read > FRESH:
            self._files = list(walk(self.folder))
            self._read = time.monotonic()
        ranked = ((_score(typed, name), name) for name in self._files)
        best = sorted((pair for pair in ranked if pair[0] > 0), key=lambda pair: (-pair[0], len(pair[1]), pair[1]))
        return [self._choice(name) for _, name in best[:OFFERED]]

    def _choice(self, name: str) -> Choice:
        try:
            size = size_text((self.folder / name).stat().st_size)
        except OSError:
            size = ""
        return Choice(name, name, size)

    def _elsewhere(self, typed: str) -> list[Choice]:
        head, _, tail = typed.rpartition("/")
        folder = self.folder / at_home(f"{head}/")
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name.lower())
        except OSError:
            return []
        names = [f"{head}/{entry.name}" + ("/" if entry.is_dir() else "") for entry in entries]
        kept = [name for name in names if name.rstrip("/").rpartition("/")[2].lower().startswith(tail.lower())]
        return [Choice(name, name) for name in kept[:OFFERED]]


def _score(typed: str, name: str) -> float:
    """A fit in the file's own name counts more than one in its folders."""
    return max(match(typed, name), 1.5 * match(typed, name.rpartition("/")[2]) if typed else 0.0)


def walk(folder: Path, most: int = MOST_FILES) -> Iterable[str]:
    """Paths of files below `folder`, relative, nearest first; hidden and generated folders are left out."""
    waiting: Sequence[str] = [""]
    found = 0
    while waiting:
        below: list[str] = []
        for place in waiting:
            try:
                entries = sorted(os.scandir(folder / place), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _SKIPPED:
                        below.append(f"{place}{entry.name}/")
                elif entry.is_file():
                    yield f"{place}{entry.name}"
                    found += 1
                    if found >= most:
                        return
        waiting = below
