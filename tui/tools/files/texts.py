"""The encoding of a file's text, and file names on one line. Pure."""

from __future__ import annotations

import codecs
import re

SAMPLE = 65_536  # bytes read to determine the kind of a file

_MARKS: tuple[tuple[bytes, str], ...] = (  # the longer ones first: UTF-32's begins like UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BYTE = re.compile("[\udc80-\udcff]")  # that is not UTF-8, in a name (PEP 383)


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


def printable(name: str) -> str:
    r"""A file's name on one line: bytes that are not UTF-8 as `\xe9`, others that can't be shown replaced."""
    escaped = _BYTE.sub(lambda byte: f"\\x{ord(byte[0]) - 0xDC00:x}", name)
    return "".join(char if char.isprintable() else "\ufffd" for char in escaped)


def unescaped(name: str) -> str:
    """The name of a file that `printable` has shown, with its bytes that are not UTF-8."""
    return re.sub(r"\\x([89a-f][0-9a-f])", lambda byte: chr(0xDC00 + int(byte[1], 16)), name)
