"""The tool `search_files`: lines of the working directory's files that match a regular expression.

A walk decides which files are searched. ripgrep, if installed, or Python in a separate process finds the matches; the
lines are then read through the confinement, so that a file swapped for a link in between shows nothing. Both are killed
after `SECONDS`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tui.config.files import is_file
from tui.messages import ToolSchema
from tui.text.numbers import plural, size_text
from tui.tools.base import ToolError, ToolOutput
from tui.tools.files.confine import Confinement, Place
from tui.tools.files.secret_files import SensitiveFile, check_approved, examine, may_hold_secrets
from tui.tools.files.texts import SAMPLE, encoding_of, printable
from tui.tools.files.walk import Walk, path_filter

SCHEMA = ToolSchema(
    "search_files",
    "Searches files of the working directory for a regular expression, line by line. Leaves out what git ignores.",
    '{"additionalProperties":false,"properties":{'
    '"glob":{"description":"only files whose path fits, like *.py","type":"string"},'
    '"ignore_case":{"type":"boolean"},'
    '"path":{"description":"a folder or file to search in","type":"string"},'
    '"pattern":{"description":"a regular expression","type":"string"}},'
    '"required":["pattern"],"type":"object"}',
)
SECONDS = 20.0
MAX_MATCHES = 200  # lines shown
MAX_FOUND = 10_000  # matches after which a search ends
MAX_FILE = 5_000_000  # bytes; larger files are not searched
MAX_LINE = 400  # characters shown of a line
MAX_PATTERN = 1_000
WORKER = Path(__file__).with_name("search_worker.py")
RIPGREP = ("--no-config", "--no-messages", "--json", "--crlf", "--sort", "path", "--threads", "1")
BATCH = 200  # files per process of ripgrep: argument lists are limited


class BadPatternError(Exception):
    """The engine rejects the pattern. `str()` says why."""


async def search_files(
    arguments: Mapping[str, Any],
    confinement: Confinement,
    approved: SensitiveFile | None,
    program: str | None,
) -> ToolOutput:
    """Lines as `path:number: text`, by path. `approved` as for `check_approved`.

    `program` is ripgrep's path; None: Python searches.
    """
    pattern = str(arguments["pattern"])
    if not pattern or len(pattern) > MAX_PATTERN:
        raise ToolError(f"The pattern has to have 1 to {MAX_PATTERN:,} characters.")
    if "\n" in pattern or "\0" in pattern:
        raise ToolError("The pattern fits single lines: it can't hold a line break.")
    deadline = time.monotonic() + SECONDS
    place, files, notes = await asyncio.to_thread(_candidates, arguments, confinement, approved, deadline)
    ignore_case = bool(arguments.get("ignore_case", False))
    try:
        matches, late = await _matches(program, pattern, ignore_case, place, files, deadline)
    except BadPatternError as error:
        hint = "write a regular expression, with \\ before ( ) [ ] . * + ? that are meant literally"
        raise ToolError(f"The pattern can't be read ({error}): {hint}.") from None
    shown, hidden, secret = await asyncio.to_thread(_shown, matches, place, confinement, approved)
    if late:
        notes.append("[the search was ended after some time: a narrower path or glob reaches the rest]")
    if hidden:
        most = "at least " if len(matches) >= MAX_FOUND else ""
        notes.append(f"[and {most}{hidden:,} more lines; a narrower pattern, path or glob shows them]")
    if secret:
        notes.append(f"[not shown: {plural(secret, 'line')} of files that hold secrets; read_file asks about them]")
    if not shown and not secret and not late:
        notes.insert(0, f"[no line fits in {plural(len(files), 'file')}]")
    return ToolOutput("\n".join([*shown, *notes]))


def _candidates(
    arguments: Mapping[str, Any], confinement: Confinement, approved: SensitiveFile | None, deadline: float
) -> tuple[Place, list[str], list[str]]:
    """The folder that is searched, the files to search, and notes on skipped ones."""
    path, glob = str(arguments.get("path", ".")), arguments.get("glob")
    place = confinement.place(path)
    if is_file(place.path):
        with confinement.opened(place, "file") as descriptor:
            check_approved(descriptor, path, place, approved)
            return Place(place.base, place.parts[:-1], ""), [place.name], []
    walk, fits = Walk(confinement, place, deadline), path_filter(glob)
    files, large, secret = [], 0, 0
    folder = place.path.as_posix()
    for entry in walk.entries():
        if entry.is_folder or entry.size is None or not fits(entry.path):
            continue
        if may_hold_secrets(f"{folder}/{entry.path}"):
            secret += 1
        elif entry.size > MAX_FILE:
            large += 1
        elif entry.size:
            files.append(entry.path)
    notes = []
    if large:
        notes.append(f"[not searched: {plural(large, 'file')} over {size_text(MAX_FILE)}]")
    if secret:
        files_that = "file that probably holds" if secret == 1 else "files that probably hold"
        notes.append(f"[not searched: {secret:,} {files_that} secrets]")
    if walk.cut:
        notes.append(f"[not all of {place.shown} was looked at: {walk.cut}]")
    return place, files, notes


async def _matches(
    program: str | None, pattern: str, ignore_case: bool, place: Place, files: Sequence[str], deadline: float
) -> tuple[list[tuple[str, int]], bool]:
    """Matches (path in `place`, line number), and whether time ran out. Raises `BadPatternError`."""
    matches: list[tuple[str, int]] = []
    most = MAX_MATCHES * 2
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            if program is not None:
                command = [program, *RIPGREP, "--ignore-case" if ignore_case else "--case-sensitive"]
                command += ["--max-count", str(most), "--regexp", pattern, "--"]
                with suppress(BadPatternError):  # Python's expressions have more features (look-around, references)
                    for start in range(0, len(files), BATCH):
                        paths = [f"./{path}" for path in files[start : start + BATCH]]
                        if len(matches) < MAX_FOUND:
                            await _run([*command, *paths], place.path, "", matches)
                    return matches, False
            seconds = SECONDS + 5
            task = {"pattern": pattern, "ignore_case": ignore_case, "files": files, "most": most, "seconds": seconds}
            command = [sys.executable, "-I", str(WORKER)]  # isolated: nothing in the searched folder is imported
            await _run(command, place.path, json.dumps(task), matches)
    except TimeoutError:
        return matches, True
    return matches, False


async def _run(command: Sequence[str], folder: Path, task: str, matches: list[tuple[str, int]]) -> None:
    """Add what a program finds, until there are `MAX_FOUND` matches.

    Raises `BadPatternError` for exit code 2. The program is killed if it has not ended by itself.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=4 * MAX_FILE,  # bytes of a line: ripgrep writes a whole line of a file as JSON
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    complaint = asyncio.create_task(process.stderr.read())
    try:
        process.stdin.write(task.encode() + b"\n")
        with suppress(ConnectionError):
            await process.stdin.drain()
        process.stdin.close()
        while len(matches) < MAX_FOUND and (line := await process.stdout.readline()):
            match json.loads(line):
                case {"type": "match", "data": {"path": dict(path), "line_number": int(number)}}:
                    name = path["text"] if "text" in path else os.fsdecode(base64.b64decode(path["bytes"]))
                    matches.append((name.removeprefix("./"), number))
        if len(matches) < MAX_FOUND and await process.wait() == 2:
            text = (await complaint).decode("utf-8", "replace").strip().splitlines()
            raise BadPatternError(text[-1].removeprefix("error: ")[:200] if text else "it makes no sense")
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        complaint.cancel()


def _shown(
    matches: Sequence[tuple[str, int]], place: Place, confinement: Confinement, approved: SensitiveFile | None
) -> tuple[list[str], int, int]:
    """The first matches as lines, and how many more there are.

    They are read from files that were opened and examined here; also counted are those not shown because their file
    holds secrets and is not `approved`.
    """
    wanted: dict[str, list[int]] = {}
    for path, line in sorted(set(matches))[:MAX_MATCHES]:
        wanted.setdefault(path, []).append(line)
    lines: list[str] = []
    secret = 0
    for path, numbers in wanted.items():
        parts = (*place.parts, *path.split("/"))
        shown = path if place.shown in (".", "") and not place.parts else "/".join(parts)
        try:
            with confinement.opened(Place(place.base, parts, shown), "file") as descriptor:
                if examine(descriptor, path, Place(place.base, parts, shown)) not in (None, approved):
                    secret += len(numbers)
                    continue
                name, read = printable(shown), _read_lines(descriptor, set(numbers))
                lines += [f"{name}:{number}: {text}" for number, text in read]
        except ToolError:
            continue  # swapped, removed or locked after the search
    return lines, max(0, len(set(matches)) - MAX_MATCHES), secret


def _read_lines(descriptor: int, wanted: set[int]) -> list[tuple[int, str]]:
    with open(descriptor, "rb", closefd=False) as file:
        sample = file.read(SAMPLE)
        encoding = encoding_of(sample)
        if encoding is None:
            return []
        text = (sample + file.read(MAX_FILE)).decode(encoding, "replace")
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        if number in wanted:
            line = line.strip("\r").rstrip()
            lines.append((number, line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} […]"))
    return lines
