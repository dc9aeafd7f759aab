"""Cuts a tool's result for the conversation: binary payloads are replaced, and its tokens limited.

Pure. The full text is stored elsewhere; the person can open it, and the model can ask for it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator

HEAD_SHARE = 2 / 3  # of the text that stays: beginnings are more useful than ends
MARKER_TOKENS = 60
_PROBE = 12  # characters per token in the first cut; denser text is shortened from there
MIN_PAYLOAD = 800  # characters: shorter runs may be keys, hashes, or words
_BINARY_SHARE = 0.1  # share of control characters: above that it is not text

# Base64, in one piece or in lines (RFC 2045: of 76 characters), with or without the head of a data URL.
_RUN = re.compile(r"[A-Za-z0-9+/_-]{60,}={0,2}")
_PREFIX = re.compile(r"data:([\w.+-]{1,60}/[\w.+-]{1,60})[^,\s]{0,100};base64,\Z")
_MAX_PREFIX = 250  # characters
_WINDOW = 32_768  # characters searched in one go: the regex holds the interpreter lock
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "an ELF program"),
)

PICTURES = {f"a {name} image": f"image/{name.lower()}" for name in ("PNG", "JPEG", "GIF", "WebP")}
"""Media types of images that models accept, by `kind_of`."""

CountTokens = Callable[[str], int]


def kind_of(data: bytes) -> str:
    """The kind of `data`, judged by its first bytes, for a person: "a PNG image", "binary data"."""
    if data.startswith(b"RIFF"):
        return "a WebP image" if data[8:12] == b"WEBP" else "a WAV or AVI file"
    return next((name for magic, name in _MAGIC if data.startswith(magic)), "binary data")


def without_payloads(text: str) -> str:
    """`text` with base64 and binary content replaced by a description; unchanged text is the same object."""
    control = sum(1 for _ in _CONTROL.finditer(text[:100_000]))
    if control > _BINARY_SHARE * min(len(text), 100_000):
        size = len(text.encode("utf-8", "surrogatepass"))
        return f"[{kind_of(text[:16].encode('latin-1', 'replace'))}, {size:,} bytes, not shown]"
    if len(text) < MIN_PAYLOAD:
        return text
    pieces: list[str] = []
    done = 0
    for start, end in _runs(text):
        if end - start >= MIN_PAYLOAD and _looks_encoded(text[start : start + 2_000]):
            head, kind = _payload_head(text, start, done)
            pieces += [text[done:head], f"[base64: {kind}, about {(end - start) * 3 // 4:,} bytes, not shown]"]
            done = end
    return "".join([*pieces, text[done:]]) if pieces else text


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Spans that may be base64; spans split by line ends or windows are joined."""
    start = end = 0
    for at in range(0, len(text), _WINDOW):
        for match in _RUN.finditer(text, at, at + _WINDOW):
            if end and not text[end : match.start()].strip("\r\n") and match.start() - end <= 2:
                end = match.end()
                continue
            if end:
                yield start, end
            start, end = match.span()
    if end:
        yield start, end


def _payload_head(text: str, start: int, done: int) -> tuple[int, str]:
    """The start of a payload, including its data URL's head, and what it is."""
    near = max(done, start - _MAX_PREFIX)
    if prefix := _PREFIX.search(text[near:start]):
        return near + prefix.start(), prefix[1]
    packed = re.sub(r"\s", "", text[start : start + 400]).replace("-", "+").replace("_", "/")[:64]
    try:
        kind = kind_of(base64.b64decode(packed))
    except (binascii.Error, ValueError):
        kind = "binary data"
    return start, kind


def _looks_encoded(sample: str) -> bool:
    """Whether it mixes capitals, small letters and digits, unlike a path or a run of one letter."""
    kinds = (any(map(str.isupper, sample)), any(map(str.islower, sample)), any(map(str.isdigit, sample)))
    return all(kinds) and len(set(sample)) >= 24


def cap_text(text: str, limit: int, count: CountTokens, more: str = "") -> str:
    """`text` in about `limit` tokens: head, a line that says what is missing, tail. The same object if it fits.

    `more` says how to get the rest. Counts only as much as could stay, so that the cost does not grow with the text.
    """
    if len(text) * (1 if text.isascii() else 4) <= limit:
        return text  # no tokenizer makes more tokens than bytes of UTF-8
    if len(text) <= _PROBE * limit and count(text) <= limit:
        return text
    budget = max(1, limit - MARKER_TOKENS)
    head = _fitting(text[: _PROBE * limit], int(budget * HEAD_SHARE), count, from_end=False)
    tail = _fitting(text[len(head) :][-_PROBE * limit :], budget - int(budget * HEAD_SHARE), count, from_end=True)
    missing = len(text) - len(head) - len(tail)
    if missing <= 0:
        return text
    lines = text.count("\n", len(head), len(text) - len(tail))
    amount = f"{lines:,} lines, {missing:,} characters" if lines else f"{missing:,} of {len(text):,} characters"
    marker = f"[… {amount} left out here. {more or 'Ask for less (a range, a narrower search) to see them'} …]"
    return f"{head.rstrip()}\n{marker}\n{tail.lstrip()}" if tail else f"{head.rstrip()}\n{marker}"


def _fitting(text: str, tokens: int, count: CountTokens, *, from_end: bool) -> str:
    """As much of one end of `text` as `tokens` allow, in whole lines if a line end is near."""

    def end_of(size: int) -> str:
        return text[len(text) - size :] if from_end else text[:size]

    size = len(text)
    for _ in range(6):
        counted = count(end_of(size)) if size else 0
        if counted <= tokens:
            break
        size = min(size - 1, int(size * tokens / counted * 0.98))
    else:
        size = tokens // 4
    piece = end_of(size)
    if len(piece) == len(text):
        return piece
    at = piece.find("\n") if from_end else piece.rfind("\n")
    near = at >= 0 and (at < len(piece) // 2 if from_end else at > len(piece) // 2)
    if not near:
        return piece
    return piece[at + 1 :] if from_end else piece[: at + 1]
