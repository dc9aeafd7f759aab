"""The program's log file. Libraries log requests with their headers: only our own lines are written."""

from __future__ import annotations

import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

MOST_BYTES = 2_000_000
OWN = ("tui", "chatctx")


class _Redacted(logging.Formatter):
    """Nothing that looks like a key reaches the file, whatever a message or a traceback holds."""

    def format(self, record: logging.LogRecord) -> str:
        from tui.providers.keys import redact

        return redact(super().format(record))


def start_logging(path: Path) -> None:
    """Write our own log lines to `path`. A folder that can't be written costs the log, not the program."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = RotatingFileHandler(path, maxBytes=MOST_BYTES, backupCount=2, encoding="utf-8")
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(_Redacted("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in OWN:
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
        logger.propagate = False
