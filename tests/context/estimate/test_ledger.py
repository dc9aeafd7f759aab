"""The ledger against the plain computation: every message counted by itself, and added up from first to last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isclose
from random import Random
from unittest import mock

import pytest

from tests.context.helpers import MODEL, call, result, thinking
from tests.messages import assistant, user
from tui.context.counting.counting import RawCount, TokenCounter
from tui.context.counting.digests import CHAIN_START, CostBook, TokenCost, chain, message_digest
from tui.context.estimate.ledger import BLOCK, Account, Ledger
from tui.messages import Attachment, Message, Reasoning, Text

COUNTER = TokenCounter()


def check(account: Account, messages: Sequence[Message], costs: CostBook) -> None:
    """Compare what `account` says of every prefix of `messages` with sums over single messages."""
    assert [line.message for line in account.lines] == list(messages)
    content = known = plain = reasoning = 0.0
    classes, rows, end = 0, dict[str, float](), CHAIN_START
    for index in range(len(messages) + 1):
        before, since = account.sums_before(index), account.since(index)
        plainly = {"content": content, "known": known, "plain": plain, "reasoning": reasoning}
        for name, value in plainly.items():
            assert isclose(getattr(before, name), value, abs_tol=1e-6), (index, name)
            assert isclose(getattr(since, name), getattr(account.sums, name) - value, abs_tol=1e-6), (index, name)
        assert before.all_classes == classes
        assert account.chain(index) == end
        if index == len(messages):
            break
        message, line, digest = messages[index], account.lines[index], message_digest(messages[index])
        count, (cost,) = COUNTER.count_message(message, MODEL), costs.get("p", MODEL, [digest.full])
        assert (line.message, line.cost) == (message, cost)
        content += count.content if cost is None else 0.0
        known += 0.0 if cost is None else cost.tokens
        plain += count.size
        reasoning += count.split.get("reasoning", 0.0) if cost is None else cost.reasoning
        classes += count.classes
        shares = account.shares(line)
        assert isclose(sum(tokens for _, tokens, _ in shares), line.tokens)
        for row, tokens, _ in shares:
            rows[row] = rows.get(row, 0.0) + tokens
        end = chain(end, digest.body)
    assert {row: known + estimated for row, (known, estimated, _) in account.rows.items()} == pytest.approx(rows)


def any_messages(chance: Random) -> list[Message]:
    """A turn, of any kind."""
    words = "word " * chance.randrange(1, 60)
    match chance.randrange(5):
        case 0:
            return [user(words), assistant(words)]
        case 1:
            return [
                user(words),
                assistant(words, call("1"), call("2")),
                result("1", words),
                result("2", ""),
                assistant("so"),
            ]
        case 2:
            return [user(words), thinking(words, "yes", tokens=chance.choice((None, 70)))]
        case 3:
            image = Attachment("image", "a.png", "image/png", "0" * 64, 2_000, width=400, height=300)
            return [replace(user(words), parts=(Text(words), image)), assistant("a picture")]
        case _:
            return [user(words, kind="summary")]


@pytest.mark.parametrize("seed", range(12))
def test_every_sum_is_that_of_the_single_messages(seed: int) -> None:
    """A conversation grows, and is cut, edited, trimmed, compacted and measured in between."""
    chance, costs = Random(seed), CostBook()
    ledger, sent = Ledger("p", COUNTER, costs, Account(MODEL)), any_messages(Random(seed))
    for step in range(12):
        at = chance.randrange(len(sent))
        match chance.choice(("grow", "grow", "grow", "cut", "edit", "trim", "compact", "measure", "measure")):
            case "grow":
                sent = [*sent, *(message for _ in range(chance.randrange(9)) for message in any_messages(chance))]
            case "cut":
                sent = sent[: at + 1]
            case "edit":
                sent = [*sent[:at], replace(sent[at], parts=(Text(f"edited {step}"),)), *sent[at + 1 :]]
            case "trim":
                sent = sent[at // 2 :]
            case "compact":
                sent = [user("what was said", kind="summary"), *sent[at:]]
            case "measure":
                thought = step if any(isinstance(part, Reasoning) for part in sent[at].parts) else 0
                cost = TokenCost(40 + step, thought, "measured" if chance.random() < 0.5 else "derived")
                costs.put("p", MODEL, {message_digest(sent[at]).full: cost})
                ledger.refresh(0)
        check(ledger.update(tuple(sent)), sent, costs)


@pytest.mark.parametrize("length", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
def test_an_account_can_be_cut_anywhere_and_stays_what_it_was(length: int) -> None:
    messages = tuple(user("word " * number) for number in range(2 * BLOCK))
    account, costs = Ledger("p", COUNTER, CostBook(), Account(MODEL)).update(messages), CostBook()
    check(account.cut(length), messages[:length], costs)
    check(account, messages, costs)


def test_what_was_counted_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = tuple(user(f"message {number}") for number in range(200))
    ledger, counted = Ledger("p", COUNTER, CostBook(), Account(MODEL)), list[Message]()
    ledger.update(messages)

    def raw_counts(some: Sequence[Message], model: str, digests: Sequence[bytes]) -> list[RawCount]:
        counted.extend(some)
        return original(some, model, digests)

    original = COUNTER.raw_counts
    monkeypatch.setattr(COUNTER, "raw_counts", raw_counts)
    ledger.update((*messages, user("one more")))
    assert counted == [user("one more")]


def test_after_an_error_it_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    messages, costs = tuple(user(f"message {number}") for number in range(5)), CostBook()
    ledger = Ledger("p", COUNTER, costs, Account(MODEL))
    ledger.update(messages[:2])
    with monkeypatch.context() as broken, pytest.raises(OSError, match="disk"):
        broken.setattr(costs, "get", mock.Mock(side_effect=OSError("disk")))
        ledger.update(messages)
    check(ledger.update(messages), messages, costs)
