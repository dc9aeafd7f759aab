"""A message that takes the place of an earlier one: what it will set aside, said before it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tui.messages import Message
from tui.text.numbers import plural, tokens_exact, tokens_short

Count = tuple[int | None, str]
"""Tokens and how they are known."""


def set_aside(messages: Sequence[Message], not_sent: Mapping[str, str], message_id: str) -> list[Message]:
    """The message and all that follow it, as far as they are not set aside already. Summaries are no part of it."""
    following = [m for m in messages if m.id >= message_id and m.kind != "summary"]
    return [m for m in following if not_sent.get(m.id) != "set aside"]


def rewind_line(aside: Sequence[Message], counts: Mapping[str, Count], width: int) -> str:
    """`sets aside 5 messages, ~12,300 tokens · esc keeps them`; shorter below 60 cells."""
    known = [counts.get(message.id, (None, "estimated")) for message in aside]
    tokens = [count[0] for count in known if count[0] is not None]
    total = sum(tokens) if len(tokens) == len(known) else None
    about = "~" if any(count[1] == "estimated" for count in known) and total else ""
    if width < 60:
        return f"sets aside {len(aside):,}, {about}{tokens_short(total)} tok · esc keeps"
    return f"sets aside {plural(len(aside), 'message')}, {about}{tokens_exact(total)} tokens · esc keeps them"
