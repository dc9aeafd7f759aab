"""What becomes of images and texts that can't enter the conversation as they are."""

from __future__ import annotations

import pytest

from tests.messages import PNG
from tui.chat.store.database import StoreError
from tui.chat.store.store import SessionStore
from tui.chat.tool_calls.tool_step import MAX_IMAGE, MAX_IMAGES, MIN_TOKENS, Results, result_limit
from tui.context.counting.counting import TokenCounter
from tui.messages import Attachment, ToolCall, ToolResult
from tui.tools.base import ToolImage, ToolOutput

CALL = ToolCall("c", "plot", "{}")


def made(store: SessionStore, output: ToolOutput, limit: int = 500) -> tuple[ToolResult, list[Attachment]]:
    result, *files = Results(store, TokenCounter(), "gpt-5", limit, images=True).parts(CALL, output)
    assert isinstance(result, ToolResult)
    return result, [file for file in files if isinstance(file, Attachment)]


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (ToolImage("image/svg+xml", b"\0\1\2"), "[image/svg+xml, 3 bytes: not a picture that can be shown]"),
        (ToolImage("image/png", b"%PDF-1.7"), "[image/png, 8 bytes: not a picture that can be shown]"),
        (ToolImage("image/png", PNG + bytes(MAX_IMAGE)), "too much to send along]"),
    ],
)
def test_what_is_no_picture_to_send_is_said(store: SessionStore, image: ToolImage, words: str) -> None:
    result, files = made(store, ToolOutput("", images=(image,)))
    assert words in result.text
    assert files == []


def test_pictures_are_named_after_their_call_and_their_kind(store: SessionStore) -> None:
    images = (ToolImage("image/png", PNG), ToolImage("image/gif", b"GIF89a\3\0\2\0\0\0\0"))
    _, files = made(store, ToolOutput("", images=images))
    assert [file.name for file in files] == ["plot-1.png", "plot-2.gif"]


def test_a_flood_of_pictures_is_bounded(store: SessionStore) -> None:
    pictures = tuple(ToolImage("image/png", PNG + bytes([number])) for number in range(MAX_IMAGES + 2))
    result, files = made(store, ToolOutput("all", images=pictures))
    assert len(files) == MAX_IMAGES
    assert result.text.count("too much to send along") == 2


def test_errors_are_kept_whole_up_to_the_limit(store: SessionStore) -> None:
    result, _ = made(store, ToolOutput("it broke: " + "why " * 300, is_error=True))
    assert (result.is_error, result.full) == (True, "")
    assert result.text.count("why") == 300


def test_payloads_are_described_and_kept(store: SessionStore) -> None:
    result, _ = made(store, ToolOutput("\0" * 5_000))
    assert result.text == "[binary data, 5,000 bytes, not shown]"
    assert store.blob(result.full) == b"\0" * 5_000


def test_on_a_full_disk_the_part_that_is_sent_is_there(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(store, "put_blob", full)
    result, files = made(store, ToolOutput("word " * 5_000, images=(ToolImage("image/png", PNG),)))
    assert (result.full, files) == ("", [])
    assert "left out here" in result.text
    assert "it could not be stored" in result.text


@pytest.mark.parametrize(
    ("setting", "room", "calls", "limit"),
    [(10_000, None, 4, 10_000), (10_000, 184_000, 1, 10_000), (10_000, 184_000, 8, 5_750), (10_000, 6_000, 1, 1_500),
     (10_000, 1_000, 9, MIN_TOKENS), (300, 184_000, 1, 300)],
)  # fmt: skip
def test_the_results_of_one_step_share_a_quarter_of_the_window(
    setting: int, room: int | None, calls: int, limit: int
) -> None:
    assert result_limit(setting, room, calls) == limit
