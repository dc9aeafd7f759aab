"""An MCP server, by the official SDK, that does what no server should: it hangs, dies in mid-call, says megabytes,
changes its tools and has hundreds of them, and pages that it does not list. Run by tests/tools/mcp/test_failures.py.

Arguments: `many N` begins with N tools more.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import Completion, CompletionArgument

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.tools.mcp.many_tools import describe

server = MCPServer("naughty", version="1")


def complain(text: str) -> None:
    """A line on standard error."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def work(identifier: str, note: str = "", dry_run: bool = False, limit: int = 10) -> str:
    """What each of the many tools does."""
    return f"{identifier}: {note or 'done'}, {limit}{' (dry run)' if dry_run else ''}"


def add_many(first: int, count: int) -> None:
    """`count` tools more."""
    for number in range(first, first + count):
        server.add_tool(work, name=f"operation_{number}", description=describe(number))


@server.tool()
async def hang() -> str:
    """Never answers."""
    import anyio

    try:
        await anyio.sleep(3600)
    except BaseException:
        complain("hang was cancelled")
        raise
    return "woke up"


@server.tool()
async def slow(steps: int, ctx: Context) -> str:
    """Takes a while, and says that it goes on."""
    import anyio

    for step in range(steps):
        await ctx.report_progress(step, steps)
        await anyio.sleep(0.15)
    return "done after all"


@server.tool()
def die() -> str:
    """Ends the program."""
    complain("Segmentation fault at [red]0x0[/red] \x1b[31mreally\x1b[0m token=abcdef0123456789")
    os._exit(139)


@server.tool()
def big() -> str:
    """Five megabytes."""
    return "0123456789abcdef " * (5_000_000 // 17)


@server.tool()
async def grow(count: int, ctx: Context) -> str:
    """More tools from now on."""
    add_many(0, count)
    await ctx.notify_tools_changed()
    return f"{count} more"


@server.tool()
def shout(name: str) -> str:
    """An environment variable of this program."""
    complain(f"the variable is {os.environ.get(name)}")
    return str(os.environ.get(name))


@server.resource("page://{number}")
def page(number: str) -> str:
    """A resource that is in no list."""
    return f"page {number}"


async def endings(reference: object, argument: CompletionArgument, context: object) -> Completion:
    """Endings for the number of a page."""
    return Completion(values=[number for number in ("4", "42", "7") if number.startswith(argument.value)])


register: Any = server.completion  # which has no types
register()(endings)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["many", count]:
            add_many(0, int(count))
    server.run()
