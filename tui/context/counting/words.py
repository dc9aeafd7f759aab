"""What all tokenizers share: a vocabulary in a file, a text in words, and the tokens of each word in memory."""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.resources import files

from tui.context.counting.classes import LANE, UNIT

PIECE = 16_384  # characters split in one go: splitting holds the interpreter lock, for about 1 ms with this
LONG = 64  # characters; longer words are not cached
CACHED_WORDS = 24_576  # about 2 MB


class TokenizerError(Exception):
    """A tokenizer could not count a text. The message is one line."""


def read_vocabulary(name: str) -> bytes:
    """The shipped file `name`, unpacked. Raises `TokenizerError` where it is missing or damaged."""
    try:
        data = (files("tui.context.counting") / "vocabularies" / f"{name}.xz").read_bytes()
        return lzma.decompress(data)
    except OSError as error:
        raise TokenizerError(f"the vocabulary {name} cannot be read: {error}") from error
    except lzma.LZMAError as error:
        raise TokenizerError(f"the vocabulary {name} is damaged: reinstall chatctx") from error


class WordCounter(dict[str, int]):
    """A vocabulary in memory: the tokens of each word seen, by class and packed (`classes.pack`).

    A dict, so that `map` over the words of a text stays in C. It is emptied when it has `CACHED_WORDS`.
    """

    def split(self, text: str) -> Iterator[Iterable[str]]:
        """The words of `text`, one piece at a time."""
        raise NotImplementedError

    def count_word(self, word: str) -> int:
        """Tokens of `word` by class, packed."""
        raise NotImplementedError

    def __missing__(self, word: str) -> int:
        tokens = self.count_word(word)
        if len(word) <= LONG:
            if len(self) >= CACHED_WORDS:
                self.clear()
            self[word] = tokens
        return tokens

    def classes(self, text: str) -> int:
        """Tokens of `text` by class, packed."""
        return sum(sum(map(self.__getitem__, words)) for words in self.split(text))


@lru_cache(4_096)
def packed(kind: int, tokens: int) -> int:
    """`tokens` of one class. Equal counts are one object, which saves half of the memory for words."""
    return tokens * UNIT << LANE * kind


def pieces(text: str) -> list[str]:
    """Split `text` into pieces of at most `PIECE` characters, if possible after a line end before a letter or digit.

    No word spans such a cut; a cut elsewhere may change the count by a token.
    """
    if len(text) <= PIECE:
        return [text]
    parts, start, end = [], 0, len(text)
    while end - start > PIECE:
        low, high = start + PIECE // 2, start + PIECE
        cut = text.rfind("\n", low, high) + 1
        while cut and not text[cut].isalnum():
            cut = text.rfind("\n", low, cut - 1) + 1
        cut = cut or text.rfind("\n", low, high) + 1 or text.rfind(" ", low, high)
        if cut <= start:
            cut = high
        parts.append(text[start:cut])
        start = cut
    parts.append(text[start:])
    return parts
