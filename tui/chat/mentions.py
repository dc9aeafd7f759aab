"""Mentions (`@`) in a message: files and resources of MCP servers, which are attached to it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from tui.chat.attachments import check_taken
from tui.config.paths import at_home, is_file
from tui.messages import Attachment
from tui.text.mentions import mentioned_names

if TYPE_CHECKING:
    from tui.chat.servers import Servers
    from tui.chat.turn.session import ChatSession
    from tui.chat.workspace import Workspace
    from tui.tools.mcp.results import ServerResource


def mentioned(text: str, folder: Path) -> list[Path]:
    """The existing files mentioned in `text`, without duplicates."""
    paths: dict[Path, None] = {}
    for candidates in mentioned_names(text):
        for name in candidates:
            path = folder / at_home(name)
            if is_file(path):
                paths[path] = None
                break
    return list(paths)


async def named_attachments(text: str, workspace: Workspace, session: ChatSession, folder: Path) -> list[Attachment]:
    """The files and resources mentioned in a message, read now.

    Raises `AttachmentError`, also for kinds that the session's model does not accept.
    """
    if "@" not in text:
        return []
    paths = await asyncio.to_thread(mentioned, text, folder)
    attachments = [await workspace.attach(path) for path in paths]
    for resource in resources_named(text, workspace.servers):
        attachments += await workspace.servers.attach(resource)
        await workspace.servers.follow(resource)
    check_taken(attachments, session.capabilities, session.model)
    return attachments


def resources_named(text: str, servers: Servers) -> list[ServerResource]:
    """The resources mentioned in a draft as `@server:name` or `@server:uri`, without duplicates.

    A URI need not be listed by the server: servers also have resources by URI template.
    """
    mentioned_resources: dict[str, ServerResource] = {}
    resources = servers.resources
    by_name = {f"{r.server}:{r.name}": r for r in reversed(resources)} | {f"{r.server}:{r.uri}": r for r in resources}
    for candidates in mentioned_names(text):
        named = next((by_name[name] for name in candidates if name in by_name), None) or _by_pattern(
            candidates[-1], servers
        )
        if named is not None:
            mentioned_resources[f"{named.server} {named.uri}"] = named
    return list(mentioned_resources.values())


def _by_pattern(name: str, servers: Servers) -> ServerResource | None:
    from tui.tools.mcp.results import ServerResource  # not before the first frame

    server, _, uri = name.partition(":")
    heads = [pattern.head for pattern in servers.patterns if pattern.server == server and pattern.head]
    is_address = "://" in uri or any(uri.startswith(head) and uri != head for head in heads)
    return ServerResource(server, uri, uri, "", "") if server in servers.readers and is_address else None
