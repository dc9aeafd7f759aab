from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.context.counting.images import attachment_tokens, image_tokens
from tui.messages import Attachment


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        ("chatgpt-4o-latest", 1024, 1024, 765),
        ("gpt-4o", 1024, 1024, 765),  # OpenAI's own example: 85 + 4 x 170
        ("gpt-4o", 2048, 4096, 1105),  # and its second: 85 + 6 x 170
        ("gpt-4o-mini", 1024, 1024, 2_833 + 4 * 5_667),
        ("gpt-5", 1024, 1024, 70 + 4 * 140),
        ("gpt-4.1-mini", 1024, 1024, round(1_024 * 1.62)),
        ("o4-mini", 1800, 2400, round(1_452 * 1.72 + 0.5)),  # OpenAI's example: 33 x 44 patches of a scaled image
        ("gpt-5.6", 6_400, 6_400, 40_000),  # no limit, no resize
        ("claude-sonnet-4-5", 1_000, 1_000, 36 * 36),
        ("claude-sonnet-4-5", 4_000, 4_000, 1_568),
        ("claude-opus-4-8", 4_000, 4_000, 4_784),
        ("claude-haiku-4-5-20251001", 4_000, 4_000, 1_568),
        ("gemini-2.5-flash", 300, 300, 258),
        ("gemini-2.5-flash", 1_500, 700, 516),
    ],
)
def test_published_formulas(model: str, width: int, height: int, tokens: int) -> None:
    assert image_tokens(width, height, model) == tokens


@given(
    st.integers(1, 20_000),
    st.integers(1, 20_000),
    st.sampled_from(["gpt-5", "gpt-5.4", "gpt-5.6", "claude-opus-5", "claude-3", "gemini-3", "llama3"]),
)
def test_any_image_costs_something_and_less_than_its_pixels(width: int, height: int, model: str) -> None:
    assert 1 <= image_tokens(width, height, model) <= max(2_000, width * height)


def test_a_pdf_costs_by_the_page() -> None:
    one, ten = (Attachment("pdf", "a.pdf", "application/pdf", "0", 9, pages=pages) for pages in (1, 10))
    assert 10 * attachment_tokens(one, "claude-opus-5") == attachment_tokens(ten, "claude-opus-5")
    unknown = Attachment("pdf", "a.pdf", "application/pdf", "0", 10**9)
    assert attachment_tokens(unknown, "claude-opus-5") == attachment_tokens(one, "claude-opus-5")


def test_an_image_of_unknown_size_is_taken_for_a_middling_one() -> None:
    image = Attachment("image", "a.png", "image/png", "0", 10**7)
    assert attachment_tokens(image, "gpt-4o") == image_tokens(1_024, 1_024, "gpt-4o")
