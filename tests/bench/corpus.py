"""Where the recorded material is that fits and benches read."""

from __future__ import annotations

import os
from pathlib import Path


def corpus_path(name: str) -> Path:
    """A file of the corpus, which lies beside the repository or where `CHATCTX_CORPUS` says."""
    root = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("CHATCTX_CORPUS") or root.parent / "shared" / "corpus") / name
