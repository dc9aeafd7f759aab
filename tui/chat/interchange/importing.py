"""Imports recorded conversations: our own export without loss, other programs' sessions in a form that works here.

Everything is read, checked and measured first, then written in one transaction.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import astuple, dataclass, fields, replace

from tui.chat.conversation.history import fold_records
from tui.chat.interchange.import_checks import checked_messages, checked_records, checked_row
from tui.chat.interchange.import_known import check_new, remember
from tui.chat.interchange.recording import Recording, RecordingError
from tui.chat.interchange.replay import recorded_calls
from tui.chat.store.calls import CallKind, CallRow, passes_of
from tui.chat.store.ids import new_id
from tui.chat.store.learned import StoredCalibrations, StoredCounts, StoredMeasurements
from tui.chat.store.store import SessionInfo, SessionStore, storable
from tui.context.counting.costs import CostBook
from tui.context.counting.counting import TokenCounter
from tui.context.estimate.calibration import Calibration, CalibrationBook
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.preamble_costs import PreambleCosts
from tui.context.estimate.prediction import ConversationEstimate
from tui.context.estimate.tracker import ConversationStateTracker, Measurement
from tui.messages import Message, Reasoning, SystemSection, Usage

Progress = Callable[[int, int], None]
"""Called with the number of calls measured so far, and their total."""
Price = Callable[[Usage, str, str], float | None]
"""US dollars for a usage, provider and model; None where the price is unknown."""

KEPT_MEASUREMENTS = 64
"""For each session: enough to go back a few turns; more would evict measurements of the person's own sessions."""

_PROVIDERS: Mapping[str, str] = {
    "google": "gemini",
    "google-gemini-cli": "gemini",
    "google-vertex": "gemini",
    "openai-codex": "openai",
    "azure-openai-responses": "openai",
    "amazon-bedrock": "anthropic",
}
_FAMILIES = (("claude", "anthropic"), ("gpt", "openai"), ("gemini", "gemini"), ("deepseek", "deepseek"))


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported session.

    `copy_of` is the id in the file if a session with that id was here already; `unsent` are the tokens of the other
    program's system prompt and tools, which are not in its file and not sent from here.
    """

    info: SessionInfo
    calls: int
    source: str
    unsent: int = 0
    copy_of: str = ""


def import_measured(
    store: SessionStore,
    recording: Recording,
    *,
    providers: Collection[str],
    price: Price,
    system: str = "",
    progress: Progress | None = None,
    estimator: HybridTokenEstimator | None = None,
    again: bool = False,
) -> Imported:
    """Add `recording` as a new session, with measured calls, in one transaction.

    `providers` are the available names; `system` is the system prompt in the settings, for our own sessions without
    one; `estimator` is that of the running program, which learns too. Raises `RecordingError` for damaged content,
    `AlreadyHereError` for a conversation that was imported before, unless `again`, and `StoreError`.
    """
    messages = checked_messages(recording.messages)
    original = tuple(messages)
    exported = None if recording.info is None else checked_row(recording.info)
    recording = replace(
        recording,
        info=exported,
        records=checked_records(recording.records),
        calls=tuple(map(checked_row, recording.calls)),
    )
    if not again:
        check_new(store, recording.info, original)
    for digest, data in recording.blobs.items():
        if hashlib.sha256(data).hexdigest() != digest:
            raise RecordingError(f"damaged: attachment {digest[:12]} does not have the content its hash names")
    if exported is None:
        messages = [_without_missing(_renamed(message, providers)) for message in messages]
    recording = replace(recording, messages=tuple(messages), title=storable(recording.title) or "")
    if exported is None and not recording.model[1]:
        raise RecordingError("no model has answered in it")
    reader = _Reader(store, recording, system=system, price=price)
    reader.measure(progress)
    if exported is None:
        recording = replace(recording, calls=tuple(reader.calls))
    with store.transaction():
        info = import_recording(recording, store)
        reader.remember(store, info.id, estimator)
        remember(store, info.id, original)
    copy_of = exported.id if exported is not None and exported.id != info.id else ""
    return Imported(info, len(recording.calls), recording.source, reader.unsent, copy_of)


def import_recording(recording: Recording, store: SessionStore) -> SessionInfo:
    """Store `recording`. An id that is in use is replaced by a new one."""
    info = _info(recording)
    if store.session(info.id) is not None:
        info = replace(info, id=new_id())
    with store.transaction() as db:
        store.create_session(info)
        for sha256, data in recording.blobs.items():
            store.put_blob(sha256, data)
        for message in recording.messages:
            # A message that was streaming when it was exported is final.
            store.add_message(
                info.id, replace(message, status="interrupted") if message.status == "streaming" else message
            )
        db.executemany(
            "INSERT INTO records (session, id, kind, at, data) VALUES (?, ?, ?, ?, ?)",
            [(info.id, r.id, r.kind, r.at, json.dumps(r.data, separators=(",", ":"))) for r in recording.records],
        )
        names = [field.name for field in fields(CallRow)]
        used_ids = {
            call.id for call in recording.calls if db.execute("SELECT 1 FROM calls WHERE id = ?", (call.id,)).fetchone()
        }
        db.executemany(
            f"INSERT INTO calls ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
            [astuple(_call(call, info, recording, used_ids)) for call in recording.calls],
        )
    return replace(info, messages=len(recording.messages))


def _info(recording: Recording) -> SessionInfo:
    if recording.info is not None:
        return recording.info
    provider, model = recording.model
    times = [message.created_at for message in recording.messages if message.created_at]
    return SessionInfo(new_id(), recording.title, provider, model, min(times, default=0.0), max(times, default=0.0))


def _call(call: CallRow, info: SessionInfo, recording: Recording, used_ids: AbstractSet[str]) -> CallRow:
    """A call of the session it is now in; where that is a second copy, or the id is taken, under an id of its own."""
    if recording.info is not None and recording.info.id == info.id and call.id not in used_ids:
        return call
    return replace(call, id=new_id(), session=info.id)


def provider_name(provider: str, model: str, providers: Collection[str]) -> str:
    """The name of another program's provider here; unknown ones get the name of a generic provider."""
    name = _PROVIDERS.get(provider, provider)
    if name in providers:
        return name
    return next((ours for start, ours in _FAMILIES if model.startswith(start)), "openrouter")


def _renamed(message: Message, providers: Collection[str]) -> Message:
    """`message` with our provider's name, also in its reasoning, which is sent back only to its provider."""
    if message.role != "assistant":
        return message
    name = provider_name(message.provider, message.model, providers)
    if name == message.provider:
        return message
    parts = tuple(
        replace(part, provider=name) if isinstance(part, Reasoning) and part.provider == message.provider else part
        for part in message.parts
    )
    return replace(message, provider=name, parts=parts)


def _without_missing(message: Message) -> Message:
    """`message` without reasoning whose encrypted content is not in the file: it can't be sent back."""
    if not any(isinstance(part, Reasoning) and part.encrypted == "" for part in message.parts):
        return message
    parts = [
        replace(part, encrypted=None) if isinstance(part, Reasoning) and part.encrypted == "" else part
        for part in message.parts
        if not (isinstance(part, Reasoning) and part.encrypted == "" and not part.text)
    ]
    return replace(message, parts=tuple(parts))


class _Collected:
    """A measurement store that collects what is learned, with its `epoch`, until everything is written."""

    def __init__(self) -> None:
        self.measurements: list[tuple[Measurement, int]] = []
        self.epoch = 0

    def load(self, provider: str, model: str) -> Iterable[Measurement]:
        """Nothing: measurements of other sessions do not apply."""
        return ()

    def save(self, measurement: Measurement) -> None:
        """Keep it."""
        self.measurements.append((measurement, self.epoch))

    def remove(self, measurement: Measurement) -> None:
        """Take one out that proved wrong."""
        self.measurements = [line for line in self.measurements if line[0] != measurement]

    def clear(self, provider: str, model: str) -> None:
        """Take out all of a model."""
        self.measurements = [
            line for line in self.measurements if (line[0].provider, line[0].model) != (provider, model)
        ]


class _Counts:
    """The stored counts and costs, plus new ones in memory: one write instead of one for each call."""

    def __init__(self, stored: StoredCounts) -> None:
        self._stored = stored
        self._new: dict[tuple[str, int], dict[bytes, tuple[int, ...]]] = {}

    def get_many(self, tokenizer: str, version: int, digests: Sequence[bytes]) -> dict[bytes, tuple[int, ...]]:
        """What is known of `digests`."""
        new = self._new.get((tokenizer, version), {})
        stored = self._stored.get_many(tokenizer, version, [digest for digest in digests if digest not in new])
        return stored | {digest: new[digest] for digest in digests if digest in new}

    def put_many(self, tokenizer: str, version: int, values: Mapping[bytes, tuple[int, ...]]) -> None:
        """Keep them."""
        self._new.setdefault((tokenizer, version), {}).update(values)

    def clear(self, tokenizer: str) -> None:
        """Take the new ones out again."""
        self._new = {key: values for key, values in self._new.items() if key[0] != tokenizer}

    def write(self) -> None:
        """Store the new ones."""
        for (tokenizer, version), values in self._new.items():
            self._stored.put_many(tokenizer, version, values)


class _Taught:
    """The stored calibrations without what was learned about system prompts; new ones stay in memory."""

    def __init__(self, stored: StoredCalibrations) -> None:
        self._stored = CalibrationBook(stored)
        self._learned: dict[tuple[str, str], Mapping[str, object]] = {}

    def load(self, provider: str, model: str) -> Mapping[str, object]:
        """What is known of a model."""
        return replace(self._stored.get(provider, model), preambles=PreambleCosts()).to_json()

    def save(self, provider: str, model: str, data: Mapping[str, object]) -> None:
        """Keep it."""
        self._learned[provider, model] = data

    @property
    def learned(self) -> Mapping[tuple[str, str], Calibration]:
        """The new ones, with what this store knows about system prompts: those of other programs don't apply here."""
        return {
            name: replace(Calibration.from_json(data), preambles=self._stored.get(*name).preambles)
            for name, data in self._learned.items()
        }


class _Reader:
    """Feeds a recording to the estimator call by call, like `chatctx replay`, and collects the results.

    Other programs' system prompts and tools are part of their calls' cost, but not in their files, and chatctx does not
    send them. So they get a digest of their own, and the part of the first call that its messages do not explain is
    attributed to them: the accounting then corrects for it, as when a person changes the system prompt.
    """

    def __init__(self, store: SessionStore, recording: Recording, *, system: str, price: Price) -> None:
        self._recording, self._price = recording, price
        state = fold_records(recording.records)
        # Memory files are not in the export either: their part is determined like another program's system prompt.
        self._from_chatctx = recording.info is not None and not state.memory
        text = state.system
        text = system if text is None else text
        self._system = (SystemSection("system", "system prompt", text),) if self._from_chatctx and text.strip() else ()
        self._collected, self._taught = _Collected(), _Taught(StoredCalibrations(store))
        self._counts = _Counts(StoredCounts(store))
        self._estimator = HybridTokenEstimator(
            TokenCounter(self._counts),
            ConversationStateTracker(self._collected),
            CalibrationBook(self._taught),
            CostBook(self._counts),
        )
        self._epochs: list[int] = []  # tokens of each context's first call that its messages do not explain
        self.calls: list[CallRow] = []

    @property
    def unsent(self) -> int:
        """Tokens of the other program's system prompt and tools, in the last context."""
        return self._epochs[-1] if self._epochs and self._recording.info is None else 0

    def measure(self, progress: Progress | None) -> None:
        """Process all calls."""
        count = sum(m.role == "assistant" and m.usage is not None for m in self._recording.messages)
        estimator, compactions = self._estimator, -1
        for number, (reply, usage, request, state) in enumerate(recorded_calls(self._recording, self._system), 1):
            if reply.kind == "summary":
                self.calls.append(self._call(reply, usage, None, kind="compaction"))
                continue
            estimate = estimator.estimate(request)
            predicted = estimate if compactions == len(state.checkpoints) else None
            if predicted is None:
                alone = HybridTokenEstimator(estimator.counter, ConversationStateTracker(), CalibrationBook())
                self._epochs.append(max(0, (usage.input_total or 0) - alone.estimate(request).tokens))
            compactions = len(state.checkpoints)
            self._collected.epoch = len(self._epochs) - 1
            believed = self._recording.believed(reply, usage)
            estimator.record(request, reply, believed, at=reply.created_at, recorded=True)
            self.calls.append(self._call(reply, usage, predicted))
            if progress is not None:
                progress(number, count)

    def _call(
        self, reply: Message, usage: Usage, predicted: ConversationEstimate | None, *, kind: CallKind = "chat"
    ) -> CallRow:
        """A call as it would be logged here; the first after a start or a compaction could not be predicted."""
        name = (reply.provider, reply.model)
        known_tokens = predicted.known_tokens if predicted else None
        passes = passes_of(usage)
        return CallRow(
            new_id(), "", reply.id, kind, *name, reply.created_at, "success",
            predicted.tokens if predicted else None,
            predicted.upper_bound if predicted else None,
            predicted.source if predicted else None,
            known_tokens, predicted.estimated_tokens if predicted else None,
            usage.input_total, usage.input_cached, usage.input_cache_write, usage.output_total, usage.reasoning,
            usage.source, finish_reason=storable(reply.finish_reason), cost=self._price(usage, *name),
            passes_input=passes.input, passes_cached=passes.cached, passes_output=passes.output,
        )  # fmt: skip

    def remember(self, store: SessionStore, session: str, running: HybridTokenEstimator | None) -> None:
        """Write the newest measurements and what was learned; `running` keeps them in memory as well."""
        self._counts.write()
        tracker = running.tracker if running else ConversationStateTracker(StoredMeasurements(store))
        book = running.calibrations if running else CalibrationBook(StoredCalibrations(store))
        now = time.time()
        for measurement, epoch in self._collected.measurements[-KEPT_MEASUREMENTS:]:
            if not self._from_chatctx:
                preamble = hashlib.sha256(f"preamble {epoch} of {session}".encode()).digest()
                tokens = measurement.preamble_tokens + self._epochs[epoch]
                measurement = replace(measurement, preamble=preamble, preamble_tokens=tokens)
            tracker.remember(replace(measurement, at=now))
        for (provider, model), calibration in self._taught.learned.items():
            book.put(provider, model, calibration)
