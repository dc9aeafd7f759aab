"""The encodings, and splitting by them. NOTICE names the source and licence of every vocabulary.

The patterns are those of the families' published tokenizers (`tokenizer.json`, `tekken.json`, tiktoken's
`openai_public.py`); `tests/corpus/test_vocabularies.py` compares the counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

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
