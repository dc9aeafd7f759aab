"""What the records beside a history say, folded into one value that the projection reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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

CHECKPOINT = "checkpoint"  # a compaction, its undo, an edited summary (context.checkpoints)
TRIM = "trim"  # {"state": TrimState, "messages": n, "tokens": n}; the newest one holds
SET_ASIDE = "set_aside"  # {"ids": [...]}: a reply that was retried, a message that was edited, what followed it
RESTORE = "restore"  # {"record": id}: takes a set_aside back
PIN = "pin"  # {"id", "on"}
EXCLUDE = "exclude"  # {"id", "on"}
SYSTEM = "system"  # {"text"}: the session's own system prompt; the newest one holds
VOID = "void"  # {"frontier"}: a server refused the reasoning in messages up to this id
MEMORY = "memory"  # {"files": [{"path", "sha256", "on"}]}: the memory files and their switches; the newest one holds
TOOLS = "tools"  # {"name", "on"}: tools (a name or a pattern) switched in this conversation
LOADED = "loaded"  # {"names": [...]}: deferred tools that the model has found, in that order
LEAVE_OUT = "leave_out"  # {"message", "sha256"}: an attachment of too many bytes, or that a server could not read


@dataclass(frozen=True, slots=True)
class HistoryState:
    """What is to be known of a history besides its messages."""

    checkpoints: tuple[Checkpoint, ...] = ()
    trim: TrimState = field(default_factory=TrimState)
    set_aside: frozenset[str] = frozenset()
    pinned: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    frontier: str = ""  # the newest message's id when content was last set aside or excluded (groups.unbind)
    system: str | None = None  # None: the settings' one
    void: str = ""  # likewise, when a server last refused reasoning
    left_out: frozenset[tuple[str, str]] = frozenset()  # message id, sha256
    memory: Mapping[str, Any] | None = None  # as `MemoryFiles.to_json` has it
    tools: tuple[tuple[str, bool], ...] = ()  # name or pattern, on; the last that fits holds
    loaded: tuple[str, ...] = ()  # names of deferred tools, in the order they were found


def fold_records(records: Sequence[Record]) -> HistoryState:
    """Records, oldest first, to the state they add up to. Raises ValueError for a record that can't be read."""
    checkpoints: list[Checkpoint] = []
    trim = TrimState()
    aside: dict[str, frozenset[str]] = {}
    marks: dict[str, dict[str, bool]] = {PIN: {}, EXCLUDE: {}}
    frontier = void = ""
    system: str | None = None
    memory: Mapping[str, Any] | None = None
    left_out: set[tuple[str, str]] = set()
    tools: list[tuple[str, bool]] = []
    loaded: dict[str, None] = {}
    for record in records:
        data: Mapping[str, object] = record.data
        match record.kind:
            case "checkpoint" if data.get("answer"):  # one made by OpenAI, which is not sent any more
                aside[record.id] = frozenset({str(data["summary"])})
            case "checkpoint":
                checkpoints.append(checkpoint_from_json(data))
            case "trim":
                trim = TrimState.from_json(record.data["state"])
            case "set_aside":
                aside[record.id] = frozenset(record.data["ids"])
                frontier = max(frontier, str(data.get("frontier", "")))
            case "restore":
                aside.pop(str(data["record"]), None)
            case "pin" | "exclude":
                marks[record.kind][str(data["id"])] = bool(data["on"])
                if record.kind == EXCLUDE:
                    frontier = max(frontier, str(data.get("frontier", "")))
            case "system":
                system = str(data["text"])
            case "memory":
                memory = record.data
            case "tools":
                tools.append((str(data["name"]), bool(data["on"])))
            case "loaded":
                loaded.update(dict.fromkeys(map(str, record.data["names"])))
            case "void":
                void = max(void, str(data["frontier"]))
            case "leave_out":
                left_out.add((str(data["message"]), str(data["sha256"])))
    return HistoryState(
        tuple(checkpoints),
        trim,
        frozenset().union(*aside.values()),
        frozenset(ident for ident, on in marks[PIN].items() if on),
        frozenset(ident for ident, on in marks[EXCLUDE].items() if on),
        frontier,
        system,
        void,
        frozenset(left_out),
        memory,
        tuple(tools),
        tuple(loaded),
    )


def rewound(
    messages: Sequence[Message], state: HistoryState, message_id: str
) -> tuple[list[str], list[CompactionRecord]]:
    """What going back to before a message sets aside, and the compactions that end with that, the newest first.

    A summary of what came before it stays, though it was written later; one that stands for the message or for
    something after it does not.
    """
    summaries = {c.summary for c in state.checkpoints if not isinstance(c, CompactionUndo)}
    following = [m.id for m in messages if m.id >= message_id and m.id not in state.set_aside | summaries]
    ended = [record for record in active_compactions(state.checkpoints) if record.last >= message_id]
    return following, ended[::-1]


def not_sent(messages: Sequence[Message], state: HistoryState, sent: Sequence[Message]) -> dict[str, str]:
    """Which messages of the history do not go out, and why: "set aside", "excluded", "trimmed" or "compacted".

    A trimmed tool result still goes out, shortened: it is not listed. Summaries that were undone are "set aside".
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
