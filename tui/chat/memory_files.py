"""Memory files: `AGENTS.md` and the like, read when a session starts and sent with its system prompt.

They are searched beside the config file (for all projects), then from the project's root down to the working directory,
so that the nearest comes last. The root is the folder with `.git`; without one, the folder below the home folder;
outside both, only the working directory: anybody may put files into `/tmp`.
"""

from __future__ import annotations

import hashlib
from codecs import getincrementaldecoder
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tui.config.files import is_file, is_there, short_path
from tui.messages import SystemSection
from tui.tools.files.secret_files import may_hold_secrets
from tui.tools.files.texts import printable

MAX_FILE = 32_000
"""Bytes sent of one file, about 8,000 tokens in every request: longer files are cut there."""


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """One file. `name` is its displayed path, `text` what is sent of it, `digest` detects changes on disk."""

    path: str
    name: str
    text: str
    digest: str
    on: bool = True

    def section(self) -> SystemSection:
        """Its section of the system prompt: always the same bytes for the same file."""
        return SystemSection("memory", self.name, f"Instructions from {self.name}:\n\n{self.text}")


@dataclass(frozen=True, slots=True)
class MemoryFiles:
    """The memory files of a session, in the order they are sent. `notices` are lines for the person."""

    files: tuple[MemoryFile, ...] = ()
    notices: tuple[str, ...] = ()
    changed: bool = False  # since the session stored its record

    def sections(self) -> tuple[SystemSection, ...]:
        """The sections of the files that are on."""
        return tuple(file.section() for file in self.files if file.on)

    def find(self, name: str) -> MemoryFile | None:
        """The file of that name, or the only one whose name ends with it."""
        named = [file for file in self.files if file.name == name] or [
            file for file in self.files if file.name.endswith(name)
        ]
        return named[0] if len(named) == 1 else None

    def switched(self, name: str, on: bool) -> MemoryFiles:
        """A copy with one file switched on or off."""
        files = tuple(replace(file, on=on) if file.name == name else file for file in self.files)
        return replace(self, files=files)

    def to_json(self) -> dict[str, Any]:
        """The record beside the history: the files, their content hashes, and which are on."""
        return {"files": [{"path": f.path, "sha256": f.digest, "on": f.on} for f in self.files]}

    def resumed(self, recorded: Mapping[str, tuple[str, bool]] | None) -> MemoryFiles:
        """A copy for a session with these `recorded` files (`HistoryState.memory`).

        Their switches apply; changes since are noticed. None is a session from before there were memory files, or
        without any.
        """
        before = dict(recorded or {})
        notices: list[str] = []
        files: list[MemoryFile] = []
        for file in self.files:
            digest, on = before.pop(file.path, (None, True))
            if digest is None:
                notices.append(f"{file.name} is new: it is sent with the next message (/memory switches it off).")
            elif digest != file.digest:
                notices.append(f"{file.name} has changed: its new text is sent with the next message.")
            files.append(replace(file, on=on))
        notices += [f"{path} is not found from this folder: it is no longer sent." for path in before]
        return MemoryFiles(tuple(files), (*self.notices, *notices), bool(notices))


NO_MEMORY = MemoryFiles()


def load_memory(names: Sequence[str], folder: Path, config_folder: Path | None, home: Path) -> MemoryFiles:
    """Read the files called one of `names`. Never raises: errors become notices."""
    files: list[MemoryFile] = []
    notices: list[str] = []
    read_paths: set[Path] = set()
    project = project_folders(folder, home)
    folders = [*([config_folder] if config_folder else []), *project]
    for path in (place / name for place in folders for name in names):
        shown = short_path(path, home)
        try:
            real = path.resolve()
            if real in read_paths or not is_file(real):
                continue
            read_paths.add(real)
            if wrong := _misleading(real, names, None if path.parent == config_folder else project[0].resolve()):
                notices.append(f"{shown} is not sent: {wrong}.")
                continue
            with real.open("rb") as source:
                data = source.read(MAX_FILE + 1)
            text = _text(data)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not UTF-8 text"
            notices.append(f"{shown} is not sent: {reason}.")
            continue
        if len(data) > MAX_FILE:
            notices.append(f"{shown} is longer than {MAX_FILE:,} bytes: only its beginning is sent.")
        if text.strip():
            files.append(MemoryFile(str(path), shown, text, hashlib.sha256(data).hexdigest()))
    return MemoryFiles(tuple(files), tuple(notices))


def _misleading(real: Path, names: Sequence[str], top: Path | None) -> str:
    """Why a file that leads to `real` is not sent; "" if it may be.

    A project may come from others: a link in it could lead to the person's keys, or to anything else outside `top`.
    """
    if may_hold_secrets(real.as_posix()):
        return f"it leads to {real.name}, which probably holds keys or passwords"
    if top is not None and not real.is_relative_to(top) and real.name not in names:
        return f"it is a link out of the project, to {printable(str(real))}"
    return ""


def _text(data: bytes) -> str:
    """At most `MAX_FILE` bytes as text, cut between characters. Raises ValueError if it is not text."""
    if b"\0" in data:
        raise ValueError
    whole = len(data) <= MAX_FILE
    text = getincrementaldecoder("utf-8-sig")().decode(data[:MAX_FILE], final=whole)
    return text if whole else f"{text}\n[The rest of this file was left out.]"


def project_folders(folder: Path, home: Path) -> list[Path]:
    """The folders from the project's root down to `folder`."""
    folders: list[Path] = []
    for place in (folder, *folder.parents):
        if place == home and folders:
            break
        folders.append(place)
        if is_there(place / ".git"):
            return folders[::-1]
    return folders[::-1] if home in folder.parents else [folder]
