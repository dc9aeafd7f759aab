"""Count tokens by byte-pair encoding over a packed vocabulary. Only the number of tokens is computed, never their ids.

A vocabulary takes about 3 MB in memory and loads in 0.1 s. tiktoken, which the tests compare with, holds each token
several times over in hash maps (70 MB for 200,000 tokens).
"""

from __future__ import annotations

import lzma
import sys
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import lru_cache
from heapq import heappop, heappush
from importlib.resources import files
from itertools import accumulate, pairwise
from operator import itemgetter, mul
from typing import TYPE_CHECKING, NamedTuple

from tui.context.counting.classes import LANE, UNIT, pack, word_classes
from tui.context.counting.words import LONG, TokenizerError, WordCounter, pieces

if TYPE_CHECKING:
    from regex import Pattern

WORD_BYTES = 8_192  # longer words are cut, which costs at most a token each time
CACHED_LONG_WORDS = 64
CACHED_RANKS = 16_384  # about 2 MB
PREFIX = 3  # leading bytes of a token, which the index holds
ABSENT = 1 << 32  # above every rank


def read_vocabulary(name: str) -> bytes:
    """The shipped file `name`, unpacked. Raises `TokenizerError` where it is missing or damaged."""
    try:
        packed = (files("tui.context.counting") / "vocabularies" / f"{name}.xz").read_bytes()
        return lzma.decompress(packed)
    except OSError as error:
        raise TokenizerError(f"the vocabulary {name} cannot be read: {error}") from error
    except lzma.LZMAError as error:
        raise TokenizerError(f"the vocabulary {name} is damaged: reinstall chatctx") from error


class Ranks:
    """Merge ranks of tokens, packed.

    Tokens are grouped by their first three bytes and their length. `keys` holds the groups in order, `starts` and
    `offsets` where each begins in `ranks` and in `suffixes`, which has what follows the first three bytes.
    """

    def __init__(self, data: bytes) -> None:
        """Read `data` as packed by `tests/bench/vocabularies.py`. Raises `ValueError` for anything else."""
        tokens, groups = int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")
        if 8 + 6 * groups + 3 * tokens > len(data):
            raise ValueError("not a vocabulary")
        at = 8
        self.keys = _joined(data[at : at + 4 * groups], groups)
        at += 4 * groups
        counts = _joined(data[at : at + 2 * groups] + bytes(2 * groups), groups)
        at += 2 * groups
        self.ranks = _joined(data[at : at + 3 * tokens] + bytes(tokens), tokens)
        self.suffixes = data[at + 3 * tokens :]
        self.starts = array("I", accumulate(counts, initial=0))
        widths = (max(0, (key & 255) - PREFIX) for key in self.keys)
        self.offsets = array("I", accumulate(map(mul, counts, widths), initial=0))
        if self.starts[-1] != tokens or self.offsets[-1] != len(self.suffixes):
            raise ValueError("not a vocabulary")

    def __len__(self) -> int:
        return len(self.ranks)

    def get(self, token: bytes) -> int:
        """The rank of `token`, or `ABSENT`."""
        length = len(token)
        if length > 255:
            return ABSENT
        key = int.from_bytes(token[:PREFIX].ljust(PREFIX, b"\0"), "big") << 8 | length
        group = bisect_left(self.keys, key)
        if group == len(self.keys) or self.keys[group] != key:
            return ABSENT
        row, width = self.starts[group], length - PREFIX
        if width > 0:
            start, end = self.offsets[group], self.offsets[group + 1]
            suffix = token[PREFIX:]
            at = self.suffixes.find(suffix, start, end)
            while at >= 0 and (at - start) % width:  # a match across two tokens
                at = self.suffixes.find(suffix, at + 1, end)
            if at < 0:
                return ABSENT
            row += (at - start) // width
        return self.ranks[row]

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Every token with its rank."""
        for group, key in enumerate(self.keys):
            length, offset = key & 255, self.offsets[group]
            head, width = (key >> 8).to_bytes(PREFIX, "big")[:length], max(0, length - PREFIX)
            for row in range(self.starts[group], self.starts[group + 1]):
                yield head + self.suffixes[offset : offset + width], self.ranks[row]
                offset += width


def _joined(planes: bytes, count: int) -> array[int]:
    """32-bit integers from four planes of their bytes, lowest byte first."""
    mixed = bytearray(4 * count)
    for index in range(4):
        mixed[index::4] = planes[index * count : (index + 1) * count]
    numbers = array("I", bytes(mixed))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def load_ranks(name: str) -> Ranks:
    """The shipped vocabulary `name`. Raises `TokenizerError` where the file is missing or damaged."""
    try:
        return Ranks(read_vocabulary(name))
    except (ValueError, IndexError) as error:
        raise TokenizerError(f"the vocabulary {name} is damaged: reinstall chatctx") from error


class Encoding(NamedTuple):
    """How a family splits text into words, and which vocabulary merges them.

    `vocabulary` is the shipped file, of which the tokens of rank below `size` count. Words are split by `patterns`,
    each splitting what the one before it left. `nfc` composes the text first. `characters` merges characters instead
    of bytes, as SentencePiece does: "\u2581" is a blank, and a character without a token costs its bytes.
    `leading_blank` puts a blank before the text.
    """

    vocabulary: str
    patterns: tuple[str, ...]
    size: int = ABSENT
    nfc: bool = False
    characters: bool = False
    leading_blank: bool = False


class Weights(NamedTuple):
    """The inputs of a family's count if its vocabulary is not shipped: `tokens` by another
    vocabulary and `characters`, both by class and neither negative (see `tests/bench/fit_classes.py`)."""

    tokens: tuple[float, ...]
    characters: tuple[float, ...]


class _RankCache(dict[bytes, int]):
    """A cache of recently used ranks; `ABSENT` for ranks of `size` and above. Most lookups are answered in C."""

    def __init__(self, ranks: Ranks, size: int) -> None:
        super().__init__()
        self._ranks = ranks
        self._size = size

    def __missing__(self, token: bytes) -> int:
        rank = self._ranks.get(token)
        if rank >= self._size:
            rank = ABSENT
        if len(self) >= CACHED_RANKS:
            self.clear()
        self[token] = rank
        return rank


class BpeCounter(WordCounter):
    """Counts by an encoding. Raises `TokenizerError` where its vocabulary can't be read."""

    def __init__(self, encoding: Encoding, weights: Weights | None = None) -> None:
        try:
            import regex
        except ImportError as error:
            raise TokenizerError(str(error)) from error
        super().__init__()
        self.encoding = encoding
        self.weights = weights
        self._patterns: list[Pattern[str]] = [regex.compile(pattern) for pattern in encoding.patterns]
        self.rank: Callable[[bytes], int] = _RankCache(load_ranks(encoding.vocabulary), encoding.size).__getitem__
        self._merge_long = lru_cache(CACHED_LONG_WORDS)(self._merge)

    def split(self, text: str) -> Iterator[list[str]]:
        if self.encoding.nfc and not text.isascii():
            text = unicodedata.normalize("NFC", text)
        if self.encoding.characters:
            text = text.replace("\u2581", " ")
        if self.encoding.leading_blank and text:
            text = " " + text
        for piece in pieces(text):
            words = [piece]
            for pattern in self._patterns:
                words = [part for word in words for part in pattern.findall(word)]
            yield words

    def count_word(self, word: str) -> int:
        tokens, kinds = self.tokens(word), word_classes(word)
        if self.weights is None:
            kind = max(kinds, key=itemgetter(1))[0]
            return tokens * UNIT << LANE * kind
        by_token, by_character = self.weights
        share = tokens / sum(count for _, count in kinds)
        return pack({kind: count * (share * by_token[kind] + by_character[kind]) for kind, count in kinds})

    def tokens(self, word: str) -> int:
        """How many tokens of the vocabulary `word` is."""
        data = word.encode("utf-8", "surrogatepass")
        if len(data) > WORD_BYTES:
            step = WORD_BYTES // 4
            return sum(self.tokens(word[at : at + step]) for at in range(0, len(word), step))
        return self._merge(data) if len(data) <= LONG else self._merge_long(data)

    def _merge(self, data: bytes) -> int:
        """Tokens of one word. The pair with the lowest rank is merged until no pair has a rank."""
        if self.rank(data) != ABSENT:
            return 1
        if not self.encoding.characters:
            return len(merge(data, list(range(len(data) + 1)), self.rank)) - 1
        bounds = [at for at, byte in enumerate(data) if byte & 0xC0 != 0x80]
        parts = pairwise(merge(data, [*bounds, len(data)], self.rank))
        return sum(1 if self.rank(data[start:end]) != ABSENT else end - start for start, end in parts)


def merge(data: bytes, bounds: list[int], rank: Callable[[bytes], int]) -> list[int]:
    """Token boundaries in `data` after merging its parts between `bounds`."""
    return (_merge_short if len(bounds) <= LONG else _merge_long)(data, bounds, rank)


def _merge_short(data: bytes, bounds: list[int], rank: Callable[[bytes], int]) -> list[int]:
    """Scan all pairs before each merge."""
    pairs = [rank(data[start:end]) for start, end in zip(bounds, bounds[2:], strict=False)]
    while pairs:
        best = min(pairs)
        if best == ABSENT:
            break
        at = pairs.index(best)
        del bounds[at + 1], pairs[at]
        if at:
            pairs[at - 1] = rank(data[bounds[at - 1] : bounds[at + 1]])
        if at < len(pairs):
            pairs[at] = rank(data[bounds[at] : bounds[at + 2]])
    return bounds


def _merge_long(data: bytes, bounds: list[int], rank: Callable[[bytes], int]) -> list[int]:
    """Keep the pairs in a heap; for long words."""
    count = len(bounds) - 1
    ends = bounds[1:]  # of the part that begins at `bounds[at]`; 0 once it was merged into the one before it
    after, before = list(range(1, count + 1)), list(range(-1, count - 1))
    heap: list[tuple[int, int, int]] = []

    def offer(left: int) -> None:
        end = ends[after[left]]
        best = rank(data[bounds[left] : end])
        if best != ABSENT:
            heappush(heap, (best, left, end))

    for at in range(count - 1):
        offer(at)
    while heap:
        _, left, end = heappop(heap)
        right = after[left]
        if not ends[left] or right >= count or ends[right] != end:
            continue  # one of the two was merged since
        ends[left], ends[right] = end, 0
        after[left] = after[right]
        if after[left] < count:
            before[after[left]] = left
            offer(left)
        if before[left] >= 0:
            offer(before[left])
    return [*(start for start, end in zip(bounds, ends, strict=False) if end), bounds[-1]]
