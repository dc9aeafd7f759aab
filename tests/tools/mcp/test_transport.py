"""Lines of a server's standard output: whole, bounded each by itself, in time that grows with their length."""

from __future__ import annotations

import time
from collections.abc import Sequence

import anyio
import pytest
from anyio.abc import ByteReceiveStream

pytest.importorskip("mcp")

from tui.providers.http.sse import TooLargeError
from tui.tools.mcp.status import TransportStatus
from tui.tools.mcp.transport import bounded_lines, line_limit

LIMIT = 1_000


class Pieces(ByteReceiveStream):
    """A byte stream that gives these."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = list(pieces)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if not self._pieces:
            raise anyio.EndOfStream
        return self._pieces.pop(0)

    async def aclose(self) -> None:
        """Nothing to close."""


async def read(pieces: Sequence[bytes], limit: int = LIMIT) -> list[str]:
    status = TransportStatus()
    line_limit.set((limit, status))
    try:
        return [text async for text in bounded_lines(Pieces(pieces), "utf-8", "replace")]
    except TooLargeError:
        assert status.exceeded == limit
        raise


@pytest.mark.parametrize(
    ("pieces", "texts"),
    [
        ([b"one\ntw", b"o\n"], ["one\n", "two\n"]),
        ([b"a", b"b", b"c\nd\n"], ["abc\nd\n"]),
        (["ü\n".encode()[:1], "ü\n".encode()[1:]], ["ü\n"]),
        ([b"one\nno end"], ["one\n"]),
        ([b"\n\n"], ["\n\n"]),
        ([b"x" * LIMIT + b"\n"] * 3, ["x" * LIMIT + "\n"] * 3),
        ([(b"x" * 900 + b"\n") * 50], [("x" * 900 + "\n") * 50]),  # many at once are no line over the limit
    ],
)
async def test_text_ends_with_a_whole_line(pieces: Sequence[bytes], texts: list[str]) -> None:
    assert await read(pieces) == texts


@pytest.mark.parametrize(
    "pieces",
    [[b"x" * (LIMIT + 1)], [b"x" * 600, b"x" * 600], [b"x" * (LIMIT + 1) + b"\n"], [b"[" + b"[]," * 300 + b"[]]\n"]],
)
async def test_a_line_over_the_limit_or_one_that_costs_as_much_is_an_error(pieces: Sequence[bytes]) -> None:
    with pytest.raises(TooLargeError):
        await read(pieces)


async def test_a_long_line_costs_what_its_length_costs() -> None:
    piece = b"x" * 10_000
    began = time.process_time()
    await read([piece] * 200 + [b"\n"], 10**9)
    short = time.process_time() - began
    began = time.process_time()
    await read([piece] * 2_000 + [b"\n"], 10**9)
    assert time.process_time() - began < 40 * max(short, 0.01)  # joined anew with each piece: 20 GB are copied
