"""Sessions of opencode: its database, its older JSON files, and what `opencode export` writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tui.chat.interchange.foreign.reading import Builder, SourceFile, seconds, text_of
from tui.chat.interchange.recording import Recording
from tui.chat.store.database import new_id
from tui.messages import Part, Reasoning, Text, Usage
from tui.providers.wire import find_count

SOURCE, NAME = "opencode", "opencode"

_TABLES = {"session", "message", "part"}


def detect(file: SourceFile) -> bool:
    """Whether `file` is an export (`{info, messages}`), a session file of before 1.2, or the database."""
    if file.tables >= _TABLES:
        return True
    document = file.document
    if not isinstance(document, dict):
        return False
    if isinstance(document.get("info"), dict) and isinstance(document.get("messages"), list):
        return True
    return "projectID" in document and str(document.get("id", "")).startswith("ses_")


def read(file: SourceFile) -> Iterator[Recording]:
    """Every session in `file`. Sub-agents have sessions of their own."""
    if file.is_database:
        for row in file.query("SELECT id FROM session ORDER BY id"):
            if (recording := read_session(file, str(row["id"]))) is not None:
                yield recording
    elif "messages" in file.document:
        yield _session(file, file.document["info"], file.document["messages"], file.stem)
    else:
        yield _session(file, file.document, _older_messages(file), file.stem)


def newest_session(file: SourceFile, folder: str) -> str:
    """The id of the session in a database that was changed last in `folder`, "" for none. Sub-agents are left out."""
    sql = "SELECT id FROM session WHERE directory = ? AND parent_id IS NULL ORDER BY time_updated DESC LIMIT 1"
    return next((str(row["id"]) for row in file.query(sql, (folder,))), "")


def read_session(file: SourceFile, ident: str) -> Recording | None:
    """One session of a database; None if it has no messages, or is gone."""
    sessions = file.query("SELECT * FROM session WHERE id = ?", (ident,))
    if not sessions:
        return None
    messages: list[dict[str, Any]] = []

    def add(message: Any) -> None:
        parts = file.query("SELECT * FROM part WHERE message_id = ? ORDER BY id", (message["id"],))
        messages.append({"info": _row(message), "parts": [_row(part) for part in parts]})

    file.feed(add, file.query("SELECT * FROM message WHERE session_id = ? ORDER BY id", (ident,)))
    return _session(file, _row(sessions[0]), messages, ident) if messages else None


def subagent_inputs(file: SourceFile, ident: str) -> list[int]:
    """The last input, in tokens, of each sub-agent that a session of a database has started."""
    inputs = []
    for child in file.query("SELECT id FROM session WHERE parent_id = ?", (ident,)):
        answers = file.query("SELECT * FROM message WHERE session_id = ? ORDER BY id DESC", (child["id"],))
        usages = (_usage(_row(answer).get("tokens")) for answer in answers)
        inputs += [usage.input_total for usage in usages if usage is not None and usage.input_total][:1]
    return inputs


def _row(row: Any) -> dict[str, Any]:
    """A row as the JSON it was made from: what `data` holds, and the id."""
    values = dict(row)
    data = values.pop("data", None)
    if isinstance(values.get("revert"), str):
        values["revert"] = json.loads(values["revert"])
    return {**(json.loads(data) if data else values), "id": values["id"]}


def _older_messages(file: SourceFile) -> list[dict[str, Any]]:
    """The messages of `storage/session/<project>/ses_*.json`, which lie in folders beside it."""
    storage = file.path.absolute().parents[2]
    messages = []
    for path in sorted((storage / "message" / file.stem).glob("msg_*.json")):
        parts = sorted((storage / "part" / path.stem).glob("prt_*.json"))
        messages.append({"info": _loaded(path), "parts": [_loaded(part) for part in parts]})
    return messages


def _loaded(path: Any) -> dict[str, Any]:
    value = SourceFile(path).document
    return value if isinstance(value, dict) else {}


class _Session(Builder):
    """Builds a session message by message."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: dict[str, int] = {}  # opencode's message id -> position of its first message here
        self.pruned: list[tuple[float, str, str]] = []  # when, message id, call id; not yet a record
        self.counted_twice: set[str] = set()  # answers, by id

    def read(self, info: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> None:
        """Take one message."""
        at = _time(info)
        self.ids[str(info.get("id", ""))] = len(self.messages)
        if cleared := [(message, call) for when, message, call in self.pruned if when <= at]:
            self.clear(cleared, max(when for when, *_ in self.pruned if when <= at))
            self.pruned = [entry for entry in self.pruned if entry[0] > at]
        if info.get("role") == "user":
            self._prompt(parts, at)
        elif info.get("summary") is True:  # the context begins with it from now on
            self.compact(
                [Text(text_of(parts, ""))], at, role="assistant", usage=_usage(info.get("tokens")),
                verbatim=self.context_from(self.ids.get(str(info.get("tail_start_id") or ""), len(self.messages))),
                provider=str(info.get("providerID") or ""), model=str(info.get("modelID") or ""),
            )  # fmt: skip
        else:
            step: list[Mapping[str, Any]] = []
            for part in parts:
                if part.get("type") == "step-finish":
                    self._step(info, step, part.get("tokens"), part.get("reason"))
                    step = []
                else:
                    step.append(part)
            self._step(info, step, info.get("tokens"), info.get("finish"))

    def _prompt(self, parts: Sequence[Mapping[str, Any]], at: float) -> None:
        """A user message. Text that opencode added by itself is a message of its own, marked as injected."""
        typed: list[Part] = []
        added: list[Part] = []
        for part in parts:
            if part.get("type") == "text" and not part.get("ignored"):
                (added if part.get("synthetic") else typed).append(Text(str(part.get("text", ""))))
            elif part.get("type") == "file":  # the text of a text file stands in synthetic parts beside it
                typed += self.picture_in(str(part.get("url") or ""), str(part.get("filename") or ""))
        self.add("user", typed, at)
        self.add("user", added, at, kind="injected")

    def _step(self, info: Mapping[str, Any], parts: Sequence[Mapping[str, Any]], tokens: Any, reason: object) -> None:
        """One call: its answer, and the results of its tools."""
        provider, model = str(info.get("providerID") or ""), str(info.get("modelID") or "")
        answer: list[Part] = []
        results: list[Part] = []
        pruned: list[tuple[float, str]] = []  # when, call id
        for part in parts:
            match part.get("type"):
                case "text" if part.get("text"):
                    answer.append(Text(str(part["text"])))
                case "reasoning":
                    answer.append(_reasoning(part, provider, model))
                case "tool":
                    ident, state = str(part.get("callID") or new_id()), part.get("state") or {}
                    answer.append(self.call(ident, part.get("tool") or "", state.get("input") or {}))
                    text = str(state.get("output") or state.get("error") or "")
                    results.append(self.result(ident, text, state.get("status") == "error"))
                    if when := (state.get("time") or {}).get("compacted"):
                        pruned.append((seconds(when), ident))
        if answer:
            usage, doubted = _usage(tokens), False
            failed = usage is None and bool(info.get("error"))
            if usage is not None and not usage.reasoning and any(isinstance(part, Reasoning) for part in answer):
                usage = replace(usage, reasoning=None)  # not reported
                after_results = bool(self.messages) and self.messages[-1].role == "tool"
                claude = provider == "github-copilot" and model.startswith("claude")
                doubted = claude and after_results and bool(usage.input_cached)
            ident = self.add(
                "assistant", answer, _time(info), provider=provider, model=model, finish_reason=reason, usage=usage,
                status="failed" if failed else "complete",
            )  # fmt: skip
            if doubted:
                self.counted_twice.add(ident)
        ident = self.add("tool", results, _time(info))
        self.pruned += [(when, ident, call) for when, call in pruned]


def _session(
    file: SourceFile, info: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], fallback: str
) -> Recording:
    session = _Session()
    file.feed(lambda entry: session.read(entry["info"], entry["parts"]), messages)
    reverted = session.ids.get(str((info.get("revert") or {}).get("messageID") or ""))
    if reverted is not None:
        session.set_aside(message.id for message in session.messages[reverted:])
    title = str(info.get("title") or "")
    corrected = _corrected(session)
    session.unpredictable = dict.fromkeys(corrected, "the server counted what was not in its cache twice")
    recording = session.recording(SOURCE, fallback, "" if title.startswith("New session") else title)
    return replace(recording, corrected=corrected)


def _corrected(session: _Session) -> dict[str, int]:
    """The input tokens of the answers that Copilot counted twice; none where the file's own cache reads contradict it.

    Observed of 1.4.3 with Claude: where a model thinks after tool results, `input` is twice what was not in the cache,
    and one. What the next call reads from the cache shows it, to the token.
    """
    corrected: dict[str, int] = {}
    before: int | None = None
    for message in session.messages:
        usage = message.usage
        if usage is None or usage.input_total is None or usage.input_cached is None:
            continue
        if before is not None and usage.input_cached > before:
            return {}
        before = None
        if message.id in session.counted_twice:
            fresh = usage.input_total - usage.input_cached
            before = corrected[message.id] = usage.input_cached + (fresh + 1) // 2
    return corrected


def _time(info: Mapping[str, Any]) -> float:
    return seconds((info.get("time") or {}).get("created"))


def _reasoning(part: Mapping[str, Any], provider: str, model: str) -> Reasoning:
    metadata = next((value for value in (part.get("metadata") or {}).values() if isinstance(value, dict)), {})
    signature = metadata.get("signature")
    encrypted = metadata.get("reasoningEncryptedContent") or metadata.get("reasoningOpaque")
    return Reasoning(
        str(part.get("text") or ""),
        provider,
        model,
        signature=str(signature) if signature else None,
        encrypted="" if encrypted and "REDACTED" in str(encrypted) else str(encrypted) if encrypted else None,
    )


def _usage(tokens: Any) -> Usage | None:
    """`input` leaves out what came from or went to the cache. `output` held the reasoning until 1.4: `total` tells."""
    names = ("cache.read", "cache.write", "input", "output", "reasoning")
    read, write, fresh, output, reasoning = (find_count(tokens, name) or 0 for name in names)
    input_total = fresh + read + write
    if not input_total:
        return None
    inside = find_count(tokens, "total") == input_total + output
    return Usage(input_total, output if inside else output + reasoning, read, write, reasoning)
