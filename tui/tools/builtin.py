"""The built-in tools: they read the working directory and change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tui.context.deferral import BUILT_IN
from tui.tools import list_files, read_file, search_files
from tui.tools.base import Tool, ToolError, ToolOutput
from tui.tools.confine import Confinement

SLOW = 25.0  # seconds; each tool has its own, shorter limit: this one is for a file system that does not answer


class BuiltInTools:
    """A `ToolSource`. `root` is the working directory, `allowed` are further folders."""

    name = BUILT_IN

    def __init__(self, root: Path, allowed: Sequence[Path] = ()) -> None:
        self._confinement = Confinement(root, allowed)
        self._tools = (
            Tool(list_files.SCHEMA, True, self._threaded(list_files.list_files)),
            Tool(read_file.SCHEMA, True, self._threaded(read_file.read_file), self._wary),
            Tool(search_files.SCHEMA, True, self._search, self._wary),
        )

    def tools(self) -> Sequence[Tool]:
        """Always the same three."""
        return self._tools

    def _wary(self, arguments: Mapping[str, Any]) -> str:
        return read_file.wary(arguments, self._confinement)

    async def _search(self, arguments: Mapping[str, Any]) -> ToolOutput:
        return await search_files.search_files(arguments, self._confinement)

    def _threaded(
        self, tool: Callable[[Mapping[str, Any], Confinement], ToolOutput]
    ) -> Callable[[Mapping[str, Any]], Any]:
        async def run(arguments: Mapping[str, Any]) -> ToolOutput:
            try:
                return await asyncio.wait_for(asyncio.to_thread(tool, arguments, self._confinement), SLOW)
            except TimeoutError:
                raise ToolError(f"The file system did not answer within {SLOW:.0f} seconds.") from None

        return run
