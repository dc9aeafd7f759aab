"""Real sessions of other programs, imported and opened: measured, and no more than their own messages."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.corpus import corpus_root
from tests.recordings import read_recording
from tui.chat.conversation.history import fold_records
from tui.chat.conversation.projection import Target, build_request
from tui.chat.interchange.importing import import_session
from tui.chat.store.calls import CallLog
from tui.chat.store.store import SessionStore
from tui.chat.workspace import Workspace
from tui.config.settings import Settings
from tui.context.counting.counting import TokenCounter
from tui.context.estimate.calibration import CalibrationBook
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.measurements import ConversationStateTracker
from tui.context.usage.usage import ContextUsage
from tui.providers.registry import all_configs
from tui.text.labels import finish_kind

pytestmark = [pytest.mark.corpus, pytest.mark.timeout(600)]


@pytest.mark.parametrize("kind", ["claude-code", "pi", "gemini-cli"])
async def test_sessions_open_with_measured_numbers(kind: str, tmp_path: Path) -> None:
    for path in sorted((corpus_root() / "sessions" / kind).glob("*.jsonl"))[::2]:  # all of them take a minute
        recording = read_recording(path)
        store = SessionStore(tmp_path / "chatctx.db")
        imported = await asyncio.to_thread(import_session, store, recording, providers=set(all_configs()))
        calls = CallLog(store).rows(imported.info.id)
        store.close()
        assert len(calls) == imported.calls
        whole = [message for message in recording.messages if message.status == "complete"]
        assert {finish_kind(message.finish_reason) for message in whole} <= {"stop", "tool_calls", "length"}
        assert all(call.predicted is None for call in calls)
        usage, messages, alone = await opened(tmp_path, imported.info.id)
        assert messages == len(recording.messages)
        assert usage.source == "delta"
        assert usage.basis.last_input == calls[-1].input_total, path.name
        # The difference is text that is not in the files: fixed wording of reminders, schemas of tools loaded later.
        assert usage.total == pytest.approx(alone, rel=0.35, abs=500), path.name


async def opened(folder: Path, session_id: str) -> tuple[ContextUsage, int, int]:
    """The session in a new program: its usage, how many messages, and what they are worth by the tokenizer alone."""
    workspace = await Workspace.open(Settings(data_dir=folder, log_dir=folder))
    try:
        session = await workspace.resume(session_id)
        usage = await session.refresh_usage()
        records = workspace.store.records(session_id)
        target = Target(
            session.provider, session.model, workspace.provider(session.provider).capabilities(session.model)
        )
        request = build_request(session.messages, fold_records(records), target)
        fresh = HybridTokenEstimator(TokenCounter(), ConversationStateTracker(), CalibrationBook())
        return usage, len(session.messages), fresh.estimate(request).tokens
    finally:
        await workspace.close()
