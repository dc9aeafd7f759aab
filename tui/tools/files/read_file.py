"""The tool `read_file`: numbered lines of a text file, or an image; what kind of content a file has."""

from __future__ import annotations

import codecs
import io
import os
import time
from collections.abc import Mapping
from typing import Any

from tui.messages import ToolSchema
from tui.text.numbers import plural
from tui.tools.base import ToolError, ToolImage, ToolOutput
from tui.tools.capping import kind_of
from tui.tools.files.confine import Confinement, Place
from tui.tools.files.secret_files import SCANNED, SensitiveFile, check_approved, secret_in

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
MOST_CHARACTERS = 2_000_000  # of one call; less enters the conversation, see capping
LONGEST_LINE = 10_000  # characters shown of a line
MOST_SCANNED = 200_000_000  # bytes before `offset`
LARGEST_PICTURE = 5_000_000  # bytes
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
        if media_type := picture_type(sample):
            return _picture(place, media_type, sample, file, size)
        encoding = encoding_of(sample)
        if encoding is None:
            return ToolOutput(described(place.shown, sample, size))
        file.seek(0)
        output = _lines(place, io.TextIOWrapper(file, encoding, errors="replace"), encoding, offset, limit)
        if approved is None and size > SCANNED and (what := secret_in(output.text.encode(errors="replace"))):
            raise ToolError(f"These lines of {place.shown} hold {what}: they are not shown.")
        return output


def _picture(place: Place, media_type: str, sample: bytes, file: io.BufferedReader, size: int) -> ToolOutput:
    if size > LARGEST_PICTURE:
        return ToolOutput(f"{place.shown} is a picture ({media_type}) of {size:,} bytes: too large to be shown.")
    data = sample + file.read(LARGEST_PICTURE)
    return ToolOutput(
        f"{place.shown} is a picture ({media_type}, {size:,} bytes):", images=(ToolImage(media_type, data),)
    )


def _lines(place: Place, text: io.TextIOWrapper, encoding: str, offset: int, limit: int) -> ToolOutput:
    shown: list[str] = []
    number = characters = scanned = 0
    ended = ""
    deadline = time.monotonic() + SECONDS
    while scanned <= MOST_SCANNED and time.monotonic() < deadline:
        line, cut = _next_line(text)
        if not line:
            break
        number += 1
        scanned += len(line) + cut
        if number < offset:
            continue
        if len(shown) == limit or characters > MOST_CHARACTERS:
            ended = f"\n[more lines follow: read on with offset={number}]"
            break
        note = f" [… {cut:,} more characters in this line]" if cut else ""
        shown.append(f"{number:>6}\t{line.rstrip(chr(10))}{note}")
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
    line, cut = text.readline(LONGEST_LINE), 0
    while line and not line.endswith("\n") and (rest := text.readline(SAMPLE)):
        cut += len(rest)
        if rest.endswith("\n") or cut > MOST_SCANNED:
            break
    return line, cut


# -- kinds of content --------------------------------------------------------------------------------------------------

SAMPLE = 65_536  # bytes read to determine the kind of a file

_MARKS: tuple[tuple[bytes, str], ...] = (  # the longer ones first: UTF-32's begins like UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PICTURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def marked_encoding(data: bytes) -> str:
    """The encoding that a byte order mark names; "utf-8" where there is none."""
    return next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")


def encoding_of(sample: bytes) -> str | None:
    """The encoding of a file, judged by its first `SAMPLE` bytes; None for binary content.

    A byte order mark decides; else UTF-8 if valid, UTF-16 if every second byte is NUL, Windows-1252 if it is text at
    all.
    """
    if (name := marked_encoding(sample)) != "utf-8":
        return name
    if b"\0" in sample:
        pairs = max(1, len(sample) // 2)
        if sample[1::2].count(0) > 0.7 * pairs and sample[0::2].count(0) < 0.1 * pairs:
            return "utf-16-le"
        if sample[0::2].count(0) > 0.7 * pairs and sample[1::2].count(0) < 0.1 * pairs:
            return "utf-16-be"
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        odd = sum(byte < 9 or 13 < byte < 32 for byte in sample)
        return None if odd > 0.02 * len(sample) else "cp1252"
    return "utf-8"


def picture_type(sample: bytes) -> str | None:
    """The media type of an image that models accept, by its first bytes; None for anything else."""
    if sample[:4] == b"RIFF" and sample[8:12] == b"WEBP":
        return "image/webp"
    return next((name for mark, name in _PICTURES if sample.startswith(mark)), None)


def described(name: str, sample: bytes, size: int) -> str:
    """The placeholder for content that is not text; `size` in bytes."""
    return f"{name} is {kind_of(sample)} of {size:,} bytes, not text: it is not shown."


def printable(name: str) -> str:
    """A file's name on one line, escaped so that it can't pass for another line."""
    return "".join(char if char.isprintable() else "\ufffd" for char in name)
