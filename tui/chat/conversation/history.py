"""The records beside a history, folded into one value for the projection."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tui.chat.store.store import Record
from tui.context.reduction.checkpoints import (
    Checkpoint,
    CompactionRecord,
    CompactionUndo,
    active_compactions,
    checkpoint_from_json,
)
from tui.context.reduction.trimming import TrimState
from tui.messages import Message


class RecordKind(StrEnum):
    """The kinds of records beside the history, with the keys of their data."""

    CHECKPOINT = "checkpoint"  # compaction, undo, or edited summary (`checkpoints.checkpoint_to_json`)
    TRIM = "trim"  # "state" (a `TrimState`), "messages", "tokens"; the newest one is valid
    SET_ASIDE = "set_aside"  # "ids": a retried reply, or an edited message and what followed it
    RESTORE = "restore"  # "record": takes a set_aside, a void or a leave_out back
    PIN = "pin"  # "id", "on"
    EXCLUDE = "exclude"  # "id", "on"
    SYSTEM = "system"  # "text": the session's own system prompt; the newest one is valid
    VOID = "void"  # "frontier": a server refused the reasoning in messages up to this id
    MEMORY = "memory"  # "files" ("path", "sha256", "on"): the memory files and their switches; the newest one is valid
    TOOLS = "tools"  # "name", "on": tools (a name or a pattern) switched in this conversation
    LOADED = "loaded"  # "names": deferred tools found by the model, in that order
    # "message", "sha256" (`text_digest` of a text), "keep" (characters): what was too large, or unreadable to a server
    LEAVE_OUT = "leave_out"


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
    memory: Mapping[str, Any] | None = None  # in the form of `MemoryFiles.to_json`
    tools: tuple[tuple[str, bool], ...] = ()  # name or pattern, on; the last match is valid
    loaded: tuple[str, ...] = ()  # names of deferred tools, in the order they were found


def text_digest(text: str) -> str:
    """The name of a text part in a `LEAVE_OUT` record, hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def fold_records(records: Sequence[Record]) -> HistoryState:
    """Fold records, oldest first, into a state. Raises ValueError for a malformed record."""
    fold = _Fold()
    for record in records:
        if step := _STEPS.get(record.kind):
            step(fold, record)
    return fold.state()


def unreadable(records: Sequence[Record]) -> list[Record]:
    """Those of `records` that `fold_records` can't read: from a damaged store, or a newer version."""
    damaged = []
    for record in records:
        try:
            fold_records((record,))
        except (ValueError, LookupError, TypeError, AttributeError):
            damaged.append(record)
    return damaged


@dataclass(slots=True)
class _Fold:
    """The state folded so far. One method for each kind of record."""

    checkpoints: list[Checkpoint] = field(default_factory=list)
    newest_trim: TrimState = field(default_factory=TrimState)
    aside: dict[str, frozenset[str]] = field(default_factory=dict)  # record id -> message ids
    pinned: dict[str, bool] = field(default_factory=dict)
    excluded: dict[str, bool] = field(default_factory=dict)
    frontier: str = ""
    prompt: str | None = None
    voided: dict[str, str] = field(default_factory=dict)  # record id -> frontier
    left_out: dict[str, tuple[tuple[str, str], int]] = field(default_factory=dict)  # by record id
    memory_files: Mapping[str, Any] | None = None
    switches: list[tuple[str, bool]] = field(default_factory=list)
    loaded_names: dict[str, None] = field(default_factory=dict)

    def checkpoint(self, record: Record) -> None:
        if record.data.get("answer"):  # made by OpenAI's server; not sent any more
            self.aside[record.id] = frozenset({str(record.data["summary"])})
        else:
            self.checkpoints.append(checkpoint_from_json(record.data))

    def trim(self, record: Record) -> None:
        self.newest_trim = TrimState.from_json(record.data["state"])

    def set_aside(self, record: Record) -> None:
        self.aside[record.id] = frozenset(record.data["ids"])
        self._content_changed(record)

    def restore(self, record: Record) -> None:
        for undone in (self.aside, self.voided, self.left_out):
            undone.pop(str(record.data["record"]), None)

    def pin(self, record: Record) -> None:
        self.pinned[str(record.data["id"])] = bool(record.data["on"])

    def exclude(self, record: Record) -> None:
        self.excluded[str(record.data["id"])] = bool(record.data["on"])
        self._content_changed(record)

    def system(self, record: Record) -> None:
        self.prompt = str(record.data["text"])

    def void(self, record: Record) -> None:
        self.voided[record.id] = str(record.data["frontier"])

    def memory(self, record: Record) -> None:
        self.memory_files = record.data

    def tools(self, record: Record) -> None:
        self.switches.append((str(record.data["name"]), bool(record.data["on"])))

    def loaded(self, record: Record) -> None:
        self.loaded_names.update(dict.fromkeys(map(str, record.data["names"])))

    def leave_out(self, record: Record) -> None:
        part = str(record.data["message"]), str(record.data["sha256"])
        self.left_out[record.id] = part, int(record.data.get("keep", 0))
        self._content_changed(record)

    def _content_changed(self, record: Record) -> None:
        self.frontier = max(self.frontier, str(record.data.get("frontier", "")))

    def state(self) -> HistoryState:
        return HistoryState(
            checkpoints=tuple(self.checkpoints),
            trim=self.newest_trim,
            set_aside=frozenset().union(*self.aside.values()),
            pinned=frozenset(message for message, on in self.pinned.items() if on),
            excluded=frozenset(message for message, on in self.excluded.items() if on),
            frontier=self.frontier,
            system=self.prompt,
            void=max(self.voided.values(), default=""),
            left_out=dict(self.left_out.values()),
            memory=self.memory_files,
            tools=tuple(self.switches),
            loaded=tuple(self.loaded_names),
        )


_STEPS: Mapping[str, Callable[[_Fold, Record], None]] = {
    RecordKind.CHECKPOINT: _Fold.checkpoint,
    RecordKind.TRIM: _Fold.trim,
    RecordKind.SET_ASIDE: _Fold.set_aside,
    RecordKind.RESTORE: _Fold.restore,
    RecordKind.PIN: _Fold.pin,
    RecordKind.EXCLUDE: _Fold.exclude,
    RecordKind.SYSTEM: _Fold.system,
    RecordKind.VOID: _Fold.void,
    RecordKind.MEMORY: _Fold.memory,
    RecordKind.TOOLS: _Fold.tools,
    RecordKind.LOADED: _Fold.loaded,
    RecordKind.LEAVE_OUT: _Fold.leave_out,
}


def rewound(
    messages: Sequence[Message], state: HistoryState, message_id: str
) -> tuple[list[str], list[CompactionRecord]]:
    """What going back to before a message sets aside, and the compactions that end with it, newest first.

    A summary of what came before it stays, even if written later; one that covers the message or later ones does not.
    """
    summaries = {c.summary for c in state.checkpoints if not isinstance(c, CompactionUndo)}
    following = [m.id for m in messages if m.id >= message_id and m.id not in state.set_aside | summaries]
    ended = [record for record in active_compactions(state.checkpoints) if record.last >= message_id]
    return following, ended[::-1]


def not_sent(messages: Sequence[Message], state: HistoryState, sent: Sequence[Message]) -> dict[str, str]:
    """The messages of the history that are not sent, and why: "set aside", "excluded", "trimmed" or "compacted".

    A trimmed tool result is still sent, shortened, and not listed. Undone summaries are "set aside".
    """
    out = {message.id for message in sent}
    summaries = {c.summary for c in state.checkpoints if not isinstance(c, CompactionUndo)}
    result: dict[str, str] = {}
    for message in messages:
        if message.id in out:
            continue
        if message.id in state.set_aside or message.id in summaries:
            result[message.id] = "set aside"
        elif message.id in state.excluded:
            result[message.id] = "excluded"
        elif message.id in state.trim.dropped:
            result[message.id] = "trimmed"
        elif message.parts:
            result[message.id] = "compacted" if state.checkpoints else "trimmed"
    return result
