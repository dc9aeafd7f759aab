from __future__ import annotations

import json

import pytest

from tui.text.json_text import MAX_DEPTH, parse_json, parse_jsonc, parse_object


def nested(depth: int) -> str:
    return "[" * (depth - 1) + "{}" + "]" * (depth - 1)


def test_what_is_nested_too_deeply_is_no_json() -> None:
    assert parse_json(nested(MAX_DEPTH)) is not None
    for depth in (MAX_DEPTH + 1, 900, 100_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            parse_json(nested(depth))


def test_numbers_that_json_has_not_are_null() -> None:
    written = '{"a": [NaN, Infinity, -Infinity, 1e999, 1.5]}'
    assert parse_json(written) == parse_object(written) == {"a": [None, None, None, None, 1.5]}


def test_width_is_no_depth() -> None:
    assert len(parse_json(f"[{'[],' * 10_000}[]]")) == 10_001
    with pytest.raises(ValueError):
        parse_json("[" * 300)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('{"a": 1, // one\n "b": [1, 2,],}', {"a": 1, "b": [1, 2]}),
        ('/* head */ {"a": "/* no */ // no"} // end', {"a": "/* no */ // no"}),
        ('{"a": "quoted \\" // , }", }', {"a": 'quoted " // , }'}),
        ("[1, /* , */ ]", [1]),
    ],
)
def test_comments_and_trailing_commas_are_no_part_of_the_value(written: str, value: object) -> None:
    assert parse_jsonc(written) == value


ENDLESS = {"comments": "/*/" * 100_000, "string": '"' + '\\"' * 300_000}


@pytest.mark.parametrize(
    "text", ["[1,,2]", "/* open", '{"a": "open', *(pytest.param(t, id=n) for n, t in ENDLESS.items())]
)
def test_what_is_no_json_with_comments_either_is_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError):
        parse_jsonc(ENDLESS.get(text, text))


@pytest.mark.parametrize(
    "written",
    [
        '{"a": 1}',
        ' \n{"a": 1}\n',
        '"{\\"a\\": 1}"',  # encoded twice
        '"\\"{\\\\\\"a\\\\\\": 1}\\""',  # three times
        '```json\n{"a": 1}\n```',
        '```\n{"a": 1}```',
        '"```json\\n{\\"a\\": 1}\\n```"',
        '{"a": 1}}',  # a brace too many
        '{"a": 1}<|call|>',
        '{"a": 1}</tool_call>',
        '{"a": 1}\n<|im_end|>\n',
        '{}{"a": 1}',  # an empty object first
        '{"a": 1}{"a": 1}',  # said twice
    ],
)
def test_arguments_whose_meaning_is_plain(written: str) -> None:
    assert parse_object(written) == {"a": 1}


@pytest.mark.parametrize("written", ["", " ", "{}", '""', '"{}"', "```json\n```"])
def test_arguments_that_are_none(written: str) -> None:
    if written == '""':
        with pytest.raises(ValueError, match="string instead of an object"):
            parse_object(written)
    else:
        assert parse_object(written) == {}


@pytest.mark.parametrize(
    "written",
    [
        '{"a": ',  # cut
        '{"a": 1} {"a": 2}',
        '{"a": 1} and more',
        'Here you are: {"a": 1}',
        "[1]",
        "1",
        "null",
        '"words"',
        "{a: 1}",
    ],
)
def test_arguments_that_could_mean_two_things_or_none(written: str) -> None:
    with pytest.raises(ValueError):
        parse_object(written)


def test_text_of_an_argument_is_left_alone() -> None:
    whole = {"text": '```json\n{"a": 1}\n```', "b": '{"c": 1}'}
    assert parse_object(json.dumps(whole)) == whole
