"""Completion of mentions: what is offered after `@`, files of the working directory and resources of MCP servers."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tui.config.files import at_home
from tui.text.cells import plain
from tui.text.labels import mention_of
from tui.text.numbers import size_text
from tui.views.view import Option, match

if TYPE_CHECKING:
    from tui.chat.servers import Servers
    from tui.tools.mcp.offer import ResourceTemplate, ServerResource, TemplateVariable

MAX_FILES = 20_000
"""Files of the working directory considered for completion."""

MAX_FILE_OFFERS = 40
"""Files offered."""

MAX_RESOURCE_OFFERS = 20
"""Resources of MCP servers offered, including addresses."""

LISTING_AGE = 10.0
"""Seconds for which a listing is cached."""

_SKIPPED = {"node_modules", "__pycache__", "target", "dist", "build", "venv", "site-packages"}
_OPEN = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]*)|([^\s"]*))$')


def open_mention(before: str) -> str | None:
    """The path typed so far after `@`, before the cursor; None if no mention is being typed."""
    mention = _OPEN.search(before)
    return (mention.group(1) or mention.group(2) or "") if mention else None


def with_mention(text: str, cursor: int, path: str, *, more: bool = False) -> tuple[str, int]:
    """`text` with the mention before `cursor` completed to `path`, and the new cursor; `more` will follow."""
    typed = _OPEN.search(text[:cursor])
    if typed is None:
        return text, cursor
    mention = mention_of(path)
    if more or path.endswith("/"):
        mention = mention.rstrip('"')  # a folder: a file in it may follow
    else:
        mention += " "
    return text[: typed.start()] + mention + text[cursor:].lstrip(" "), typed.start() + len(mention)


class FileIndex:
    """The files below a folder, for completion. To be used off the event loop."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: list[str] = []
        self._read = float("-inf")

    def offers(self, typed: str) -> list[Option]:
        """Matching files, best first; outside the folder, those of the named directory."""
        if typed.startswith(("/", "~", "..")):
            return self._elsewhere(typed)
        if time.monotonic() - self._read > LISTING_AGE:
            self._files = list(islice(walk(self.folder), MAX_FILES))
            self._read = time.monotonic()
        ranked = ((_score(typed, name), name) for name in self._files)
        best = sorted((pair for pair in ranked if pair[0] > 0), key=lambda pair: (-pair[0], len(pair[1]), pair[1]))
        return [self._choice(name) for _, name in best[:MAX_FILE_OFFERS]]

    def _choice(self, name: str) -> Option:
        try:
            size = size_text((self.folder / name).stat().st_size)
        except OSError:
            size = ""
        return Option(name, name, size)

    def _elsewhere(self, typed: str) -> list[Option]:
        head, _, tail = typed.rpartition("/")
        folder = self.folder / at_home(f"{head}/")
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name.lower())
        except OSError:
            return []
        names = [f"{head}/{entry.name}" + ("/" if entry.is_dir() else "") for entry in entries]
        matching = [name for name in names if name.rstrip("/").rpartition("/")[2].lower().startswith(tail.lower())]
        return [Option(name, name) for name in matching[:MAX_FILE_OFFERS]]


def _score(typed: str, name: str) -> float:
    """A match in the file's own name ranks above one in its folders."""
    return max(match(typed, name), 1.5 * match(typed, name.rpartition("/")[2]) if typed else 0.0)


def walk(folder: Path) -> Iterator[str]:
    """Paths of files below `folder`, relative, nearest first; hidden and generated folders are left out."""
    waiting = deque([""])
    while waiting:
        place = waiting.popleft()
        try:
            entries = sorted(os.scandir(folder / place), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _SKIPPED:
                    waiting.append(f"{place}{entry.name}/")
            elif entry.is_file():
                yield f"{place}{entry.name}"


def resource_offers(typed: str, resources: Iterable[ServerResource]) -> list[Option]:
    """Matching resources, best first."""
    ranked = [(match(typed, f"{r.server}:{r.name}"), r) for r in resources] if typed else []
    best = sorted((pair for pair in ranked if pair[0] >= 1), key=lambda pair: (-pair[0], pair[1].server, pair[1].name))
    return [
        Option(f"{r.server}:{r.name}", plain(f"{r.server}:{r.name}"), plain(r.description or r.media_type))
        for _, r in best[:MAX_RESOURCE_OFFERS]
    ]


async def template_offers(typed: str, servers: Servers) -> list[Option]:
    """Beginnings of addresses that follow a URI template, then the server's completions for its variable."""
    from tui.tools.mcp.offer import open_variable  # not before the first frame

    offers: list[Option] = []
    asked: list[tuple[ResourceTemplate, TemplateVariable]] = []
    for template in servers.templates if typed else ():
        start = f"{template.server}:{template.head}"
        if typed.startswith(start):
            variable = open_variable(template.template, typed.removeprefix(f"{template.server}:"))
            if variable is not None:
                asked.append((template, variable))
        elif match(typed, f"{template.server}:{template.template}") >= 1:
            shown = plain(f"{template.server}:{template.template}")
            offers.append(Option(start, shown, plain(template.description), cursor=len(start)))
    endings = await asyncio.gather(*(servers.complete(template, variable) for template, variable in asked))
    for (template, variable), values in zip(asked, endings, strict=True):
        for value in values:
            name = f"{template.server}:{variable.filled(value)}"
            offers.append(Option(name, plain(name), cursor=None if variable.last else len(name)))
    return offers[:MAX_RESOURCE_OFFERS]


async def mention_offers(text: str, cursor: int, files: FileIndex, servers: Servers | None) -> list[Option]:
    """Completions of the draft for the mention before `cursor`: resources, then files. Empty without a mention."""
    typed = open_mention(text[:cursor])
    if typed is None:
        return []
    offers = await asyncio.to_thread(files.offers, typed)
    if servers is not None:
        offers = [*resource_offers(typed, servers.resources), *await template_offers(typed, servers), *offers]
    completed = [(with_mention(text, cursor, o.key, more=o.cursor is not None), o) for o in offers]
    return [Option(draft, offer.label, offer.detail, cursor=place) for (draft, place), offer in completed]
