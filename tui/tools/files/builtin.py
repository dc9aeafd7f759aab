"""The built-in tools: they read the working directory and change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tui.config.files import find_program
from tui.messages import BUILT_IN
from tui.tools.base import Tool, ToolError, ToolOutput
from tui.tools.files import list_files, read_file, search_files
from tui.tools.files.confine import Confinement
from tui.tools.files.secret_files import SensitiveFile, sensitive_file

SLOW = 25.0  # seconds; for file systems that don't respond, since each tool has its own, shorter limit


class BuiltInTools:
    """The source of the built-in tools. `root` is the working directory, `allowed` are further folders."""

    name = BUILT_IN

    def __init__(self, root: Path, allowed: Sequence[Path] = ()) -> None:
        self._confinement = Confinement(root, allowed)
        self._asked: dict[str, SensitiveFile] = {}  # by the reason that was told
        self._tools = (
            Tool(list_files.SCHEMA, True, self._list),
            Tool(read_file.SCHEMA, True, self._read, self._ask_reason, self._read),
            Tool(search_files.SCHEMA, True, self._search, self._ask_reason, self._search),
        )

    def tools(self) -> Sequence[Tool]:
        """Always the same three."""
        return self._tools

    def _ask_reason(self, arguments: Mapping[str, Any]) -> str:
        file = sensitive_file(arguments, self._confinement)
        if file is None:
            return ""
        self._asked[file.reason] = file
        return file.reason

    async def _list(self, arguments: Mapping[str, Any]) -> ToolOutput:
        return await _in_thread(list_files.list_files, arguments, self._confinement)

    async def _read(self, arguments: Mapping[str, Any], approved: str = "") -> ToolOutput:
        return await _in_thread(read_file.read_file, arguments, self._confinement, self._asked.get(approved))

    async def _search(self, arguments: Mapping[str, Any], approved: str = "") -> ToolOutput:
        file, program = self._asked.get(approved), find_program("rg")
        return await search_files.search_files(arguments, self._confinement, file, program)


async def _in_thread(tool: Callable[..., ToolOutput], *args: object) -> ToolOutput:
    try:
        return await asyncio.wait_for(asyncio.to_thread(tool, *args), SLOW)
    except TimeoutError:
        raise ToolError(f"The file system did not answer within {SLOW:.0f} seconds.") from None
