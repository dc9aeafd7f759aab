"""Which files git ignores, by the `.gitignore` files on the way to them (gitignore(5)); no git is needed."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

IGNORE_FILE = ".gitignore"
ALWAYS = frozenset({".git", ".hg", ".svn", ".jj"})
"""Folders of version control: never listed, never searched."""
LARGEST = 200_000  # bytes of an ignore file that are read


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line. `folder` is where its file is, relative to what is walked, "" for the top."""

    pattern: re.Pattern[str]
    negated: bool
    folders_only: bool
    folder: str


def parse_ignore(text: str, folder: str) -> list[IgnoreRule]:
    """The rules of an ignore file in `folder`; lines that make no sense are left out, as git does."""
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
        line = line.rstrip("/")
        if not line:
            continue
        anchored = "/" in line
        try:
            pattern = re.compile(glob_regex(line.lstrip("/"), anchored=anchored))
        except re.error:
            continue
        rules.append(IgnoreRule(pattern, negated, folders_only, folder))
    return rules


def glob_regex(glob: str, *, anchored: bool) -> str:
    """A glob as a regular expression for a whole relative path; not `anchored`, it may begin in any folder."""
    out = ["" if anchored else "(?:.*/)?"]
    at = 0
    while at < len(glob):
        char = glob[at]
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            out.append("(?:.*/)?")
            at += 3
        elif glob.startswith("**", at):
            out.append(".*")
            at += 2
        elif char == "*":
            out.append("[^/]*")
            at += 1
        elif char == "?":
            out.append("[^/]")
            at += 1
        elif char == "[" and (end := glob.find("]", at + 2)) > 0:
            inner = glob[at + 1 : end].replace("\\", "\\\\")
            out.append(f"[^/{inner[1:]}]" if inner[0] in "!^" else f"(?!/)[{inner}]")
            at = end + 1
        elif char == "{" and (end := glob.find("}", at)) > 0:
            options = "|".join(glob_regex(option, anchored=True)[:-2] for option in glob[at + 1 : end].split(","))
            out.append(f"(?:{options})")
            at = end + 1
        else:
            if char == "\\" and at + 1 < len(glob):
                at += 1
            out.append(re.escape(glob[at]))
            at += 1
    return "".join(out) + r"\Z"


def ignore_verdict(path: str, is_folder: bool, rules: Sequence[IgnoreRule]) -> bool | None:
    """What the last rule that fits says of `path`, relative to the rules' own top; None where none fits."""
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
    """The rules of the folders above `folder`, up to the top of its git repository: (way down to `folder`, rules)."""
    found: list[tuple[str, list[IgnoreRule]]] = []
    for above in folder.parents if not (folder / ".git").exists() else ():
        text = _read(above / IGNORE_FILE)
        if text:
            found.append((folder.relative_to(above).as_posix(), parse_ignore(text, "")))
        if (above / ".git").exists():
            return found[::-1]
    return []


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""  # there is none here, or it is not ours to read: git would not know it either


def read_at(descriptor: int | None, folder: Path, name: str = IGNORE_FILE) -> str:
    """An ignore file's text, by an open folder (or its path where folders can't be opened); "" where there is none."""
    try:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        path = name if descriptor is not None else folder / name
        with os.fdopen(os.open(path, flags, dir_fd=descriptor), "rb") as file:
            return file.read(LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
