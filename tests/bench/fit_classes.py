"""`python -m tests.bench fit_classes [--write] [--counts FILE]`: fit the families whose vocabulary is not shipped.

Source: `languages/texts.jsonl` of the corpus, texts with their counts in real vocabularies; more counts of them (by the
vocabularies that llama.cpp has for its tests, in the sdist of llama-cpp-python) may be in a file. For each family the
count of a text is fitted as a sum over classes of text (`tui/context/counting/words.py`) of

    weight x tokens by a shipped vocabulary  +  weight x characters

with least absolute relative error, no weight below zero, and each drawn to the family's overall ratio as far as the
texts leave it open. Which shipped vocabulary serves best is found by leaving documents out. The margins come from the
errors of texts whose documents were left out: they hold for 97 % of the texts, by class where a class has its own
texts. `estimated` is for models of which nothing is known: it is fitted to the families of today at once.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.corpus import corpus_path
from tui.context.counting.bpe import ENCODINGS, BpeCounter
from tui.context.counting.words import CLASSES, OTHER, word_classes

SIZE = len(CLASSES)
TARGET = Path(__file__).resolve().parents[2] / "tui" / "context" / "counting" / "fitted.json"
# Family: its counts in the corpus, and the shipped vocabularies that may stand in for it.
FAMILIES = {
    "llama3": ("llama3", ("cl100k", "glm4", "qwen2")),
    "llama4": ("llama4", ("o200k", "minimax", "qwen3.5", "tekken", "gemma3")),
    "gemma2": ("gemma2", ("gemma3",)),
    "command-r": ("command_r", ("o200k", "tekken", "deepseek", "gemma3")),
    "llama2": ("llama2", ("mistral-v3", "cl100k")),  # llama.cpp's llama-spm; Phi-3's has the same counts
    "deepseek-coder": ("deepseek_coder", ("mistral-v3", "smollm2", "glm4")),
    "deepseek-v2": ("deepseek_v2", ("deepseek", "glm4", "qwen2")),  # llama.cpp's deepseek-llm
}
POOLED = (
    "o200k", "gemma3", "llama3", "llama4", "qwen3", "qwen35", "deepseek", "mistral_tekken", "glm45", "minimax",
    "command_r",
)  # fmt: skip
FOLDS = 5
DEVIATION_TOKENS, DEVIATION_CHARACTERS = 0.25, 0.08  # of the weights around what they are drawn to
TYPICAL = 0.05  # relative error of a text
COVERED = 0.97
ENOUGH = 8  # texts from which a class has a margin of its own
LEAST, RARE, UNSEEN, MOST = 0.02, 0.15, 0.4, 4.0  # margins


@dataclass(frozen=True)
class Sample:
    """A text as the fit sees it: per class tokens by the standing-in vocabulary and characters, and the true count."""

    group: str
    fold: int
    tokens: Mapping[int, float]
    characters: Mapping[int, float]
    truth: float
    classes: Mapping[int, float]  # share of the characters


def read_texts(path: Path | None = None) -> list[dict[str, Any]]:
    """The texts of the corpus."""
    with (path or corpus_path("languages/texts.jsonl")).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def features(text: str, counter: BpeCounter) -> tuple[dict[int, float], dict[int, float]]:
    """Tokens of `counter` and characters of `text`, by class, added up as the program does it, word by word."""
    tokens: dict[int, float] = defaultdict(float)
    characters: dict[int, float] = defaultdict(float)
    for word in chain.from_iterable(counter.split(text)):
        kinds = word_classes(word)
        share = counter.tokens(word) / sum(kinds.values())
        for kind, count in kinds.items():
            tokens[kind] += share * count
            characters[kind] += count
    return dict(tokens), dict(characters)


def samples(texts: Sequence[Mapping[str, Any]], encoding: str, names: Sequence[str]) -> list[Sample]:
    """The texts with their true counts by `names`, one sample for each."""
    counter = BpeCounter(ENCODINGS[encoding])
    rows = []
    for text in texts:
        tokens, characters = features(text["text"], counter)
        whole = sum(characters.values()) or 1.0
        shares = {kind: count / whole for kind, count in characters.items()}
        fold = int(hashlib.sha256(text["doc"].encode()).hexdigest(), 16) % FOLDS
        rows += [Sample(text["group"], fold, tokens, characters, float(text["counts"][name]), shares) for name in names]
    return rows


def fit(rows: Sequence[Sample]) -> tuple[list[float], list[float]]:
    """Weights of tokens and characters by class."""
    ratio = median(row.truth / sum(row.tokens.values()) for row in rows)
    start = [ratio] * SIZE + [0.0] * SIZE
    pull = [TYPICAL / DEVIATION_TOKENS**2] * SIZE + [TYPICAL / DEVIATION_CHARACTERS**2] * SIZE
    table = [
        {
            **{kind: count / row.truth for kind, count in row.tokens.items()},
            **{SIZE + kind: count / row.truth for kind, count in row.characters.items()},
        }
        for row in rows
    ]
    columns: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for index, row in enumerate(table):
        for column, value in row.items():
            columns[column].append((index, value))
    values = list(start)
    errors = [1.0 - sum(value * values[column] for column, value in row.items()) for row in table]
    for _ in range(40):
        forces = [1 / max(abs(error), 0.01) for error in errors]
        for column, entries in columns.items():
            old = values[column]
            above, below = pull[column] * start[column], pull[column]
            for index, value in entries:
                force = forces[index] * value
                above += force * (errors[index] + value * old)
                below += force * value
            values[column] = max(0.0, above / below)
            step = values[column] - old
            if step:
                for index, value in entries:
                    errors[index] -= value * step
    return values[:SIZE], values[SIZE:]


def estimate(row: Sample, weights: tuple[Sequence[float], Sequence[float]]) -> dict[int, float]:
    """The estimate of a text, by class."""
    tokens, characters = weights
    return {kind: tokens[kind] * count + characters[kind] * row.characters[kind] for kind, count in row.tokens.items()}


def left_out(rows: Sequence[Sample]) -> list[tuple[Sample, dict[int, float]]]:
    """Each row with its estimate by weights that were fitted without its document."""
    estimates = []
    for fold in range(FOLDS):
        weights = fit([row for row in rows if row.fold != fold])
        estimates += [(row, estimate(row, weights)) for row in rows if row.fold == fold]
    return estimates


def margins(estimates: Sequence[tuple[Sample, dict[int, float]]]) -> list[float]:
    """The share of the estimate that is added for the upper bound, by class.

    A class's own margin comes from the texts that are mostly of it; with few of them the general one counts too.
    """
    general = _quantile([_needed(row, parts) for row, parts in estimates], COVERED)
    result = []
    for kind in range(SIZE):
        needed = [_needed(row, parts) for row, parts in estimates if row.classes.get(kind, 0.0) >= 0.5]
        if len(needed) >= ENOUGH:
            result.append(max(LEAST, _quantile(needed, COVERED)))
        else:
            result.append(max(general, RARE, *needed, UNSEEN if kind == OTHER else 0.0))
    return [min(margin, MOST) for margin in result]


def _needed(row: Sample, parts: Mapping[int, float]) -> float:
    return row.truth / sum(parts.values()) - 1


def _quantile(values: Iterable[float], share: float) -> float:
    """The order statistic that covers one more value with this chance (conformal prediction)."""
    ordered = sorted(values)
    return ordered[min(len(ordered), ceil(share * (len(ordered) + 1))) - 1]


def quality(estimates: Sequence[tuple[Sample, dict[int, float]]]) -> tuple[float, float, int, int]:
    """Median and 95th percentile of the absolute error, groups whose median is within 10 %, and how many there are."""
    errors: dict[str, list[float]] = defaultdict(list)
    for row, parts in estimates:
        errors[row.group].append(abs(sum(parts.values()) / row.truth - 1))
    every = sorted(error for group in errors.values() for error in group)
    good = sum(median(group) <= 0.10 for group in errors.values())
    return median(every), every[int(0.95 * len(every))], good, len(errors)


def main(arguments: Sequence[str] = ()) -> int:
    """Fit, print how good it is, and write `fitted.json` if asked."""
    parser = argparse.ArgumentParser(prog="fit_classes")
    parser.add_argument("--write", action="store_true", help="write tui/context/counting/fitted.json")
    parser.add_argument("--counts", type=Path, help="JSON: the tokens of more vocabularies, by name, by a text's id")
    options = parser.parse_args(list(arguments))
    texts, more = read_texts(), json.loads(options.counts.read_text()) if options.counts else {}
    for text in texts:
        text["counts"] |= more.get(text["id"], {})
    result: dict[str, Any] = {}
    for family, (name, encodings) in FAMILIES.items():
        if name not in texts[0]["counts"]:
            result[family] = json.loads(TARGET.read_text(encoding="utf-8"))[family]
            print(f"{family:10} as it is: no counts by {name}")
            continue
        best: tuple[float, str, list[Sample], list[tuple[Sample, dict[int, float]]]] | None = None
        for encoding in encodings:
            rows = samples(texts, encoding, [name])
            estimates = left_out(rows)
            middle, p95, good, groups = quality(estimates)
            print(f"{family:10} by {encoding:9} median {middle:6.2%}  p95 {p95:6.2%}  {good} of {groups} groups")
            if best is None or p95 < best[0]:
                best = p95, encoding, rows, estimates
        assert best is not None
        result[family] = _entry(best[1], fit(best[2]), margins(best[3]))
    rows = samples(texts, "o200k", POOLED)
    estimates = left_out(rows)
    middle, p95, good, groups = quality(estimates)
    print(f"{'estimated':10} by {'o200k':9} median {middle:6.2%}  p95 {p95:6.2%}  {good} of {groups} groups")
    result["estimated"] = _entry("o200k", fit(rows), margins(estimates))
    if options.write:
        TARGET.write_text(written(result), encoding="utf-8")
    return 0


def _entry(encoding: str, weights: tuple[list[float], list[float]], margin: Sequence[float]) -> dict[str, Any]:
    tokens, characters = ([round(value, 4) for value in column] for column in weights)
    version = hashlib.sha256(json.dumps([encoding, tokens, characters]).encode()).hexdigest()[:8]
    values = zip(tokens, characters, (round(value, 3) for value in margin), strict=True)
    return {"encoding": encoding, "version": version, "classes": dict(zip(CLASSES, map(list, values), strict=True))}


def written(families: Mapping[str, Any]) -> str:
    """The JSON of `fitted.json`, with a line for each class of text."""
    text = json.dumps(families, indent=1)
    return re.sub(r"\[[^]]*]", lambda values: json.dumps(json.loads(values[0])), text) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
