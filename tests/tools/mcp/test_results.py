"""What servers send, in this program's terms."""

from __future__ import annotations

import base64
import importlib
from typing import Any

import pytest

from tests.tools.mcp.mcp_running import NAUGHTY
from tui.tools.base import ToolImage
from tui.tools.mcp.config import ServerConfig
from tui.tools.mcp.connection import Offer
from tui.tools.mcp.results import content_of, prompt_text, resource_content, server_tool
from tui.tools.mcp.status import ready_status

assert NAUGHTY  # that module skips all of this where the SDK is not installed

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


@pytest.fixture
def types() -> Any:
    return importlib.import_module("mcp.types")


def test_what_is_neither_text_nor_image_is_named_with_its_size(types: Any) -> None:
    blob = types.BlobResourceContents(
        uri="x://b", blob=base64.b64encode(b"12345").decode(), mime_type="application/zip"
    )
    found = content_of(
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
    assert found.text.splitlines() == [
        "before",
        "[audio: audio/wav, 1,000 bytes, left out]",
        "[image: image/png, not valid base64, left out]",
        "[x://b: application/zip, 5 bytes, left out]",
        "[resource x://t]",
        "inside",
        "[resource x://l (a link): leads on]",
    ]
    assert found.images == (ToolImage("image/png", b"\x89PNG\r\n\x1a\n"),)


def test_a_resource_may_be_several_texts_and_a_picture(types: Any) -> None:
    picture = types.BlobResourceContents(uri="x://p", blob=PIXEL, mime_type="image/png")
    texts = [types.TextResourceContents(uri=f"x://{n}", text=f"part {n}") for n in (1, 2)]
    found = resource_content([*texts, picture])
    assert found.text == "part 1\npart 2"
    assert len(found.images) == 1


def test_a_prompt_says_what_the_assistant_said_in_it(types: Any) -> None:
    messages = [
        types.PromptMessage(role=role, content=types.TextContent(type="text", text=text))
        for role, text in (("user", "What is it?"), ("assistant", "A prompt."), ("user", "Go on."))
    ]
    assert prompt_text(messages).text == "What is it?\n\n[assistant]\nA prompt.\n[/assistant]\n\nGo on."


@pytest.mark.parametrize("schema", [{}, {"type": "null"}, {"$schema": "http://json-schema.org/draft-07/schema#"}])
def test_a_schema_becomes_an_object_with_properties(types: Any, schema: dict[str, object]) -> None:
    tool = types.Tool(name="t", title="A title", description=None, input_schema=schema)
    found = server_tool(tool)
    assert found.parameters == '{"properties":{},"type":"object"}'
    assert (found.description, found.read_only) == ("A title", False)


def test_a_name_that_can_not_stand_in_a_draft_gives_way_to_the_address(types: Any) -> None:
    names = ("fine name", "two\nlines", 'a "quote"', "esc\x1b[2J", "", "x" * 300)
    resources = [types.Resource(name=name, uri=f"x://{n}") for n, name in enumerate(names)]
    offer = Offer((), (*resources, types.Resource(name="odd", uri="x://\x07")), ())
    status = ready_status(ServerConfig("s", "f"), offer, "About\x1b[2J\n it")
    assert status.about == "About [2J it"
    assert [resource.name for resource in status.resources] == [
        "fine name",
        "x://1",
        "x://2",
        "x://3",
        "x://4",
        "x://5",
    ]


def test_a_description_loses_the_indentation_of_the_program_it_comes_from(types: Any) -> None:
    tool = types.Tool(name="t", description="Does it.\n\n        Args:\n            x: what\n    ", input_schema={})
    assert server_tool(tool).description == "Does it.\n\nArgs:\n    x: what"
