"""Questions of MCP servers (elicitation, sampling) as plain values. Pure. All text in them is untrusted."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

Kind: TypeAlias = Literal["text", "number", "integer", "boolean"]
Value: TypeAlias = str | int | float | bool | list[str]

MAX_FIELDS = 20
_YES, _NO = ("yes", "y", "true", "1", "on"), ("no", "n", "false", "0", "off")
_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "email": lambda text: "@" in text[1:-1] and " " not in text,
    "uri": lambda text: bool(urlsplit(text).scheme),
}


@dataclass(frozen=True, slots=True)
class Field:
    """A requested value. `options` are values and labels to choose from; `many` allows several of them.

    `least` and `most` limit a number, or the characters of a text.
    """

    name: str
    label: str
    kind: Kind = "text"
    options: tuple[tuple[str, str], ...] = ()
    many: bool = False
    default: str = ""
    required: bool = False
    least: float | None = None
    most: float | None = None
    format: str = ""

    @property
    def hint(self) -> str:
        """Describes valid input."""
        if self.options:
            labels = ", ".join(label for _, label in self.options)
            return f"some of {labels}; commas between them" if self.many else f"one of {labels}"
        return {"boolean": "yes or no", "integer": "a whole number", "number": "a number"}.get(self.kind, self.format)

    def read(self, text: str) -> Value:
        """Parse input. Raises ValueError with a line that says what to write instead."""
        try:
            return self._chosen(text.strip()) if self.options else self._entered(text.strip())
        except ValueError as error:
            raise ValueError(f"{self.label}: {error}") from None

    def _chosen(self, text: str) -> Value:
        values = {value.lower(): value for value, _ in self.options}
        values |= {label.lower(): value for value, label in self.options}
        names = _names(text, values) if self.many else [text]
        if unknown := [name for name in names if name.lower() not in values]:
            raise ValueError(f"{unknown[0]} is not among them; write {self.hint}")
        chosen = [values[name.lower()] for name in names]
        return chosen if self.many else chosen[0]

    def _entered(self, text: str) -> Value:
        value: Value = text
        size: int | float
        match self.kind:
            case "boolean":
                if text.lower() not in (*_YES, *_NO):
                    raise ValueError(f"write {self.hint}")
                return text.lower() in _YES
            case "text":
                size, unit = len(text), " characters"
                if self.format in _FORMATS and not _FORMATS[self.format](text):
                    raise ValueError(f"that is not a valid {self.format}")
            case _:
                try:
                    size, unit = int(text) if self.kind == "integer" else float(text), ""
                except ValueError:
                    size = math.nan
                if isinstance(size, float) and not math.isfinite(size):
                    raise ValueError(f"write {self.hint}")
                value = size
        if self.least is not None and size < self.least:
            raise ValueError(f"at least {self.least:g}{unit}")
        if self.most is not None and size > self.most:
            raise ValueError(f"at most {self.most:g}{unit}")
        return value


@dataclass(frozen=True, slots=True)
class FormQuestion:
    """A form."""

    server: str
    message: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class LinkQuestion:
    """An address to open in a browser. What is entered there reaches neither this program nor the model."""

    server: str
    message: str
    url: str


@dataclass(frozen=True, slots=True)
class SampleQuestion:
    """A request for a completion of `messages` (role and text) in at most `most_tokens` tokens."""

    server: str
    system: str
    messages: tuple[tuple[Literal["user", "assistant"], str], ...]
    most_tokens: int


@dataclass(frozen=True, slots=True)
class Sampled:
    """The completion. `stop_reason` is "endTurn" or "maxTokens"."""

    text: str
    model: str
    stop_reason: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The person's answer; `content` goes with an accepted form, `sampled` with accepted sampling.

    `problem` says what went wrong with that, "" for nothing.
    """

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Value] | None = None
    sampled: Sampled | None = None
    problem: str = ""


Question: TypeAlias = FormQuestion | LinkQuestion | SampleQuestion
Ask: TypeAlias = Callable[[Question], Awaitable[Reply]]
"""Asks the person. Cancelled when the server stops waiting."""


def form_question(server: str, message: str, schema: Mapping[str, Any]) -> FormQuestion:
    """The form for a schema (MCP 2025-11-25, elicitation). Raises ValueError for unsupported schemas."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or len(properties) > MAX_FIELDS:
        raise ValueError(f"a form of more than {MAX_FIELDS} values" if properties else "a form without values")
    required = schema.get("required")
    names = required if isinstance(required, Sequence) else ()
    fields = [_field(str(name), value, required=name in names) for name, value in properties.items()]
    return FormQuestion(server, message, tuple(fields))


def read_form(question: FormQuestion, texts: Mapping[str, str]) -> Mapping[str, Value]:
    """The content of a reply, without optional fields that were left empty. Raises ValueError."""
    content: dict[str, Value] = {}
    for field in question.fields:
        if text := texts.get(field.name, "").strip():
            content[field.name] = field.read(text)
        elif field.required:
            raise ValueError(f"{field.label}: this has to be filled in")
    return content


def _names(text: str, valid: Collection[str]) -> list[str]:
    """The names in `text`, with commas between them; those of `valid` may have commas themselves."""
    longest = 1 + max(name.count(",") for name in valid)  # pieces of one name
    pieces = text.split(",")
    names: list[str] = []
    while pieces:
        sizes = range(min(len(pieces), longest), 0, -1)
        size = next((n for n in sizes if ",".join(pieces[:n]).strip().lower() in valid), 1)
        names.append(",".join(pieces[:size]).strip())
        pieces = pieces[size:]
    return [name for name in names if name]


def _field(name: str, value: object, *, required: bool) -> Field:
    schema = value if isinstance(value, Mapping) else {}
    kind = schema.get("type", "string")
    if kind not in ("string", "number", "integer", "boolean", "array"):
        raise ValueError(f"a value of the type {json.dumps(kind)[:40]}")
    many = kind == "array"
    items = schema.get("items") if many else schema
    options = _options(items if isinstance(items, Mapping) else {})
    if many and not options:
        raise ValueError("a list of values that are not named")
    title, description = (text if isinstance(text := schema.get(key), str) else "" for key in ("title", "description"))
    label = title or name
    return Field(
        name,
        f"{label}: {description}" if description else label,
        "text" if kind in ("string", "array") else kind,
        options,
        many,
        _default(schema.get("default"), dict(options)),
        required,
        _limit(schema, "minimum", "minLength"),
        _limit(schema, "maximum", "maxLength"),
        str(schema.get("format", "")),
    )


def _options(schema: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Values and labels; handles all forms that MCP versions have used."""
    for key in ("oneOf", "anyOf"):
        if isinstance(entries := schema.get(key), list):
            pairs = [
                (str(e["const"]), str(e.get("title", e["const"])))
                for e in entries
                if isinstance(e, Mapping) and "const" in e
            ]
            return tuple(pairs)
    values = schema.get("enum")
    if not isinstance(values, list):
        return ()
    names = schema.get("enumNames")
    labels = names if isinstance(names, list) and len(names) == len(values) else values
    return tuple((str(value), str(label)) for value, label in zip(values, labels, strict=True))


def _default(value: object, labels: Mapping[str, str]) -> str:
    """The default as input text; options by their labels."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(labels.get(str(each), str(each)) for each in value)
        case _:
            return labels.get(str(value), str(value))


def _limit(schema: Mapping[str, Any], *keys: str) -> float | None:
    value = next((schema[key] for key in keys if key in schema), None)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
