"""A stored session of 10,000 messages and 5 million tokens: until its number is shown, and counting it anew."""

from __future__ import annotations

import json
from pathlib import Path

from tests.bench.rows import fastest
from tui.chat.store.store import SessionInfo, SessionStore
from tui.context.counting.counting import TokenCounter
from tui.context.usage.usage import snapshot_from_json, snapshot_to_json
from tui.messages import Message

MESSAGES, WORDS = 10_000, 430  # words of a message: about 500 tokens


def stored_messages() -> tuple[Message, ...]:
    """The session's messages; four texts over and over, each with its own beginning."""
    from tests.bench.accounting import text_of
    from tui.messages import Text

    texts = [text_of(WORDS, seed) for seed in range(50)]
    return tuple(
        Message("user" if n % 2 == 0 else "assistant", (Text(f"{n}. {texts[n % 50]}"),), id=f"{n:024}", created_at=n)
        for n in range(MESSAGES)
    )


def opening_seconds(folder: Path) -> float:
    """Open the database, find the session, have its number."""
    from tests.bench.accounting import make_estimator, request_of, usage_of

    messages = stored_messages()
    path = folder / "bench.db"
    store = SessionStore(path)
    store.create_session(SessionInfo("s", "bench", "openai", "gpt-5", 0.0, 0.0))
    for message in messages:
        store.add_message("s", message)
    usage = usage_of(request_of(messages, "s"), make_estimator())
    assert usage.total > 4_500_000, usage.total
    store.put_state("usage:s", json.dumps(snapshot_to_json(usage, messages[-1].id)))
    store.close()

    stores = []

    def opened() -> None:
        again = SessionStore(path)
        stores.append(again)
        info = again.session("s")
        text = again.get_state("usage:s")
        assert info is not None and text is not None
        shown = snapshot_from_json(json.loads(text), messages[-1].id)
        assert shown is not None and shown.total == usage.total

    seconds = fastest(opened, rounds=9)
    for again in stores:
        again.close()
    return seconds


def recounting_seconds() -> float:
    """Count every message."""
    messages = stored_messages()
    return fastest(lambda: TokenCounter().count_messages(messages, "gpt-5"), rounds=2)
