"""Finding the tool that is meant among many."""

from __future__ import annotations

import json

import pytest

from tests.tools.mcp.many_tools import describe
from tui.messages import ToolSchema
from tui.tools.tool_search import answer, search, search_schema


def tool(name: str, description: str, *properties: str) -> ToolSchema:
    parameters = {"type": "object", "properties": {name: {"type": "string"} for name in properties}}
    return ToolSchema(name, description, json.dumps(parameters), name.partition("__")[0])


TOOLS = [
    tool("github__create_issue", "Create a new issue in a repository", "title", "body", "owner"),
    tool("github__list_pull_requests", "List the pull requests of a repository", "state"),
    tool("github__searchCode", "Look for text in all files", "query"),
    tool("aaa__shout", "An environment variable of this program", "name"),
    tool("mail__send", "Send a message to somebody", "recipient", "subject"),
    tool("calendar__createEvent", "Put an appointment into the calendar", "start", "end"),
    *[tool(f"erp__operation_{number}", describe(number), "identifier", "dry_run") for number in range(200)],
]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create an issue on github", "github__create_issue"),
        ("open pull requests", "github__list_pull_requests"),
        ("search code", "github__searchCode"),
        ("write an e-mail to a recipient", "mail__send"),
        ("appointments in my calendar", "calendar__createEvent"),
        ("send", "mail__send"),
        ("erp__operation_117", "erp__operation_117"),
        ("operation_42", "erp__operation_42"),
        ("archive a calendar entry", "erp__operation_100"),
        ("please archive an invoice for me", "erp__operation_160"),
        ("ISSUES", "github__create_issue"),
    ],
)
def test_the_tool_that_is_meant_comes_first(query: str, first: str) -> None:
    assert search(query, TOOLS)[0].name == first


def test_a_name_without_a_server_is_not_the_empty_question() -> None:
    assert search("", [tool("plain", "does it")]) == []


def test_the_same_question_has_the_same_answer_whatever_the_order() -> None:
    once = search("change the state of a payment", TOOLS, 20)
    assert once == search("change the state of a payment", list(reversed(TOOLS)), 20)
    assert len(once) == 20


@pytest.mark.parametrize("query", ["", "   ", "zzz qqq", "☃", "[bold]"])
def test_what_fits_nothing_finds_nothing_and_says_what_there_is(query: str) -> None:
    assert search(query, TOOLS) == []
    text = answer(query, [], TOOLS, ())
    assert f"There are {len(TOOLS)} tools: aaa__shout, calendar__createEvent, erp__operation_0" in text
    assert f"and {len(TOOLS) - 60} more" in text


def test_the_answer_names_what_can_be_called_and_what_is_new() -> None:
    matches = search("github issue", TOOLS, 2)
    text = answer("github issue", matches, TOOLS, (matches[1].name,))
    assert text.startswith(f"2 of {len(TOOLS)} tools, 1 of them new.")
    assert "github__create_issue: Create a new issue in a repository" in text


def test_the_tool_itself_is_small_and_says_which_servers_wait() -> None:
    schema = search_schema({"erp": 200, "github": 3})
    assert "erp (200), github (3)" in schema.description
    assert len(schema.description + schema.parameters) < 700
    assert json.loads(schema.parameters)["required"] == ["query"]
