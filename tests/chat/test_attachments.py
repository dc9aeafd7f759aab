"""What kind of file it is, by its bytes."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from pypdf import PdfWriter

from tui.chat.attachments import MAX_FILE, AttachmentError, make_attachment, pdf_pages, picture_size, read_attachment


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
        (
            b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480) + b"\7",
            ("image/webp", 640, 480),
        ),
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
    pdf = make_attachment("b.pdf", pdf_of(12))
    assert (pdf.kind, pdf.pages) == ("pdf", 12)
    text = make_attachment("c.py", "\ufeffprint('ä')".encode())
    assert (text.kind, text.text, text.media_type) == ("text", "print('ä')", "text/x-python")
    assert make_attachment("empty", b"").text == ""


def pdf_of(pages: int) -> bytes:
    writer = PdfWriter()
    for _ in range(pages):
        writer.add_blank_page(72, 72)
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


def packed_pdf(pages: int) -> bytes:
    """A PDF as most programs write it: its page tree is in a compressed object stream (ISO 32000-2, 7.5.7)."""
    kids = " ".join(f"{3 + n} 0 R" for n in range(pages))
    bodies = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {pages}/Kids[{kids}]>>",
        *["<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>"] * pages,
    ]
    starts = [sum(len(body) + 1 for body in bodies[:n]) for n in range(len(bodies))]
    index = " ".join(f"{n + 1} {start}" for n, start in enumerate(starts)) + " "
    stream = len(bodies) + 1
    packed = zlib.compress((index + " ".join(bodies)).encode())
    head = b"%PDF-1.7\n"
    holder = (
        f"{stream} 0 obj<</Type/ObjStm/N {len(bodies)}/First {len(index)}/Length {len(packed)}/Filter/FlateDecode>>"
        "stream\n"
    ).encode() + packed + b"\nendstream endobj\n"  # fmt: skip
    entries = [(0, 0, 255), *((2, stream, n) for n in range(len(bodies))), (1, len(head), 0)]
    entries.append((1, len(head) + len(holder), 0))
    table = zlib.compress(b"".join(struct.pack(">BHH", *entry) for entry in entries))
    cross = (
        f"{stream + 1} 0 obj<</Type/XRef/Size {len(entries)}/W[1 2 2]/Root 1 0 R/Length {len(table)}"
        "/Filter/FlateDecode>>stream\n"
    ).encode() + table + b"\nendstream endobj\n"  # fmt: skip
    return head + holder + cross + f"startxref\n{len(head) + len(holder)}\n%%EOF".encode()


def test_pages_in_a_compressed_tree_are_counted() -> None:
    assert b"/Page" not in packed_pdf(7)
    assert pdf_pages(packed_pdf(7)) == 7


def test_pages_of_an_older_version_in_the_same_file_do_not_count() -> None:
    writer = PdfWriter(io.BytesIO(pdf_of(5)), incremental=True)
    for _ in range(3):
        writer.remove_page(2)
    file = io.BytesIO()
    writer.write(file)
    assert b"/Count 5" in file.getvalue()
    assert pdf_pages(file.getvalue()) == 2


@pytest.mark.parametrize(
    "data", [b"%PDF-1.5 broken", b"%PDF-1.4\n1 0 obj<</Type /Pages /Kids[] /Count 12>>endobj", b"%PDF-"]
)
def test_pages_that_cannot_be_read_are_unknown(data: bytes) -> None:
    assert pdf_pages(data) is None


@pytest.mark.skipif(os.name == "nt", reason="limits of Unix")
def test_the_process_that_reads_a_pdf_limits_its_memory_and_time() -> None:
    code = (
        "import resource; from tui.chat import pdf_worker; failed = pdf_worker.main()\n"
        "print(failed, resource.getrlimit(resource.RLIMIT_AS)[0], resource.getrlimit(resource.RLIMIT_CPU)[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], input="", capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1000000000", "10"]


def test_a_pdf_that_takes_for_ever_has_unknown_pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text("while True: pass")
    monkeypatch.setattr("tui.chat.attachments.PDF_WORKER", worker)
    monkeypatch.setattr("tui.chat.attachments.PDF_SECONDS", 0.2)
    assert pdf_pages(pdf_of(1)) is None


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"ab\0cd", bytes(range(256))])
def test_what_is_neither_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(AttachmentError, match="neither text nor an image"):
        make_attachment("x.bin", data)


def test_a_file_that_is_not_there_or_too_large(tmp_path: Path) -> None:
    with pytest.raises(AttachmentError, match="No such file"):
        read_attachment(tmp_path / "nowhere")
    with pytest.raises(AttachmentError, match="can't be read"):
        read_attachment(tmp_path)
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(MAX_FILE + 1)
    with pytest.raises(AttachmentError, match="MB"):
        read_attachment(big)
