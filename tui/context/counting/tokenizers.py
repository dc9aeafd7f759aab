"""The tokenizer of a model: its own vocabulary if shipped, else a fitted or an estimated one. Always offline."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib.resources import files
from math import ceil
from typing import Literal, NamedTuple, TypeAlias

from tui.context.counting.bpe import ENCODINGS, BpeCounter, Weights
from tui.context.counting.families import ESTIMATED, family_of
from tui.context.counting.words import CLASSES, LATIN, TokenizerError, WordCounter, pack, total, unpack

log = logging.getLogger(__name__)

# By the model's own vocabulary, by weights fitted to its counts, or by weights fitted to many models.
CountMethod: TypeAlias = Literal["vocabulary", "fitted", "estimated"]

VOCABULARY_MARGINS = (0.01,) * len(CLASSES)


def heuristic_count(text: str) -> int:
    """Tokens of `text` by classes of characters, rounded up; the fallback where no tokenizer can count.

    ASCII 4 characters a token, other letters 2, CJK and everything above 1 to 1.3 tokens a character (measured on
    o200k_base: English prose 4.6, Cyrillic 3.0, common CJK 1.3 characters a token, rare CJK 1.9 tokens a character).
    """
    if text.isascii():
        return -(-len(text) // 4)
    ascii_count = len(text.encode("ascii", "ignore"))
    wide = sum(1 for char in text if char >= "\u2e80")
    other = len(text) - ascii_count - wide
    return -(-(ascii_count * 10 + other * 20 + wide * 52) // 40)


class Characters(WordCounter):
    """Stands in for a vocabulary that can't be read."""

    def classes(self, text: str) -> int:
        return pack({LATIN: heuristic_count(text)})


class FittedFamily(NamedTuple):
    """How a family is counted by another one's vocabulary. `version` changes with the weights."""

    encoding: str
    version: str
    weights: Weights
    margins: tuple[float, ...]


@lru_cache(1)
def fitted_families() -> dict[str, FittedFamily]:
    """The families in `fitted.json`, which has weights of tokens and of characters, and the margin, for each class."""
    data = json.loads((files("tui.context.counting") / "fitted.json").read_text())
    families = {}
    for name, family in data.items():
        tokens, characters, margins = zip(*map(family["classes"].__getitem__, CLASSES), strict=True)
        families[name] = FittedFamily(family["encoding"], family["version"], Weights(tokens, characters), margins)
    return families


class Tokenizer:
    """Counts the tokens of a text as models of a family do, by a vocabulary that is read at first use: not on the event
    loop.

    `method` says how the count relates to the models' own vocabulary. `margins` are the shares of a count, by class of
    text, that are added for the upper bound: with the own vocabulary they cover parts of a text that the model treats
    as something else, otherwise the errors on texts that were not part of the fit. Of all vocabularies only the one
    used last stays in memory. Without its vocabulary it counts by `heuristic_count`, and `error` says why; it is not
    read again.
    """

    _lock = threading.Lock()
    _latest: Tokenizer | None = None

    def __init__(
        self,
        name: str,
        read: Callable[[], WordCounter],
        method: CountMethod = "vocabulary",
        margins: Sequence[float] = VOCABULARY_MARGINS,
    ) -> None:
        self.name = name
        self.method = method
        self.margins = margins
        self._read = read
        self._counter: WordCounter | None = None
        self.error: TokenizerError | None = None

    def load(self) -> WordCounter:
        """Return the vocabulary, reading it if it is not in memory."""
        with self._lock:
            if self._counter is None:
                try:
                    self._counter = self._read()
                except TokenizerError as error:
                    log.error("%s", error)
                    self.error = error
                    self._read = Characters
                    self._counter = Characters()
                latest, Tokenizer._latest = Tokenizer._latest, self
                if latest is not None and latest is not self:
                    latest._counter = None  # a thread that is counting keeps its reference until it is done
            return self._counter

    def count(self, text: str) -> int:
        """Tokens of `text`; special tokens in it are counted as plain text."""
        return round(total(self.classes(text)))

    def classes(self, text: str) -> int:
        """Tokens of `text` by class, packed."""
        return (self._counter or self.load()).classes(text)


_tokenizers: dict[str, Tokenizer] = {}  # by family


@lru_cache(1_000)
def get_tokenizer(model: str) -> Tokenizer:
    """The tokenizer of the family of `model`."""
    family = family_of(model)
    if family in _tokenizers:
        return _tokenizers[family]
    if family.startswith("claude"):
        from tui.context.counting.claude import ClaudeCounter  # its patterns take 3 ms to compile

        tokenizer = Tokenizer(family, partial(ClaudeCounter, family))
    elif family in ENCODINGS:
        tokenizer = Tokenizer(family, partial(BpeCounter, ENCODINGS[family]))
    else:
        fitted = fitted_families()[family]
        read = partial(BpeCounter, ENCODINGS[fitted.encoding], fitted.weights)
        method: CountMethod = "estimated" if family == ESTIMATED else "fitted"
        tokenizer = Tokenizer(f"{family}-{fitted.version}", read, method, fitted.margins)
    return _tokenizers.setdefault(family, tokenizer)


class TextCount(NamedTuple):
    """Tokens of a text, their upper bound (for 95 of 100 texts), and how they were obtained."""

    tokens: int
    upper_bound: int
    method: CountMethod | Literal["provider"]


def count_text(text: str, model: str) -> TextCount:
    """Tokens of `text` for `model`. Raises `TokenizerError`."""
    tokenizer = get_tokenizer(model)
    by_class = unpack(tokenizer.classes(text))
    if tokenizer.error is not None:
        raise tokenizer.error
    tokens = sum(count for _, count in by_class)
    bound = sum(count * (1 + tokenizer.margins[kind]) for kind, count in by_class)
    return TextCount(round(tokens), ceil(bound), tokenizer.method)


def count_texts(pairs: Sequence[tuple[str, str]]) -> list[TextCount]:
    """The counts of texts, each for a model, one vocabulary at a time. Raises `TokenizerError`."""
    counts: dict[int, TextCount] = {}
    for index in sorted(range(len(pairs)), key=lambda index: get_tokenizer(pairs[index][1]).name):
        counts[index] = count_text(*pairs[index])
    return [counts[index] for index in range(len(pairs))]
