"""The process that counts a PDF's pages: an untrusted file can't harm the chat by failing, hanging or growing.

Reads the PDF from standard input, writes the number of pages. Exit code 1: it can't be read.
"""

from __future__ import annotations

import io
import logging
import sys

MAX_MEMORY = 1_000_000_000  # bytes of address space
MAX_SECONDS = 10  # of processor time


def main() -> int:
    """Count the pages by walking the page tree, as a server that renders them does."""
    _limit()
    logging.disable()  # pypdf logs every irregularity
    from pypdf import PdfReader

    try:
        pages = len(PdfReader(io.BytesIO(sys.stdin.buffer.read())).pages)
    except Exception:  # pypdf may raise anything for a broken or hostile file
        return 1
    sys.stdout.write(f"{pages}\n")
    return 0


def _limit() -> None:
    try:
        import resource
    except ImportError:
        return  # not on Windows
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))


if __name__ == "__main__":
    sys.exit(main())
