"""Shared by the readers: the file, a builder for its conversation, and helpers for what several formats have."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from tui.chat.conversation.history import RecordKind
from tui.chat.interchange.recording import YEAR_9999, Recording, RecordingError, first_words
from tui.chat.store.codec import MALFORMED
from tui.chat.store.database import new_id
from tui.chat.store.store import Record
from tui.config.files import FileTooLargeError, read_all
from tui.context.reduction.records import CompactionRecord, checkpoint_to_json
from tui.messages import Attachment, Message, MessageKind, Part, Reasoning, Role, Text, ToolCall, ToolResult, Usage
from tui.providers.wire import find_count
from tui.text.numbers import size_text
from tui.tools.files.texts import SAMPLE, encoding_of

MAX_BYTES = 500_000_000  # bytes; larger files are not read
MAX_HEADER = 1_000_000  # of its first line
SQLITE_MAGIC = b"SQLite format 3\0"
MAX_NAMED = 3  # damaged lines listed individually
MAX_SECONDS = 1e11  # larger numbers are milliseconds: those before 1973, these after the year 5000

_DECODER = json.JSONDecoder(parse_constant=lambda _name: None)  # NaN and Infinity are no JSON
_VISIBLE = re.compile("[^\x00\ufeff \t\r\n]")  # NULs: left by a power cut in a growing file
_NEXT = re.compile("\n\x00*(?=[{[])")
_IS_JSON = re.compile("[\x00\ufeff \t\r\n]*[{[]" + r'|(?:[^\n]*\n){1,5}?\{"')
"""The first lines may be those of a log, or the rest of a line that was cut."""

Line = dict[str, Any]


class _Text(str):
    """Text whose lines `JSONDecodeError` does not count: that would take minutes for 100,000 damaged lines."""

    __slots__ = ()

    def count(self, *_args: object) -> int:
        return 0


class SourceFile:
    """One file or task folder. Every form is computed on first use and then cached.

    Damage is local: what is not JSON, and an entry that its reader can't process, is skipped and listed in `skipped`;
    `damaged` are their numbers. Of a file of lines only the first and those after `start` bytes are read.
    """

    def __init__(self, path: Path, start: int = 0) -> None:
        self.path = path
        self._start = start
        self.name = path.name
        self.stem = path.stem
        self.damaged: list[int] = []
        self._unit = "line"

    @cached_property
    def data(self) -> bytes:
        """The bytes of the file, none for a folder. Raises `RecordingError` if it can't be read."""
        if self.path.is_dir():
            return b""
        try:
            if self._start:
                with self.path.open("rb") as stream:
                    first = stream.readline(MAX_HEADER)
                    stream.seek(max(self._start, len(first)) - 1)
                    stream.readline()  # the rest of a line that was begun before
                    return first + stream.read(MAX_BYTES)
            return read_all(self.path, MAX_BYTES)
        except FileTooLargeError:
            raise RecordingError(f"{self.name}: larger than {size_text(MAX_BYTES)}, not read") from None
        except OSError as error:
            raise RecordingError(f"{self.path}: {error.strerror or error}") from None

    @cached_property
    def text(self) -> str:
        """The file as text. Bytes that are not UTF-8 become surrogates; a byte order mark is dropped."""
        encoding = encoding_of(self.data[:SAMPLE]) or ""
        if encoding.startswith(("utf-16", "utf-32")):
            return _Text(self.data.decode(encoding, "replace").removeprefix("\ufeff"))
        return _Text(self.data.decode("utf-8", "surrogateescape").removeprefix("\ufeff"))

    @cached_property
    def document(self) -> Any:
        """The only JSON value of the file; None if there are several, or none."""
        return self._values[0] if len(self._values) == 1 else None

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The JSON objects of the file, of any number of lines each, or in one array. Damaged ones are left out."""
        values = self.document if isinstance(self.document, list) else self._values
        return tuple(value for value in values if isinstance(value, dict))

    @cached_property
    def _values(self) -> list[Any]:
        """The JSON values of the file, one after the other; without copies of objects that have a `uuid`.

        Of several versions of a file appended to one another the longest counts, unless the file begins with a message:
        messages may repeat.
        """
        values: list[Any] = []
        if self.is_database or not _IS_JSON.match(self.text):
            return values
        copies: set[int] = set()
        digests: list[int] = []
        end, number, counted = 0, 1, 0  # number of the line that was counted up to
        while visible := _VISIBLE.search(self.text, end):
            start = visible.start()
            try:
                value, end = _DECODER.raw_decode(self.text, start)
            except (ValueError, RecursionError):
                number, counted = number + str.count(self.text, "\n", counted, start), start
                self.damaged.append(number)
                begin = _NEXT.search(self.text, start)
                end = len(self.text) if begin is None else begin.end()
                continue
            digest = hash(self.text[start:end])
            if isinstance(value, dict) and "uuid" in value:
                if digest in copies:
                    continue
                copies.add(digest)
            values.append(value)
            digests.append(digest)
        head = values[0] if values else None
        if isinstance(head, dict) and str(head.get("role", "_")).startswith("_"):  # Kimi's records have such a role
            first, last = _longest_state(digests)
            return values[first:last]
        return values

    def feed(self, add: Callable[[Any], object], entries: Iterable[Any] | None = None) -> None:
        """Pass every line, or each of the `entries` of a document, to `add`. What it can't process is skipped."""
        self._unit = "line" if entries is None else "entry"
        for number, entry in enumerate(self.lines if entries is None else entries, 1):
            try:
                add(entry)
            except MALFORMED:
                self.damaged.append(number)

    @property
    def skipped(self) -> str:
        """The damaged lines or entries, for a person; "" for none."""
        if not self.damaged:
            return ""
        count, first = len(self.damaged), sorted(self.damaged)[:MAX_NAMED]
        named = ", ".join(map(str, first)) + ("…" if count > MAX_NAMED else "")
        units = self._unit if count == 1 else "lines" if self._unit == "line" else "entries"
        return f"{count:,} damaged {units} skipped ({self._unit} {named})"

    @cached_property
    def is_database(self) -> bool:
        """Whether the file is a SQLite database."""
        try:
            if not self.path.is_file():
                return False
            with self.path.open("rb") as stream:
                return stream.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
        except OSError:
            return False

    @cached_property
    def tables(self) -> frozenset[str]:
        """Names of the database's tables; empty for any other file."""
        if not self.is_database:
            return frozenset()
        return frozenset(str(row["name"]) for row in self.query("SELECT name FROM sqlite_master WHERE type = 'table'"))

    def query(self, sql: str, values: tuple[object, ...] = ()) -> list[sqlite3.Row]:
        """Rows of the database. Raises `RecordingError`."""
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise RecordingError(f"{self.name}: the database can't be read ({error})") from None

    @cached_property
    def _connection(self) -> sqlite3.Connection:
        """The database, opened read-only."""
        # Without a write-ahead log there is no writer, and `immutable` avoids creating files beside the database.
        mode = "mode=ro" if self.path.with_name(self.name + "-wal").exists() else "mode=ro&immutable=1"
        connection = sqlite3.connect(f"{self.path.absolute().as_uri()}?{mode}", uri=True)
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        return connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Close the database, if it was read. What a wrong format raises becomes a `RecordingError`."""
        if "_connection" in vars(self):
            self._connection.close()
        if isinstance(error, MALFORMED):
            reason = f"{type(error).__name__}: {error}"
            raise RecordingError(f"{self.name}: damaged, or of an unknown version ({reason})") from None


class Builder:
    """Builds a conversation.

    `start` is the position of the first message that is still in the context, `tool_names` are the tools of the calls,
    by the id of the call. `lacking` says in words what of the next answer's input is not in the file.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.records: list[Record] = []
        self.blobs: dict[str, bytes] = {}
        self.tool_names: dict[str, str] = {}
        self.start = 0
        self.window: int | None = None
        self.lacking = ""
        self.unpredictable: dict[str, str] = {}
        self._summary = ""  # id of the last one: the context begins with it
        self._last_verbatim = ""  # id of the last message that stayed behind it

    def add(
        self,
        role: Role,
        parts: Iterable[Part],
        at: float = 0.0,
        *,
        finish_reason: object = None,
        error: object = None,
        **about: Any,
    ) -> str:
        """Append a message, with the other fields of a `Message`; returns its id.

        Only an answer may have no parts: otherwise nothing is added, and the id is "".
        """
        about |= {"finish_reason": text_or_none(finish_reason), "error": text_or_none(error)}
        message = Message(role, tuple(parts), new_id(), created_at=at, **about)
        if not message.parts and role != "assistant":
            return ""
        self.messages.append(message)
        if role == "assistant" and self.lacking:
            self.unpredictable[message.id], self.lacking = f"the file lacks {self.lacking}", ""
        return message.id

    def add_entry(
        self, role: object, parts: Sequence[Part], at: float, *, kind: MessageKind = "chat", **about: Any
    ) -> str:
        """Append an entry of an API's history: an answer, if it has parts, or tool results (with images) and input.

        Returns the id of the answer, or else of the results. `about` is of the answer, `kind` of the input.
        """
        if role == "assistant":
            return self.add("assistant", parts, at, **about) if parts else ""
        results: list[Part] = [part for part in parts if isinstance(part, ToolResult)]
        results += [part for part in parts if isinstance(part, Attachment)] if results else []
        answered = self.add("tool", results, at)
        self.add("user", [part for part in parts if part not in results], at, kind=kind)
        return answered

    def context_from(self, position: int) -> list[str]:
        """The ids of the messages in the context from a position in `messages` on."""
        return [message.id for message in self.messages[max(self.start, position) :]]

    def compact(
        self, parts: Iterable[Part], at: float, *, verbatim: Sequence[str] = (), role: Role = "user", **about: Any
    ) -> None:
        """Replace the context by a summary, except the messages (ids) that stay `verbatim`."""
        replaced = self.messages[self.start :]
        summary = self.add(role, tuple(parts) or (Text(""),), at, kind="summary", **about)
        if replaced:
            self.record_summary(replaced, summary, at, verbatim)
        stay = set(verbatim)
        self.start += next((i for i, message in enumerate(replaced) if message.id in stay), len(replaced))

    def record_summary(
        self, replaced: Sequence[Message], summary: str, at: float, verbatim: Sequence[str] = ()
    ) -> None:
        """Record that the message `summary` replaces others, except those that stay `verbatim`."""
        first, last = self._summary or replaced[0].id, replaced[-1].id
        if last == self._summary:  # nothing was added since
            last = self._last_verbatim or last
        self._summary, self._last_verbatim = summary, max(verbatim, default="")
        self._checkpoint(CompactionRecord(new_id(), at, 0, 0, len(replaced), first, last, summary, tuple(verbatim)))

    def clear(self, results: Iterable[tuple[str, str]], at: float) -> None:
        """Record that tool results (message id, call id) are sent as a fixed line from now on."""
        self._checkpoint(CompactionRecord(new_id(), at, 0, 0, 0, cleared=tuple(results)))

    def _checkpoint(self, record: CompactionRecord) -> None:
        self.records.append(Record(record.id, RecordKind.CHECKPOINT, record.at, dict(checkpoint_to_json(record))))

    def set_aside(self, ids: Iterable[str], at: float | None = None) -> None:
        """Record that messages are no longer sent, since `at` (None: since the last message)."""
        if messages := list(ids):
            at = self.messages[-1].created_at if at is None else at
            self.records.append(Record(new_id(), RecordKind.SET_ASIDE, at, {"ids": messages}))

    def parts(self, content: Any, provider: str = "", model: str = "") -> list[Part]:
        """The parts of a content: text, or blocks as Anthropic, OpenAI and the programs write them.

        Images of a tool's result follow it. Empty texts and blocks of other types are left out.
        """
        parts: list[Part] = []
        for block in blocks(content):
            match block.get("type"):
                case "text" | "input_text" | "output_text" if block.get("text"):
                    parts.append(Text(str(block["text"])))
                case "thinking" | "think" | "reasoning":
                    text = block.get("thinking") or block.get("think") or block.get("text") or ""
                    signature = text_or_none(block.get("signature") or block.get("thinkingSignature"))
                    parts.append(Reasoning(str(text), provider, model, signature=signature))
                case "redacted_thinking":
                    parts.append(Reasoning("", provider, model, redacted=str(block["data"])))
                case "tool_use" | "tool_call" | "toolCall":
                    arguments = block.get("input") or block.get("arguments") or {}
                    parts.append(self.call(block["id"], block["name"], arguments))
                case "tool_result":
                    pieces = blocks(block.get("content"))
                    loaded = [str(piece.get("tool_name")) for piece in pieces if piece.get("type") == "tool_reference"]
                    text = f"Loaded: {', '.join(loaded)}" if loaded else text_of(pieces)
                    call = block["tool_use_id"] if "tool_use_id" in block else block["tool_call_id"]
                    parts.append(self.result(call, text, block.get("is_error")))
                    parts += self.parts([piece for piece in pieces if piece.get("type") == "image"])
                case "image" if (source := block.get("source") or block).get("data"):
                    media = source.get("media_type") or source.get("mimeType") or "image/png"
                    parts += self.picture(str(media), str(source["data"]))
                case "input_image":
                    parts += self.picture_in(str(block.get("image_url")))
        return parts

    def picture(self, media_type: str, data: str, name: str = "") -> list[Attachment]:
        """The attachment for an image or PDF in base64, whose bytes go to `blobs`; none for anything else."""
        if not media_type.startswith("image/") and media_type != "application/pdf":
            return []
        try:
            raw = base64.b64decode(data)
        except binascii.Error:
            return []
        digest = hashlib.sha256(raw).hexdigest()
        self.blobs[digest] = raw
        kind: Literal["image", "pdf"] = "pdf" if media_type == "application/pdf" else "image"
        return [Attachment(kind, name or kind, media_type, digest, len(raw))]

    def picture_in(self, url: str, name: str = "") -> list[Attachment]:
        """As `picture`, of a `data:` URL."""
        media_type, _, data = url.removeprefix("data:").partition(";base64,")
        return self.picture(media_type, data, name)

    def call(self, ident: object, name: object, arguments: object) -> ToolCall:
        """A tool call. Arguments that are not text are written as JSON."""
        self.tool_names[str(ident)] = str(name)
        return ToolCall(str(ident), str(name), arguments if isinstance(arguments, str) else as_json(arguments))

    def result(self, call: object, text: str, failed: object = False) -> ToolResult:
        """The result of an earlier call, which names the tool."""
        return ToolResult(str(call), self.tool_names.get(str(call), ""), text, bool(failed))

    def recording(self, source: str, fallback: str, title: object = "", *, unscored: str = "") -> Recording:
        """The conversation. Without a title it is the first words of the person, or else `fallback`.

        `unscored` says why, if no answer has a usage.
        """
        return Recording(
            source, str(title or "") or first_words(self.messages) or fallback, tuple(self.messages),
            tuple(self.records), self.blobs, window=self.window,
            unscored="" if any(message.usage for message in self.messages) else unscored,
            unpredictable=dict(self.unpredictable),
        )  # fmt: skip


def _longest_state(digests: Sequence[int]) -> tuple[int, int]:
    """Where the longest of several versions of a file, appended to one another, begins and ends."""
    start = 0
    for at in range(1, len(digests)):
        length = min(at - start, len(digests) - at)
        if digests[at] == digests[start] and digests[at : at + length] == digests[start : start + length]:
            if length < at - start:
                return start, at
            start = at
    return start, len(digests)


def seconds(stamp: Any) -> float:
    """An ISO time or a number of seconds or milliseconds as seconds since the epoch; 0 for no possible time."""
    try:
        if isinstance(stamp, int | float):
            at = stamp / 1000 if stamp > MAX_SECONDS else float(stamp)
        else:
            at = datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return 0.0
    return at if 0 <= at < YEAR_9999 else 0.0


def text_or_none(value: object) -> str | None:
    """A field that holds text; None if it is missing or empty."""
    return str(value) if value else None


def blocks(content: Any) -> list[Any]:
    """The blocks of a message's content, which may be text alone."""
    return [{"type": "text", "text": content}] if content and isinstance(content, str) else content or []


def text_of(pieces: Iterable[Mapping[str, Any]], joint: str = "\n") -> str:
    """The text blocks among `pieces`."""
    return joint.join(str(piece.get("text") or "") for piece in pieces if piece.get("type") == "text")


def texts_in(parts: Iterable[Part], joint: str = "") -> str:
    """The text among a message's parts."""
    return joint.join(part.text for part in parts if isinstance(part, Text))


def loaded(column: Any) -> Any:
    """The JSON in a column of a database; {} for none, and for damaged one."""
    try:
        return json.loads(column or "{}")
    except (ValueError, TypeError, RecursionError):
        return {}


def as_json(value: Any) -> str:
    """The arguments of a tool call, or a result, as JSON text."""
    return json.dumps(value, ensure_ascii=False)


def ancestors(parents: Mapping[str, Any], leaf: Any, *, end: str | None = None) -> list[str]:
    """The nodes of a tree from `leaf` back to the root, a cycle, a parent that is not an id, or before `end`."""
    path: dict[str, None] = {}
    while isinstance(leaf, str) and leaf in parents and leaf not in path and leaf != end:
        path[leaf] = None
        leaf = parents[leaf]
    return list(path)


def usage_apart(data: Any, fresh: str, output: str, read: str, write: str) -> Usage | None:
    """A usage whose input leaves out what was read from or written to the cache; None without any input.

    The others are the names of its fields in `data`.
    """
    uncached, answer, cached, written = (find_count(data, name) or 0 for name in (fresh, output, read, write))
    total = uncached + cached + written
    return Usage(total, answer, cached, written) if total else None
