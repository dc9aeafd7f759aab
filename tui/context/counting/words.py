"""What all tokenizers share: a vocabulary in a file, a text in words, and the tokens of each word by class of text.

Classes are texts that cost alike in one vocabulary: scripts, digits, punctuation, blanks, emoji. Tokens by class are
packed into one integer, `LANE` bits a class, so that words and messages are summed in C. The unit is 1/`UNIT` of a
token. The classes of most texts come first, so that most integers are short. Packed integers are stored: changing
`CLASSES` requires a new `counting.PROJECTION_VERSION`.
"""

from __future__ import annotations

import lzma
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.resources import files

CLASSES = (
    "latin", "digits", "punctuation", "blanks", "symbols", "emoji", "other", "accented", "turkish", "vietnamese",
    "cyrillic", "ukrainian", "greek", "armenian", "georgian", "hebrew", "arabic", "persian", "devanagari",
    "bengali", "gurmukhi", "gujarati", "oriya", "tamil", "telugu", "kannada", "malayalam", "sinhala", "thai", "lao",
    "tibetan", "burmese", "khmer", "ethiopic", "hangul", "kana", "han",
)  # fmt: skip
LATIN, DIGITS, PUNCTUATION, BLANKS, SYMBOLS, EMOJI, OTHER = range(7)
UNIT = 1_024
LANE = 48
_MASK = (1 << LANE) - 1

# Blocks of Unicode by their first character, each up to the next. Combining marks (0x300) occur with Latin letters.
_BLOCKS = (
    (0x0000, "other"), (0x00C0, "accented"), (0x0250, "other"), (0x0300, "accented"), (0x0370, "greek"),
    (0x0400, "cyrillic"), (0x0530, "armenian"), (0x0590, "hebrew"), (0x0600, "arabic"), (0x0700, "other"),
    (0x0750, "arabic"), (0x0780, "other"), (0x08A0, "arabic"), (0x0900, "devanagari"), (0x0980, "bengali"),
    (0x0A00, "gurmukhi"), (0x0A80, "gujarati"), (0x0B00, "oriya"), (0x0B80, "tamil"), (0x0C00, "telugu"),
    (0x0C80, "kannada"), (0x0D00, "malayalam"), (0x0D80, "sinhala"), (0x0E00, "thai"), (0x0E80, "lao"),
    (0x0F00, "tibetan"), (0x1000, "burmese"), (0x10A0, "georgian"), (0x1100, "hangul"), (0x1200, "ethiopic"),
    (0x13A0, "other"), (0x1780, "khmer"), (0x1800, "other"), (0x19E0, "khmer"), (0x1A00, "other"),
    (0x1C80, "cyrillic"), (0x1C90, "georgian"), (0x1CC0, "other"), (0x1DC0, "accented"), (0x1EA0, "vietnamese"),
    (0x1EFA, "accented"), (0x1F00, "greek"), (0x2000, "other"), (0x2600, "emoji"), (0x27C0, "other"),
    (0x2D00, "georgian"), (0x2D30, "other"), (0x2D80, "ethiopic"), (0x2DE0, "cyrillic"), (0x2E00, "other"),
    (0x2E80, "han"), (0x3040, "kana"), (0x3100, "han"), (0x3130, "hangul"), (0x3190, "han"), (0x31F0, "kana"),
    (0x3200, "han"), (0xA640, "cyrillic"), (0xA6A0, "other"), (0xA960, "hangul"), (0xA980, "other"),
    (0xAA60, "burmese"), (0xAA80, "other"), (0xAB00, "ethiopic"), (0xAB30, "other"), (0xAC00, "hangul"),
    (0xD800, "other"), (0xF900, "han"), (0xFB00, "other"), (0xFB13, "armenian"), (0xFB1D, "hebrew"),
    (0xFB50, "arabic"), (0xFE00, "emoji"), (0xFE10, "other"), (0xFE70, "arabic"), (0xFF00, "other"),
    (0xFF66, "kana"), (0xFFA0, "hangul"), (0xFFE0, "other"), (0x1F000, "emoji"), (0x1FB00, "other"),
    (0x20000, "han"), (0x323B0, "other"),
)  # fmt: skip
_STARTS = [start for start, _ in _BLOCKS]
_NAMES = [CLASSES.index(name) for _, name in _BLOCKS]
# Letters that occur in one language only: a word with one of them gets that language's class, not the script's.
_TELLING = {
    "vietnamese": ("ơưƠƯ", "latin accented"),
    "turkish": ("ğışĞİŞ", "latin accented"),
    "ukrainian": ("іїєґІЇЄҐ", "cyrillic"),
    "persian": ("پچژگکیےہھ", "arabic"),
    "accented": ("", "latin"),
}
_TELLING_CHARS = {char: CLASSES.index(name) for name, (chars, _) in _TELLING.items() for char in chars}
_TAKES = {CLASSES.index(name): [CLASSES.index(kind) for kind in kinds.split()] for name, (_, kinds) in _TELLING.items()}
_JOINERS = frozenset("\u200d\u20e3")


@lru_cache(4_096)
def class_of(char: str) -> int:
    """The class of one character."""
    if char.isascii():
        if char.isalpha():
            return LATIN
        return DIGITS if char.isdigit() else BLANKS if char.isspace() else PUNCTUATION
    category = unicodedata.category(char)
    if char in _TELLING_CHARS:
        return _TELLING_CHARS[char]
    if char in _JOINERS:
        return EMOJI
    if category == "Nd":
        return DIGITS
    if category[0] == "Z":
        return BLANKS
    block = _NAMES[bisect_right(_STARTS, ord(char)) - 1]
    if block == EMOJI:
        return EMOJI
    if category[0] == "P" or category == "Cf":
        return PUNCTUATION
    return SYMBOLS if category[0] == "S" else block


def word_classes(word: str) -> dict[int, int]:
    """Number of characters of `word` in each class, not counting blanks before other characters."""
    if word.isascii():
        inner = word.strip()
        if inner.isalpha():
            return {LATIN: len(inner)}
        if not inner:
            return {BLANKS: len(word)}
    counts: dict[int, int] = {}
    for char in word:
        kind = class_of(char)
        counts[kind] = counts.get(kind, 0) + 1
    if len(counts) > 1:
        counts.pop(BLANKS, None)
        for kind, others in _TAKES.items():
            if kind in counts:
                counts[kind] += sum(counts.pop(other, 0) for other in others)
    return counts


def main_class(word: str) -> int:
    """The class of most characters of `word`; of several the first in `CLASSES`."""
    counts = word_classes(word)
    return max(sorted(counts), key=counts.__getitem__)


def pack(tokens: Mapping[int, float]) -> int:
    """`tokens` by class as one integer. No count may be negative."""
    packed = 0
    for kind, count in tokens.items():
        packed += round(count * UNIT) << LANE * kind
    return packed


def unpack(packed: int) -> list[tuple[int, float]]:
    """The classes in `packed` that have tokens, and how many."""
    counts, kind = [], 0
    while packed:
        if lane := packed & _MASK:
            counts.append((kind, lane / UNIT))
        packed >>= LANE
        kind += 1
    return counts


def total(packed: int) -> float:
    """Tokens of all classes."""
    units = 0
    while packed:
        units += packed & _MASK
        packed >>= LANE
    return units / UNIT


# -- words -------------------------------------------------------------------------------------------------------------

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
    """A vocabulary in memory: the tokens of each word seen, by class and packed (`pack`).

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
