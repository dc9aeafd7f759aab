"""What a number is made from, handed around whole: to the rows, to the basis, to what learns from the outcome."""

from __future__ import annotations

from typing import NamedTuple

from tui.context.estimate.bases import Base
from tui.context.estimate.calibration import Calibration
from tui.context.estimate.ledger import Account
from tui.context.estimate.preamble import Preamble
from tui.context.estimate.prediction import ConversationEstimate


class Situation(NamedTuple):
    """All that a number is made from, at one moment."""

    estimate: ConversationEstimate
    base: Base
    account: Account
    preamble: Preamble
    calibration: Calibration
    last_error_percent: float | None
