"""`chatctx watch`: the context of another program's session, while that program runs. Reads only."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path

from textual.content import Content

from tui.chat.interchange.following import PERHAPS_SMALLER, Followed, Follower
from tui.chat.interchange.foreign import SessionFile, opencode, session_files
from tui.chat.interchange.foreign.reading import SourceFile
from tui.chat.interchange.recording import RecordingError
from tui.cli import write
from tui.cli.subcommands.status_line import line_text
from tui.config.settings import Settings
from tui.config.values import parse_tokens
from tui.context.usage.rows import UsageRow
from tui.context.usage.usage import usage_to_json
from tui.errors import UsageError
from tui.text.cells import clip, plain
from tui.text.clean import clean_text
from tui.text.labels import PREAMBLE_ROWS
from tui.text.numbers import SURE, money, percent, plural, size_text, source_of, tokens_exact, tokens_short
from tui.views.context_picture import picture_lines
from tui.views.context_table import joined, number_line

POLL_SECONDS = 0.5  # one stat() call each
PROGRAMS = frozenset({"Claude Code", "Codex", "Gemini CLI", "opencode", "pi"})
MAX_HEAD = 1_000  # lines of a session file that may come before the one which names its folder
_FOLDER = re.compile(rb'"(?:cwd|directory|projectHash)": ?("(?:[^"\\]|\\.)*")')
_SUBAGENT = re.compile(rb'"source": ?\{"subagent"')


def run(settings: Settings, *, file: Path | None, line: bool, as_json: bool, window: str | None) -> int:
    """Follow `file`, or the newest session in this folder, until ctrl+c. With `line` print one line and exit."""
    if line and as_json:
        raise UsageError("--line and --json can't go together; see chatctx watch --help")
    try:
        size = None if window is None else parse_tokens(window)
    except ValueError as error:
        raise UsageError(str(error)) from None
    follower = _follower(file)
    if line:
        follower.poll()
        followed = follower.state(size, time.time())
        write("no call yet" if followed is None else status_text(followed))
        return 0
    if as_json:
        return _stream(follower, size)
    return _panel(follower, size)


def _follower(file: Path | None) -> Follower:
    """Of `file`, or of the newest session in this folder. Raises `UsageError` if there is none."""
    if file is not None and file.suffix != ".db":
        return Follower(file)
    folder = str(Path.cwd())
    for path in _newest_first() if file is None else (file,):
        try:
            session = _session_in(path, folder)
        except RecordingError:
            if file is not None:
                raise
            continue
        if session is not None:
            return Follower(path, session)
    raise UsageError("no session of Claude Code, Codex, Gemini CLI, opencode or pi in this folder: name its file")


def _newest_first() -> list[Path]:
    """The session files of the programs that can be followed. A database changes in its log first."""

    def changed(file: SessionFile) -> float:
        with suppress(OSError):
            return max(file.changed, file.path.with_name(f"{file.path.name}-wal").stat().st_mtime)
        return file.changed

    files = [file for file in session_files(os.environ, Path.home()) if file.program in PROGRAMS]
    return [file.path for file in sorted(files, key=changed, reverse=True)]


def _session_in(path: Path, folder: str) -> str | None:
    """The id of the newest session in a database, "" in a file of one, if it was begun in `folder`; None if it was not.

    Sub-agents of Codex have files of their own, which are left out. Raises `RecordingError` for a damaged database.
    """
    if path.suffix == ".db":
        with SourceFile(path) as source:
            return opencode.newest_session(source, folder) or None
    try:
        with path.open("rb") as file:
            line = next(filter(_FOLDER.search, islice(file, MAX_HEAD)), b"")
    except OSError:
        return None
    named = os.fsencode(json.dumps(folder, ensure_ascii=False))
    digest = f'"{sha256(os.fsencode(folder)).hexdigest()}"'.encode()  # by which Gemini CLI names a folder
    return "" if {named, digest} & set(_FOLDER.findall(line)) and not _SUBAGENT.search(line) else None


def _stream(follower: Follower, window: int | None) -> int:
    """Print a line of JSON after every change."""
    while True:
        if follower.poll() and (followed := follower.state(window, time.time())) is not None:
            write(json.dumps(_entry(followed, follower.session or follower.path.stem)))
            sys.stdout.flush()
        time.sleep(POLL_SECONDS)


def _entry(followed: Followed, session: str) -> dict[str, object]:
    return {
        "program": followed.program,
        "title": followed.title,
        "usage": usage_to_json(followed.usage) | {"session": session},
        "calls": followed.calls,
        "calls_left": followed.calls_left,
        "compacts_at": followed.compacts_at,
        "cached_share": followed.cached_share,
        "cost_today": followed.cost_today,
        "forecasts_within_percent": followed.within_percent,
        "subagents": followed.subagents,
        "subagent_tokens": followed.subagent_tokens,
        "skipped_bytes": followed.skipped,
    }


def _panel(follower: Follower, window: int | None) -> int:
    """The panel, redrawn after every change of the file or of the terminal's size."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(file=sys.__stdout__, highlight=False)  # not our own: that replaces control characters
    if not console.is_terminal:
        raise UsageError("watch draws on a terminal: --line and --json are for scripts")
    shown: tuple[object, int] = (None, 0)
    followed: Followed | None = None
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            try:
                if follower.poll():
                    followed = follower.state(window, time.time())
                note = ""
            except RecordingError as error:
                note = str(error)
            width = max(40, shutil.get_terminal_size().columns)
            if (followed or note, width) != shown:
                shown = (followed or note, width)
                lines = [note or "no call yet"] if followed is None else [x.plain for x in watch_lines(followed, width)]
                live.update(Text("\n".join(map(clean_text, lines)), no_wrap=True), refresh=True)
            time.sleep(POLL_SECONDS)


_GROUPS = (
    ("tools and system", (*PREAMBLE_ROWS, "hidden", "unattributed")),
    ("messages", ("user", "assistant", "reasoning", "tool_calls", "attachments", "summaries")),
    ("results", ("tool_results",)),
)


def watch_lines(followed: Followed, width: int) -> list[Content]:
    """The panel, no line wider than `width` cells."""
    usage = followed.usage
    window = f"{tokens_short(usage.limits.context, strip=True)} window" if usage.limits.context else "window unknown"
    source = f" ({usage.limits.detail})" if usage.limits.detail else ""
    tail = f" · {usage.model} · {window}{source}"
    head = clip(f"{followed.program} · {plain(followed.title)}", max(20, width - len(tail)))
    number, note = number_line(usage, width), "   next request"
    lines = [
        Content.styled(clip(head + tail, width), "$text-muted"),
        number if number.cell_length + len(note) > width else number.append(note),
        *picture_lines(usage, width, 1),
    ]
    groups = [(name, [row for row in usage.rows if row.key in keys and row.tokens]) for name, keys in _GROUPS]
    parts = [f"{name} {_tokens(rows)}" for name, rows in groups if rows]
    lines.append(Content(clip("  " + "   ".join(parts), width)))
    lines += map(Content, joined(_sentences(followed), width))
    return lines


def _tokens(rows: Sequence[UsageRow]) -> str:
    return tokens_exact(sum(row.tokens for row in rows), source_of(row.source for row in rows))


def status_text(followed: Followed) -> str:
    """The session on one line, for another program's status line."""
    usage = followed.usage
    line = line_text(
        usage.total,
        usage.limits.context,
        calls_left=followed.calls_left,
        cached_share=followed.cached_share,
        mark="" if usage.source in SURE else "~",
        window_mark="~" if usage.limits.detail == PERHAPS_SMALLER else "",
    )
    return line if followed.cost_today is None else f"{line} · {money(followed.cost_today)} today"


def _sentences(followed: Followed) -> list[str]:
    sentences = []
    if followed.compacts_at is not None:
        sentences.append(f"its compaction at {tokens_short(followed.compacts_at, 'estimated')}")
    if followed.calls_left is not None:
        sentences.append(f"about {plural(followed.calls_left, 'call')} away at this pace")
    if followed.cached_share is not None:
        sentences.append(f"{percent(100 * followed.cached_share)} of the last request from the cache")
    if followed.cost_today is not None:
        sentences.append(f"today {money(followed.cost_today)}")
    forecast = f"forecasts: {plural(len(followed.forecasts), 'call')}"
    if followed.within_percent is not None:
        forecast += f", 95 % within {percent(followed.within_percent, digits=1)}"
    sentences.append(forecast)
    if followed.skipped:
        sentences.append(f"the first {size_text(followed.skipped)} of the file were not read")
    if followed.subagents:
        tokens = tokens_exact(followed.subagent_tokens)
        sentences.append(f"{plural(followed.subagents, 'subagent')}, {tokens} tokens of their own")
    return sentences
