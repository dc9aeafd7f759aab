"""Which model names stand for one model, and which for another family."""

from __future__ import annotations

import re
from functools import lru_cache

from tui.context.counting.encodings import FAMILIES
from tui.context.counting.priors import prior_of
from tui.context.counting.tokenizers import ESTIMATED, family_of, get_tokenizer, longest_prefix, plain_name

# What providers put behind a name for one release of it: a whole date, month and day, year and month, or that it is
# the newest. Four digits that are no date (a window, as in `llama3-70b-8192`) stay.
_RELEASE = re.compile(
    r"(?:[-@]20\d\d-?[01]\d-?[0-3]\d|-(?:0[1-9]|1[0-2])[0-3]\d|-2[3-9](?:0[1-9]|1[0-2])|[-:]latest)$", re.IGNORECASE
)


def shared_name(model: str) -> str:
    """`model` without date or `latest`: what is measured of one release of a model holds for the others.

    Where releases have different vocabularies (`mistral-large-2407`) the name stays as it is.
    """
    name = _RELEASE.sub("", model)
    same = get_tokenizer(name) is get_tokenizer(model) and prior_of(name) is prior_of(model)
    return name if name and same else model


@lru_cache(maxsize=256)
def another_family(asked: str, answered: str) -> bool:
    """Whether `answered` is a model of another family than `asked`: a gateway's choice, or an alias.

    A name that belongs to no known family says nothing.
    """
    vocabulary = family_of(answered)
    if vocabulary == ESTIMATED or vocabulary == family_of(asked):
        return False
    return _brand(answered) != _brand(asked)


def _brand(model: str) -> str:
    """The letters that a family's names begin with: "claude", "gpt", "llama"; "" for a name of no family."""
    match = re.match("[a-z]+", longest_prefix(plain_name(model), FAMILIES) or "")
    return match[0] if match else ""
