"""Small conversations and an estimator for the accounting's tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from tests.messages import assistant, tool
from tui.context.counting import tokenizers
from tui.context.counting.counting import TokenCounter
from tui.context.counting.digests import CostBook
from tui.context.counting.families import ESTIMATED, FAMILIES
from tui.context.counting.tokenizers import Tokenizer, fitted_families, get_tokenizer
from tui.context.counting.words import LATIN, TokenizerError, WordCounter, pack
from tui.context.estimate.calibration import CalibrationBook
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.measurements import ConversationStateTracker, Verdict
from tui.messages import Message, Reasoning, Request, SystemSection, ToolCall, ToolResult, ToolSchema

MODEL = "words-1"  # a model whose tokens are its words: numbers can be checked by eye


class WordsAsTokens(WordCounter):
    """A word is a token, exactly."""

    def classes(self, text: str) -> int:
        return pack({LATIN: len(text.split())})


class WordTokenizer(Tokenizer):
    def __init__(self) -> None:
        super().__init__("words", WordsAsTokens)


class BrokenTokenizer(Tokenizer):
    """Never counts."""

    def __init__(self) -> None:
        super().__init__("broken", self.fail, "estimated", fitted_families()[ESTIMATED].margins)

    def fail(self) -> WordCounter:
        raise TokenizerError("out of order")


@contextmanager
def registered(name: str, tokenizer: Tokenizer) -> Iterator[None]:
    """Models whose name begins with `name` are a family of their own, counted by `tokenizer`."""
    with patch.dict(FAMILIES, {name: tokenizer.name}), patch.dict(tokenizers._tokenizers, {tokenizer.name: tokenizer}):
        get_tokenizer.cache_clear()
        yield
    get_tokenizer.cache_clear()


class TrustingEstimator(HybridTokenEstimator):
    """Takes what is reported as it is: the arithmetic's tests report round numbers for short texts.

    What a report proves has tests of its own (test_evidence.py).
    """

    def record(self, *args: Any, **values: Any) -> Verdict | None:
        return super().record(*args, **{"recorded": True, **values})


def estimator(
    tracker: ConversationStateTracker | None = None, calibrations: CalibrationBook | None = None
) -> HybridTokenEstimator:
    return TrustingEstimator(
        TokenCounter(), tracker or ConversationStateTracker(), calibrations or CalibrationBook(), CostBook()
    )


def thinking(thought: str, text: str, tokens: int | None = None) -> Message:
    return assistant(Reasoning(thought, "p", MODEL, signature="s", tokens=tokens), text)


def call(ident: str, name: str = "look", arguments: str = "{}") -> ToolCall:
    return ToolCall(ident, name, arguments)


def result(ident: str, text: str, name: str = "look") -> Message:
    return tool(ToolResult(ident, name, text))


def request(
    *messages: Message,
    system: str = "",
    tools: tuple[ToolSchema, ...] = (),
    provider: str = "p",
    model: str = MODEL,
    session: str = "s",
) -> Request:
    sections = (SystemSection("system", "prompt", system),) if system else ()
    return Request(provider, model, messages, sections, tools, session=session)


def without_reasoning(message: Message) -> Message:
    return Message(message.role, tuple(part for part in message.parts if not isinstance(part, Reasoning)))
