"""Globs for paths, matched in time that grows only with path and glob: both may be hostile."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass

from tui.tools.base import ToolError

MOST_FORMS = 64  # alternatives from braces
LONGEST = 1_000  # characters


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
    if len(glob) > LONGEST:
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
        if len(forms) > MOST_FORMS:
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
