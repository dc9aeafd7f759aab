"""`python -m tests.bench languages`: how near counts are in many languages, and whether their upper bounds hold.

Source: `languages/texts.jsonl` of the corpus. A cell is a family and a group of texts (a language, a kind of text); it
is good where the median error is within 10 %, and weak where the bound holds for less than 80 % of its texts. The
weights of fitted families were fitted to these very texts: `fit_classes` says how they do on texts they never saw.
`--table` writes the accuracy table into tui/context/counting/README.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tests.bench.fit_classes import read_texts
from tui.context.counting.tokenizers import count_texts, get_tokenizer

# Counts in the corpus: a model that has this vocabulary.
FAMILIES = {
    "claude_3_46": "claude-sonnet-4-5",
    "claude_47": "claude-opus-4-7",
    "gemma3": "gemini-2.5-pro",
    "gemma2": "gemini-1.5-pro",
    "llama3": "llama-3.3-70b",
    "llama4": "llama-4-maverick",
    "qwen3": "qwen3-32b",
    "qwen35": "qwen3.5-plus",
    "deepseek": "deepseek-v3.2",
    "mistral_tekken": "mistral-large-latest",
    "mistral_v3_spm": "mixtral-8x7b",
    "glm45": "glm-4.6",
    "glm5": "glm-5",
    "minimax": "minimax-m2",
    "command_r": "command-r-plus",
    "smollm2": "smollm2",
}
README = Path(__file__).resolve().parents[2] / "tui" / "context" / "counting" / "README.md"
BEGIN, END = "<!-- accuracy: written by python -m tests.bench languages --table -->", "<!-- end of accuracy -->"
COLUMNS = {
    "en": "English", "de": "German", "fr": "French", "pl": "Polish", "vi": "Vietnamese", "ru": "Russian",
    "el": "Greek", "ar": "Arabic", "hi": "Hindi", "th": "Thai", "ko": "Korean", "ja": "Japanese", "zh": "Chinese",
    "python": "Python", "json": "JSON", "minified_js": "minified",
}  # fmt: skip


class Score(NamedTuple):
    """Over all cells: how many are good and weak; over all texts: errors and bounds, as shares."""

    cells: int
    good_cells: int
    weak_cells: int
    median: float
    p95: float
    held: float
    bound_ratio: float
    exact: Mapping[str, float]  # family with a vocabulary of its own -> share of texts that are counted exactly
    by_cell: Mapping[tuple[str, str], tuple[float, float]]  # median error, share of the bounds that hold


def score(texts: Sequence[Mapping[str, Any]]) -> Score:
    """Count all texts for all families and compare."""
    pairs = [(family, text) for family in FAMILIES for text in texts]
    counts = count_texts([(text["text"], FAMILIES[family]) for family, text in pairs])
    cells: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    exact = {family: 0 for family, model in FAMILIES.items() if get_tokenizer(model).method == "vocabulary"}
    for (family, text), count in zip(pairs, counts, strict=True):
        truth = text["counts"][family]
        if family in exact:
            exact[family] += count.tokens == truth
        cells[family, text["group"]].append((abs(count.tokens / truth - 1), count.upper_bound / truth))
    every = [value for cell in cells.values() for value in cell]
    errors = sorted(error for error, _ in every)
    by_cell = {
        key: (median(error for error, _ in cell), sum(bound >= 1 for _, bound in cell) / len(cell))
        for key, cell in cells.items()
    }
    return Score(
        len(cells),
        sum(error <= 0.10 for error, _ in by_cell.values()),
        sum(held < 0.80 for _, held in by_cell.values()),
        median(errors),
        errors[int(0.95 * len(errors))],
        sum(bound >= 1 for _, bound in every) / len(every),
        median(bound for _, bound in every),
        {family: number / len(texts) for family, number in exact.items()},
        by_cell,
    )


def table(scores: Score) -> str:
    """Median errors in percent by family and language, as Markdown."""
    lines = [f"| | {' | '.join(COLUMNS.values())} |", "| --- |" + " ---: |" * len(COLUMNS)]
    for model in FAMILIES:
        cells = (f"{100 * scores.by_cell[model, group][0]:.1f}" for group in COLUMNS)
        how = get_tokenizer(FAMILIES[model]).method
        lines.append(f"| {FAMILIES[model]} ({how}) | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] = ()) -> int:
    """Print the figures; exit code 1 where one misses what is promised."""
    parser = argparse.ArgumentParser(prog="languages")
    parser.add_argument("--table", action="store_true", help="write the table into the README of the package")
    options = parser.parse_args(list(arguments))
    scores = score(read_texts())
    print(f"cells whose median error is within 10 %: {scores.good_cells} of {scores.cells} (at least 668)")
    print(f"error: median {scores.median:.2%}, 95th percentile {scores.p95:.2%} (at most 12 %)")
    print(
        f"upper bound: holds for {scores.held:.1%} (at least 95 %), median {scores.bound_ratio:.3f} of the truth (1.12)"
    )
    print(f"own vocabularies: exact on {min(scores.exact.values()):.1%} of texts or more (at least 99 %)")
    print(f"cells whose bound holds for less than 80 %: {scores.weak_cells} (at most 20)")
    bad = [(family, group, error) for (family, group), (error, _) in scores.by_cell.items() if error > 0.10]
    for family, group, error in sorted(bad, key=lambda cell: -cell[2]):
        print(f"  {family} {group}: {error:.1%}")
    if options.table:
        text = README.read_text(encoding="utf-8")
        head, rest = text.split(BEGIN)
        README.write_text(f"{head}{BEGIN}\n{table(scores)}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    reached = scores.good_cells >= 668 and scores.p95 <= 0.12 and scores.held >= 0.95 and scores.bound_ratio <= 1.12
    return 0 if reached and scores.weak_cells <= 20 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
