"""The tool `read_file`: numbered lines of a text file, or an image."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Mapping
from typing import Any

from tui.messages import ToolSchema
from tui.text.numbers import plural
from tui.tools.base import ToolError, ToolImage, ToolOutput
from tui.tools.capping import PICTURES, kind_of
from tui.tools.files.confine import Confinement, Place
from tui.tools.files.secret_files import SCANNED, SensitiveFile, check_approved, secret_in
from tui.tools.files.texts import SAMPLE, encoding_of

SCHEMA = ToolSchema(
    "read_file",
    "Reads a text file of the working directory; lines come with their numbers. Pictures are shown as pictures.",
    '{"additionalProperties":false,"properties":{'
    '"limit":{"description":"how many lines, 2000 unless given","minimum":1,"type":"integer"},'
    '"offset":{"description":"the first line, from 1","minimum":1,"type":"integer"},'
    '"path":{"description":"the file, from the working directory","type":"string"}},'
    '"required":["path"],"type":"object"}',
)
DEFAULT_LINES = 2_000
MAX_CHARACTERS = 2_000_000  # of one call; less enters the conversation, see capping
MAX_LINE = 10_000  # characters shown of a line
MAX_SCANNED = 200_000_000  # bytes before `offset`
MAX_PICTURE = 5_000_000  # bytes
SECONDS = 10.0


def read_file(
    arguments: Mapping[str, Any], confinement: Confinement, approved: SensitiveFile | None = None
) -> ToolOutput:
    """The file's content; `approved` as for `check_approved`. Raises `ToolError`. Not on the event loop."""
    offset, limit = int(arguments.get("offset", 1)), int(arguments.get("limit", DEFAULT_LINES))
    if offset < 1 or limit < 1:
        raise ToolError("offset and limit begin at 1.")
    path = str(arguments["path"])
    place = confinement.place(path)
    with confinement.opened(place, "file") as descriptor, open(descriptor, "rb", closefd=False) as file:
        check_approved(descriptor, path, place, approved)
        size = os.fstat(descriptor).st_size
        sample = file.read(SAMPLE)
        if media_type := PICTURES.get(kind_of(sample)):
            about = f"{place.shown} is a picture ({media_type}, {size:,} bytes)"
            if size > MAX_PICTURE:
                return ToolOutput(f"{about}: too large to be shown.")
            return ToolOutput(f"{about}:", images=(ToolImage(media_type, sample + file.read(MAX_PICTURE)),))
        encoding = encoding_of(sample)
        if encoding is None:
            return ToolOutput(f"{place.shown} is {kind_of(sample)} of {size:,} bytes, not text: it is not shown.")
        file.seek(0)
        # A line ends where it does for search_files; without any newline, at a carriage return, as of an old Mac.
        newline = "\n" if b"\n" in sample else None
        text = io.TextIOWrapper(file, encoding, errors="replace", newline=newline)
        output = _lines(place, text, encoding, offset, limit)
        if approved is None and size > SCANNED and (what := secret_in(output.text.encode(errors="replace"))):
            raise ToolError(f"These lines of {place.shown} hold {what}: they are not shown.")
        return output


def _lines(place: Place, text: io.TextIOWrapper, encoding: str, offset: int, limit: int) -> ToolOutput:
    shown: list[str] = []
    number = characters = scanned = 0
    ended = ""
    deadline = time.monotonic() + SECONDS
    while scanned <= MAX_SCANNED and time.monotonic() < deadline:
        line, cut = _next_line(text)
        if not line:
            break
        number += 1
        scanned += len(line) + cut
        if number < offset:
            continue
        if len(shown) == limit or characters > MAX_CHARACTERS:
            ended = f"\n[more lines follow: read on with offset={number}]"
            break
        note = f" [… {cut:,} more characters in this line]" if cut else ""
        content = line.removesuffix("\n").removesuffix("\r")
        shown.append(f"{number:>6}\t{content}{note}")
        characters += len(line)
    else:
        if not shown:
            raise ToolError(f"{place.shown} is too large: line {offset} was not reached. search_files finds places.")
        ended = "\n[the rest was not read: it is too much. search_files finds places in it]"
    text.detach()
    if not number:
        return ToolOutput(f"{place.shown} is empty.")
    if not shown:
        raise ToolError(f"{place.shown} has {plural(number, 'line')}: there is no line {offset}.")
    odd = "" if encoding in ("utf-8", "utf-8-sig") else f"[{place.shown} is in {encoding}]\n"
    return ToolOutput(f"{odd}{chr(10).join(shown)}{ended}", more="read_file with offset and limit reads them")


def _next_line(text: io.TextIOWrapper) -> tuple[str, int]:
    """A line, and the number of its characters that were left out; "" at the end."""
    line, cut = text.readline(MAX_LINE), 0
    while line and not line.endswith("\n") and (rest := text.readline(SAMPLE)):
        cut += len(rest)
        if rest.endswith("\n") or cut > MAX_SCANNED:
            break
    return line, cut
