"""`python -m tests.bench switching`: after 25 calls in one language, how far off are the first three in another?

Source: `languages/texts.jsonl` of the corpus: the true counts of its texts are the simulated usage. For each family and
pair of languages a conversation of 25 messages in the first and 3 in the second is held; the errors are those of the
three new messages' own tokens.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from statistics import median
from typing import Any

from tests.bench.fit_classes import read_texts
from tests.bench.languages import FAMILIES
from tui.context.counting.counting import TokenCounter
from tui.context.estimate.calibration import CalibrationBook
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.measurements import ConversationStateTracker
from tui.messages import Message, Request, Text, Usage

CHOSEN = ("claude_3_46", "claude_47", "gemma3", "llama3", "llama4", "glm45", "command_r")
PAIRS = (("hi", "python"), ("ru", "en"), ("en", "zh"), ("ja", "de"), ("python", "ar"))
CALLS, NEW = 25, 3
FRAME = 4  # tokens around a message in the simulation


def errors(texts: Sequence[Mapping[str, Any]], family: str, first: str, second: str) -> list[float]:
    """The relative errors of the first messages in `second`, as shares of what they cost."""
    model = FAMILIES[family]
    groups = {group: [text for text in texts if text["group"] == group] for group in (first, second)}
    chosen = [*islice(cycle(groups[first]), CALLS), *islice(groups[second], NEW)]
    estimator = HybridTokenEstimator(TokenCounter(), ConversationStateTracker(), CalibrationBook())
    messages: tuple[Message, ...] = ()
    total, result = 10, []
    for index, text in enumerate(chosen):
        messages = (*messages, Message("user", (Text(text["text"] + " " * (index // len(groups[first]) % 2)),)))
        request = Request("simulated", model, messages, session="switching")
        before = total
        total += text["counts"][family] + FRAME
        predicted = estimator.estimate(request).tokens
        if index >= CALLS:
            result.append((predicted - total) / (total - before))
        reply = Message("assistant", (Text("Yes."),))
        estimator.record(request, reply, Usage(total, 2), learn=True, at=float(index))
        messages = (*messages, reply)
        total += 2 + FRAME
    return result


def main(arguments: Sequence[str] = ()) -> int:
    """Print a line for each family and pair; exit code 1 where the errors are larger than promised."""
    texts = read_texts()
    every: list[float] = []
    for family in CHOSEN:
        for first, second in PAIRS:
            deviations = errors(texts, family, first, second)
            every += map(abs, deviations)
            print(f"{family:12} {first:7} -> {second:7} {' '.join(f'{error:+7.1%}' for error in deviations)}")
    print(f"median {median(every):.2%} (at most 5 %), worst {max(every):.1%} (at most 15 %)")
    return 0 if median(every) <= 0.05 and max(every) <= 0.15 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
