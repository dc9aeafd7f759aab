"""The kind of a file's content: text in some encoding, an image, or something to be described only. Pure."""

from __future__ import annotations

import codecs

from tui.tools.capping import kind_of

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
