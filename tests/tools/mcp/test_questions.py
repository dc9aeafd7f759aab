"""What servers ask the person: the forms that MCP has for it, what is written into them, and the way to the person."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.tools.mcp.in_memory import Json, Say, by_hand, by_sdk, connected, offering
from tests.tools.mcp.mcp_running import call, until
from tui.tools.base import ToolError
from tui.tools.mcp.questions import (
    Ask,
    Field,
    FormQuestion,
    LinkQuestion,
    Question,
    Reply,
    Sampled,
    SampleQuestion,
    form_question,
    read_form,
)

COLOURS = (("r", "Red"), ("g", "Green"))
TITLED = [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]
COUNT = {"type": "integer", "minimum": 1, "default": 0}
LIST = {"type": "array", "items": {"type": "string"}}


def field(**schema: Any) -> Field:
    """The field of a schema with one property."""
    (only,) = form_question("s", "m", {"properties": {"x": schema}, "required": ["x"]}).fields
    return only


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, Field("x", "x", required=True)),
        ({}, Field("x", "x", required=True)),
        (
            {
                "type": "string",
                "title": "Name",
                "description": "yours",
                "default": "Ann",
                "minLength": 2,
                "maxLength": 9,
            },
            Field("x", "Name: yours", default="Ann", required=True, least=2, most=9),
        ),
        (
            {"type": "integer", "minimum": 1, "default": 0},
            Field("x", "x", "integer", default="0", required=True, least=1),
        ),
        ({"type": "boolean", "default": False}, Field("x", "x", "boolean", default="no", required=True)),
        (
            {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
            Field("x", "x", "text", COLOURS, required=True),
        ),
        (
            {"type": "string", "oneOf": TITLED},
            Field("x", "x", "text", COLOURS, required=True),
        ),
        (
            {"type": "array", "items": {"anyOf": TITLED}, "default": ["r"]},
            Field("x", "x", "text", COLOURS, many=True, default="Red", required=True),
        ),
    ],
)
def test_a_schema_is_a_form(schema: Json, expected: Field) -> None:
    assert field(**schema) == expected


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({}, "a form without values"),
        ({"properties": {str(n): {} for n in range(21)}}, "a form of more than 20 values"),
        ({"properties": {"x": {"type": "object"}}}, 'a value of the type "object"'),
        ({"properties": {"x": LIST}}, "a list of values that are not named"),
    ],
)
def test_what_is_no_form_is_refused(schema: Json, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        form_question("s", "m", schema)


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, " Ann ", "Ann"),
        ({"type": "string", "format": "email"}, "a@b", "a@b"),
        ({"type": "integer"}, "7", 7),
        ({"type": "number"}, "7.5", 7.5),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "no", False),
        ({"enum": ["r", "g"], "enumNames": ["Red", "Green"]}, "green", "g"),
        ({"enum": ["r", "g"]}, "R", "r"),
        ({"enum": ["1", "2"], "enumNames": ["2", "1"]}, "2", "1"),  # what is shown counts
        ({"type": "array", "items": {"enum": ["r", "g"]}}, "g, r", ["g", "r"]),
        (
            {"type": "array", "items": {"enum": ["Bonn", "Paris, Texas"]}},
            "paris, texas, Bonn",
            ["Paris, Texas", "Bonn"],
        ),
    ],
)
def test_what_is_written_becomes_the_value(schema: Json, text: str, value: object) -> None:
    assert field(**schema).read(text) == value


@pytest.mark.parametrize(
    ("schema", "text", "why"),
    [
        ({"type": "integer"}, "7.5", "x: write a whole number"),
        ({"type": "number"}, "nan", "x: write a number"),
        ({"type": "integer", "maximum": 5}, "7", "x: at most 5"),
        ({"type": "string", "minLength": 3}, "ab", "x: at least 3 characters"),
        ({"type": "string", "format": "email"}, "nobody", "x: that is not a valid email"),
        ({"type": "boolean"}, "perhaps", "x: write yes or no"),
        ({"enum": ["r", "g"]}, " ", "x:  is not among them"),
        ({"enum": ["r", "g"]}, "blue", "x: blue is not among them; write one of r, g"),
        ({"type": "array", "items": {"enum": ["r", "g"]}}, "r, blue", "x: blue is not among them; write some of r, g"),
    ],
)
def test_what_is_no_value_says_what_to_write(schema: Json, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        field(**schema).read(text)


def test_what_need_not_be_there_may_stay_empty() -> None:
    question = form_question("s", "m", {"properties": {"a": {}, "b": {"type": "integer"}}, "required": ["a"]})
    assert read_form(question, {"a": "x", "b": " "}) == {"a": "x"}
    with pytest.raises(ValueError, match="a: this has to be filled in"):
        read_form(question, {"b": "1"})


class Person:
    """Answers each question with `reply`."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.questions: list[Question] = []

    async def __call__(self, question: Question) -> Reply:
        self.questions.append(question)
        return self.reply


SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FORM = FormQuestion("s", "Who?", (Field("name", "name", required=True),))


async def answers_of(monkeypatch: pytest.MonkeyPatch, params: Json, ask: Ask | None) -> Json:
    """What a server of the handshake's time gets for its question during a call."""

    def called(_params: Json, say: Say) -> Json:
        say({"id": "e1", "method": "elicitation/create", "params": params})
        return {"content": []}

    answers: list[Json] = []
    async with connected(monkeypatch, lambda: by_hand(offering(tools_call=called), answers), ask=ask) as server:
        await call(server, "echo")
        await until(lambda: bool(answers))
    return answers[0]


@pytest.mark.parametrize(
    ("params", "question", "reply", "result"),
    [
        ({"message": "Who?", "requestedSchema": SCHEMA}, FORM, Reply("accept", {"name": "Ann"}),
         {"action": "accept", "content": {"name": "Ann"}}),
        ({"message": "Who?", "requestedSchema": SCHEMA, "mode": "form"}, FORM, Reply("decline"), {"action": "decline"}),
        ({"message": "Pay", "mode": "url", "url": "https://x.example/pay", "elicitationId": "1"},
         LinkQuestion("s", "Pay", "https://x.example/pay"), Reply("accept"), {"action": "accept"}),
    ],
)  # fmt: skip
async def test_a_question_reaches_the_person_and_the_answer_the_server(
    monkeypatch: pytest.MonkeyPatch, params: Json, question: Question, reply: Reply, result: Json
) -> None:
    person = Person(reply)
    assert (await answers_of(monkeypatch, params, person))["result"] == result
    assert person.questions == [question]


@pytest.mark.parametrize(
    "params",
    [
        {
            "message": "Who?",
            "requestedSchema": {"type": "object", "properties": {"x": LIST}},
        },
        {"message": "Run", "mode": "url", "url": "file:///etc/passwd", "elicitationId": "1"},
    ],
)
async def test_what_can_not_be_asked_is_refused(monkeypatch: pytest.MonkeyPatch, params: Json) -> None:
    person = Person(Reply("accept"))
    assert "error" in await answers_of(monkeypatch, params, person)
    assert person.questions == []


async def test_where_nobody_can_be_asked_a_server_is_told_before_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "error" in await answers_of(monkeypatch, {"message": "Who?", "requestedSchema": SCHEMA}, None)


async def test_a_server_built_with_the_sdk_gets_its_answer_with_the_second_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the newest protocol a call is answered with the question, and made again with the answer."""
    import mcp.types as types
    from mcp.server import Server

    async def listed(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="greet", input_schema={"type": "object"})])

    async def called(_context: object, params: types.CallToolRequestParams) -> Any:
        if not params.input_responses:
            form = types.ElicitRequestFormParams(message="Who?", requested_schema=SCHEMA)
            return types.InputRequiredResult(input_requests={"who": types.ElicitRequest(params=form)})
        answer = params.input_responses["who"]
        assert isinstance(answer, types.ElicitResult) and answer.content is not None
        return types.CallToolResult(content=[types.TextContent(type="text", text=f"Hello {answer.content['name']}")])

    server: Any = Server("greeter", on_list_tools=listed, on_call_tool=called)
    person = Person(Reply("accept", {"name": "Ann"}))
    async with connected(monkeypatch, lambda: by_sdk(server), ask=person) as connection:
        assert (await call(connection, "greet")).text == "Hello Ann"
    assert person.questions == [FORM]


async def test_a_server_that_does_not_stop_asking_is_asked_for_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def called(_params: Json, say: Say) -> Json:
        for number in range(9):
            params = {"message": "Who?", "requestedSchema": SCHEMA}
            say({"id": f"e{number}", "method": "elicitation/create", "params": params})
        return {"content": []}

    person, answers = Person(Reply("cancel")), list[Json]()
    async with connected(monkeypatch, lambda: by_hand(offering(tools_call=called), answers), ask=person) as server:
        await call(server, "echo")
        await until(lambda: len(answers) == 9)
    assert len(person.questions) == 5
    assert all(answer["result"] == {"action": "cancel"} for answer in answers)


NEEDED = [{"mode": "url", "message": "Pay", "url": "https://x.example/pay", "elicitationId": "1"}]


@pytest.mark.parametrize(
    ("action", "data", "text", "questions"),
    [
        ("accept", {"elicitations": NEEDED}, "paid", 1),
        ("decline", {"elicitations": NEEDED}, "Pay first", 1),
        ("accept", {"elicitations": []}, "Pay first", 0),
        ("accept", "nonsense", "Pay first", 0),
    ],
)
async def test_a_call_that_needs_an_address_opened_is_made_again_when_it_was(
    monkeypatch: pytest.MonkeyPatch, action: Any, data: object, text: str, questions: int
) -> None:
    calls = 0

    def called(_params: Json, _say: Say) -> Json:
        nonlocal calls
        calls += 1
        if calls == 1:
            return {"error": {"code": -32042, "message": "Pay first", "data": data}}
        return {"content": [{"type": "text", "text": "paid"}]}

    person = Person(Reply(action))
    async with connected(monkeypatch, lambda: by_hand(offering(tools_call=called)), ask=person) as server:
        assert (await call(server, "echo")).text.splitlines()[0] == text
    assert len(person.questions) == questions


async def test_a_call_is_not_given_up_while_the_person_thinks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call's own time begins anew with the answer."""
    answered = False

    async def slow(question: Question) -> Reply:
        nonlocal answered
        del question
        await asyncio.sleep(0.6)
        answered = True
        return Reply("cancel")

    def called(_params: Json, say: Say) -> None:
        say({"id": "e1", "method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": SCHEMA}})

    hangs = offering(tools_call=called)
    async with connected(monkeypatch, lambda: by_hand(hangs), ask=slow, timeout=0.5) as server:
        with pytest.raises(ToolError, match=r"gave no sign of life for 0\.5 seconds"):
            await call(server, "echo")
    assert answered


SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Why?"}}],
    "systemPrompt": "Be brief.",
    "maxTokens": 100,
}
IMAGE = {"type": "image", "data": "", "mimeType": "image/png"}
SAMPLED = Reply("accept", sampled=Sampled("Because.", "m", "endTurn"))


async def sampled(monkeypatch: pytest.MonkeyPatch, params: Json, ask: Ask | None, **config: Any) -> Json:
    """What a server gets for its wish."""

    def called(_params: Json, say: Say) -> Json:
        say({"id": "s1", "method": "sampling/createMessage", "params": params})
        return {"content": []}

    answers: list[Json] = []
    server = offering(tools_call=called)
    async with connected(monkeypatch, lambda: by_hand(server, answers), ask=ask, **config) as connection:
        await call(connection, "echo")
        await until(lambda: bool(answers))
    return answers[0]


async def test_sampling_reaches_the_person_and_the_answer_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    person = Person(SAMPLED)
    result = (await sampled(monkeypatch, SAMPLE, person))["result"]
    assert result["content"] == {"type": "text", "text": "Because."}
    assert (result["role"], result["model"], result["stopReason"]) == ("assistant", "m", "endTurn")
    assert person.questions == [SampleQuestion("s", "Be brief.", (("user", "Why?"),), 100)]


@pytest.mark.parametrize(
    ("params", "reply", "config", "message"),
    [
        (SAMPLE, Reply("decline"), {}, "the person did not allow it"),
        (SAMPLE, Reply("cancel", problem="it does not fit"), {}, "it does not fit"),
        (SAMPLE, SAMPLED, {"sampling": False}, "Sampling not supported"),
        (
            {**SAMPLE, "messages": [{"role": "user", "content": IMAGE}]},
            SAMPLED,
            {},
            "chatctx does not support sampling with content of the type image: text alone",
        ),
    ],
)
async def test_sampling_that_was_not_allowed_is_an_error_for_the_server(
    monkeypatch: pytest.MonkeyPatch, params: Json, reply: Reply, config: Json, message: str
) -> None:
    assert (await sampled(monkeypatch, params, Person(reply), **config))["error"]["message"] == message
