"""What rolling context leaves out of the next request: records beside the history, and their application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tui.context.reduction.groups import Group, group_messages, opened, unbind
from tui.messages import Message, Part, ToolCall, ToolResult
from tui.text.numbers import plural

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

    def to_json(self) -> dict[str, object]:
        """A JSON object for the store."""
        return {
            "requests": self.requests,
            "trimmed": self.trimmed,
            "utilisation_sum": self.utilisation_sum,
            "latest": list(self.latest),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrimLog:
        """The inverse of `to_json`; a new log for anything else, which must not stop a turn."""
        try:
            # Older versions stored more of each trim: its time, and use before and after.
            latest = data["latest"] if "latest" in data else [tokens for _, _, tokens, *_ in data["recent"]]
            return cls(
                int(data["requests"]), int(data["trimmed"]), float(data["utilisation_sum"]), tuple(map(int, latest))
            )
        except (AttributeError, KeyError, TypeError, ValueError):
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
    parts = tuple(shorten_part(part, cuts) for part in message.parts)
    return message if all(a is b for a, b in zip(parts, message.parts, strict=True)) else replace(message, parts=parts)


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
