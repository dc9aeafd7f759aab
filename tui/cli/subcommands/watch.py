"""`chatctx watch`: the context of another program's session, while that program runs. Reads only."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

from tui.chat.interchange.following import Followed, Follower, newest_session
from tui.chat.interchange.recording import RecordingError
from tui.chat.store.store import UsageError
from tui.cli.output import write
from tui.config.settings import Settings
from tui.config.values import parse_tokens
from tui.context.usage.usage import usage_to_json
from tui.text.clean import clean_text
from tui.views.watch_lines import status_text, watch_lines

POLL_SECONDS = 0.5  # one stat() call each


def run(settings: Settings, *, file: Path | None, line: bool, as_json: bool, window: str | None) -> int:
    """Follow `file`, or the newest session in this folder, until ctrl+c. With `line` print one line and exit."""
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
    """Of `file`, or of the newest session in this folder."""
    if file is not None and file.suffix != ".db":
        return Follower(file)
    session = newest_session(os.environ, Path.home(), Path.cwd(), file)
    if session is None:
        raise UsageError("no session of Claude Code, Codex, Gemini CLI, opencode or pi in this folder: name its file")
    return Follower(session.path, session.session)


def _stream(follower: Follower, window: int | None) -> int:
    """Print a line of JSON after every change."""
    while True:
        if follower.poll() and (followed := follower.state(window, time.time())) is not None:
            write(json.dumps(_entry(followed)))
            sys.stdout.flush()
        time.sleep(POLL_SECONDS)


def _entry(followed: Followed) -> dict[str, object]:
    return {
        "program": followed.program,
        "title": followed.title,
        "usage": usage_to_json(followed.usage),
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
