from __future__ import annotations

import base64
import hashlib
import random
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from unicodedata import normalize

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken import Encoding

from tests.bench.vocabularies import from_tiktoken, official_text, pack, unpacked
from tui.context.counting import bpe
from tui.context.counting.bpe import (
    ABSENT,
    ENCODINGS,
    WORTH_COMPILING,
    BpeCounter,
    Ranks,
    load_ranks,
    merge,
    plane_of,
    splitters,
)
from tui.context.counting.bpe import Encoding as Vocabulary
from tui.context.counting.tokenizers import get_tokenizer
from tui.context.counting.words import TokenizerError, total

# The published hashes: `expected_hash` in tiktoken_ext/openai_public.py of tiktoken 0.14.0.
PUBLISHED = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary", sorted(PUBLISHED))
def test_shipped_tokens_are_the_official_ones(vocabulary: str) -> None:
    assert hashlib.sha256(official_text(unpacked(load_ranks(vocabulary)))).hexdigest() == PUBLISHED[vocabulary]


@pytest.mark.slow
def test_packing_the_official_file_gives_the_shipped_one() -> None:
    shipped = Path(bpe.__file__).parent / "vocabularies" / "cl100k_base.xz"
    official = official_text(unpacked(load_ranks("cl100k_base")))
    assert pack(from_tiktoken(official)) == shipped.read_bytes()


@pytest.mark.parametrize("name", ["o200k", "cl100k"])
def test_split_patterns_are_tiktokens_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    openai_public = import_module("tiktoken_ext.openai_public")
    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *args, **kwargs: {})
    assert ENCODINGS[name].patterns == (getattr(openai_public, f"{name}_base")()["pat_str"],)


@cache
def reference(name: str) -> Encoding:
    (pattern,) = ENCODINGS[name].patterns
    ranks = dict(unpacked(load_ranks(ENCODINGS[name].vocabulary)))
    return Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


@cache
def counter(name: str) -> BpeCounter:
    return BpeCounter(ENCODINGS[name])


ODD = st.sampled_from(" \n\r\t\x1c\x85\u3000'saAſK1²ªʰǅéЖ世の.+/<b>\U0001d400🙂")


@settings(max_examples=3 * settings().max_examples)
@given(st.text(ODD, max_size=12) | st.text(st.characters()))
def test_patterns_spelled_out_split_as_they_are_written(text: str) -> None:
    for pattern in {pattern for encoding in ENCODINGS.values() for pattern in encoding.patterns}:
        for sample in (text, text.encode("ascii", "ignore").decode()):
            plane = plane_of(sample + "é" * WORTH_COMPILING) if sample is text else plane_of(sample)
            (split,) = splitters((pattern,), plane)
            assert split(sample) == regex.findall(pattern, sample), pattern


@pytest.mark.parametrize("name", [pytest.param("gemma3", marks=pytest.mark.slow), "mistral-v3"])
def test_no_token_goes_over_a_border_of_words(name: str) -> None:
    encoding = ENCODINGS[name]
    (split,) = splitters(encoding.patterns, "all")
    across = [
        token
        for data, _ in unpacked(load_ranks(encoding.vocabulary))
        if len(split(token := data.decode("utf-8", "replace"))) > 1
    ]
    assert all(re.fullmatch(r"<\w+>|> </", token) for token in across), across


SAMPLES = st.text(
    alphabet=st.one_of(
        st.characters(codec="utf-8"),
        st.sampled_from(" \n\t.,'\"(){}=/_-#0123456789etaoinshrdluETAOIN"),
        st.sampled_from("абвгдежзий你好世界日本語テキスト한국어हिन्दीقلبéüßạ👩‍👧"),
    ),
    max_size=300,
)


@pytest.mark.slow
@settings(max_examples=60)
@given(SAMPLES)
@pytest.mark.parametrize("name", ["o200k", "cl100k", "tekken", "glm5"])
def test_counts_are_those_of_tiktoken(name: str, text: str) -> None:
    assert total(counter(name).classes(text)) == len(reference(name).encode_ordinary(text))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["o200k", "qwen3.5"])
def test_long_words_are_merged_as_tiktoken_merges_them(name: str) -> None:
    chance = random.Random(5)
    for letters in ("a", "ab", "abcdefgh", "0123456789abcdef", "日本語文字", "-=", "\n"):
        text = "".join(chance.choices(letters, k=500))
        assert total(counter(name).classes(text)) == len(reference(name).encode_ordinary(text))


@pytest.mark.slow
def test_counting_in_pieces_gives_the_same() -> None:
    chance = random.Random(3)
    for _ in range(5):
        text = "".join(chance.choices(["word ", "x.y\n", "12,5 ", "\n", "  ", "naïve "], k=9_000))
        whole = len(reference("o200k").encode_ordinary(text))
        assert abs(total(counter("o200k").classes(text)) - whole) <= 3


def _base64(size: int) -> str:
    return base64.b64encode(random.Random(1).randbytes(size * 3 // 4)).decode()


FIVE_MB = {
    "one letter": "a" * 5_000_000,
    "spaces": " " * 5_000_000,
    "tabs": "\t" * 5_000_000,
    "wide spaces": "\u3000" * 1_700_000,
    "no-break spaces": "\u00a0" * 2_500_000,
    "cjk": "你好世界" * 420_000,
    "emoji": "👩‍👩‍👧‍👦🇦🇹" * 150_000,
    "control characters": "\x00\x07\x1b\x7f" * 1_250_000,
    "lone surrogates": "\ud800x" * 800_000,
    "special token": "<|endoftext|>" * 385_000,
    "prose": "The quick brown fox, as ever, jumps.\n" * 136_000,
}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", sorted(FIVE_MB))
def test_five_megabytes_of_anything_are_counted(kind: str) -> None:
    text = FIVE_MB[kind]
    assert 1_000 < get_tokenizer("gpt-5").count(text) <= len(text.encode("utf-8", "surrogatepass"))


@pytest.mark.slow
def test_base64_is_counted() -> None:
    text = _base64(200_000)
    assert get_tokenizer("gpt-5").count(text) == pytest.approx(len(reference("o200k").encode_ordinary(text)), rel=0.001)


@given(st.text(alphabet=st.characters(), max_size=300))
def test_any_text_is_counted(text: str) -> None:
    for name in ("o200k", "cl100k", "gemma3", "mistral-v3", "deepseek", "qwen2", "smollm2"):
        assert 0 <= total(counter(name).classes(text)) <= 4 * len(text) + 1


@given(st.dictionaries(st.binary(min_size=1, max_size=9), st.none(), min_size=1, max_size=60), st.binary(max_size=9))
def test_packed_ranks_find_what_was_packed(tokens: dict[bytes, None], other: bytes) -> None:
    import lzma

    ordered = list(tokens)
    ranks = Ranks(lzma.decompress(pack(ordered)))
    assert [ranks.find(token) for token in ordered] == list(range(len(ordered)))
    assert dict(unpacked(ranks)) == {token: rank for rank, token in enumerate(ordered)}
    assert other in tokens or ranks.find(other) == ABSENT


@given(st.text(alphabet="abc", min_size=1, max_size=200))
def test_both_ways_of_merging_agree(text: str) -> None:
    tokens = {b"ab": 1, b"bc": 2, b"aa": 3, b"abc": 4, b"aab": 5, b"cc": 6, b"abab": 7, b"bcbc": 8}
    data, rank = text.encode(), lambda token: tokens.get(token, ABSENT)
    bounds = list(range(len(data) + 1))
    assert bpe._merge_by_scanning(data, list(bounds), rank) == bpe._merge_by_heap(data, list(bounds), rank)
    assert merge(data, list(bounds), rank)[-1] == len(data)


def test_a_part_of_a_vocabulary_does_not_know_the_rest() -> None:
    newer, older = load_ranks("glm"), load_ranks("glm", size=151_329)
    later = next(token for token, rank in unpacked(newer) if rank >= 151_329)
    assert older.find(later) == ABSENT != newer.find(later)
    assert counter("glm4").encoding.size == older.size


def test_characters_without_a_token_cost_their_bytes() -> None:
    assert total(counter("gemma3").classes("\U0001f600\U0001fae8")) == 1 + 4  # the second is newer than the vocabulary
    assert total(counter("mistral-v3").classes("\U0001fae8")) == 1 + 4  # the blank before it, and four bytes


def test_a_word_that_merging_in_order_does_not_make_is_no_token() -> None:
    assert counter("gemma3").tokens(" YYYY") == 3  # " Y", "YY", "Y": its vocabulary lists " YYYY" all the same


@pytest.mark.parametrize("name", sorted(ENCODINGS))
def test_every_vocabulary_can_be_read(name: str) -> None:
    assert total(BpeCounter(ENCODINGS[name]).classes("hello")) in (1, 2)


def test_a_vocabulary_that_is_missing_or_damaged_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TokenizerError, match="cannot be read"):
        load_ranks("p99k")
    monkeypatch.setattr(bpe, "read_vocabulary", lambda name: b"\1\0\0\0nonsense")
    with pytest.raises(TokenizerError, match="damaged"):
        BpeCounter(Vocabulary("o200k_base", (r"\S+",)))


def test_cl100k_and_o200k_differ() -> None:
    assert get_tokenizer("gpt-4").count("Grüße, 世界") > get_tokenizer("gpt-5").count("Grüße, 世界")


@pytest.mark.parametrize(
    ("name", "composes"), [("qwen2", True), ("qwen3.5", True), ("minimax", True), ("o200k", False)]
)
def test_whether_accents_written_apart_are_composed_first(name: str, composes: bool) -> None:
    counter, text = BpeCounter(ENCODINGS[name]), "Über città élève naïve"
    apart, composed = (total(counter.classes(normalize(form, text))) for form in ("NFD", "NFC"))
    assert (apart == composed) == composes
