"""Resources of MCP servers in the draft: `@server:name` completes, and goes along with the message."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tui.chat.attachments import AttachmentError
from tui.commands.registry import match
from tui.screens.mentions import mentioned_names, open_mention
from tui.text.cells import plain
from tui.widgets.composer.completion import Choice

if TYPE_CHECKING:
    from tui.screens.mcp_ports import ServersLike
    from tui.screens.session_ports import SessionLike
    from tui.tools.mcp.patterns import Gap, ServerPattern
    from tui.tools.mcp.results import ServerResource

OFFERED = 20


def resource_offers(typed: str, resources: Iterable[ServerResource]) -> list[Choice]:
    """Resources that fit what was typed after `@`, best first."""
    ranked = [(match(typed, f"{r.server}:{r.name}"), r) for r in resources] if typed else []
    best = sorted((pair for pair in ranked if pair[0] >= 1), key=lambda pair: (-pair[0], pair[1].server, pair[1].name))
    return [
        Choice(f"{r.server}:{r.name}", plain(f"{r.server}:{r.name}"), plain(r.description or r.media_type))
        for _, r in best[:OFFERED]
    ]


async def pattern_offers(typed: str, servers: ServersLike) -> list[Choice]:
    """Beginnings of addresses that follow a server's pattern, then what the server offers to fill them with."""
    from tui.tools.mcp.patterns import gap  # not before the first frame

    offers: list[Choice] = []
    asked: list[tuple[ServerPattern, Gap]] = []
    for pattern in servers.patterns if typed else ():
        start = f"{pattern.server}:{pattern.head}"
        if typed.startswith(start):
            if (found := gap(pattern.template, typed.removeprefix(f"{pattern.server}:"))) is not None:
                asked.append((pattern, found))
        elif match(typed, f"{pattern.server}:{pattern.template}") >= 1:
            shown = plain(f"{pattern.server}:{pattern.template}")
            offers.append(Choice(start, shown, plain(pattern.description), len(start)))
    endings = await asyncio.gather(*(servers.complete(pattern, found) for pattern, found in asked))
    for (pattern, found), values in zip(asked, endings, strict=True):
        for value in values:
            name = f"{pattern.server}:{found.filled(value)}"
            offers.append(Choice(name, plain(name), "", None if found.last else len(name)))
    return offers[:OFFERED]


class ResourceSizes:
    """What the resources in a draft cost. Each is read once for this; it is read anew when it is sent."""

    def __init__(self) -> None:
        self._sizes: dict[tuple[str, str, str], int | None] = {}  # (model, server, uri) -> tokens

    async def sizes(self, text: str, session: SessionLike, servers: ServersLike) -> list[tuple[str, int]]:
        """Name and tokens of each resource that `text` names; what can't be read is left to sending, which says so."""
        found = []
        typing = open_mention(text)
        for resource in resources_named(text, servers):
            if resource.name == resource.uri and f"{resource.server}:{resource.uri}" == typing:
                continue  # an address that is still being typed is no resource yet
            key = (session.model, resource.server, resource.uri)
            if key not in self._sizes:
                self._sizes[key] = await self._count(resource, session, servers)
            if (size := self._sizes[key]) is not None:
                found.append((f"{resource.server}:{resource.name}", size))
        return found

    async def _count(self, resource: ServerResource, session: SessionLike, servers: ServersLike) -> int | None:
        from tui.context.counting.images import attachment_tokens

        try:
            attachments = await servers.attach(resource)
        except AttachmentError:
            return None
        total = 0
        for attachment in attachments:
            size = await asyncio.to_thread(session.draft_tokens, attachment.text) if attachment.text else None
            total += attachment_tokens(attachment, session.model) if size is None else size
        return total


def resources_named(text: str, servers: ServersLike) -> list[ServerResource]:
    """The resources a draft names with `@server:name` or `@server:uri`, each once.

    A URI need not be among those the server lists: servers also have resources by pattern.
    """
    found: dict[str, ServerResource] = {}
    resources = servers.resources
    known = {f"{r.server}:{r.name}": r for r in reversed(resources)} | {f"{r.server}:{r.uri}": r for r in resources}
    for candidates in mentioned_names(text):
        named = next((known[name] for name in candidates if name in known), None) or _by_pattern(
            candidates[-1], servers
        )
        if named is not None:
            found[f"{named.server} {named.uri}"] = named
    return list(found.values())


def _by_pattern(name: str, servers: ServersLike) -> ServerResource | None:
    from tui.tools.mcp.results import ServerResource  # not before the first frame

    server, _, uri = name.partition(":")
    heads = [pattern.head for pattern in servers.patterns if pattern.server == server and pattern.head]
    is_address = "://" in uri or any(uri.startswith(head) and uri != head for head in heads)
    return ServerResource(server, uri, uri, "", "") if server in servers.readers and is_address else None
