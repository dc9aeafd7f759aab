"""`chatctx import`, `export` and `replay`: sessions from and to files."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from tui.chat.interchange.export import export_session
from tui.chat.interchange.foreign import read_recordings, session_files
from tui.chat.interchange.importing import AlreadyHereError, Imported, import_file, was_imported
from tui.chat.interchange.recording import RecordingError, checked
from tui.chat.interchange.replay import Method, Replay, replay, summary, together
from tui.chat.store.database import damage_lines
from tui.chat.store.store import SessionStore
from tui.cli import FAILED, complain, table, write
from tui.config.settings import Settings
from tui.errors import UsageError
from tui.providers.registry import all_configs
from tui.text.cells import plain
from tui.text.numbers import plural, timestamp, tokens_exact


def import_files(settings: Settings, *, files: Sequence[Path], again: bool, as_json: bool) -> int:
    """Import every conversation of every file, each entirely or not at all. Returns 1 if one could not be read.

    Without `files` it looks in the places where other programs keep theirs. Conversations imported before are reported,
    and are not a failure. Raises `UsageError`.
    """
    if as_json and not files:
        raise UsageError("--json needs FILE: without one, import lists files and asks")
    done: list[tuple[Path, Imported]] = []
    failed = False
    with closing(SessionStore(settings.database)) as store:
        if not files:
            files = _offered(store)
        providers = set(all_configs(settings.providers))
        for path in files:
            try:
                for outcome in import_file(store, path, providers=providers, again=again):
                    if isinstance(outcome, RecordingError):
                        complain(f"{path.name}: {outcome}")
                        failed = failed or not isinstance(outcome, AlreadyHereError)
                        continue
                    if outcome.skipped:
                        complain(f"{path.name}: {outcome.skipped}")
                    done.append((path, outcome))
                    if not as_json:
                        write(_line(path, outcome))
            except RecordingError as error:
                complain(str(error))
                failed = True
    if as_json:
        write(json.dumps([_entry(path, imported) for path, imported in done]))
    elif done:
        unsent = [imported.not_in_file for _, imported in done if imported.not_in_file]
        if unsent:
            least, most = (tokens_exact(size, "estimated") for size in (min(unsent), max(unsent)))
            sizes = least if least == most else f"{least} to {most}"
            write(
                f"System prompts and tools of other programs ({sizes} tokens) are not in their files and not sent here."
            )
        write(f"Open one with: chatctx --resume {done[-1][1].info.id}")
    return FAILED if failed else 0


def _offered(store: SessionStore) -> list[Path]:
    """Files of other programs not imported yet, if the person agrees; otherwise they are only listed."""
    new = [file for file in session_files(os.environ, Path.home()) if not was_imported(store, file)]
    if not new:
        write("No new sessions of other programs were found. Name files to import others.")
        return []
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        for file in new:
            write(str(file.path))
        return []
    counts = Counter(file.program for file in new)
    newest = {file.program: file.changed for file in reversed(new)}
    rows = [(name, f"{count:,}", timestamp(newest[name])) for name, count in counts.most_common()]
    write(table([("program", "new files", "newest"), *rows], right=frozenset({1})))
    answer = input(f"Import {plural(len(new), 'file')}? [y/N] ")
    return [file.path for file in new] if answer.strip().lower() in ("y", "yes") else []


def _line(path: Path, imported: Imported) -> str:
    info = imported.info
    title = plain(info.title)
    copy = " (a copy: its id was taken)" if imported.copy_of else ""
    return (
        f"{info.id}  {plural(info.messages, 'message')}, {plural(imported.calls, 'call')}, {info.provider}/{info.model}"
        f"  {title or path.name}{copy}"
    )


def _entry(path: Path, imported: Imported) -> dict[str, object]:
    info = imported.info
    return {
        "file": str(path),
        "source": imported.source,
        "session": info.id,
        "title": info.title,
        "provider": info.provider,
        "model": info.model,
        "messages": info.messages,
        "calls": imported.calls,
        "not_in_file_tokens": imported.not_in_file,
        "copy_of": imported.copy_of or None,
    }


def export(settings: Settings, *, session: str, file: Path, force: bool) -> int:
    """Write a session to a file. Raises `UsageError` for one that is there already, unless `force` is given."""
    with closing(SessionStore(settings.database)) as store:
        info = store.find(session)
        export_session(file, store, info.id, overwrite=force)
        for line in damage_lines(store.damage):
            complain(line)
    write(f"Wrote {file} ({plural(info.messages, 'message')})")
    return 0


def replay_files(settings: Settings, *, files: Sequence[Path], method: Method, no_learning: bool, as_json: bool) -> int:
    """Score the estimates on recorded sessions. Returns 1 if a file could not be read; the others are scored."""
    results: list[Replay] = []
    failed = False
    for path in files:
        for outcome in _scored(path, method, learn=not no_learning):
            if isinstance(outcome, RecordingError):
                complain(str(outcome))
                failed = True
            else:
                results.append(outcome)
    rows = [summary(result) for result in (*results, together(results))]
    if results and as_json:
        write(json.dumps({"files": rows[:-1], "all": rows[-1]}, indent=2))
    elif results:
        heads = tuple(head for _, head, _ in _COLUMNS)
        cells = [["-" if row[key] is None else form.format(row[key]) for key, _, form in _COLUMNS] for row in rows]
        write(table([heads, *cells], right=frozenset(range(1, len(heads)))))
    return FAILED if failed else 0


def _scored(path: Path, method: Method, *, learn: bool) -> Iterator[Replay | RecordingError]:
    """The score of each session in a file, or why it has none."""
    try:
        recordings = list(read_recordings(path))
    except RecordingError as error:
        yield error
        return
    if recordings[0].skipped:
        complain(f"{path.name}: {recordings[0].skipped}")
    scorable = [recording for recording in recordings if any(m.usage for m in recording.messages)]
    if not scorable:
        reason = recordings[0].unscored or "no call in it has a usage"
        yield RecordingError(f"{path.name}: can't be scored: {reason}")
    for recording in scorable:
        name = path.name if len(recordings) == 1 else f"{path.name}: {plain(recording.title)[:40]}"
        try:
            result = replay(checked(recording), name, learn=learn, method=method)
        except RecordingError as error:
            yield RecordingError(f"{name}: {error}")
            continue
        for reason, count in result.unpredictable.items():
            complain(f"{name}: {plural(count, 'call')} not scored: {reason}")
        yield result


_COLUMNS = (
    ("file", "file", "{}"),
    ("calls", "calls", "{}"),
    ("predicted", "predicted", "{}"),
    ("median_abs_error_percent", "median %", "{:.3f}"),
    ("p95_abs_error_percent", "p95 %", "{:.2f}"),
    ("p99_abs_error_percent", "p99 %", "{:.2f}"),
    ("bias_percent", "bias %", "{:+.3f}"),
    ("covered_by_upper_bound_percent", "covered %", "{:.1f}"),
    ("median_upper_bound_width_percent", "width %", "{:.2f}"),
    ("worst_underestimate_percent", "worst under %", "{:.2f}"),
    ("seconds", "seconds", "{:.2f}"),
)
