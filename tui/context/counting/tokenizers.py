"""The tokenizer of a model: its own vocabulary if shipped, else a fitted or an estimated one. Always offline."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from importlib.resources import files
from math import ceil
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from tui.context.counting.bpe import BpeCounter, Weights
from tui.context.counting.classes import CLASSES, total, unpack
from tui.context.counting.encodings import ENCODINGS, FAMILIES
from tui.context.counting.words import TokenizerError, WordCounter

# By the model's own vocabulary, by weights fitted to its counts, or by weights fitted to many models.
CountMethod: TypeAlias = Literal["vocabulary", "fitted", "estimated"]

_VENDORS = (
    "anthropic.", "openai.", "google.", "meta.", "mistral.", "qwen.", "deepseek.", "amazon.", "moonshot.",
    "moonshotai.", "minimax.", "zai.", "cohere.", "nvidia.",
)  # fmt: skip
VOCABULARY_MARGINS = (0.01,) * len(CLASSES)
ESTIMATED = "estimated"  # the entry of `fitted.json` for unknown models


class Tokenizer(Protocol):
    """Counts the tokens of a text as a model would."""

    @property
    def name(self) -> str: ...

    @property
    def how(self) -> CountMethod:
        """How the count relates to the model's own vocabulary."""
        ...

    def count(self, text: str) -> int:
        """Tokens of `text`. Raises `TokenizerError`."""
        ...

    def classes(self, text: str) -> int:
        """Tokens of `text` by class, packed as by `classes.pack`. Raises `TokenizerError`."""
        ...


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


def plain_name(model: str) -> str:
    """`model` in lower case without vendor prefixes: "openai/GPT-5" -> "gpt-5", "us.anthropic.claude-x" likewise."""
    name = model.lower().rsplit("/", 1)[-1]
    for vendor in _VENDORS:
        head, vendor_found, rest = name.partition(vendor)
        if vendor_found and rest and len(head) <= 3:  # a region such as "us." may stand before it
            name = rest
            break
    return name.replace(".", "-") if name.startswith("claude") else name  # gateways write claude-sonnet-4.5


def longest_prefix(name: str, prefixes: Iterable[str]) -> str | None:
    """The longest of `prefixes` that `name` starts with."""
    return max(filter(name.startswith, prefixes), key=len, default=None)


@lru_cache(1)
def fitted_families() -> dict[str, Any]:
    """Families counted by another family's vocabulary (`fitted.json`): weights and margins."""
    data: dict[str, Any] = json.loads((files("tui.context.counting") / "fitted.json").read_text())
    return data


class ShippedTokenizer:
    """Counts with a vocabulary shipped with the program, read at first use: not on the event loop.

    Of all vocabularies only the one used last stays in memory.
    """

    _lock = threading.Lock()
    _latest: ShippedTokenizer | None = None

    def __init__(self, name: str, read: Callable[[], WordCounter], how: CountMethod = "vocabulary") -> None:
        self.name = name
        self.how = how
        self._read = read
        self._counter: WordCounter | None = None
        self._error: TokenizerError | None = None

    def load(self) -> WordCounter:
        """Return the vocabulary, reading it if it is not in memory. Raises `TokenizerError`; a failure is not tried
        again."""
        with self._lock:
            if self._error is not None:
                raise self._error
            if self._counter is None:
                try:
                    self._counter = self._read()
                except TokenizerError as error:
                    self._error = error
                    raise
                latest, ShippedTokenizer._latest = ShippedTokenizer._latest, self
                if latest is not None and latest is not self:
                    latest._counter = None  # a thread that is counting keeps its reference until it is done
            return self._counter

    def count(self, text: str) -> int:
        """Tokens of `text`; special tokens in it are counted as plain text. Raises `TokenizerError`."""
        return round(total(self.classes(text)))

    def classes(self, text: str) -> int:
        """Tokens of `text` by class, packed. Raises `TokenizerError`."""
        return (self._counter or self.load()).classes(text)


@lru_cache
def _tokenizer(name: str) -> ShippedTokenizer:
    if name.startswith("claude"):
        from tui.context.counting.claude import ClaudeCounter  # its patterns take 3 ms to compile

        return ShippedTokenizer(name, partial(ClaudeCounter, name))
    if name in ENCODINGS:
        return ShippedTokenizer(name, partial(BpeCounter, ENCODINGS[name]))
    family = fitted_families()[name]
    weights = Weights(tuple(family["tokens"]), tuple(family["characters"]))
    how: CountMethod = "estimated" if name == ESTIMATED else "fitted"
    return ShippedTokenizer(
        f"{name}-{family['version']}", partial(BpeCounter, ENCODINGS[family["encoding"]], weights), how
    )


def family_of(model: str) -> str:
    """The family of `model`, by the longest matching prefix of its name; `ESTIMATED` for none."""
    return FAMILIES.get(longest_prefix(plain_name(model), FAMILIES) or "", ESTIMATED)


def margins_of(model: str) -> Sequence[float]:
    """The share of a count, by class of text, that is added for the upper bound.

    With a family's own vocabulary it covers parts of a text that the model treats as something else; otherwise the
    errors on texts that were not part of the fit.
    """
    if get_tokenizer(model).how == "vocabulary":
        return VOCABULARY_MARGINS
    families = fitted_families()
    margins: Sequence[float] = families.get(family_of(model), families[ESTIMATED])["margins"]
    return margins


class TextCount(NamedTuple):
    """Tokens of a text, their upper bound (for 95 of 100 texts), and how they were obtained."""

    tokens: int
    upper_bound: int
    how: CountMethod | Literal["provider"]


def count_text(text: str, model: str) -> TextCount:
    """Tokens of `text` for `model`. Raises `TokenizerError`."""
    tokenizer, margins = get_tokenizer(model), margins_of(model)
    by_class = unpack(tokenizer.classes(text))
    tokens = sum(count for _, count in by_class)
    bound = sum(count * (1 + margins[kind]) for kind, count in by_class)
    return TextCount(round(tokens), ceil(bound), tokenizer.how)


def count_texts(pairs: Sequence[tuple[str, str]]) -> list[TextCount]:
    """The counts of texts, each for a model, one vocabulary at a time. Raises `TokenizerError`."""
    counts: dict[int, TextCount] = {}
    for index in sorted(range(len(pairs)), key=lambda index: get_tokenizer(pairs[index][1]).name):
        counts[index] = count_text(*pairs[index])
    return [counts[index] for index in range(len(pairs))]


O200K, CL100K = _tokenizer("o200k"), _tokenizer("cl100k")
_registry: dict[str, Tokenizer] = {}


def register_tokenizer(name: str, tokenizer: Tokenizer) -> None:
    """Use `tokenizer` for every model whose name starts with `name`, unless a longer prefix matches."""
    _registry[plain_name(name)] = tokenizer
    get_tokenizer.cache_clear()


@lru_cache(1_000)
def get_tokenizer(model: str) -> Tokenizer:
    """The tokenizer for `model`: the one registered for the longest prefix of its name, else its family's."""
    registered = longest_prefix(plain_name(model), _registry)
    return _tokenizer(family_of(model)) if registered is None else _registry[registered]
