"""Reads a session file that another program appends to: its end, then new lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tui.chat.interchange.foreign import claude, codex
from tui.chat.interchange.foreign.source import Line
from tui.chat.interchange.recording import MALFORMED, Recording

TAIL_BYTES = 4_000_000  # of a large file that are read at least
BYTES_PER_TOKEN = 12  # in a session file: the text, what JSON adds to it, and copies for the screen
MOST_WAITING = 100  # lines without a known format; then the file is not followed
HEAD_BYTES = 64_000  # contain the first prompt, and a rollout's metadata


class Tail:
    """The current context. `read` is the position in the file, `skipped` the bytes left out before it."""

    def __init__(self) -> None:
        self.read = 0
        self.skipped = 0
        self._title = ""
        self._restart()

    def _restart(self) -> None:
        self._incomplete = b""  # the beginning of a line that is still being written
        self._waiting: list[Line] = []  # until the format is known
        self._reader: claude.Reader | codex.Reader | None = None

    def appended(self, path: Path) -> bool:
        """Read on. Returns False if `path` is not the file of a program that appends."""
        if self.read == 0:
            self._open(path, path.stat().st_size)
        else:
            self._read_on(path)
        return self._reader is not None

    def recording(self, fallback: str) -> Recording:
        """The conversation so far, or the end of it."""
        assert self._reader is not None
        recording = self._reader.read_so_far(fallback)
        return replace(recording, title=self._title) if self._title else recording

    def _open(self, path: Path, size: int) -> None:
        """Read the end of the file: enough bytes for the tokens of the context."""
        amount = TAIL_BYTES
        while True:
            self._restart()
            self.read = self.skipped = max(0, size - amount)
            if self.skipped:
                self._read_head(path)
            self._read_on(path)
            needed = BYTES_PER_TOKEN * self.last_input
            if not self.skipped or needed <= amount:
                return
            amount = needed

    def _read_head(self, path: Path) -> None:
        with path.open("rb") as stream:
            *texts, _ = stream.read(min(HEAD_BYTES, self.skipped)).split(b"\n")
        head = Tail()
        for line in _parsed(texts):
            head._add(line)
            if line.get("type") in ("session_meta", "turn_context"):
                self._add(line)
        if head._reader is not None:
            self._title = head.recording("").title

    def _read_on(self, path: Path) -> None:
        with path.open("rb") as stream:
            stream.seek(self.read)
            data = self._incomplete + stream.read()
            self.read = stream.tell()
        *texts, self._incomplete = data.split(b"\n")
        for line in _parsed(texts):  # the first of a tail is cut: that is no JSON
            self._add(line)

    @property
    def last_input(self) -> int:
        """Input tokens of the last call, 0 before one."""
        messages = self._reader.messages if self._reader is not None else []
        return next((m.usage.input_total for m in reversed(messages) if m.usage and m.usage.input_total), 0)

    def _add(self, line: Line) -> None:
        if self._reader is None:
            if len(self._waiting) < MOST_WAITING:
                self._waiting.append(line)
            if "payload" in line and line.get("type") in ("session_meta", "response_item"):
                self._reader = codex.Reader()
            elif "sessionId" in line and "uuid" in line and "parts" not in (line.get("message") or {}):
                self._reader = claude.Reader(side=bool(line.get("isSidechain")))
            else:
                return
            waiting, self._waiting = self._waiting, []
            for earlier in waiting:
                self._add(earlier)
            return
        try:
            self._reader.read_line(line)
        except MALFORMED:
            return  # a line of an unknown version is skipped alone


def _parsed(texts: list[bytes]) -> Iterator[Line]:
    """The JSON objects among `texts`; damaged lines are skipped."""
    for text in texts:
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict):
            yield line
