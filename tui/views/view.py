"""Output and questions of commands, as values: a screen makes panels of them, `--plain` lines."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from textual.content import Content


class View(Protocol):
    """Something to look at. A screen may have a panel for it; otherwise it shows the lines."""

    @property
    def title(self) -> str:
        """The panel's title."""

    async def lines(self, width: int) -> Sequence[Content]:
        """All of it, no line wider than `width` cells."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a panel. `key` says what it stands for ("tool:NAME"), "" for text that can't be chosen."""

    content: Content
    key: str = ""
    foldable: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """An entry to choose, or a completion. `key` is the result; `label` and `detail` are shown and searched."""

    key: str
    label: str
    detail: str = ""
    current: bool = False
    brief: str = ""  # shorter than `detail`, for a narrow screen
    name: str = ""  # what is typed for it after a command, if not `key`
    cursor: int | None = None  # of a completion: the cursor's position in `key`; None is its end


Source: TypeAlias = Callable[[str], Awaitable[Sequence[Option]]]
"""Options for a search text, best first. May raise; the error's text becomes the list's only line."""


@dataclass(frozen=True)
class Menu:
    """A list to choose from. `usage` names an option on a command line: "/theme NAME"."""

    title: str
    source: Source
    usage: str
    placeholder: str = "type to search"
    empty: str = "no matches"
    preview: Callable[[str], None] | None = None  # called with the highlighted key


@dataclass(frozen=True, slots=True)
class Question:
    """A question with a few answers. If nobody can be asked `otherwise` is shown, and nothing is done.

    The answers in `must_read` agree to the text: they can be chosen only once its end was on screen. `unasked`: it
    comes while the person may be writing something else.
    """

    title: str
    text: str
    answers: Sequence[Option]
    otherwise: str = ""
    default: str | None = None  # the answer if nobody can be asked
    must_read: Collection[str] = ()
    unasked: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """A line of a form. `hint` is its placeholder. What may be `secret` is never stored against a crash."""

    name: str
    label: str
    value: str = ""
    hint: str = ""
    required: bool = False
    secret: bool = False


_SECRET = re.compile(r"(?i)pass|secret|token|key|pin\b|code|credential|auth|login")


def may_be_secret(*labels: str) -> bool:
    """Whether a field that someone else has named may be for a secret."""
    return any(_SECRET.search(label) for label in labels)


class RejectedError(Exception):
    """A form's input was rejected. `str()` is one line; the fields named in `clear` are emptied."""

    def __init__(self, text: str, clear: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.clear = clear


Submit: TypeAlias = Callable[[Mapping[str, str]], Awaitable[str]]
"""Tries the input and returns a line on the outcome. Raises `RejectedError`: the form stays open."""


@dataclass(frozen=True, slots=True)
class Form:
    """A few lines to fill in. `action` is the label for submitting; `submit` may reject the input."""

    title: str
    text: str
    fields: Sequence[Field]
    action: str
    otherwise: str  # shown if nobody can be asked
    submit: Submit | None = None
    waiting: str = ""  # shown while `submit` runs


def filtered(load: Callable[[], Awaitable[Sequence[Option]]]) -> Source:
    """A source that loads once and is filtered by what is typed."""
    loaded: list[Option] = []

    async def source(query: str) -> Sequence[Option]:
        if not loaded:
            loaded.extend(await load())
        return matching(query, loaded, lambda option: f"{option.label} {option.detail}")

    return source


def match(query: str, candidate: str) -> float:
    """Score how well `candidate` matches `query`: 0.0 not at all, the same text best, then a prefix.

    The letters of `query` have to occur in order, ignoring case. An empty query matches everything equally.
    """
    wanted, text = query.lower().strip(), candidate.lower().strip()
    if not wanted:
        return 1.0
    if text.startswith(wanted):
        return 5.0 if text == wanted else 4.0
    if (at := text.find(wanted)) >= 0:
        if text[at - 1].isalnum():
            return 2.0
        return 3.5 if text.endswith(wanted) else 3.0  # gpt-5: openai/gpt-5 before openai/gpt-5-mini
    places, start = [], 0
    for letter in wanted:
        at = text.find(letter, start)
        if at < 0:
            return 0.0
        places.append(at)
        start = at + 1
    return len(wanted) / (places[-1] - places[0] + 1)


Item = TypeVar("Item")


def matching(query: str, items: Iterable[Item], text: Callable[[Item], str]) -> list[Item]:
    """The items whose `text` matches, best first; equal ones stay in order."""
    scored = [(match(query, text(item)), item) for item in items]
    return [item for score, item in sorted(scored, key=lambda pair: -pair[0]) if score > 0]
