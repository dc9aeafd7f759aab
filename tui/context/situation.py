"""What a number is made from, handed around whole: to the rows, to the basis, to what learns from the outcome."""

from __future__ import annotations

from typing import NamedTuple

from tui.context.bases import Base
from tui.context.calibration import Calibration
from tui.context.ledger import Account
from tui.context.preamble import Preamble
from tui.context.prediction import ConversationEstimate


class Situation(NamedTuple):
    """All that a number is made from, at one moment."""

    estimate: ConversationEstimate
    base: Base
    account: Account
    preamble: Preamble
    calibration: Calibration
    last_error_percent: float | None
