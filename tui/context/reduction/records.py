"""Compactions and trims as records beside the append-only history, and the messages that result.

A compaction never changes a message: it names a range, which a summary replaces. Undoing one and editing a summary are
records too, so that every earlier state can be restored, also after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeAlias

from tui.context.reduction.groups import Group, group_messages, opened, unbind, with_parts
from tui.messages import Message, Part, ToolCall, ToolResult
from tui.text.numbers import plural

CLEARED = "[Old tool result content cleared]"
CLEARED_ARGUMENTS = '{"cleared": "[Old arguments cleared]"}'


@dataclass(frozen=True, slots=True)
class CompactionRecord:
    """A checkpoint: `first` to `last` (message ids at the time it was made) are replaced by `summary`.

    `kept` messages of the range are sent verbatim after the summary, in their order. `cleared` names tool results
    (message id, call id) that are sent as a fixed line. With an empty `summary` results were cleared only. `before` and
    `after` are tokens of the next request, 0 if another program made it, `source` is that of `before`. `messages` is
    the number of messages in the range, `at` seconds since the epoch, `frontier` the newest message's id at that time
    (see `groups.unbind`).
    """

    id: str
    at: float
    before: int
    after: int
    messages: int
    first: str = ""
    last: str = ""
    summary: str = ""
    kept: tuple[str, ...] = ()
    cleared: tuple[tuple[str, str], ...] = ()
    frontier: str = ""
    source: str = "estimated"


@dataclass(frozen=True, slots=True)
class CompactionUndo:
    """Undoes `compaction`, the id of a compaction or of an edited summary."""

    id: str
    at: float
    compaction: str
    frontier: str = ""


@dataclass(frozen=True, slots=True)
class SummaryEdit:
    """Replaces the summary of `compaction` (a record id) by the message `summary`.

    `before` (from `source`) and `after` are tokens of the next request when it was made.
    """

    id: str
    at: float
    compaction: str
    summary: str
    frontier: str = ""
    before: int = 0
    after: int = 0
    source: str = "estimated"


Checkpoint: TypeAlias = CompactionRecord | CompactionUndo | SummaryEdit


_KINDS: Mapping[str, type[Checkpoint]] = {"compaction": CompactionRecord, "undo": CompactionUndo, "edit": SummaryEdit}
_READERS: Mapping[str, Callable[[Any], Any]] = {
    "at": float,
    "before": int,
    "after": int,
    "messages": int,
    "kept": lambda ids: tuple(map(str, ids)),
    "cleared": lambda pairs: tuple((str(message), str(call)) for message, call in pairs),
}
"""How fields are read from JSON; the others are texts."""


def checkpoint_to_json(record: Checkpoint) -> dict[str, object]:
    """A JSON object for the store."""
    (kind,) = (name for name, type_ in _KINDS.items() if isinstance(record, type_))
    return {"type": kind, **asdict(record)}


def checkpoint_from_json(data: Mapping[str, Any]) -> Checkpoint:
    """The inverse of `checkpoint_to_json`. Raises `ValueError` when `data` is something else."""
    try:
        kind = _KINDS[data["type"]]
        return kind(**{f.name: _READERS.get(f.name, str)(data[f.name]) for f in fields(kind) if f.name in data})
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a compaction record: {error}") from error


def _taken_back(records: Sequence[Checkpoint]) -> set[str]:
    return {r.compaction for r in records if isinstance(r, CompactionUndo)}


def active_compactions(records: Sequence[Checkpoint]) -> tuple[CompactionRecord, ...]:
    """The compactions in force, oldest first: without undone ones, each with the latest edit of its summary.

    `after` is the size of the conversation with the current summary.
    """
    undone, active = _taken_back(records), dict[str, CompactionRecord]()
    for record in records:
        match record:
            case CompactionRecord(id=ident) if ident not in undone:
                active[ident] = record
            case SummaryEdit(id=ident, compaction=compaction) if ident not in undone and compaction in active:
                after = active[compaction].after + record.after - record.before
                active[compaction] = replace(active[compaction], summary=record.summary, after=max(0, after))
            case _:
                pass
    return tuple(active.values())


def last_undoable(
    records: Sequence[Checkpoint], compactions: Sequence[CompactionRecord]
) -> CompactionRecord | SummaryEdit | None:
    """The record that `/undo` takes back next: the newest of `compactions` (`in_force`) or of their edits, or None."""
    undone = _taken_back(records)
    here = {compaction.id for compaction in compactions}
    for record in reversed(records):
        match record:
            case CompactionRecord(id=ident) if ident in here:
                return record
            case SummaryEdit(id=ident, compaction=compaction) if compaction in here and ident not in undone:
                return record
            case _:
                pass
    return None


def apply_compactions(
    messages: Sequence[Message], records: Sequence[Checkpoint], *, prefix_bound: bool = False
) -> tuple[Message, ...]:
    """The active messages of a history. Messages that stay are the same objects.

    Summaries move from where they were appended to where their range was. A record whose range or summary is not in
    `messages` (another branch of a fork) is ignored. With `prefix_bound` (`Capabilities`) reasoning from before the
    latest record is dropped too.
    """
    if not records:
        return tuple(messages)
    active, _ = _folded(messages, records, active_compactions(records))
    frontier = max(r.frontier for r in records)
    return unbind(active, frontier) if prefix_bound else tuple(active)


def in_force(messages: Sequence[Message], records: Sequence[Checkpoint]) -> tuple[CompactionRecord, ...]:
    """The compactions that `apply_compactions` applies, oldest first: their range and summary are in `messages`."""
    return tuple(_folded(messages, records, active_compactions(records))[1]) if records else ()


def _folded(
    messages: Sequence[Message], records: Sequence[Checkpoint], compactions: Sequence[CompactionRecord]
) -> tuple[list[Message], list[CompactionRecord]]:
    """`messages` after the compactions that apply to them, and those compactions; `records` names all summaries."""
    compaction_of = {  # by the id of each summary, also of one that was edited later
        r.summary: r.id if isinstance(r, CompactionRecord) else r.compaction
        for r in records
        if not isinstance(r, CompactionUndo)
    }
    summaries = {m.id: m for m in messages if m.id in compaction_of}
    active = [m for m in messages if m.id not in compaction_of]
    applied: list[CompactionRecord] = []
    latest = {record.id: record.summary for record in compactions}
    latest_edits = {summary: latest[ident] for summary, ident in compaction_of.items() if ident in latest}
    for record in compactions:
        folds = False
        if record.summary in summaries:
            first, last = (_place(ident, active, latest_edits) for ident in (record.first, record.last))
            folds = 0 <= first <= last
            if folds:
                verbatim = [m for m in active[first : last + 1] if m.id in record.kept]
                active = [*active[:first], summaries[record.summary], *verbatim, *active[last + 1 :]]
        if record.cleared:
            active = clear_results(active, record.cleared)
        if folds or record.cleared:
            applied.append(record)
    return active, applied


def _place(ident: str, active: Sequence[Message], latest_edits: Mapping[str, str]) -> int:
    """Index in `active` of a message, or of the latest edit of a summary; -1 if neither is there.

    Most ranges begin and end near the beginning of `active`, so the search is short.
    """
    for candidate in (ident, latest_edits.get(ident)):
        position = next((i for i, message in enumerate(active) if message.id == candidate), -1) if candidate else -1
        if position >= 0:
            return position
    return -1


def clear_results(messages: Iterable[Message], cleared: Iterable[tuple[str, str]]) -> list[Message]:
    """`messages` with these tool results or call arguments (message id, call id) replaced by a fixed line."""
    calls: dict[str, set[str]] = {}
    for owner, call in cleared:
        calls.setdefault(owner, set()).add(call)
    return [
        replace(m, parts=tuple(_cleared(part, calls[m.id]) for part in m.parts)) if m.id in calls else m
        for m in messages
    ]


def _cleared(part: Part, calls: AbstractSet[str]) -> Part:
    match part:
        case ToolResult(call_id=call) if call in calls:
            return replace(part, text=CLEARED)
        case ToolCall(id=call) if call in calls:
            return replace(part, arguments=CLEARED_ARGUMENTS)
        case _:
            return part


# -- trims of rolling context ------------------------------------------------------------------------------------------

TRIM_LOG = "trims"  # key of the `TrimLog` in the store's state
KEPT_TRIMS = 100  # trims shown by `/usage`


def truncation_marker(group: Group, tokens: int) -> str:
    """What is sent in place of (a part of) a tool result or call of `group` that had `tokens`."""
    return f"[content truncated - {plural(group.age or 0, 'step')} ago, {tokens:,} tokens]"


@dataclass(frozen=True, slots=True)
class Cut:
    """A tool result (or the arguments of a tool call) that is sent shortened.

    The text sent is `head` characters, `marker`, `tail` characters; with neither it is the marker alone. The marker is
    fixed when the cut is made and never rewritten, so that the prefix stays the same byte for byte.
    """

    message_id: str
    call_id: str
    marker: str
    head: int = 0
    tail: int = 0

    def shorten(self, text: str) -> str:
        """`text` as it is sent."""
        if len(text) <= self.head + self.tail:
            return text
        return f"{text[: self.head]}{self.marker}{text[len(text) - self.tail :] if self.tail else ''}"


@dataclass(frozen=True, slots=True)
class TrimState:
    """What is trimmed now. It only grows, until everything fits again (`rolling.build_final_prompt`).

    `dropped` are message ids; a tool call's results are dropped with the call. `left_out` is by how many tokens each
    message is shorter, as counted when it was trimmed. `frontier` is the id of the newest message when the state last
    changed: reasoning bound to the prefix is void up to there, even after everything was restored.
    """

    cuts: tuple[Cut, ...] = ()
    dropped: frozenset[str] = frozenset()
    frontier: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing is left out."""
        return not self.cuts and not self.dropped

    def cuts_by_message(self) -> dict[str, dict[str, Cut]]:
        """Message id -> call id -> cut."""
        cuts: dict[str, dict[str, Cut]] = {}
        for cut in self.cuts:
            cuts.setdefault(cut.message_id, {})[cut.call_id] = cut
        return cuts

    def to_json(self) -> dict[str, object]:
        """A JSON object for the store."""
        return {
            "cuts": [[c.message_id, c.call_id, c.marker, c.head, c.tail] for c in self.cuts],
            "dropped": sorted(self.dropped),
            "frontier": self.frontier,
            "left_out": dict(self.left_out),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrimState:
        """The inverse of `to_json`. Raises `ValueError` when `data` is something else."""
        try:
            cuts = tuple(Cut(str(m), str(c), str(t), int(h), int(e)) for m, c, t, h, e in data["cuts"])
            left_out = {str(m): int(tokens) for m, tokens in data["left_out"].items()}
            return cls(cuts, frozenset(map(str, data["dropped"])), str(data["frontier"]), left_out)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a trim record: {error}") from error


NO_TRIM = TrimState()


def trim_to_json(state: TrimState, before: TrimState) -> dict[str, object]:
    """What the record of a trim holds that replaces `before` by `state`: what is new, if `state` only adds to `before`.

    So the records grow with the conversation, not with its square. The first one, and one that sends something again,
    holds the whole state, as every one of older versions does.
    """
    cuts, earlier = _cuts_by_call(state), _cuts_by_call(before)
    adds = not before.empty and before.dropped <= state.dropped and earlier.keys() <= cuts.keys()
    if adds:
        state = TrimState(
            tuple(cut for call, cut in cuts.items() if earlier.get(call) != cut),
            state.dropped - before.dropped,
            state.frontier,
            {message: size for message, size in state.left_out.items() if before.left_out.get(message) != size},
        )
    return {"state": state.to_json(), "adds": adds}


def fold_trims(trims: Sequence[Mapping[str, Any]]) -> TrimState:
    """The state after `trims`, the data of their records, oldest first. Raises `ValueError` for a malformed one."""
    whole = max((index for index, data in enumerate(trims) if not data.get("adds")), default=0)
    cuts, dropped, left_out, frontier = dict[tuple[str, str], Cut](), set[str](), dict[str, int](), ""
    for data in trims[whole:]:
        state = TrimState.from_json(data["state"])
        cuts |= _cuts_by_call(state)
        dropped |= state.dropped
        left_out |= state.left_out
        frontier = state.frontier
    return TrimState(tuple(cuts.values()), frozenset(dropped), frontier, left_out)


def _cuts_by_call(state: TrimState) -> dict[tuple[str, str], Cut]:
    """(message id, call id) -> cut."""
    return {(cut.message_id, cut.call_id): cut for cut in state.cuts}


@dataclass(frozen=True, slots=True)
class TrimLog:
    """The requests since rolling context was first enabled, for `/usage`.

    `latest` are the tokens left out by each of the last `KEPT_TRIMS` trims, oldest first.
    """

    requests: int = 0
    trimmed: int = 0
    utilisation_sum: float = 0.0  # percent, over `requests`
    latest: tuple[int, ...] = ()

    @property
    def average_utilisation(self) -> float | None:
        """Average use of the input budget in percent; None before the first request."""
        return self.utilisation_sum / self.requests if self.requests else None

    def add(self, utilisation: float, left_out: int | None = None) -> TrimLog:
        """The log after one more request, sent at `utilisation` percent; `left_out` tokens if it was trimmed."""
        return TrimLog(
            self.requests + 1,
            self.trimmed + (left_out is not None),
            self.utilisation_sum + utilisation,
            self.latest if left_out is None else (*self.latest, left_out)[-KEPT_TRIMS:],
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrimLog:
        """The inverse of `to_json`; a new log for anything else, which must not stop a turn."""
        try:
            # Older versions stored more of each trim: its time, and use before and after.
            latest = data["latest"] if "latest" in data else [tokens for _, _, tokens, *_ in data["recent"]]
            return cls(
                int(data["requests"]), int(data["trimmed"]), float(data["utilisation_sum"]), tuple(map(int, latest))
            )
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return cls()


def apply_trim(messages: Sequence[Message], state: TrimState, *, prefix_bound: bool = False) -> tuple[Message, ...]:
    """`messages` as they are sent under `state`; untouched messages are the same objects.

    A tool group is dropped with the message that called, whatever the state says of its results, so that calls and
    results stay paired under any state, even one made for an older history. With `prefix_bound` (`Capabilities`)
    reasoning up to the frontier is dropped too.
    """
    sent = leave_out(messages, state, prefix_bound=prefix_bound)
    return opened(sent) if messages and messages[0].role == "user" else sent


def leave_out(messages: Sequence[Message], state: TrimState, *, prefix_bound: bool = False) -> tuple[Message, ...]:
    """As `apply_trim`, of a stretch of whole groups: the request may begin with something else."""
    sent = tuple(messages)
    if not state.empty:
        dropped = {i for g in group_messages(messages) if group_dropped(messages, g, state) for i in g.indices}
        cuts = state.cuts_by_message()
        sent = tuple(shorten(m, cuts[m.id]) if m.id in cuts else m for i, m in enumerate(messages) if i not in dropped)
    return unbind(sent, state.frontier) if prefix_bound else sent


def group_dropped(messages: Sequence[Message], group: Group, state: TrimState) -> bool:
    """Whether `state` drops this group; its first message decides."""
    return messages[group.indices[0]].id in state.dropped


def shorten(message: Message, cuts: Mapping[str, Cut]) -> Message:
    """`message` with the results and arguments in `cuts` (by call id) shortened."""
    return with_parts(message, [shorten_part(part, cuts) for part in message.parts])


def shorten_part(part: Part, cuts: Mapping[str, Cut]) -> Part:
    """`part` as it is sent under `cuts` (by call id)."""
    match part:
        case ToolResult(call_id=call) if call in cuts:
            text = cuts[call].shorten(part.text)
            return part if text is part.text else replace(part, text=text)
        case ToolCall(id=call) if call in cuts:
            return replace(part, arguments=cuts[call].marker)
        case _:
            return part
