"""`chatctx sessions`, `models`, `export`: what there is, as tables or JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from tui.chat.export import export_session
from tui.chat.store import SessionStore
from tui.chat.workspace import UsageError, Workspace
from tui.config import Settings


def write(text: str) -> None:
    """Print to standard output."""
    sys.stdout.write(text + "\n")


def table(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Columns, two blanks apart; those in `right` are flush right. Control characters of titles are taken out."""
    clean = [["".join(c if c.isprintable() else " " for c in cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*clean, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in clean
    )
    return "\n".join(lines)


def sessions(args: Namespace, settings: Settings) -> int:
    """List stored sessions."""
    store = SessionStore(settings.database)
    try:
        found = [info for info in store.sessions(args.query) if info.messages]
    finally:
        store.close()
    if args.json:
        write(json.dumps([asdict(info) for info in found]))
    elif not found:
        write("No session contains that." if args.query else "No sessions yet. Start one with: chatctx")
    else:
        rows = [
            (
                info.id,
                datetime.fromtimestamp(info.updated_at).strftime("%Y-%m-%d %H:%M"),
                str(info.messages),
                f"{info.provider}/{info.model}",
                info.title,
            )
            for info in found
        ]
        write(table(rows, right=frozenset({2})))
    return 0


def models(args: Namespace, settings: Settings) -> int:
    """List the models of every provider that can be used now."""
    return asyncio.run(_models(args, settings))


async def _models(args: Namespace, settings: Settings) -> int:
    workspace = await Workspace.open(settings)
    try:
        found = [(f"{name}/{info.id}", info) for name, info in await workspace.models()]
    finally:
        await workspace.close()
    found = [(full, info) for full, info in found if args.query.lower() in full.lower()]
    if args.json:
        entries = [
            {
                "name": full,
                "title": info.name,
                "context": info.limits.context if info.limits else None,
                "input": info.limits.input if info.limits else None,
                "output": info.limits.output if info.limits else None,
                "source": info.limits.source if info.limits else "unknown",
            }
            for full, info in found
        ]
        write(json.dumps(entries))
    elif found:
        rows = [
            (full, f"{info.limits.context:,}" if info.limits and info.limits.context else "?") for full, info in found
        ]
        write(table([("model", "window"), *rows], right=frozenset({1})))
    else:
        write("No model matches.")
    return 0


def export(args: Namespace, settings: Settings) -> int:
    """Write a session to a file."""
    store = SessionStore(settings.database)
    try:
        info = store.session(args.session)
        if info is None:
            raise UsageError(f"no session {args.session!r}; list them with: chatctx sessions")
        try:
            export_session(args.file, store, info.id)
        except ValueError as error:
            raise UsageError(str(error)) from None
        except OSError as error:
            raise UsageError(f"{args.file} can't be written: {error.strerror}") from None
    finally:
        store.close()
    write(f"Wrote {args.file} ({info.messages} messages)")
    return 0
