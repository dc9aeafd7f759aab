"""Files ignored by git, from the `.gitignore` files above them (gitignore(5)); git is not needed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.config.paths import is_there
from tui.tools.files.globs import Glob, make_glob

IGNORE_FILE = ".gitignore"
ALWAYS = frozenset({".git", ".hg", ".svn", ".jj"})
"""Folders of version control: never listed, never searched."""
LARGEST = 200_000  # bytes read of an ignore file


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line. `folder` is where its file is, relative to what is walked, "" for the top."""

    pattern: Glob
    negated: bool
    folders_only: bool
    folder: str


def parse_ignore(text: str, folder: str) -> list[IgnoreRule]:
    """The rules of an ignore file in `folder`; malformed lines are skipped, as git does."""
    rules = []
    for line in text.splitlines():
        line = line.removesuffix("\r")
        while line.endswith(" ") and not line.endswith("\\ "):
            line = line[:-1]
        if not line or line.startswith("#"):
            continue
        negated = line.startswith("!")
        line = line[1:] if negated else line
        folders_only = line.endswith("/")
        line = line.removesuffix("/")
        if not line or "//" in line or line.endswith("/"):  # no path has two consecutive slashes
            continue
        anchored = "/" in line
        try:
            pattern = make_glob(line, anchored=anchored)
        except ValueError:
            continue
        rules.append(IgnoreRule(pattern, negated, folders_only, folder))
    return rules


def ignore_verdict(path: str, is_folder: bool, rules: Sequence[IgnoreRule]) -> bool | None:
    """The verdict of the last rule that matches `path`, relative to the rules' root; None if none matches."""
    for rule in reversed(rules):
        if rule.folders_only and not is_folder:
            continue
        if rule.folder and not path.startswith(rule.folder + "/"):
            continue
        below = path[len(rule.folder) + 1 :] if rule.folder else path
        if rule.pattern.match(below):
            return not rule.negated
    return None


def rules_above(folder: Path) -> list[tuple[str, list[IgnoreRule]]]:
    """The rules of the folders above `folder`, up to the root of its git repository: (path down to `folder`, rules)."""
    rules: list[tuple[str, list[IgnoreRule]]] = []
    for above in folder.parents if not is_there(folder / ".git") else ():
        if text := read_at(None, above):
            rules.append((folder.relative_to(above).as_posix(), parse_ignore(text, "")))
        if is_there(above / ".git"):
            return rules[::-1]
    return []


def read_at(descriptor: int | None, folder: Path, name: str = IGNORE_FILE) -> str:
    """An ignore file's text, read through an open folder (or its path where that is not possible); "" if there is none.

    Links are not followed, as in git, and a pipe is not waited for.
    """
    try:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        path = name if descriptor is not None else folder / name
        with os.fdopen(os.open(path, flags, dir_fd=descriptor), "rb") as file:
            return file.read(LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""  # missing or unreadable: git would ignore it, too
