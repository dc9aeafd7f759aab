"""What kind of file it is, by its bytes."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from tui.chat.attachments import LARGEST, AttachmentError, make_attachment, pdf_pages, picture_size, read_attachment


def png(width: int, height: int) -> bytes:
    """A real PNG of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\xff\0\0" * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
    b"\xff\xdb\x00\x03\0"
    b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", 480, 640) + b"\x03\x01\x22\0\x02\x11\x01\x03\x11\x01"
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (png(3, 7), ("image/png", 3, 7)),
        (b"GIF89a" + struct.pack("<HH", 320, 200) + b"\0", ("image/gif", 320, 200)),
        (JPEG, ("image/jpeg", 640, 480)),
        (b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + b"\x7f\x02\0" + b"\xdf\x01\0", ("image/webp", 640, 480)),
        (
            b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 639 | 479 << 14) + b"\0" * 5,
            ("image/webp", 640, 480),
        ),
        (b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480), ("image/webp", 640, 480)),
        (b"\xff\xd8\xff", None),
        (b"RIFF\0\0\0\0WEBPnope" + b"\0" * 20, None),
        (b"\x89PNG\r\n\x1a\n", None),
        (b"plain", None),
    ],
)
def test_pictures_by_their_headers(data: bytes, expected: tuple[str, int, int] | None) -> None:
    assert picture_size(data) == expected


def test_a_picture_a_document_and_a_text(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(2, 2))
    picture, data = read_attachment(tmp_path / "a.png")
    assert (picture.kind, picture.width, picture.size) == ("image", 2, len(data))
    pdf = make_attachment("b.pdf", b"%PDF-1.4\n1 0 obj<</Type /Pages /Kids[] /Count 12>>endobj")
    assert (pdf.kind, pdf.pages) == ("pdf", 12)
    text = make_attachment("c.py", "\ufeffprint('ä')".encode())
    assert (text.kind, text.text, text.media_type) == ("text", "print('ä')", "text/x-python")
    assert make_attachment("empty", b"").text == ""


def test_pages_are_counted_one_by_one_where_the_tree_says_nothing() -> None:
    assert pdf_pages(b"%PDF /Type /Page /x /Type/Page\n") == 2
    assert pdf_pages(b"%PDF-1.5 compressed") is None


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"ab\0cd", bytes(range(256))])
def test_what_is_neither_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(AttachmentError, match="neither text nor a picture"):
        make_attachment("x.bin", data)


def test_a_file_that_is_not_there_or_too_large(tmp_path: Path) -> None:
    with pytest.raises(AttachmentError, match="No such file"):
        read_attachment(tmp_path / "nowhere")
    with pytest.raises(AttachmentError, match="can't be read"):
        read_attachment(tmp_path)
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(AttachmentError, match="MB"):
        read_attachment(big)
