"""Confines the built-in tools to the working directory and the folders that a person allowed.

A path is resolved first; the result is opened component by component below the allowed folder, never through a symbolic
link. So a link that leads out is refused, even one created between the two steps.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tui.config.files import is_link, is_there
from tui.tools.base import ToolError
from tui.tools.files.texts import printable, unescaped

if TYPE_CHECKING:
    from collections.abc import Iterator

BY_FOLDER = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")
"""Whether files can be opened relative to an open folder; not on Windows."""

_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_FILE = _READ | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
OPEN_FOLDER = _READ | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0)

_KERNEL = frozenset({"dev", "proc", "sys"})
"""Folders below the root without ordinary files. `/proc/self/environ` has the keys of this program."""

Kind = Literal["file", "folder"]


@dataclass(frozen=True, slots=True)
class Place:
    """A resolved path: an allowed folder, and the path below it. `shown` is its name for the model."""

    base: Path
    parts: tuple[str, ...]
    shown: str

    @property
    def path(self) -> Path:
        """The whole path."""
        return self.base.joinpath(*self.parts)

    @property
    def name(self) -> str:
        """The last component."""
        return self.parts[-1] if self.parts else self.base.name


class Confinement:
    """The folders that may be read. Relative paths begin at `root`."""

    def __init__(self, root: Path, allowed: Sequence[Path] = ()) -> None:
        self.root = root.resolve()
        self._bases = [self.root, *(folder.resolve() for folder in allowed)]

    def place(self, path: str) -> Place:
        """Resolve `path`. Raises `ToolError` if it leads outside."""
        if "\0" in path:
            raise ToolError("A path can't hold a NUL character.")
        try:
            wanted = self.root / Path(path.strip() or ".").expanduser()
            if "\\x" in path and not is_there(wanted):
                wanted = self.root / unescaped(path.strip())
            real = wanted.resolve()
        except (OSError, ValueError, RuntimeError) as error:  # loops of links, names too long, no such user
            raise ToolError(f"{path[:200]} can't be resolved ({error}).") from None
        for base in self._bases:
            if real.is_relative_to(base):
                parts = real.relative_to(base).parts
                if len(base.parts) == 1 and not _KERNEL.isdisjoint(parts[:1]):
                    raise ToolError(f"{path[:200]} belongs to the operating system: only plain files can be read.")
                shown = "/".join(parts) or "." if base == self.root else real.as_posix()
                return Place(base, parts, printable(shown))
        linked = " (it is a link that leads there)" if is_link(wanted) else ""
        raise ToolError(
            f"{path[:200]} is outside the working directory{linked}: only files in it can be read. The person can allow"
            " another folder with [tools] allow in the config file."
        )

    @contextmanager
    def opened(self, place: Place, kind: Kind) -> Iterator[int]:
        """A descriptor of the file or folder. Raises `ToolError` for anything else, and for what can't be opened."""
        try:
            descriptor = _descend(place, kind) if BY_FOLDER else _open_checked(place, kind)
        except OSError as error:
            raise ToolError(_reason(place.shown, error)) from None
        try:
            if wrong := wrong_kind(os.fstat(descriptor).st_mode, kind):
                raise ToolError(f"{place.shown} {wrong}.")
            yield descriptor
        finally:
            os.close(descriptor)


def wrong_kind(mode: int, kind: Kind) -> str:
    """Why a file of this mode is not of the wanted kind, "" if it is."""
    if (stat.S_ISREG if kind == "file" else stat.S_ISDIR)(mode):
        return ""
    if stat.S_ISDIR(mode):
        return "is a folder: list_files shows what is in it"
    if stat.S_ISREG(mode):
        return "is a file, not a folder: read_file reads it"
    names = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    return f"is {names.get(stat.S_IFMT(mode), 'a special file')}: only plain files can be read"


def _descend(place: Place, kind: Kind) -> int:
    """Open from the allowed folder downward; no component may have become a link."""
    at = os.open(place.base, _READ | os.O_DIRECTORY)
    try:
        for name in place.parts[:-1]:
            at, above = os.open(name, OPEN_FOLDER, dir_fd=at), at
            os.close(above)
        if not place.parts:
            at, descriptor = -1, at
            return descriptor
        name = place.parts[-1]
        mode = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            raise OSError(errno.ELOOP, "it became a link")
        if wrong := wrong_kind(mode, kind):  # before it is opened: opening a device may do something
            raise ToolError(f"{place.shown} {wrong}.")
        return os.open(name, OPEN_FOLDER if kind == "folder" else _FILE, dir_fd=at)
    finally:
        if at >= 0:
            os.close(at)


def _open_checked(place: Place, kind: Kind) -> int:
    """If folders can't be opened as descriptors: open, and check again where the path leads."""
    before = place.path.stat()
    if wrong := wrong_kind(before.st_mode, kind):
        raise ToolError(f"{place.shown} {wrong}.")
    descriptor = os.open(place.path, _FILE)
    after = os.fstat(descriptor)
    if place.path.resolve() != place.path or (before.st_dev, before.st_ino) != (after.st_dev, after.st_ino):
        os.close(descriptor)
        raise OSError(errno.ELOOP, "it became a link")
    return descriptor


def _reason(shown: str, error: OSError) -> str:
    match error.errno:
        case errno.ENOENT:
            return f"There is no {shown}: list_files shows what there is."
        case errno.EACCES | errno.EPERM:
            return f"{shown} can't be read: permission denied."
        case errno.ELOOP:
            return f"{shown} became a symbolic link while it was opened: refused."
        case errno.ENOTDIR:
            return f"{shown} leads through something that is not a folder."
        case errno.ENAMETOOLONG:
            return "That path is too long."
        case _:
            return f"{shown[:200]} can't be read ({error.strerror or type(error).__name__})."
