"""The tool `list_files`: the contents of a folder, or all files below it whose path matches a glob."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from tui.messages import ToolSchema
from tui.tools.base import ToolOutput
from tui.tools.files.confine import Confinement
from tui.tools.files.texts import printable
from tui.tools.files.walk import Walk, WalkEntry, path_filter

SCHEMA = ToolSchema(
    "list_files",
    "Lists a folder of the working directory or, with glob, all files below it whose path fits. Leaves out what git"
    " ignores.",
    '{"additionalProperties":false,"properties":{'
    '"glob":{"description":"like *.py or src/**/*.ts","type":"string"},'
    '"path":{"description":"the folder, from the working directory, which it is unless given","type":"string"}},'
    '"type":"object"}',
)
MAX_LISTED = 500
SECONDS = 10.0


def list_files(arguments: Mapping[str, Any], confinement: Confinement) -> ToolOutput:
    """Names, one per line: folders with "/", links with "@". Raises `ToolError`. Not on the event loop."""
    glob = arguments.get("glob")
    place = confinement.place(str(arguments.get("path", ".")))
    walk = Walk(confinement, place, time.monotonic() + SECONDS, deep=glob is not None)
    fits = path_filter(glob)
    shown: list[str] = []
    count = 0
    for entry in walk.entries():
        if glob is not None and (entry.is_folder or not fits(entry.path)):
            continue
        count += 1
        if len(shown) < MAX_LISTED:
            shown.append(_line(entry))
    if count > len(shown):
        least = "at least " if walk.cut else ""
        narrower = "a longer path or a narrower glob shows them" if glob is not None else "a glob shows some of them"
        shown.append(f"[and {least}{count - len(shown):,} more; {narrower}]")
    elif walk.cut:
        shown.append(f"[not all of {place.shown} was looked at: {walk.cut}; a longer path helps]")
    if not count:
        shown.append("[no file fits]" if glob is not None else "[empty]")
    if walk.ignored:
        shown.append(f"[{walk.ignored:,} ignored by git {'is' if walk.ignored == 1 else 'are'} not listed]")
    return ToolOutput("\n".join(shown))


def _line(entry: WalkEntry) -> str:
    name = printable(entry.path)
    if entry.is_link:
        return f"{name}@"
    return f"{name}/" if entry.is_folder else f"{name}  {entry.size:,} B" if entry.size is not None else f"{name}="
