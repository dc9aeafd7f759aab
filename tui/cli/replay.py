"""`chatctx replay`: the estimator scored on recorded conversations."""

from __future__ import annotations

from argparse import Namespace

from tui.chat.interchange import replay
from tui.config.settings import Settings


def run(args: Namespace, settings: Settings) -> int:
    """Read, predict, compare, print."""
    return replay.run(args)
