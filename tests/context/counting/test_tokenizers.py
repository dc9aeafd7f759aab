from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.context.helpers import WordTokenizer, registered
from tui.context.counting import tokenizers
from tui.context.counting.tokenizers import (
    CL100K,
    O200K,
    PIECE_BYTES,
    BpeTokenizer,
    TokenizerError,
    get_tokenizer,
    heuristic_count,
    official_text,
    pack_ranks,
    pieces,
    plain_name,
)

if TYPE_CHECKING:
    from tiktoken import Encoding

# The published hashes: `expected_hash` in tiktoken_ext/openai_public.py of tiktoken 0.14.0.
PUBLISHED = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}


@pytest.mark.parametrize("encoding", sorted(PUBLISHED))
def test_shipped_ranks_are_the_official_ones(encoding: str) -> None:
    assert hashlib.sha256(official_text(encoding)).hexdigest() == PUBLISHED[encoding]


def test_packing_the_official_file_gives_the_shipped_one() -> None:
    shipped = Path(tokenizers.__file__).parent / "ranks" / "cl100k_base.xz"
    assert pack_ranks(official_text("cl100k_base")) == shipped.read_bytes()


@pytest.mark.parametrize("encoding", sorted(PUBLISHED))
def test_split_pattern_is_tiktokens_own(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    openai_public = import_module("tiktoken_ext.openai_public")

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *args, **kwargs: {})
    assert tokenizers._PATTERNS[encoding] == getattr(openai_public, encoding)()["pat_str"]


def test_tokens_are_those_of_tiktoken_built_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiktoken import Encoding

    openai_public = import_module("tiktoken_ext.openai_public")

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *args, **kwargs: tokenizers.load_ranks("o200k_base"))
    official = Encoding(**openai_public.o200k_base())
    text = "hello world, tokens: 12345 äöü 你好世界\n\tif x: <|endoftext|> 'twas 👩‍👧"
    assert O200K.load().encode_ordinary(text) == official.encode_ordinary(text)


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4", "cl100k_base"),
        ("GPT-4-turbo", "cl100k_base"),
        ("gpt-3.5-turbo-16k", "cl100k_base"),
        ("gpt-4o-mini", "o200k_base"),
        ("gpt-4.1-nano", "o200k_base"),
        ("gpt-4.5-preview", "o200k_base"),
        ("openai/gpt-5", "o200k_base"),
        ("gpt-6.2-sol", "o200k_base"),
        ("gpt-oss:20b", "o200k_base"),
        ("us.anthropic.claude-sonnet-4-5", "o200k_base"),
        ("openrouter/openai/gpt-4", "cl100k_base"),
        ("somebody/unheard-of", "o200k_base"),
        ("", "o200k_base"),
    ],
)
def test_models_find_their_encoding(model: str, encoding: str) -> None:
    assert get_tokenizer(model).name == encoding


def test_exact_name_wins_over_a_longer_list_of_families() -> None:
    with registered("gpt-5-words", WordTokenizer()):
        assert get_tokenizer("vendor/GPT-5-words").name == "words"
        assert get_tokenizer("gpt-5-words-mini").name == "words"
        assert get_tokenizer("gpt-5").name == "o200k_base"
    assert get_tokenizer("gpt-5-words").name == "o200k_base"


def test_vendor_prefixes_are_stripped() -> None:
    assert plain_name("openai/GPT-5") == "gpt-5"
    assert plain_name("eu.anthropic.claude-x") == "claude-x"
    assert plain_name("deepseek-ai/DeepSeek-R1") == "deepseek-r1"


def _base64(size: int) -> str:
    import base64

    return base64.b64encode(random.Random(1).randbytes(size * 3 // 4)).decode()


FIVE_MB = {
    "one letter": "a" * 5_000_000,
    "spaces": " " * 5_000_000,
    "tabs": "\t" * 5_000_000,
    "wide spaces": "\u3000" * 1_700_000,
    "no-break spaces": "\u00a0" * 2_500_000,
    "base64": _base64(5_000_000),
    "cjk": "你好世界" * 420_000,
    "emoji": "👩‍👩‍👧‍👦🇦🇹" * 150_000,
    "control characters": "\x00\x07\x1b\x7f" * 1_250_000,
    "lone surrogates": "\ud800x" * 800_000,
    "special token": "<|endoftext|>" * 385_000,
    "prose": "The quick brown fox, as ever, jumps.\n" * 136_000,
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", sorted(FIVE_MB))
def test_five_megabytes_of_anything_are_counted_in_silence(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    text = FIVE_MB[kind]
    counted = O200K.count(text)
    assert 1_000 < counted <= len(text.encode("utf-8", "surrogatepass"))
    assert capfd.readouterr().err == ""


@given(st.text(alphabet=st.characters(), max_size=300))
def test_any_text_is_counted(text: str) -> None:
    assert 0 <= O200K.count(text) <= 4 * len(text)
    assert 0 <= CL100K.count(text) <= 4 * len(text)


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["word ", "\n", " " * 40_000, "x" * 130_000, "日本語" * 9_000]), max_size=8))
def test_pieces_are_the_text_and_never_too_long(parts: list[str]) -> None:
    text = "".join(parts)
    found = pieces(text)
    assert "".join(found) == text
    assert all(len(piece.encode()) <= PIECE_BYTES for piece in found)


def test_cutting_at_line_ends_keeps_the_count() -> None:
    text = "def function(argument):\n    return argument + 1\n" * 10_000
    assert len(pieces(text)) > 1
    assert O200K.count(text) == len(O200K.load().encode_ordinary(text))


def test_a_panic_is_an_error_like_any_other() -> None:
    class PanicError(BaseException):
        pass

    class Panicking:
        def encode_ordinary(self, text: str) -> list[int]:
            raise PanicError

    tokenizer = BpeTokenizer("o200k_base")
    tokenizer._encoding = cast("Encoding", Panicking())
    with pytest.raises(TokenizerError, match="PanicError"):
        tokenizer.count("x")


def test_an_interrupt_is_not_swallowed() -> None:
    class Interrupted:
        def encode_ordinary(self, text: str) -> list[int]:
            raise KeyboardInterrupt

    tokenizer = BpeTokenizer("o200k_base")
    tokenizer._encoding = cast("Encoding", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        tokenizer.count("x")


def test_missing_ranks_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []

    def missing(encoding: str) -> dict[bytes, int]:
        tries.append(encoding)
        raise TokenizerError("gone")

    monkeypatch.setattr(tokenizers, "load_ranks", missing)
    tokenizer = BpeTokenizer("o200k_base")
    for _ in range(3):
        with pytest.raises(TokenizerError, match="gone"):
            tokenizer.count("x")
    assert tries == ["o200k_base"]


def test_unknown_ranks_say_so() -> None:
    with pytest.raises(TokenizerError, match="cannot be read"):
        tokenizers.load_ranks("p99k")


def test_counting_needs_no_network() -> None:
    code = (
        "import socket\n"
        "def refuse(*args, **kwargs): raise AssertionError('network')\n"
        "socket.socket.connect = refuse; socket.getaddrinfo = refuse\n"
        "from tui.context.counting.tokenizers import O200K, CL100K\n"
        "assert O200K.count('hello world') == CL100K.count('hello world') == 2\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PATH": "", "TIKTOKEN_CACHE_DIR": ""})


@given(st.text(max_size=200))
def test_the_heuristic_is_never_zero_for_some_text(text: str) -> None:
    assert (heuristic_count(text) > 0) == bool(text)


def test_the_heuristic_knows_wide_characters() -> None:
    assert heuristic_count("a" * 400) == 100
    assert 100 <= heuristic_count("世" * 100) <= 140
    assert heuristic_count("привет" * 10) == 30
