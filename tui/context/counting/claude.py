"""Counting as Claude does, after the reconstruction by Sander Land (ctok; MIT, see NOTICE).

Anthropic publishes no vocabulary. ctok's author measured one with the counting endpoint: a text is rewritten as a
stream with marks for the borders and the case of words, and it costs the least number of known pieces that make up the
stream. The tables are ctok's; `tests/bench/vocabularies.py` packs them with the kind of each character. No piece goes
on after the end of a word or before the beginning of one, so the stream is cut there.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from tui.context.counting.words import BLANKS, LATIN, WordCounter, main_class, packed, pieces, read_vocabulary

CACHED_PARTS = 2_048
PART = 512  # characters of the stream that are looked at together
# Marks in the stream: a word begins or ends, its first letter or all of them are capitals. None occurs in the text,
# since the API strips control characters. `TAIL` comes before the line ends at the end of a text.
BEGIN, END, SHIFT, CAPS, TAIL = "\x01", "\x02", "\x03", "\x04", "\x05"
_MARKS = frozenset((BEGIN, END, SHIFT, CAPS))

# Kinds of characters, as letters: W of words, M marks that open a word where none precedes them, d and D digits (ASCII
# and others), P punctuation, blanks (" ", n line end, t others), and what stands by itself: L ideographs, syllables
# and emoji, V variation selectors, p other punctuation and symbols, a and o numbers (decimal and others).
_ASTRAL = "\U00010000-\U0010ffff"  # kind L
_RUN = re.compile(
    rf"(?P<word>W[WM]*)|(?P<mark>M+)|(?P<digits>[dD]+)|(?P<punct>P+)|(?P<blank>[ nt]+)"
    rf"|(?P<letters>[LV{_ASTRAL}]+)|(?P<symbols>p[pV]*)|(?P<numbers>[ao][aoV]*)"
)
_PART = re.compile(
    f"{TAIL}\n+|[0-9]+|[\u3400-\u9fff\uac00-\ud7a3]| +|\t+|\n+"
    f"|[{SHIFT}{CAPS}]*{BEGIN}?[^{BEGIN}{END}{SHIFT}{CAPS}{TAIL} \t\n0-9\u3400-\u9fff\uac00-\ud7a3]+{END}?|.",
    re.DOTALL,
)
_SUFFIXES = ("s", "t", "d", "m", "ll", "re", "ve")  # "it's" has one border, the apostrophe
# A text is cut into words and the gaps between them, whose stream depends on nothing else. A word that is the end of a
# contraction belongs to its gap. Ideographs stand by themselves, but for those with a blank beside them.
_IDEOGRAPH = "\u3400-\u9fff\uac00-\ud7a3"
_WORDS = (
    "[{W}]+"
    rf"| *[{_IDEOGRAPH}](?: +(?=[{{W}}{_IDEOGRAPH}])|(?! ))"
    rf"|(?:[{_IDEOGRAPH}](?= ))?[^{{W}}{_IDEOGRAPH}]+(?:(?<=[ '])[{_IDEOGRAPH}](?:(?= )[^{{W}}{_IDEOGRAPH}]+)?)*"
    f"(?:(?<=')(?:{'|'.join(_SUFFIXES)})(?![{{W}}]))?"
)
_SEAM = re.compile(f"(?<={END}) (?=[{SHIFT}{CAPS}]*{BEGIN})")  # one blank between two marked spans is not written
_STRIPPED = re.compile("[\x01-\x08\x0b-\x1f\x7f\x80-\x9f\ue000-\uf8ff]")
_BLANK = re.compile("[\x00\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_NEW_CASE = str.maketrans("\u1c89\ua7cb", "\u1c8a\u0264")  # pairs of Unicode 16, missing in Python 3.11
_CAPITALS_FROM = 4  # letters in capitals that take one mark for all of them


class ClaudeCounter(WordCounter):
    """Counts by ctok's table `vocabulary` ("claude-3" or "claude-4.7"). Raises `TokenizerError` if it can't be read."""

    def __init__(self, vocabulary: str) -> None:
        super().__init__()
        self._count_cached = lru_cache(CACHED_PARTS)(self._count_part)
        data = json.loads(read_vocabulary(vocabulary))
        self.folds_quotes: bool = data["folds_quotes"]
        self.marks_capitals: bool = data["marks_capitals"]
        ends = [*(start for start, _ in data["kinds"][1:]), 0x10000]
        self._kinds = "".join(kind * (end - start) for (start, kind), end in zip(data["kinds"], ends, strict=True))
        runs = (match.span() for match in re.finditer("[WM]+", self._kinds))
        letter = "".join(f"{chr(start)}-{chr(end - 1)}" for start, end in runs)
        self._words = re.compile(_WORDS.format(W=letter))
        self._pieces = frozenset(data["pieces"].split("\x00"))
        self._bytes = frozenset(map(bytes.fromhex, data["bytes"]))
        self._longest: dict[str, int] = {}  # piece by its first two characters
        for piece in self._pieces:
            self._longest[piece[:2]] = max(len(piece), self._longest.get(piece[:2], 1))

    def split(self, text: str) -> Iterator[Iterable[str]]:
        """Words and gaps of `text`, as the only text of a message. `BEGIN` and `END` stand for its borders."""
        if not text:
            return
        parts = pieces(text)
        for index, piece in enumerate(parts):
            normalized = self.normalized(piece)
            if index == 0 and piece[0] == " " == normalized[:1] and normalized[1:2] != " ":
                normalized = normalized[1:]
            words = self._words.findall(normalized) or [""]
            if index == 0:
                words[0] = BEGIN + words[0]
            if index == len(parts) - 1:
                words[-1] += END
            yield words

    def parts(self, word: str) -> list[str]:
        """The parts of the stream for a word, or for a gap between two words or at a border of the text."""
        first, last, body = word[0] == BEGIN, word[-1] == END, word.strip(BEGIN + END)
        ends = (body[:1] + body[-1:]).translate(self._kinds)
        if ends[:1] == "W":
            return [self._cased(body) + END]
        left = "" if first or ends[:1] == "M" else "x"
        right = "" if last or ends[-1:] in ("W", "M") else "x"
        parts = _PART.findall(self.stream(left + body + right, first=first, last=last))
        return parts[len(left) : len(parts) - len(right)]

    def stream(self, text: str, *, first: bool = True, last: bool = True) -> str:
        """Normalized `text` with its marks, as if a blank came before the message and two line ends after it."""
        tail = ""
        if last:
            bare = text.rstrip("\n")
            tail = TAIL + "\n" * (len(text) - len(bare) + 2) if bare != text else ""
            text = bare
        if not text:
            return (BEGIN if first else "") + tail
        marked = "".join(self._marked(text, first))
        return _SEAM.sub("", marked) + tail

    def normalized(self, text: str) -> str:
        """`text` as the API changes it: composed, without control characters, with one kind of blank."""
        if not text.isascii():
            text = unicodedata.normalize("NFC", _SURROGATE.sub("\ufffd", text)).replace("\u0e4d\u0e32", "\u0e33")
        text = _STRIPPED.sub("", text)
        if self.folds_quotes:
            text = text.translate(_QUOTES)
        return _BLANK.sub(" ", text)

    def _marked(self, text: str, first: bool) -> Iterator[str]:
        """The runs of `text` with their marks."""
        kinds = text.translate(self._kinds)  # characters beyond the table are left as they are
        runs = [(match.lastgroup or "", match.start(), match.end()) for match in _RUN.finditer(kinds)]
        around = [("", 0, 0), *runs, ("", len(text), len(text))]
        for index, (name, start, end) in enumerate(runs):
            body = text[start:end]
            before, after = around[index], around[index + 2]
            opens = body == "'" and name == "punct" and after[0] in ("word", "mark")
            follows = first if start == 0 else text[start - 1] == " "
            precedes = end < len(text) and text[end] == " " and text[end : end + 2] != "  "
            begins, ends = self._borders(name, body, kinds[start], kinds[end - 1])
            if start == 0 and first and not (begins and not opens) and not (name == "blank" and body[0] == " "):
                yield " " if opens else BEGIN
            if name == "word":
                if before[0] == "mark":
                    yield body + END
                elif self._contracted(text, runs, index, kinds):
                    yield self._cased(body).replace(BEGIN, "", 1) + END
                else:
                    yield self._cased(body) + END
            elif name == "mark":
                yield BEGIN + body + ("" if after[0] == "word" else END)
            else:
                begins = begins and follows and not opens
                yield (BEGIN if begins else "") + body + (END if ends and precedes else "")

    @staticmethod
    def _borders(name: str, body: str, head: str, last: str) -> tuple[bool, bool]:
        """Whether a run takes a mark at its left and at its right: where it meets a blank."""
        match name:
            case "word" | "mark" | "punct":
                return True, True
            case "digits":
                return head == "D", last == "D"
            case "letters" | "symbols":
                return head in "pV", last in "pV"
            case "numbers":
                same = len(set(body)) == 1 or len({unicodedata.category(char) for char in body}) == 1
                return (True, True) if same else (False, last == "V")
            case _:
                return False, False

    def _contracted(self, text: str, runs: list[tuple[str, int, int]], index: int, kinds: str) -> bool:
        """Whether the apostrophe before this word serves as its left border, as in "it's"."""
        _, start, end = runs[index]
        if text[start:end] not in _SUFFIXES or index == 0 or runs[index - 1][0] != "punct":
            return False
        if text[slice(*runs[index - 1][1:])] != "'":
            return False
        if index < 2:
            return True
        name, start, end = runs[index - 2]
        return (
            name in ("word", "mark", "blank")
            or not self._borders(name, text[start:end], kinds[start], kinds[end - 1])[1]
        )

    def _cased(self, word: str) -> str:
        """`word` after its marks for case and for its beginning."""
        if word.islower() or "\u1e9e" in word:
            return BEGIN + word
        if "\u0130" in word:
            head, tail = word[0], word[1:]
            if _is_upper(head) and head != "\u0130" and not any(_is_upper(char) for char in tail if char != "\u0130"):
                lowered = "".join(char if char == "\u0130" else _lower(char) for char in tail)
                return SHIFT + BEGIN + _lower(head) + lowered
            return BEGIN + word
        capitals = self.marks_capitals and len(word) >= _CAPITALS_FROM and any(map(_is_upper, word))
        # Each one is a capital that has a small form, or neither letter nor mark.
        if capitals and all(_is_upper(c) or not (c.isalpha() or unicodedata.category(c)[0] == "M") for c in word):
            return CAPS + BEGIN + _lower(word).replace("\u03c2", "\u03c3")
        if _is_upper(word[0]) and not any(map(_is_upper, word[1:])):
            return SHIFT + BEGIN + _lower(word)
        return BEGIN + word

    def count_word(self, word: str) -> int:
        return sum(map(self._count_cached, self.parts(word)))

    def _count_part(self, part: str) -> int:
        """Tokens of a part of the stream by class, packed."""
        if len(part) > PART:  # a long run of blanks, or text without any border; a cut costs at most a token
            return sum(self._count_cached(part[at : at + PART]) for at in range(0, len(part), PART))
        if part[0] == TAIL:
            return packed(BLANKS, self._tiles(part[1:]) - 1)  # one is part of the message's frame
        bare = part.strip(BEGIN + END + SHIFT + CAPS)
        return packed(main_class(bare) if bare else LATIN, self._tiles(part))

    def _tiles(self, stream: str) -> int:
        """The least number of tokens that make up one part of the stream."""
        if stream in self._pieces:
            return 1
        size = len(stream)
        best = [0, *[1 << 30] * size]
        for start, char in enumerate(stream):
            alone = best[start] + self._alone(char)
            best[start + 1] = min(best[start + 1], alone)
            cost = best[start] + 1
            longest = self._longest.get(stream[start : start + 2], 1)
            for end in range(start + 2, min(start + longest, size) + 1):
                if cost < best[end] and stream[start:end] in self._pieces:
                    best[end] = cost
        return best[size]

    def _alone(self, char: str) -> int:
        """Tokens of a single character: 1 if it is a piece, else those of its bytes."""
        if char in self._pieces or char in _MARKS:
            return 1
        data = char.encode("utf-8", "surrogatepass")
        best = list(range(len(data) + 1))
        for end in range(1, len(data) + 1):
            for start in range(end):
                if end - start == 1 or data[start:end] in self._bytes:
                    best[end] = min(best[end], best[start] + 1)
        return best[-1]


def _lower(text: str) -> str:
    """`text` in lower case as Claude's tokenizer does it, one character at a time."""
    return "".join(char if char == "\u03f4" else char.translate(_NEW_CASE).lower() for char in text)


def _is_upper(char: str) -> bool:
    return char != "\u03f4" and (char in "\u1c89\ua7cb" or (char.isupper() and char.lower() != char))
