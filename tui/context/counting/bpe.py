"""Count tokens by byte-pair encoding over a packed vocabulary. Only the number of tokens is computed, never their ids.

A vocabulary takes about 3 MB in memory and loads in 0.05 s. tiktoken, which the tests compare with, holds each token
several times over in hash maps (70 MB for 200,000 tokens).
"""

from __future__ import annotations

import sys
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from heapq import heappop, heappush
from itertools import accumulate, chain, pairwise
from operator import mul
from typing import NamedTuple

from tui.context.counting.classes import main_class, pack, word_classes
from tui.context.counting.encodings import ABSENT, Encoding, plane_of, splitters
from tui.context.counting.words import LONG, TokenizerError, WordCounter, packed, pieces, read_vocabulary

WORD_BYTES = 8_192  # longer words are cut, which costs at most a token each time
CACHED_LONG_WORDS = 64
CACHED_RANKS = 16_384  # about 2 MB
PREFIX = 3  # leading bytes of a token, which the index holds


class Ranks(dict[bytes, int]):
    """Merge ranks of tokens: a packed table of all, and as a dict those looked up last, for parts of words.

    In the table tokens are grouped by their first three bytes and their length. `groups` holds them in order,
    `starts` and `offsets` where each begins in `ranks` and in `suffixes`, which has what follows the first three bytes.
    """

    def __init__(self, data: bytes, size: int = ABSENT) -> None:
        """Read `data` as packed by `tests/bench/vocabularies.py`; of its tokens those of rank below `size` count.

        Raises `ValueError` for anything else.
        """
        super().__init__()
        tokens, count = int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")
        if 8 + 6 * count + 3 * tokens > len(data):
            raise ValueError("not a vocabulary")
        self.size = size
        at = 8
        self.groups = _joined(data[at : at + 4 * count], count)
        at += 4 * count
        counts = _joined(data[at : at + 2 * count] + bytes(2 * count), count)
        at += 2 * count
        self.ranks = _joined(data[at : at + 3 * tokens] + bytes(tokens), tokens)
        self.suffixes = data[at + 3 * tokens :]
        self.starts = array("I", accumulate(counts, initial=0))
        widths = (max(0, (key & 255) - PREFIX) for key in self.groups)
        self.offsets = array("I", accumulate(map(mul, counts, widths), initial=0))
        if self.starts[-1] != tokens or self.offsets[-1] != len(self.suffixes):
            raise ValueError("not a vocabulary")

    def __missing__(self, token: bytes) -> int:
        if len(self) >= CACHED_RANKS:
            self.clear()
        rank = self[token] = self.find(token)
        return rank

    def find(self, token: bytes) -> int:
        """The rank of `token` in the table, or `ABSENT`."""
        length = len(token)
        if length > 255:
            return ABSENT
        key = int.from_bytes(token[:PREFIX].ljust(PREFIX, b"\0"), "big") << 8 | length
        group = bisect_left(self.groups, key)
        if group == len(self.groups) or self.groups[group] != key:
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
        rank = self.ranks[row]
        return rank if rank < self.size else ABSENT


def _joined(planes: bytes, count: int) -> array[int]:
    """32-bit integers from four planes of their bytes, lowest byte first."""
    mixed = bytearray(4 * count)
    for index in range(4):
        mixed[index::4] = planes[index * count : (index + 1) * count]
    numbers = array("I", bytes(mixed))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def load_ranks(name: str, size: int = ABSENT) -> Ranks:
    """The shipped vocabulary `name`. Raises `TokenizerError` where the file is missing or damaged."""
    try:
        return Ranks(read_vocabulary(name), size)
    except (ValueError, IndexError) as error:
        raise TokenizerError(f"the vocabulary {name} is damaged: reinstall chatctx") from error


class Weights(NamedTuple):
    """The inputs of a family's count if its vocabulary is not shipped: `tokens` by another
    vocabulary and `characters`, both by class and neither negative (see `tests/bench/fit_classes.py`)."""

    tokens: tuple[float, ...]
    characters: tuple[float, ...]


class BpeCounter(WordCounter):
    """Counts by an encoding. Raises `TokenizerError` where its vocabulary can't be read."""

    def __init__(self, encoding: Encoding, weights: Weights | None = None) -> None:
        super().__init__()
        self.encoding = encoding
        self.weights = weights
        self._ranks = load_ranks(encoding.vocabulary, encoding.size)
        self._count_cached = lru_cache(CACHED_LONG_WORDS)(self._count_bytes)

    def split(self, text: str) -> Iterator[Iterable[str]]:
        if self.encoding.characters:
            text = text.replace("\u2581", " ")
        if self.encoding.leading_blank and text:
            text = " " + text
        for piece in pieces(text):
            if self.encoding.nfc and not piece.isascii():
                piece = unicodedata.normalize("NFC", piece)
            split, *more = splitters(self.encoding.patterns, plane_of(piece))
            words: Iterable[str] = split(piece)
            for split in more:
                words = chain.from_iterable(map(split, words))
            yield words

    def count_word(self, word: str) -> int:
        tokens = self.tokens(word)
        if self.weights is None:
            return packed(main_class(word), tokens)
        by_token, by_character = self.weights
        kinds = word_classes(word)
        share = tokens / sum(kinds.values())
        return pack({kind: count * (share * by_token[kind] + by_character[kind]) for kind, count in kinds.items()})

    def tokens(self, word: str) -> int:
        """How many tokens of the vocabulary `word` is."""
        data = word.encode("utf-8", "surrogatepass")
        if len(data) > WORD_BYTES:
            step = WORD_BYTES // 4
            return sum(self.tokens(word[at : at + step]) for at in range(0, len(word), step))
        return self._count_bytes(data) if len(data) <= LONG else self._count_cached(data)

    def _count_bytes(self, data: bytes) -> int:
        """Tokens of one word. The pair with the lowest rank is merged until no pair has a rank."""
        if self._ranks.find(data) != ABSENT:
            return 1
        rank = self._ranks.__getitem__
        if not self.encoding.characters:
            return len(merge(data, list(range(len(data) + 1)), rank)) - 1
        bounds = [at for at, byte in enumerate(data) if byte & 0xC0 != 0x80]
        parts = pairwise(merge(data, [*bounds, len(data)], rank))
        return sum(1 if rank(data[start:end]) != ABSENT else end - start for start, end in parts)


def merge(data: bytes, bounds: list[int], rank: Callable[[bytes], int]) -> list[int]:
    """Token boundaries in `data` after merging its parts between `bounds`."""
    return (_merge_by_scanning if len(bounds) <= LONG else _merge_by_heap)(data, bounds, rank)


def _merge_by_scanning(data: bytes, bounds: list[int], rank: Callable[[bytes], int]) -> list[int]:
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


def _merge_by_heap(data: bytes, bounds: list[int], rank: Callable[[bytes], int]) -> list[int]:
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
