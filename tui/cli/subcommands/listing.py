"""`chatctx sessions`, `context`, `models` and `config`: tables or JSON."""

from __future__ import annotations

import asyncio
import gc
import json
import shutil
from contextlib import closing
from dataclasses import asdict

from tui.chat.model_list import ListedModel
from tui.chat.store.database import damage_lines
from tui.chat.store.store import SessionStore
from tui.chat.workspace import Workspace
from tui.cli import complain, table, write
from tui.config.settings import Settings, settings_schema
from tui.context.usage.usage import usage_to_json
from tui.text.numbers import price_per_million, timestamp, tokens_exact

MAX_SESSIONS = 1_000


def sessions(settings: Settings, *, query: str, every: bool, as_json: bool) -> int:
    """List stored sessions, the newest `MAX_SESSIONS` or `every` one."""
    with closing(SessionStore(settings.database)) as store:
        listed = [info for info in store.sessions(query, limit=-1) if info.messages]
    for line in damage_lines(store.damage):
        complain(line)
    if len(listed) > MAX_SESSIONS and not every:
        complain(f"the newest {MAX_SESSIONS:,} of {len(listed):,} sessions; --all lists the rest, TEXT searches in all")
        listed = listed[:MAX_SESSIONS]
    if as_json:
        write(json.dumps([asdict(info) for info in listed]))
    elif not listed:
        write(f"No session contains {query!r}." if query else "No sessions yet. Start one with: chatctx")
    else:
        rows = [
            (info.id, timestamp(info.updated_at), str(info.messages), f"{info.provider}/{info.model}", info.title)
            for info in listed
        ]
        write(table(rows, right=frozenset({2})))
    return 0


def context(settings: Settings, *, session: str | None, as_json: bool) -> int:
    """Measure and print. Changes nothing in the session."""
    gc.disable()  # a long conversation has no garbage; looking for it takes a quarter of the time
    write(asyncio.run(_measured(settings, session, as_json=as_json)))
    return 0


async def _measured(settings: Settings, ident: str | None, *, as_json: bool) -> str:
    """Measure with the tools that MCP servers had at their last run; none is started."""
    workspace = await Workspace.open(settings)
    try:
        session = await workspace.resume(ident, look=True)
        if as_json:
            usage, plan = await session.refresh_usage(), session.tools.plan
            deferred = {"tools": len(plan.deferred), "tokens": plan.tokens}
            text = json.dumps(usage_to_json(usage) | {"deferred": deferred})
        else:
            from tui.views.context_table import ContextView

            width = max(40, shutil.get_terminal_size((100, 24)).columns)
            lines = await ContextView(session, workspace, picture_rows=3).lines(width)
            text = "\n".join(line.plain for line in lines)
        for line in damage_lines(workspace.store.damage):
            complain(line)
        return text
    finally:
        await workspace.close()


def models(settings: Settings, *, query: str, as_json: bool) -> int:
    """List the models of every usable provider."""
    return asyncio.run(_models(settings, query, as_json))


async def _models(settings: Settings, query: str, as_json: bool) -> int:
    workspace = await Workspace.open(settings)
    try:
        listing = await workspace.model_list.ask()
    finally:
        await workspace.close()
    for problem in listing.problems:
        complain(problem)
    matching = [model for model in listing.models if query.lower() in model.full_name.lower()]
    if as_json:
        write(json.dumps([_entry(model) for model in matching]))
    elif matching:
        head = ("model", "window", "from", "$ in", "$ out", "images", "tools", "reasoning", "counts")
        write(table([head, *map(_row, matching)], right=frozenset({1, 3, 4})))
        write("Prices per million tokens. reasoning: when it is sent back. counts: whether the server counts exactly.")
    else:
        write("No model matches.")
    return 0


def _entry(model: ListedModel) -> dict[str, object]:
    info, limits = model.info, model.limits
    price_input, price_output = info.price or (None, None)
    return {
        "name": model.full_name,
        "title": info.name,
        "context": limits.context,
        "input": limits.input,
        "output": limits.output,
        "source": limits.source,
        "price_input": price_input,
        "price_output": price_output,
        "images": info.images,
        "pdfs": info.pdfs,
        "tools": info.tools,
        "reasoning_return": model.able.reasoning_return,
        "count_endpoint": model.able.count_endpoint,
        "used_at": model.used_at,
    }


def _row(model: ListedModel) -> tuple[str, ...]:
    info, limits = model.info, model.limits
    return (
        model.full_name,
        tokens_exact(limits.context),
        limits.detail if limits.context else "?",
        *(("?", "?") if info.price is None else map(price_per_million, info.price)),
        _yes_no(info.images),
        _yes_no(info.tools),
        model.able.reasoning_return.replace("_", " "),
        _yes_no(model.able.count_endpoint),
    )


def _yes_no(value: bool | None) -> str:
    return "?" if value is None else "yes" if value else "no"


def config(settings: Settings, *, document: str) -> int:
    """Print the schema of the config file."""
    write(json.dumps({"schema": settings_schema}[document](), indent=2))
    return 0
