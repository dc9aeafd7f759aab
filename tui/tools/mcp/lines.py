"""Reads the lines of an MCP server's standard output: whole, and of bounded size. Loaded with the SDK."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import NoReturn

import anyio
from anyio.streams.text import TextReceiveStream
from mcp.client import stdio

from tui.providers.http.sizes import TooLargeError, check_json_cost

exceeded: ContextVar[tuple[int, Callable[[], None]]] = ContextVar("exceeded")
"""For the transport being opened: the limit of a line in bytes, and a callback for when one exceeds it."""


class LineStream(TextReceiveStream):
    """Returns whole lines. Raises `TooLargeError` for a line over the limit.

    The SDK itself joins the chunks of a line without limit, in quadratic time.
    """

    def __post_init__(self, encoding: str, errors: str) -> None:
        super().__post_init__(encoding, errors)
        self._limit, self._tell = exceeded.get()
        self._rest: list[str] = []
        self._size = 0

    async def receive(self) -> str:
        """The lines that have arrived."""
        while True:
            try:
                piece = await super().receive()
            except anyio.EndOfStream:
                if not self._rest:
                    raise
                last, self._rest = "".join(self._rest), []
                return last  # the SDK ignores a last line without a line end
            head, newline, tail = piece.rpartition("\n")
            if newline:
                lines = "".join((*self._rest, head))
                self._rest, self._size = [], 0
                if self._exceeds(lines):
                    await self._fail()
            if tail:
                self._rest.append(tail)
                self._size += len(tail)
                if self._size > self._limit:
                    await self._fail()
            if newline:
                return lines + newline

    def _exceeds(self, lines: str) -> bool:
        """Whether one of `lines` exceeds the limit, in bytes or in memory once parsed."""
        if len(lines) <= self._limit // 200:
            return False  # too short for either
        try:
            for line in lines.split("\n"):
                if len(line) > self._limit:
                    return True
                check_json_cost(line, self._limit)
        except TooLargeError:
            return True
        return False

    async def _fail(self) -> NoReturn:
        self._tell()
        await self.aclose()  # the SDK would go on reading until the program ends
        raise TooLargeError(self._limit)


def install() -> None:
    """Make the SDK's stdio transport use `LineStream`; it has no setting for that."""
    setattr(stdio, "TextReceiveStream", LineStream)  # noqa: B010
