"""The `chatctx` command line. Imports only what the chosen command needs.

Exit codes: 0 done, 1 the request failed, 2 bad usage, 130 interrupted.
"""

from __future__ import annotations

import sys

FAILED, BAD_USAGE, INTERRUPTED = 1, 2, 130


def complain(text: str, code: int = FAILED) -> int:
    """Print one line on standard error, without keys; returns `code`."""
    from tui.providers.keys import redact

    sys.stderr.write(f"chatctx: {redact(' '.join(text.split()))}\n")
    return code


def known_error(error: Exception) -> int | None:
    """The exit code of an expected error, whose text is for the person; None for a bug."""
    bad = dict.fromkeys(("UsageError", "AttachmentError", "RecordingError"), BAD_USAGE)
    codes = bad | dict.fromkeys(("StoreError", "ProviderError", "ForkError", "ToolError"), FAILED)
    return next((codes[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in codes), None)
