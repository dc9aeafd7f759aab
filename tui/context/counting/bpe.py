"""The encodings of families, and counting tokens by them: byte-pair encoding over a packed vocabulary.

Only the number of tokens is computed, never their ids. A vocabulary takes about 3 MB in memory and loads in 0.05 s.
tiktoken, which the tests compare with, holds each token several times over in hash maps (70 MB for 200,000 tokens).

The patterns are those of the families' published tokenizers (`tokenizer.json`, `tekken.json`, tiktoken's
`openai_public.py`); `tests/corpus/test_vocabularies.py` compares the counts. NOTICE names the source and licence of
every vocabulary.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from heapq import heappop, heappush
from itertools import accumulate, chain, pairwise
from operator import mul
from typing import Literal, NamedTuple, TypeAlias

from tui.context.counting.words import (
    LONG,
    TokenizerError,
    WordCounter,
    main_class,
    pack,
    packed,
    pieces,
    read_vocabulary,
    word_classes,
)

ABSENT = 1 << 32  # above every rank
WORTH_COMPILING = 4_096  # characters beyond ASCII: compiling their patterns takes 25 ms


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


_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_LLAMA_3 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}"
_O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTIONS}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_REST}"
)
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_REST}"
)
_QWEN = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}"
_QWEN_3_5 = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_REST}"
)
_DEEPSEEK = (
    r"\p{N}{1,3}|[^\p{N}]+",
    r"[一-龥぀-ゟ゠-ヿ]+|[^一-龥぀-ゟ゠-ヿ]+",
    r"[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    rf"|{_REST}|\p{{N}}+|\S",
)
_GPT_2 = (r"\p{N}|[^\p{N}]+", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
# SentencePiece splits nothing. No token of these two, but for Gemma's tags, has a blank after anything else or an ASCII
# letter beside an ASCII mark or digit, so text is split there too: shorter words recur more often. What is not ASCII
# goes with both.
_LETTERS, _OTHER = "[A-Za-z]+", r"[\x80-\U0010ffff]"


def _split_by_kind(marks: str) -> str:
    return rf" *(?:{_LETTERS}|{marks}|(?={_OTHER}))(?:{_OTHER}+(?:{_LETTERS}|{marks})?)*| +|[0-9]"


_MISTRAL_3 = _split_by_kind(r"[^A-Za-z0-9 \x80-\U0010ffff]+")
_TAG = (
    "</?(?:a|b|bbox|blockquote|body|caption|code|div|em|footer|h[1-6]|html|i|iframe|img|li|s|span|strong|sub|sup|table"
    "|tbody|td|tfoot|th|thead|tr|u|ul)>"
)
_GEMMA = rf"{_TAG}|\n+|" + _split_by_kind(rf"(?:[^A-Za-z0-9 \n<\x80-\U0010ffff]|(?!{_TAG})<)+")

ENCODINGS = {
    "o200k": Encoding("o200k_base", (_O200K,)),
    "cl100k": Encoding("cl100k_base", (_CL100K,)),
    "qwen2": Encoding("qwen2", (_QWEN,), nfc=True),
    "qwen3.5": Encoding("qwen3.5", (_QWEN_3_5,), nfc=True),
    "deepseek": Encoding("deepseek", _DEEPSEEK),
    "glm4": Encoding("glm", (_LLAMA_3,), size=151_329),  # GLM 5 has 3,491 tokens more
    "glm5": Encoding("glm", (_LLAMA_3,)),
    "minimax": Encoding("minimax", (_O200K,), nfc=True),
    "tekken": Encoding("tekken", (_TEKKEN,)),
    "mistral-v3": Encoding("mistral_v3", (_MISTRAL_3,), characters=True, leading_blank=True),
    "gemma3": Encoding("gemma3", (_GEMMA,), characters=True),
    "smollm2": Encoding("smollm2", _GPT_2),
}

# Splitting. `re` takes half as long as `regex` but knows no \p{..}: for characters of the Basic Multilingual Plane the
# properties are spelled out; beyond it the lists of ranges would be long and slow.
Plane: TypeAlias = Literal["ascii", "basic", "all"]
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_PROPERTY = re.compile(r"\\p\{(\w+)\}|\\.|[][]")
_ASCII = {
    "L": "A-Za-z",
    "Lu": "A-Z",
    "Ll": "a-z",
    "N": "0-9",
    "P": r"!-#%-*,-/:;?@\[-\]_{}",
    "S": r"$+<->\^`|~",
    "Lt": "",
    "Lm": "",
    "Lo": "",
    "M": "",
}
_BLANK = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # `re` adds \x1c to \x1f


def plane_of(text: str) -> Plane:
    """The characters for which to compile the patterns that split `text`."""
    if text.isascii():
        return "ascii"
    return "all" if len(text) < WORTH_COMPILING or _BEYOND.search(text) else "basic"


@lru_cache(16)
def splitters(patterns: tuple[str, ...], plane: Plane) -> list[Callable[[str], list[str]]]:
    """Functions that split texts of one plane by `patterns`, each what the one before it left."""
    if plane == "all":
        import regex

        return [regex.compile(pattern).findall for pattern in patterns]
    properties = _ASCII if plane == "ascii" else _basic_properties()
    return [re.compile(spell_out(pattern, properties)).findall for pattern in patterns]


def spell_out(pattern: str, properties: Mapping[str, str]) -> str:
    r"""`pattern` with the characters of `properties` instead of `\p{..}` and `\s`."""
    in_set = False

    def spelled(match: re.Match[str]) -> str:
        nonlocal in_set
        if match[0] in "[]":
            in_set = match[0] == "["
        if match[0] == r"\S":
            return f"[^{_BLANK}]"
        members = _BLANK if match[0] == r"\s" else properties[match[1]] if match[1] else match[0]
        return members if in_set or members == match[0] else f"[{members}]"

    return _PROPERTY.sub(spelled, pattern)


@lru_cache(1)
def _basic_properties() -> dict[str, str]:
    """The ranges of characters in the Basic Multilingual Plane that have each property."""
    import regex

    plane = "".join(map(chr, range(0x10000)))
    return {
        name: "".join(f"{re.escape(run[0])}-{re.escape(run[-1])}" for run in regex.findall(rf"\p{{{name}}}+", plane))
        for name in _ASCII
    }


# -- merging -----------------------------------------------------------------------------------------------------------

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
