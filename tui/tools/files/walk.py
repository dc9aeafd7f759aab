"""Walks a confined folder: names in order, links not followed, files ignored by git left out, all within limits.

What git ignores is read from `.gitignore` files, the repository's `info/exclude` and the person's own ignore file
(gitignore(5)); git is not needed.
Globs are matched in time that grows only with path and glob: both may be hostile.
"""

from __future__ import annotations

import fnmatch
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.config.files import at_home, is_there
from tui.tools.base import ToolError
from tui.tools.files.confine import BY_FOLDER, OPEN_FOLDER, Confinement, Place

MAX_DEPTH = 40  # levels of folders
MAX_SEEN = 200_000  # entries after which a walk ends
IGNORE_FILE = ".gitignore"
ALWAYS = frozenset({".git", ".hg", ".svn", ".jj"})  # folders of version control: never listed, never searched
MAX_IGNORE_FILE = 200_000  # bytes read of an ignore file
_EXCLUDES_FILE = re.compile(r'^[ \t]*\[core\][^\[]*?^[ \t]*excludesfile[ \t]*=[ \t]*"?([^"\n#;]+)', re.I | re.M)


@dataclass(frozen=True, slots=True)
class WalkEntry:
    """One entry. `path` is relative to the walked folder, with "/"; `size` in bytes, None for all but plain files."""

    path: str
    is_folder: bool
    is_link: bool = False
    size: int | None = None


@dataclass(slots=True)
class Walk:
    """A walk through `place`. Afterwards `ignored` counts omitted entries and `cut` says why it ended early."""

    confinement: Confinement
    place: Place
    deadline: float  # by time.monotonic
    deep: bool = True
    ignored: int = 0
    seen: int = 0
    cut: str = ""
    _prefix: str = ""  # of paths, from the root of the git repository

    def entries(self) -> Iterator[WalkEntry]:
        """Folders come before their contents. Raises `ToolError` if the folder can't be opened."""
        self._prefix, rules = rules_above(self.place.path)
        if BY_FOLDER:
            with self.confinement.opened(self.place, "folder") as descriptor:
                yield from self._walk(descriptor, "", rules, 0)
        else:
            yield from self._walk(None, "", rules, 0)

    def _walk(
        self, descriptor: int | None, below: str, rules: tuple[IgnoreRule, ...], depth: int
    ) -> Iterator[WalkEntry]:
        folder = self.place.path / below
        if text := read_at(descriptor, folder, IGNORE_FILE):
            rules = (*rules, *parse_ignore(text, f"{self._prefix}{below}".rstrip("/")))
        for entry in self._listed(descriptor, folder):
            self.seen += 1
            if self.seen > MAX_SEEN:
                self.cut = f"more than {MAX_SEEN:,} entries"
            elif time.monotonic() > self.deadline:
                self.cut = "it took too long"
            if self.cut:
                return
            path = f"{below}/{entry.name}" if below else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name in ALWAYS or ignore_verdict(f"{self._prefix}{path}", is_folder, rules):
                self.ignored += entry.name not in ALWAYS
                continue
            yield WalkEntry(path, is_folder, entry.is_symlink(), _size(entry))
            if is_folder and self.deep and depth < MAX_DEPTH:
                yield from self._into(descriptor, entry.name, path, rules, depth + 1)

    def _into(
        self, above: int | None, name: str, path: str, rules: tuple[IgnoreRule, ...], depth: int
    ) -> Iterator[WalkEntry]:
        if above is None:
            yield from self._walk(None, path, rules, depth)
            return
        try:
            descriptor = os.open(name, OPEN_FOLDER, dir_fd=above)
        except OSError:
            return  # removed, forbidden, or a link by now: only its name is listed
        try:
            yield from self._walk(descriptor, path, rules, depth)
        finally:
            os.close(descriptor)

    def _listed(self, descriptor: int | None, folder: Path) -> Sequence[os.DirEntry[str]]:
        try:
            with os.scandir(folder if descriptor is None else descriptor) as listing:
                entries: list[os.DirEntry[str]] = []
                for entry in listing:
                    entries.append(entry)
                    if self.seen + len(entries) > MAX_SEEN + 1:
                        break
        except OSError as error:
            if descriptor is None or folder == self.place.path:
                raise ToolError(f"{self.place.shown} can't be listed ({error.strerror}).") from None
            return ()
        return sorted(entries, key=lambda entry: entry.name)


def _size(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else None
    except OSError:
        return None  # removed since it was listed


# -- what git ignores --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line. `folder` is where its file is, from the root of the git repository, "" for that."""

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


def rules_above(folder: Path) -> tuple[str, tuple[IgnoreRule, ...]]:
    """The path down to `folder` from the root of its git repository, with "/" at its end, and the rules on the way.

    Those of the person's own ignore file and of the repository's `info/exclude` are the first. A folder in no
    repository has none of them.
    """
    root = next((above for above in (folder, *folder.parents) if is_there(above / ".git")), folder)
    rules = parse_ignore(_own_rules(), "") if is_there(root / ".git") else []
    rules += parse_ignore(read_at(None, _git_folder(root) / "info", "exclude"), "")
    for above in reversed(folder.parents):
        if above.is_relative_to(root) and (text := read_at(None, above)):
            rules += parse_ignore(text, "" if above == root else above.relative_to(root).as_posix())
    return "" if folder == root else f"{folder.relative_to(root).as_posix()}/", tuple(rules)


def _git_folder(root: Path) -> Path:
    """The folder with the repository's `info`. In a worktree or a submodule `.git` is a file that names another one."""
    named = read_at(None, root, ".git").removeprefix("gitdir:").strip()
    folder = root / named if named else root / ".git"
    return folder / read_at(None, folder, "commondir").strip()


def _own_rules() -> str:
    """The person's own ignore file, by git's settings or where it is by default; "" if there is none."""
    folder = at_home(os.environ.get("XDG_CONFIG_HOME") or "~/.config") / "git"
    for settings in (at_home("~/.gitconfig"), folder / "config"):
        if match := _EXCLUDES_FILE.search(read_at(None, settings.parent, settings.name, follow=True)):
            file = at_home(match[1].strip())
            return read_at(None, file.parent, file.name, follow=True)
    return read_at(None, folder, "ignore", follow=True)


def read_at(descriptor: int | None, folder: Path, name: str = IGNORE_FILE, *, follow: bool = False) -> str:
    """An ignore file's text, read through an open folder (or its path where that is not possible); "" if there is none.

    Links are not followed, as in git, except to the person's own files; a pipe is not waited for.
    """
    try:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | (0 if follow else getattr(os, "O_NOFOLLOW", 0))
        path = name if descriptor is not None else folder / name
        with os.fdopen(os.open(path, flags, dir_fd=descriptor), "rb") as file:
            return file.read(MAX_IGNORE_FILE).decode("utf-8-sig", "replace")
    except (OSError, ValueError):
        return ""  # missing or unreadable, or no path at all: git would ignore it, too


# -- globs -------------------------------------------------------------------------------------------------------------

MAX_FORMS = 64  # alternatives from braces
MAX_PATTERN = 1_000  # characters


@dataclass(frozen=True, slots=True)
class Glob:
    """One form of a glob: an expression for each component, None for "**"."""

    steps: tuple[re.Pattern[str] | None, ...]

    def match(self, path: str) -> bool:
        """Whether it matches all of a relative path with "/"."""
        parts = path.split("/")
        at = {0}  # numbers of components that may be matched so far
        for number, step in enumerate(self.steps):
            if not at:
                return False
            if step is None:
                first = min(at) + (number == len(self.steps) - 1)  # "a/**" matches the contents of a, not a
                at = set(range(first, len(parts) + 1))
            else:
                at = {place + 1 for place in at if place < len(parts) and step.match(parts[place])}
        return len(parts) in at


def make_glob(glob: str, *, anchored: bool) -> Glob:
    r"""A glob with `*`, `?`, `[...]`, `**` and `\\`; unless `anchored` it may match in any folder.

    Raises ValueError if it is malformed.
    """
    if len(glob) > MAX_PATTERN:
        raise ValueError("it is too long")
    parts = [part for part in glob.split("/") if part]
    if not anchored:
        parts = ["**", *parts]
    steps: list[re.Pattern[str] | None] = []
    for part in parts:
        if part == "**":
            if not steps or steps[-1] is not None:
                steps.append(None)
            continue
        try:
            steps.append(re.compile(fnmatch.translate(_plain(part))))
        except re.error as error:
            raise ValueError(str(error)) from None
    return Glob(tuple(steps))


def _plain(part: str) -> str:
    """In the syntax of `fnmatch`: backslash escapes a character, `[^` negates like `[!`, consecutive stars are one."""
    part = re.sub(r"\\(.)|\[\^", _translated, part)
    return re.sub(r"\*+", "*", part)


def _translated(match: re.Match[str]) -> str:
    character = match[1]
    if character is None:
        return "[!"
    return f"[{character}]" if character in "*?[" else str(character)


def expanded(glob: str) -> list[str]:
    """`glob` without braces: `*.{py,md}` is `*.py` and `*.md`. Raises ValueError for too many alternatives."""
    forms = [glob]
    while (braces := re.search(r"\{([^{}]*)\}", forms[0])) is not None:
        options = braces[1].split(",")
        forms = [form.replace(braces[0], option, 1) for form in forms for option in options]
        if len(forms) > MAX_FORMS:
            raise ValueError("its braces have too many alternatives")
    return forms


def path_filter(glob: object) -> Callable[[str], bool]:
    """Whether a path fits a tool's argument `glob`, None for any path. Raises `ToolError` if it is malformed.

    Without "/" it matches file names in any folder.
    """
    if glob is None:
        return lambda _path: True
    text = str(glob)
    try:
        globs = [make_glob(form, anchored="/" in form) for form in expanded(text.removeprefix("./"))]
    except ValueError as error:
        raise ToolError(f"The glob {text[:100]!r} can't be read ({error}): write it like *.py or src/**/*.ts") from None
    return lambda path: any(glob.match(path) for glob in globs)
