from __future__ import annotations

import base64
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.context.counting.tokenizers import get_tokenizer
from tui.tools.capping import cap_text, without_payloads

count = get_tokenizer("gpt-5").count
NOISE = random.Random(7).randbytes(6_000)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("\n".join(f"line {n}" for n in range(50_000)), "lines"),
        ("x" * 400_000, "characters"),
        ("汉字的长文本" * 40_000, "characters"),
        ("🦊" * 50_000, "characters"),
        (" " * 300_000 + "end", "characters"),
        ("\n" * 100_000, "lines"),
    ],
    ids=["lines", "letters", "han", "foxes", "blanks", "breaks"],
)
@pytest.mark.parametrize("limit", [200, 3_000])
def test_a_long_text_keeps_head_and_tail_within_its_share(text: str, what: str, limit: int) -> None:
    short = cap_text(text, limit, count, "read on with offset")
    assert count(short) <= limit * 1.05
    assert count(short) >= limit * 0.2 or text[:9].isspace()
    assert short.startswith(text[:10].rstrip())
    assert "left out here. read on with offset" in short
    assert what in short
    assert short.rstrip().endswith(text.rstrip()[-1:])


def test_what_fits_is_the_same_object() -> None:
    text = "a short result\n" * 20
    assert cap_text(text, 1_000, count) is text


@pytest.mark.parametrize("characters", [600, 1_000, 4_000])
def test_a_character_of_several_tokens_counts_as_several(characters: int) -> None:
    assert count("🦤" * 10) == 30
    assert count(cap_text("🦤" * characters, 1_000, count)) <= 1_050


def test_only_as_much_is_counted_as_could_be_kept() -> None:
    counted: list[int] = []

    def watched(text: str) -> int:
        counted.append(len(text))
        return count(text)

    cap_text("some words of a text " * 2_000_000, 1_000, watched)
    assert sum(counted) < 200_000


@given(st.text(max_size=400), st.integers(1, 60))
def test_any_text_can_be_capped(text: str, limit: int) -> None:
    short = cap_text(text, limit, lambda piece: len(piece.encode("utf-8", "surrogatepass")))
    assert short == text or "left out here" in short


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see data:image/png;base64," + base64.b64encode(NOISE).decode() + " there", "[base64: image/png, about 6,000"),
        (base64.b64encode(b"%PDF-1.7" + NOISE).decode(), "[base64: a PDF, about 6,00"),
        (base64.encodebytes(b"\x89PNG\r\n\x1a\n" + NOISE).decode(), "[base64: a PNG image, about"),
        ('{"image": "' + base64.urlsafe_b64encode(NOISE).decode() + '"}', '{"image": "[base64: binary data'),
        ("\x89PNG\r\n\x1a\n" + NOISE.decode("latin-1"), "[a PNG image, "),
        ("\0" * 5_000, "[binary data, 5,000 bytes, not shown]"),
    ],
    ids=["url", "pdf", "lines", "json", "bytes", "nul"],
)
def test_payloads_are_described(text: str, shown: str) -> None:
    cleaned = without_payloads(text)
    assert shown in cleaned
    assert len(cleaned) < 200


def test_what_stands_around_a_payload_stays() -> None:
    cleaned = without_payloads("see data:image/png;base64," + base64.b64encode(NOISE).decode() + " there")
    assert cleaned.startswith("see [base64: image/png")
    assert cleaned.endswith(" there")


@pytest.mark.parametrize(
    "text",
    [
        "x" * 5_000,
        "/".join(["src", "components"] * 400),
        "ACGT" * 1_000,
        "deadbeef" * 500,
        "\x1b[31mred\x1b[0m " * 500,
        "a key: " + "Ab3" * 100,
    ],
    ids=["letter", "path", "genes", "hex", "colours", "key"],
)
def test_what_only_looks_like_a_payload_stays(text: str) -> None:
    assert without_payloads(text) == text


def test_the_program_s_own_source_holds_no_payloads() -> None:
    for path in (Path(__file__).parents[2] / "tui").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert without_payloads(text) == text
