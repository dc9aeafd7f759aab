"""Attachments: the files a message mentions, the kind of a file, the size of an image, the pages of a document."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui.config.files import FileTooLargeError, at_home, is_file, read_all
from tui.errors import ExpectedError
from tui.messages import Attachment, Request
from tui.text.labels import mentioned_names
from tui.text.numbers import size_text
from tui.tools.files.texts import marked_encoding

if TYPE_CHECKING:
    from tui.providers.base import Capabilities

PDF_WORKER = Path(__file__).with_name("pdf_worker.py")
PDF_SECONDS = 15.0

MAX_FILE = 32_000_000
"""Bytes of the largest file: Anthropic's limit for a whole request (32 MB); other providers accept less."""


class AttachmentError(ExpectedError):
    """A file that can't be attached. `str()` is one line: which one, why, and what to do."""

    exit_code = 2


def mentioned(text: str, folder: Path) -> list[Path]:
    """The existing files mentioned in `text` (`@path`), without duplicates."""
    paths: dict[Path, None] = {}
    for candidates in mentioned_names(text):
        for name in candidates:
            path = folder / at_home(name)
            if is_file(path):
                paths[path] = None
                break
    return list(paths)


def read_attachment(path: Path) -> tuple[Attachment, bytes]:
    """A file as an attachment, and its bytes. Raises `AttachmentError`."""
    try:
        data = read_all(path, MAX_FILE)
    except FileTooLargeError:
        raise AttachmentError(f"{path} is too large; no provider takes more than {size_text(MAX_FILE)}") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise AttachmentError(f"{path} can't be read ({reason}): check the name and its permissions") from None
    return make_attachment(path.name, data), data


def make_attachment(name: str, data: bytes) -> Attachment:
    """Bytes as an attachment: image, PDF or text. Raises `AttachmentError` for anything else."""
    import hashlib  # here, because the screen imports this module before its first frame
    import mimetypes

    digest = hashlib.sha256(data).hexdigest()
    if picture := picture_size(data):
        media_type, width, height = picture
        return Attachment("image", name, media_type, digest, len(data), width=width, height=height)
    if data.startswith(b"%PDF-"):
        return Attachment("pdf", name, "application/pdf", digest, len(data), pages=pdf_pages(data))
    try:
        text = data.decode(marked_encoding(data))
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise AttachmentError(f"{name} is neither text nor an image (PNG, JPEG, GIF, WebP) nor a PDF")
    media_type = mimetypes.guess_type(name)[0] or "text/plain"
    return Attachment("text", name, media_type, digest, len(data), text=text)


def not_taken(attachment: Attachment, able: Capabilities) -> str:
    """The kind of attachment ("images", "PDFs") if the model does not accept it, else ""."""
    if attachment.kind == "image" and not able.images:
        return "images"
    return "PDFs" if attachment.kind == "pdf" and not able.pdfs else ""


def check_taken(attachments: Iterable[Attachment], able: Capabilities, model: str) -> None:
    """Raises `AttachmentError` for the first attachment that the model does not accept."""
    for attachment in attachments:
        if kind := not_taken(attachment, able):
            raise AttachmentError(f"{model} takes no {kind}: choose another model, or leave {attachment.name} out")


def with_bytes(request: Request, blob: Callable[[str], bytes | None]) -> Request:
    """`request` with the bytes of its attachments, as far as `blob` (by hash) has them. May read the disk."""
    hashes = {part.sha256 for m in request.messages for part in m.parts if isinstance(part, Attachment)}
    return replace(request, blobs={sha256: data for sha256 in hashes if (data := blob(sha256)) is not None})


def picture_size(data: bytes) -> tuple[str, int, int] | None:
    """Media type, width and height (pixels) of a PNG, GIF, JPEG or WebP; None for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return "image/png", *struct.unpack(">II", data[16:24])
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        return "image/gif", *struct.unpack("<HH", data[6:10])
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    if data.startswith(b"\xff\xd8"):
        return _jpeg(data)
    return None


def _webp(data: bytes) -> tuple[str, int, int] | None:
    """The three forms of a WebP header (RFC 9649)."""
    match data[12:16]:
        case b"VP8X" if len(data) >= 30:
            width = int.from_bytes(data[24:27], "little") + 1
            return "image/webp", width, int.from_bytes(data[27:30], "little") + 1
        case b"VP8L" if len(data) >= 25:
            bits = int.from_bytes(data[21:25], "little")
            return "image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 " if len(data) >= 30:
            width, height = struct.unpack("<HH", data[26:30])
            return "image/webp", width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg(data: bytes) -> tuple[str, int, int] | None:
    """The size in the first start-of-frame segment (ITU T.81, B.2.2)."""
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return "image/jpeg", width, height
        at += 1 if marker == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def pdf_pages(data: bytes) -> int | None:
    """Pages of a PDF, counted by pypdf in a separate process; None if it can't be read.

    Takes about half a second: not on the event loop.
    """
    import subprocess
    import sys

    command = [sys.executable, "-I", str(PDF_WORKER)]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=PDF_SECONDS, check=True)
        return int(done.stdout) or None
    except (OSError, subprocess.SubprocessError, ValueError):
        return None  # broken, encrypted, or hostile
