"""Windows of models whose servers don't name them.

Imports nothing but `re`: `watch --line` runs at every change.
"""

from __future__ import annotations

import re

_DATED = r"(-\d{4}-\d\d-\d\d|-\d{8}|-\d{4}|-latest)?"
TABLE_DATE = "2026-11-28"
"""When the table was last compared with the providers' model pages."""

# Window and longest answer in tokens, and whether the input is limited to the window less the longest answer, however
# short the answer. Names are matched whole, except for a date or "latest" at their end: an unknown name should stay
# unknown rather than get the window of a similar one.
_TABLE = (
    (r"gpt-5(\.\d)?-chat", 128_000, 16_384, False),
    (r"gpt-5\.3-codex-spark", 128_000, 32_000, False),
    (r"gpt-5\.4-(mini|nano)", 400_000, 128_000, True),
    (r"gpt-5\.[45](-pro)?|gpt-5\.6(-sol|-terra|-luna)?", 1_050_000, 128_000, True),
    (r"gpt-6(\.[12])?-(astra|sol|terra|luna)", 1_050_000, 128_000, True),
    (r"gpt-5(-mini|-nano|-pro|-codex)?|gpt-5\.[12](-pro|-codex|-codex-mini|-codex-max)?", 400_000, 128_000, True),
    (r"gpt-5\.3-codex", 400_000, 128_000, True),
    (r"gpt-4\.1(-mini|-nano)?", 1_047_576, 32_768, False),
    (r"gpt-4o(-mini)?|chatgpt-4o", 128_000, 16_384, False),
    (r"o1-(mini|preview)", 128_000, 65_536, False),
    (r"o1(-pro)?|o3(-mini|-pro|-deep-research)?|o4-mini(-deep-research)?", 200_000, 100_000, False),
    (r"deepseek-(v4-(flash|pro)|flash)", 1_000_000, 384_000, False),
    (r"gemini-2\.5-(pro|flash|flash-lite)|gemini-3-(pro|flash)-preview", 1_048_576, 65_536, False),
    (r"gemini-3\.1-pro-preview", 1_048_576, 65_536, False),
    (r"glm-(4\.7|5|5\.1)", 200_000, 128_000, False),
)


def table_window(model: str) -> tuple[int, int, bool] | None:
    """Window, longest answer and whether the input is limited, of a model with or without a vendor prefix.

    None if it is not in the table.
    """
    name = model.lower().rpartition("/")[2].partition(":")[0]
    for pattern, context, output, limited in _TABLE:
        if re.fullmatch(rf"(?:{pattern}){_DATED}", name):
            return context, output, limited
    return None
