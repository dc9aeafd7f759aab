"""What servers send, in this program's terms."""

from __future__ import annotations

import base64
import importlib
from typing import Any

import pytest

from tests.tools.mcp.mcp_running import NAUGHTY
from tui.tools.base import ToolImage
from tui.tools.mcp.results import content_of, prompt_text, resource_content

assert NAUGHTY  # that module skips all of this where the SDK is not installed

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


@pytest.fixture
def types() -> Any:
    return importlib.import_module("mcp.types")


def test_what_is_neither_text_nor_image_is_named_with_its_size(types: Any) -> None:
    blob = types.BlobResourceContents(
        uri="x://b", blob=base64.b64encode(b"12345").decode(), mime_type="application/zip"
    )
    content = content_of(
        [
            types.TextContent(type="text", text="before"),
            types.AudioContent(type="audio", data=base64.b64encode(bytes(1_000)).decode(), mime_type="audio/wav"),
            types.ImageContent(type="image", data=PIXEL, mime_type="image/png"),
            types.ImageContent(type="image", data="not base64!", mime_type="image/png"),
            types.EmbeddedResource(type="resource", resource=blob),
            types.EmbeddedResource(type="resource", resource=types.TextResourceContents(uri="x://t", text="inside")),
            types.ResourceLink(type="resource_link", uri="x://l", name="a link", description="leads on"),
        ]
    )
    assert content.text.splitlines() == [
        "before",
        "[audio: audio/wav, 1,000 bytes, left out]",
        "[image: image/png, not valid base64, left out]",
        "[x://b: application/zip, 5 bytes, left out]",
        "[resource x://t]",
        "inside",
        "[resource x://l (a link): leads on]",
    ]
    assert content.images == (ToolImage("image/png", b"\x89PNG\r\n\x1a\n"),)


def test_a_resource_may_be_several_texts_and_a_picture(types: Any) -> None:
    picture = types.BlobResourceContents(uri="x://p", blob=PIXEL, mime_type="image/png")
    texts = [types.TextResourceContents(uri=f"x://{n}", text=f"part {n}") for n in (1, 2)]
    content = resource_content([*texts, picture])
    assert content.text == "part 1\npart 2"
    assert len(content.images) == 1


def test_a_prompt_says_what_the_assistant_said_in_it(types: Any) -> None:
    messages = [
        types.PromptMessage(role=role, content=types.TextContent(type="text", text=text))
        for role, text in (("user", "What is it?"), ("assistant", "A prompt."), ("user", "Go on."))
    ]
    assert prompt_text(messages).text == "What is it?\n\n[assistant]\nA prompt.\n[/assistant]\n\nGo on."
