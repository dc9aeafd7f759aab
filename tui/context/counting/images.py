"""Tokens of an image or a PDF by the provider's published pixel and page formulas, never by its bytes.

Sources (provider-apis facts §8): Anthropic "Vision" (patches of 28 px), OpenAI "Images and vision" (patches of 32 px or
tiles of 512 px, by model), Google Gemini "Understand images" (258 a tile of 768 px). Where nothing is published the
patch formula of OpenAI serves, and the estimate's correction factor learns the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, sqrt

from tui.context.counting.families import family_of, plain_name
from tui.messages import Attachment

UNKNOWN_SIDE = 1024  # pixels: side of the square that an image of unknown size is counted as
PDF_PAGE_TEXT = 2_000  # tokens: Anthropic names 1,500 to 3,000 a page of text
PDF_PAGE = (1_241, 1_754)  # pixels: A4 at 150 dpi; each page is also sent as an image


@dataclass(frozen=True, slots=True)
class Patches:
    """OpenAI patch models: squares of 32 px, at most `budget` of them (None: no limit), times `multiplier`."""

    budget: int | None
    multiplier: float = 1.0


@dataclass(frozen=True, slots=True)
class Tiles:
    """OpenAI tile models, detail high: `base`, plus `tile` for each square of 512 px after scaling to 2048 / 768 px."""

    base: int
    tile: int


_OPENAI: tuple[tuple[str, Patches | Tiles], ...] = (
    ("gpt-5.6", Patches(None)),
    ("gpt-6", Patches(None)),
    ("gpt-5.5", Patches(10_000)),
    ("gpt-5.4-mini", Patches(1_536, 1.62)),
    ("gpt-5.4-nano", Patches(1_536, 2.46)),
    ("gpt-5.4", Patches(2_500)),
    ("gpt-5.2", Patches(1_536)),
    ("gpt-5-mini", Patches(1_536, 1.62)),
    ("gpt-5-nano", Patches(1_536, 2.46)),
    ("gpt-4.1-mini", Patches(1_536, 1.62)),
    ("gpt-4.1-nano", Patches(1_536, 2.46)),
    ("o4-mini", Patches(1_536, 1.72)),
    ("gpt-4o-mini", Tiles(2_833, 5_667)),
    ("gpt-5", Tiles(70, 140)),
    ("gpt-4", Tiles(85, 170)),
    ("o1", Tiles(75, 150)),
    ("o3", Tiles(75, 150)),
    ("computer-use", Tiles(65, 129)),
)


def claude_image(width: int, height: int, *, high_resolution: bool) -> int:
    """Tokens of an image for Claude: patches of 28 px after scaling it down to the tier's limits."""
    side, most = (2_576, 4_784) if high_resolution else (1_568, 1_568)
    scale = min(1.0, side / max(width, height))
    patches = ceil(width * scale / 28) * ceil(height * scale / 28)
    return min(patches, most)


def openai_image(width: int, height: int, rule: Patches | Tiles) -> int:
    """Tokens of an image for an OpenAI model, detail high or auto."""
    if isinstance(rule, Tiles):
        scale = min(1.0, 2_048 / max(width, height))
        width, height = max(1, round(width * scale)), max(1, round(height * scale))
        scale = min(1.0, 768 / min(width, height))
        return rule.base + rule.tile * ceil(width * scale / 512) * ceil(height * scale / 512)
    patches = ceil(width / 32) * ceil(height / 32)
    if rule.budget is not None and patches > rule.budget:
        scale = sqrt(32 * 32 * rule.budget / (width * height))
        across, down = width * scale / 32, height * scale / 32
        if across >= 1 and down >= 1:
            scale *= min(floor(across) / across, floor(down) / down)
        patches = min(rule.budget, max(1, ceil(width * scale / 32 - 1e-9)) * max(1, ceil(height * scale / 32 - 1e-9)))
    return ceil(patches * rule.multiplier)


def gemini_image(width: int, height: int) -> int:
    """Tokens of an image for Gemini: 258 for each tile of 768 px, one where both sides are at most 384 px."""
    if max(width, height) <= 384:
        return 258
    return 258 * ceil(width / 768) * ceil(height / 768)


def image_tokens(width: int, height: int, model: str) -> int:
    """Tokens of an image of `width` x `height` pixels for `model`. At least 1."""
    name = plain_name(model)
    width, height = max(1, width), max(1, height)
    if "claude" in name:
        return claude_image(width, height, high_resolution=family_of(name) == "claude-4.7")
    if name.startswith(("gemini", "gemma")):
        return gemini_image(width, height)
    for prefix, rule in _OPENAI:
        if name.startswith(prefix):
            return openai_image(width, height, rule)
    return openai_image(width, height, Patches(1_536))


def attachment_tokens(attachment: Attachment, model: str) -> int:
    """Tokens of an image or a PDF; 0 for a text file, which is counted as text."""
    match attachment.kind:
        case "image":
            return image_tokens(attachment.width or UNKNOWN_SIDE, attachment.height or UNKNOWN_SIDE, model)
        case "pdf":
            page = PDF_PAGE_TEXT + image_tokens(*PDF_PAGE, model)
            return page * max(1, attachment.pages or 1)
        case "text":
            return 0
