"""What servers offer: names that every provider takes, resources that can be mentioned, URI templates."""

from __future__ import annotations

import base64
import importlib
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.mcp.mcp_running import NAUGHTY
from tui.tools.base import ToolImage
from tui.tools.mcp.offer import (
    ResourceTemplate,
    TemplateVariable,
    content_of,
    offered_name,
    open_variable,
    prompt_text,
    resource_content,
    server_resources,
    server_tool,
)

assert NAUGHTY  # that module skips all of this where the SDK is not installed

VALID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@pytest.fixture
def types() -> Any:
    return importlib.import_module("mcp.types")


# -- names of tools ----------------------------------------------------------------------------------------------------


def test_plain_names_stay_readable() -> None:
    assert offered_name("github", "create_issue") == "github__create_issue"
    assert offered_name("github", "get-me") == "github__get-me"


def test_servers_whose_names_begin_alike_do_not_take_each_other_s_tools() -> None:
    assert offered_name("gh", "_push") != offered_name("gh_", "push")
    assert offered_name("gh", "a__b") != offered_name("gh__a", "b")
    assert offered_name("a__b", "c") != offered_name("a", "b__c")


def test_names_that_would_meet_are_told_apart() -> None:
    names = [offered_name("s", tool) for tool in ("a.b", "a/b", "a_b")]
    assert len(set(names)) == 3
    assert names[2] == "s__a_b"


@settings(max_examples=40)
@given(st.text(min_size=1, max_size=80), st.lists(st.text(max_size=120), unique=True, max_size=20))
def test_every_name_is_valid_and_unique(server: str, tools: list[str]) -> None:
    names = [offered_name(server, tool) for tool in tools]
    assert all(VALID.fullmatch(name) for name in names)
    assert len(set(names)) == len(tools)


# -- tools and resources -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"$schema": "http://json-schema.org/draft-07/schema#"}])
def test_a_schema_is_an_object_with_properties(types: Any, more: dict[str, object]) -> None:
    tool = server_tool(types.Tool(name="t", title="A title", description=None, input_schema={"type": "object", **more}))
    assert tool.parameters == '{"properties":{},"type":"object"}'
    assert (tool.description, tool.read_only) == ("A title", False)


def test_a_description_loses_the_indentation_of_the_program_it_comes_from(types: Any) -> None:
    tool = types.Tool(name="t", description="Does it.\n\n        Args:\n            x: what\n    ", input_schema={})
    assert server_tool(tool).description == "Does it.\n\nArgs:\n    x: what"


def test_a_resource_whose_name_can_not_stand_in_a_draft_has_its_address(types: Any) -> None:
    names = ("fine name", "two\nlines", 'a "quote"', "esc\x1b[2J", "", "x" * 300)
    resources = [types.Resource(name=name, uri=f"x://{n}") for n, name in enumerate(names)]
    mentioned = server_resources("s", [*resources, types.Resource(name="odd", uri="x://\x07")])
    assert [resource.name for resource in mentioned] == ["fine name", "x://1", "x://2", "x://3", "x://4", "x://5"]


# -- URI templates -----------------------------------------------------------------------------------------------------


def test_an_address_is_filled_in_variable_by_variable() -> None:
    template = "repo://{owner}/{name}/blob/{+path}"
    assert ResourceTemplate("s", template, "").head == "repo://"
    owner = TemplateVariable("owner", "repo://", "me ", {}, "/", False)
    assert open_variable(template, "repo://me%20") == owner
    name = TemplateVariable("name", "repo://me/", "x", {"owner": "me"}, "/blob/", False)
    assert open_variable(template, "repo://me/x") == name
    filled_in = {"owner": "me", "name": "x"}
    path = TemplateVariable("path", "repo://me/x/blob/", "src/a", filled_in, "", True, reserved=True)
    assert open_variable(template, "repo://me/x/blob/src/a") == path
    assert path.filled("src/a b.py") == "repo://me/x/blob/src/a%20b.py"
    first = open_variable(template, "repo://")
    assert first is not None and first.filled("a/b") == "repo://a%2Fb/"


@pytest.mark.parametrize(("template", "uri"), [("x://{a}", "y://"), ("x://fixed", "x://fixed"), ("{a}.md", "b.md")])
def test_an_address_that_does_not_follow_the_template_or_is_whole_has_no_open_variable(template: str, uri: str) -> None:
    assert open_variable(template, uri) is None


def test_modifiers_and_further_names_of_a_variable_are_no_part_of_its_name() -> None:
    variable = open_variable("x://{/path*}?{id:3,more}", "x://a?")
    assert variable is not None and (variable.name, variable.filled_in) == ("id", {"path": "a"})


def test_templates_that_never_close_take_no_time_that_grows_with_their_square() -> None:
    assert open_variable("{" + "a" * 1_000_000, "x") is open_variable("{a" * 500_000, "x") is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_template_and_no_address_is_too_odd(template: str, uri: str) -> None:
    variable = open_variable(template, uri)
    assert variable is None or uri.startswith(variable.before)


# -- results ----------------------------------------------------------------------------------------------------------

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


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
