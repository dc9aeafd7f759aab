"""Tests on recorded material that lies outside the repository and is read in place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def corpus_root() -> Path:
    """The folder of recorded material: `CHATCTX_CORPUS`, else `../shared/corpus` beside the repository.

    Where it is missing the calling test fails if `CI` is set and is skipped with a reason elsewhere.
    """
    root = Path(os.environ.get("CHATCTX_CORPUS") or REPOSITORY.parent / "shared" / "corpus")
    if not root.is_dir():
        required(f"recorded material not found at {root}: set CHATCTX_CORPUS to its folder")
    return root


def required(reason: str) -> NoReturn:
    """Something outside the repository is missing: a failure where `CI` is set, a skip elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
