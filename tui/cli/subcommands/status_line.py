"""`chatctx watch --line`: one line for a status line, also as the `statusLine` command of Claude Code.

It runs at every change, so it imports next to nothing: no command line parser, no tokenizer. What it can't read at once
(whole JSON files, databases) is left to `watch`.
"""

from __future__ import annotations

import json
import os
import re
import select
import sys

from tui.text.numbers import money, percent, plural, tokens_short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TAIL_BYTES = 400_000  # bytes at the end of the transcript, which contain the last calls
CLAUDE_COMPACTS, CODEX_COMPACTS = 0.8, 0.9  # share of the window, as in `chatctx watch`
SMALL_WINDOW, LARGE_WINDOW = 200_000, 1_000_000  # tokens, of Claude, as in `chatctx watch`
SOMETIMES_LARGE, ALWAYS_LARGE = (4, 6), (5, 0)  # version of Claude from which on its window is the large one
MAX_INPUT = 1_000_000  # bytes of standard input
PIPE_SECONDS = 0.2  # to wait for a pipe
HEAD_BYTES = 64_000  # of a rollout; they contain its folder
CODEX_DAYS, CHATS = 3, 20  # newest folders of Codex, and files of a program, that are looked at
CLAUDE_COUNTS = ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens", "output_tokens")
SUBAGENT = b'"source":{"subagent"'  # in the first line of a rollout
MAX_JSON = 20_000_000  # bytes of a file that is one JSON value
LAST_MESSAGES = 40  # of a session in a database

_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[.-](\d{1,2}))?(?!\d)")


def run(path: str | None = None) -> int | None:
    """Print the line for the status on standard input, else for the session file `path` or the newest in this folder.

    Returns the exit code: 0, 2 for input that is not Claude Code's, and None where reading takes more than this.
    """
    text = "" if path else _piped()
    try:
        line = status_line(json.loads(text)) if text else _session_line(path or newest(os.getcwd()))  # noqa: PTH109
    except (ValueError, AttributeError, TypeError, LookupError, ArithmeticError, RecursionError):
        sys.stderr.write("chatctx: standard input is not the JSON that Claude Code passes to a statusLine command\n")
        return 2
    except OSError:  # the working directory is gone
        return None
    if line is None:
        return None
    sys.stdout.write(line + "\n")
    return 0


def _piped() -> str:
    """The text on standard input; "" from a terminal, or from a pipe without a writer."""
    try:
        if sys.stdin.isatty() or not select.select([sys.stdin], [], [], PIPE_SECONDS)[0]:
            return ""
    except (OSError, ValueError):
        pass  # not a file descriptor: it can be read at once
    return sys.stdin.read(MAX_INPUT).strip()


def _session_line(path: str) -> str | None:
    """The line for the newest session in a file of Claude Code, Codex, Gemini CLI, opencode or pi; None for others."""
    calls = _Calls(path)
    if not calls.inputs:
        return None
    return _calls_text(calls.inputs[-1] + calls.output, calls.window_of(calls.model), calls, mark="~")


def status_line(status: Mapping[str, Any]) -> str:
    """The line for Claude Code's status: tokens of the window, calls until compaction, cache, cost of the session."""
    report = status.get("context_window") or {}
    calls = _Calls(str(status.get("transcript_path") or ""))
    usage = report.get("current_usage")
    if isinstance(usage, dict):
        counts = [_count(usage.get(name)) for name in CLAUDE_COUNTS]
        total, calls.cached = sum(counts), counts[0]
    elif calls.inputs:
        total = calls.inputs[-1]
    else:
        return "no call yet"
    if status.get("exceeds_200k_tokens"):
        calls.most = max(calls.most, SMALL_WINDOW + 1)
    size = _count(report.get("context_window_size"))
    window = (size, "") if size else calls.window_of((status.get("model") or {}).get("id") or calls.model)
    line = _calls_text(total, window, calls)
    cost = (status.get("cost") or {}).get("total_cost_usd")
    if isinstance(cost, int | float) and cost is not True and 0 <= cost < 1e6:
        line += f" · {money(cost)} this session"
    return line


def _calls_text(total: int, window: tuple[int | None, str], calls: _Calls, mark: str = "") -> str:
    inputs, (size, window_mark) = calls.inputs, window
    pace = (inputs[-1] - inputs[0]) / (len(inputs) - 1) if len(inputs) > 1 else 0
    calls_left = int((calls.compacts_at * size - total) / pace) if size and pace > 0 and calls.compacts_at else None
    cached = calls.cached / (inputs[-1] if inputs else total) if calls.cached and total else None
    return line_text(total, size, calls_left=calls_left, cached_share=cached, mark=mark, window_mark=window_mark)


def line_text(
    total: int,
    window: int | None,
    *,
    calls_left: int | None,
    cached_share: float | None,
    mark: str = "",
    window_mark: str = "",
) -> str:
    """Tokens of the window, calls until compaction, share of the cache. The marks precede uncertain numbers."""
    parts = [f"{mark}{tokens_short(total)}/{window_mark}{tokens_short(window or None, strip=True)}"]
    if window:
        parts[0] += f" {percent(100 * total / window)}"
    if calls_left is not None:
        parts.append(f"{plural(max(0, calls_left), 'call')} left")
    if cached_share is not None:
        parts.append(f"{percent(100 * cached_share)} cached")
    return " · ".join(parts)


class _Calls:
    """The last calls in a session file. Tokens; `inputs` are oldest first, since the context last shrank."""

    def __init__(self, path: str) -> None:
        self.inputs: list[int] = []
        self.cached = 0
        self.output = 0
        self.window: int | None = None  # that the file names
        self.model = ""
        self.provider = "anthropic"  # of Claude Code, which does not name it
        self.most = 0  # of all inputs
        self.compacts_at = 0.0  # share of the window, 0 if not known
        for line in _database(path) if path.endswith(".db") else _tail(path):
            try:
                self._add(json.loads(line))
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                continue  # not a call

    def window_of(self, model: str) -> tuple[int | None, str]:
        """The window, None if it is not known, and "~" where it is likely rather than certain.

        Claude's files name a model without the `[1m]` it may have been chosen with.
        """
        if self.window:
            return self.window, ""
        if self.provider == "anthropic" and (version := _CLAUDE.search(model.lower())):  # others sell smaller ones
            release = int(version[1]), int(version[2] or 0)
            if self.most > SMALL_WINDOW or "[1m]" in model or release >= ALWAYS_LARGE:
                return LARGE_WINDOW, ""
            return (SMALL_WINDOW, "") if release < SOMETIMES_LARGE else (LARGE_WINDOW, "~")
        from tui.providers.windows import table_window

        window = table_window(model)
        return (window[0] if window else None), ""

    def _add(self, line: Mapping[str, Any]) -> None:
        if "payload" in line:  # Codex
            info = line["payload"]["info"]
            usage = info["last_token_usage"]
            total, cached, output = usage["input_tokens"], usage["cached_input_tokens"], usage["output_tokens"]
            self.window, self.compacts_at = info.get("model_context_window") or self.window, CODEX_COMPACTS
        elif "tokens" in line:  # Gemini CLI, opencode
            usage = line["tokens"]
            self.model = line.get("modelID") or line.get("model") or self.model
            self.provider = line.get("providerID") or "google"
            total, cached, output = usage["input"], usage.get("cached") or 0, usage["output"]
            if "cache" in usage:  # opencode: beside the input
                cached = usage["cache"]["read"]
                total += cached + usage["cache"]["write"]
        else:
            usage = line["message"]["usage"]
            self.model = line["message"].get("model") or self.model
            self.provider = line["message"].get("provider") or "anthropic"
            if "input_tokens" in usage:  # Claude Code
                self.compacts_at = CLAUDE_COMPACTS
                *beside, output = (_count(usage.get(name)) for name in CLAUDE_COUNTS)
                total, cached = sum(beside), beside[0]
            else:  # pi
                cached = usage["cacheRead"]
                total, output = usage["input"] + cached + usage["cacheWrite"], usage["output"]
        total = _count(total)
        if not total:
            return
        self.cached, self.output, self.most = _count(cached), _count(output), max(self.most, total)
        if self.inputs and total < 0.7 * self.inputs[-1]:
            self.inputs.clear()
        if self.inputs[-1:] != [total]:
            self.inputs.append(total)


def _tail(path: str) -> list[bytes | str]:
    """The last lines that may be calls; of a whole JSON file (Gemini CLI) its messages."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - importing pathlib would take a fifth of the available time
            if path.endswith(".json"):
                return [json.dumps(message) for message in json.loads(file.read(MAX_JSON))["messages"]]
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            lines = file.read().split(b"\n")
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return []
    marks = (b'"usage"', b'"last_token_usage"', b'"tokens"')
    return [line for line in lines if b'"isSidechain":true' not in line and any(mark in line for mark in marks)]


def _database(path: str) -> list[bytes | str]:
    """The last messages of opencode's newest session in this folder."""
    import sqlite3

    session = "SELECT id FROM session WHERE directory = ? AND parent_id IS NULL ORDER BY time_updated DESC LIMIT 1"
    messages = f"SELECT data FROM message WHERE session_id = ({session}) ORDER BY id DESC LIMIT {LAST_MESSAGES}"
    try:
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            rows = database.execute(messages, (os.getcwd(),)).fetchall()  # noqa: PTH109 - as above
        finally:
            database.close()
    except sqlite3.Error:
        return []
    return [row[0] for row in reversed(rows)]


def newest(folder: str, *, thorough: bool = False) -> str:
    """The session file that was written last in `folder`, "" without one.

    Claude Code and pi have a folder for it; of the others the newest few are looked at. If `thorough`, all are: also
    Claude Code's of other folders (it shortens long names), and what Codex has archived.
    """
    most = None if thorough else CHATS
    home = os.path.expanduser("~")  # noqa: PTH111 - as above
    config = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    claude = [os.environ.get("CLAUDE_CONFIG_DIR") or f"{home}/.claude", f"{config}/claude"]
    codex = os.environ.get("CODEX_HOME") or f"{home}/.codex"
    here = os.fsencode(json.dumps(folder, ensure_ascii=False))
    named = "".join(c if c.isascii() and c.isalnum() else "-" for c in folder)
    files = [file for root in claude for file in _files(f"{root}/projects/{named}")]
    for name in {named, folder.replace("/", "-")}:
        files += _files(f"{home}/.pi/agent/sessions/-{name}--")
    files += _first(_codex_files(f"{codex}/sessions", None if thorough else -CODEX_DAYS), here, most)
    if chats := _files_below(f"{home}/.gemini/tmp", "/chats", (".json", ".jsonl")):
        import hashlib

        files += _first(chats, hashlib.sha256(os.fsencode(folder)).hexdigest().encode(), most)
    if thorough:
        elsewhere = [file for root in claude for file in _files_below(f"{root}/projects")]
        files += _first(elsewhere + _files(f"{codex}/archived_sessions"), here, most)
    opencode = (os.environ.get("XDG_DATA_HOME") or f"{home}/.local/share") + "/opencode"
    files += _first(_files_below(f"{opencode}/storage/session", ending=".json"), here, most)  # before version 1.2
    changed = {path.removesuffix("-wal"): time for time, path in sorted(_files(opencode, (".db", ".db-wal")))}
    files += [(time, path) for path, time in changed.items() if _database(path)]
    return max(files, default=(0.0, ""))[1]


def _codex_files(sessions: str, first: int | None) -> list[tuple[float, str]]:
    """The files in folders of the year, the month and the day; of each level those from index `first` on."""
    folders = [sessions]
    for _ in range(3):
        folders = [f"{folder}/{name}" for folder in folders for name in sorted(_names(folder))[first:]]
    return [file for folder in folders for file in _files(folder)]


def _first(files: list[tuple[float, str]], mark: bytes, most: int | None) -> list[tuple[float, str]]:
    """Of the newest files the first that has `mark` at its beginning, and is not of a sub-agent of Codex."""
    for file in sorted(files, reverse=True)[:most]:
        try:
            with open(file[1], "rb") as stream:  # noqa: PTH123 - as above
                head = stream.read(HEAD_BYTES)
        except OSError:
            continue
        if mark in head and SUBAGENT not in head.replace(b" ", b""):
            return [file]
    return []


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - as above
    except OSError:
        return []


def _files_below(root: str, inside: str = "", ending: str | tuple[str, ...] = ".jsonl") -> list[tuple[float, str]]:
    """The files in every folder of `root`, or in the folder `inside` each."""
    return [file for name in _names(root) for file in _files(f"{root}/{name}{inside}", ending)]


def _files(folder: str, ending: str | tuple[str, ...] = ".jsonl") -> list[tuple[float, str]]:
    """Time of the last change and path of the files in `folder`."""
    try:
        with os.scandir(folder) as entries:
            return [(e.stat().st_mtime, e.path) for e in entries if e.name.endswith(ending) and e.is_file()]
    except OSError:
        return []


def _count(value: object) -> int:
    """`value` if it is a number of tokens, else 0: as in `tui.providers.wire`, which takes longer to import."""
    return value if type(value) is int and 0 <= value < 2**53 else 0
