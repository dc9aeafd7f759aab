"""The records beside a history, and the state that they leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tui.chat.store.codec import MALFORMED
from tui.chat.store.store import Record, SessionStore
from tui.context.reduction.records import (
    Checkpoint,
    CompactionRecord,
    CompactionUndo,
    TrimState,
    active_compactions,
    checkpoint_from_json,
    fold_trims,
)
from tui.messages import (
    Message,
)


class RecordKind(StrEnum):
    """The kinds of records beside the history, with the keys of their data."""

    CHECKPOINT = "checkpoint"  # compaction, undo, or edited summary (`records.checkpoint_to_json`)
    TRIM = "trim"  # "state" (a `TrimState`), "adds" (see `records.trim_to_json`), "messages", "tokens"
    SET_ASIDE = "set_aside"  # "ids": a retried reply, or an edited message and what followed it
    RESTORE = "restore"  # "record": takes a set_aside, a void or a leave_out back
    PIN = "pin"  # "id", "on"
    EXCLUDE = "exclude"  # "id", "on"
    SYSTEM = "system"  # "text": the session's own system prompt; the newest one is valid
    VOID = "void"  # a server refused the reasoning in the messages so far
    MEMORY = "memory"  # "files" ("path", "sha256", "on"): the memory files and their switches; the newest one is valid
    TOOLS = "tools"  # "name", "on": tools (a name or a pattern) switched in this conversation
    LOADED = "loaded"  # "names": deferred tools found by the model, in that order
    # "message", "sha256" (`text_digest` of a text), "keep" (characters): what was too large, or unreadable to a server
    LEAVE_OUT = "leave_out"


WITH_FRONTIER = frozenset({RecordKind.SET_ASIDE, RecordKind.EXCLUDE, RecordKind.VOID, RecordKind.LEAVE_OUT})
"""Records that apply to what there was: `Conversation.add_record` adds the newest message's id as "frontier"."""


@dataclass(frozen=True, slots=True)
class HistoryState:
    """Everything about a history besides its messages."""

    checkpoints: tuple[Checkpoint, ...] = ()
    trim: TrimState = field(default_factory=TrimState)
    set_aside: frozenset[str] = frozenset()
    pinned: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    frontier: str = ""  # newest message's id when content was last set aside or excluded (groups.unbind)
    system: str | None = None  # None: that of the settings
    void: str = ""  # newest message's id when a server last refused reasoning
    left_out: Mapping[tuple[str, str], int] = field(default_factory=dict)  # message id, sha256 -> characters that stay
    memory: Mapping[str, tuple[str, bool]] | None = None  # path -> hash of the content, whether it is sent
    tools: tuple[tuple[str, bool], ...] = ()  # name or pattern, on; the last match is valid
    loaded: tuple[str, ...] = ()  # names of deferred tools, in the order they were found


def fold_records(records: Iterable[Record], trim: TrimState | None = None) -> HistoryState:
    """Fold records, oldest first, into a state. A malformed one raises what `readable_records` catches.

    `trim` is what their trims fold into, if it is known: they may name every message.
    """
    by_kind: dict[str, list[Record]] = {kind: [] for kind in RecordKind}
    for record in records:
        by_kind.setdefault(record.kind, []).append(record)
    restored = {str(record.data["record"]) for record in by_kind[RecordKind.RESTORE]}

    def in_force(kind: RecordKind) -> list[Record]:
        return [record for record in by_kind[kind] if record.id not in restored]

    def newest(kind: RecordKind) -> Mapping[str, Any] | None:
        return by_kind[kind][-1].data if by_kind[kind] else None

    def switched_on(kind: RecordKind) -> frozenset[str]:
        switches = {str(record.data["id"]): bool(record.data["on"]) for record in by_kind[kind]}
        return frozenset(message for message, on in switches.items() if on)

    # OpenAI's server-side compactions, made by older versions, are not sent any more.
    by_server = {record.id for record in by_kind[RecordKind.CHECKPOINT] if record.data.get("answer")}
    set_aside = {str(message) for record in in_force(RecordKind.SET_ASIDE) for message in record.data["ids"]}
    set_aside |= {str(record.data["summary"]) for record in in_force(RecordKind.CHECKPOINT) if record.id in by_server}
    changes = [*by_kind[RecordKind.SET_ASIDE], *by_kind[RecordKind.EXCLUDE], *by_kind[RecordKind.LEAVE_OUT]]
    system, memory = newest(RecordKind.SYSTEM), newest(RecordKind.MEMORY)
    return HistoryState(
        checkpoints=tuple(
            checkpoint_from_json(record.data) for record in by_kind[RecordKind.CHECKPOINT] if record.id not in by_server
        ),
        trim=fold_trims([record.data for record in by_kind[RecordKind.TRIM]]) if trim is None else trim,
        set_aside=frozenset(set_aside),
        pinned=switched_on(RecordKind.PIN),
        excluded=switched_on(RecordKind.EXCLUDE),
        frontier=max((str(record.data.get("frontier", "")) for record in changes), default=""),
        system=None if system is None else str(system["text"]),
        void=max((str(record.data["frontier"]) for record in in_force(RecordKind.VOID)), default=""),
        left_out={
            (str(record.data["message"]), str(record.data["sha256"])): int(record.data.get("keep", 0))
            for record in in_force(RecordKind.LEAVE_OUT)
        },
        memory=None if memory is None else dict(map(_memory_file, memory["files"])),
        tools=tuple((str(record.data["name"]), bool(record.data["on"])) for record in by_kind[RecordKind.TOOLS]),
        loaded=tuple(
            dict.fromkeys(str(name) for record in by_kind[RecordKind.LOADED] for name in record.data["names"])
        ),
    )


def _memory_file(entry: Mapping[str, Any]) -> tuple[str, tuple[str, bool]]:
    return str(entry["path"]), (str(entry["sha256"]), bool(entry["on"]))


def readable_records(store: SessionStore, session: str) -> list[Record]:
    """The records of a session. Those that `fold_records` can't read, of a newer version, are registered as damage."""
    records = []
    for record in store.records(session):
        try:
            fold_records((record,))
        except MALFORMED:
            store.damage[f"{session}/{record.id}"] = f"a record ({record.kind}) of session {session} can't be read"
        else:
            records.append(record)
    return records


def rewound(
    messages: Sequence[Message], state: HistoryState, message_id: str
) -> tuple[list[Message], list[CompactionRecord]]:
    """The messages set aside by going back to before one of them, and the compactions it undoes, newest first.

    A summary of what came before it stays, even if written later; one that covers the message or later ones does not.
    """
    summaries = {c.summary for c in state.checkpoints if not isinstance(c, CompactionUndo)}
    following = [m for m in messages if m.id >= message_id and m.id not in state.set_aside | summaries]
    ended = [record for record in active_compactions(state.checkpoints) if record.last >= message_id]
    return following, ended[::-1]
