"""The search process if ripgrep is not installed: it can be killed if a pattern takes too long.

Reads one task from standard input, writes matching lines as ripgrep does with --json. Exit code 2: bad pattern.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import sys

MAX_FILE = 5_000_000  # bytes of a file


def main() -> int:
    """Search the files of the task, whose names are relative to the working directory."""
    task = json.loads(sys.stdin.readline())
    # It ends by then even if its parent was killed; this needs no interpreter lock.
    faulthandler.dump_traceback_later(task["seconds"], exit=True, file=os.open(os.devnull, os.O_WRONLY))
    try:
        pattern = re.compile(task["pattern"], re.IGNORECASE if task["ignore_case"] else 0)
    except (re.error, RecursionError, OverflowError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for path in sorted(task["files"]):
        for number in matching_lines(path, pattern, task["most"]):
            match = {"path": {"text": path}, "line_number": number}
            sys.stdout.write(json.dumps({"type": "match", "data": match}) + "\n")
        sys.stdout.flush()
    return 0


def matching_lines(path: str, pattern: re.Pattern[str], most: int) -> list[int]:
    """Numbers of matching lines, at most `most`; none for a file that is binary or can't be read."""
    try:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags), "rb") as file:
            data = file.read(MAX_FILE)
    except OSError:
        return []
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    if encoding != "utf-16" and b"\0" in data:
        return []
    lines = data.decode(encoding, "replace").split("\n")
    if not lines[-1]:  # a newline ends the last line
        lines.pop()
    numbers: list[int] = []
    for number, line in enumerate(lines, 1):
        if pattern.search(line.removesuffix("\r")):
            numbers.append(number)
            if len(numbers) == most:
                break
    return numbers


if __name__ == "__main__":
    sys.exit(main())
