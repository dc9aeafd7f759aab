"""What a person sets of compaction, for all models and for one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import ScriptedProvider, answer, converse, open_workspace
from tui.chat.conversation.events import CompactionFinished, ContextTrimmed, TurnFailed
from tui.config.settings import ModelSettings
from tui.context.usage.limits import Percent, Tokens
from tui.messages import Message

LONG = "The keeper counts the boats in the harbour, and writes the number into the book with the red spine. " * 8
OWN = "scripted/m"


async def talk(folder: Path, *, rolling: bool = False, **settings: Any) -> tuple[list[object], list[Message]]:
    """The events of some turns under settings for this model alone, and the last request's messages."""
    provider = ScriptedProvider(window=4_000, fallback=lambda _: answer("Noted. " * 10))
    models = {OWN: ModelSettings(**settings)}
    async with open_workspace(folder, provider, models=models, rolling_context=rolling) as workspace:
        session = await workspace.new_session()
        events = await converse(session, 18, LONG)
        assert provider.refused == 0
        return events, list(provider.requests[-1].messages)


def compactions(events: list[object]) -> list[CompactionFinished]:
    return [event for event in events if isinstance(event, CompactionFinished)]


@pytest.mark.parametrize(
    ("threshold", "least", "most"),
    [(Percent(50), 1_500, 1_950), (Percent(85), 2_550, 3_000), (Tokens(2_000), 2_000, 2_450)],
)
async def test_the_threshold_in_percent_and_in_tokens(
    tmp_path: Path, threshold: Percent | Tokens, least: int, most: int
) -> None:
    events, _ = await talk(tmp_path, compaction=threshold)
    assert compactions(events)
    assert all(least <= event.record.before <= most for event in compactions(events))


@pytest.mark.slow
async def test_the_target_says_what_is_left(tmp_path: Path) -> None:
    after = {}
    for target in (Percent(30), Tokens(2_000)):
        folder = tmp_path / str(target)
        folder.mkdir()
        events, _ = await talk(folder, compaction_target=target, preserve_recent_turns=8)
        after[target] = max(event.record.after for event in compactions(events))
    assert after[Percent(30)] < 1_000 < after[Tokens(2_000)] <= 2_100


@pytest.mark.slow
async def test_turns_kept_verbatim(tmp_path: Path) -> None:
    replaced = {}
    for turns in (1, 5):
        folder = tmp_path / str(turns)
        folder.mkdir()
        events, messages = await talk(folder, compaction_target=Percent(60), preserve_recent_turns=turns)
        assert compactions(events)
        position = next(i for i, m in enumerate(messages) if m.kind == "summary")
        assert position == 0
        replaced[turns] = compactions(events)[0].record.messages
    assert replaced[1] > replaced[5]


async def test_the_reserve_moves_the_budget(tmp_path: Path) -> None:
    events, _ = await talk(tmp_path, reserve_output=200)
    assert all(event.record.before > 3_000 for event in compactions(events))  # 85 % of 3,800, not of 3,000


@pytest.mark.parametrize("rolling", [True, False])
async def test_off_for_this_model_leaves_rolling_context_to_the_session(tmp_path: Path, rolling: bool) -> None:
    events, _ = await talk(tmp_path, rolling=rolling, compaction="off")
    assert not compactions(events)
    trims = [event for event in events if isinstance(event, ContextTrimmed)]
    failed = [event.text for event in events if isinstance(event, TurnFailed)]
    assert bool(trims) is rolling
    assert bool(failed) is not rolling
    for text in failed:  # the honest refusal: both sizes, that nothing was lost, what to do
        assert "only 3,000 fit" in text
        assert "Nothing was sent and nothing was lost" in text
        assert "/compact or /rolling-context on, then /retry" in text
        assert "/model" in text
