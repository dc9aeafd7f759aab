"""Which parts of a request go out shorter after it was refused for its size in bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.messages import user
from tui.chat.turn.recovery import KEPT_TEXT, advice, listed, pieces_to_shorten, request_bytes
from tui.context.counting.digests import text_digest
from tui.messages import (
    Attachment,
    Message,
    Part,
    Request,
    Role,
    SystemSection,
    Text,
    ToolCall,
    ToolResult,
    ToolSchema,
)
from tui.providers.base import ProviderError

MB = 1_000_000


def picture(name: str, size: int) -> Attachment:
    return Attachment("image", name, "image/png", name, size)


def request(*parts: Part, question: str = "and now?") -> Request:
    """A request with each of `parts` in a message of its own, before the last one of the person."""
    roles: dict[type[Part], Role] = {ToolCall: "assistant", ToolResult: "tool"}
    messages = [Message(roles.get(type(part), "user"), (part,), id=f"m{number}") for number, part in enumerate(parts)]
    return Request("p", "m", (*messages, user(question, id="z")))


def refused(most_bytes: int | None = None, most_length: int | None = None) -> ProviderError:
    return ProviderError("too_many_bytes", "413", most_bytes=most_bytes, most_length=most_length)


def test_the_bytes_of_everything_that_is_sent_are_counted() -> None:
    bare = request(Text("hello"))
    tool = ToolSchema("look", "sieht nach: é", '{"type":"object"}')
    whole = replace(bare, system=(SystemSection("system", "prompt", "Be brief."),), tools=(tool,))
    assert request_bytes(whole) - request_bytes(bare) == len("Be brief.") + len("sieht nach: é") + 1 + 17


PICTURES = [picture(f"{number}.png", (number + 1) * MB // 10) for number in range(24)]  # 30 MB, 40 MB in base64


@pytest.mark.parametrize(
    ("error", "below", "gone"),
    [(refused(32 * MB), 28.8 * MB, 4), (refused(), 20 * MB, 8), (refused(80 * MB), 20 * MB, 8)],
    ids=["a limit", "none", "a limit that it is under"],
)
def test_as_few_pictures_as_will_do_are_left_out(error: ProviderError, below: float, gone: int) -> None:
    whole = request(*PICTURES)
    pieces = pieces_to_shorten(whole, error)
    assert [piece.name for piece in pieces] == [f"{number}.png" for number in range(23, 23 - gone, -1)]
    assert request_bytes(whole) - sum(piece.size for piece in pieces) <= below


def test_a_limit_of_one_string_concerns_those_above_it() -> None:
    long, short = "x" * 3 * MB, "x" * MB
    texts = (ToolCall("c", "write", long), ToolResult("c", "read", long), ToolResult("d", "read", short))
    pieces = pieces_to_shorten(request(*texts, picture("a.png", 3 * MB)), refused(most_length=2 * MB))
    assert sorted((piece.name, piece.keep) for piece in pieces) == [
        *(("a.png", 0), ("the arguments of write", 1_800_000), ("the result of read", 1_800_000)),
    ]
    assert {piece.digest for piece in pieces} == {"a.png", text_digest(long)}


def test_texts_that_do_not_stand_out_are_left_to_compaction() -> None:
    assert pieces_to_shorten(request(*(Text("x" * 50_000) for _ in range(40))), refused()) == ()


def test_what_is_asked_is_never_shortened() -> None:
    asking = request(question="x" * MB)
    assert pieces_to_shorten(asking, refused()) == ()
    assert "your message (1.0 MB): shorten it" in advice(asking)


def test_what_is_said_of_it() -> None:
    few = pieces_to_shorten(request(Text("x" * MB)), refused())
    assert (few[0].keep, listed(few)) == (KEPT_TEXT, "your message (1.0 MB) is shortened in the request")
    many = pieces_to_shorten(request(*PICTURES), refused())
    assert listed(many).endswith("22.png (3.1 MB), 21.png (2.9 MB) and 5 more are left out of the request")
    assert "/compact" in advice(request(*(Text("x" * 50_000) for _ in range(40))))
    assert "the result of read (1.0 MB): leave its message out" in advice(request(ToolResult("c", "read", "x" * MB)))
