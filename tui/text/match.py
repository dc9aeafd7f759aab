"""Fuzzy matching for completion and pickers."""

from __future__ import annotations


def match(query: str, candidate: str) -> float:
    """Score how well `candidate` matches `query`: 0.0 not at all, a prefix best.

    The letters of `query` have to occur in order, ignoring case. An empty query matches everything equally.
    """
    wanted, text = query.lower().strip(), candidate.lower()
    if not wanted:
        return 1.0
    if text.startswith(wanted):
        return 4.0
    if (at := text.find(wanted)) >= 0:
        return 3.0 if not text[at - 1].isalnum() else 2.0
    places, start = [], 0
    for letter in wanted:
        at = text.find(letter, start)
        if at < 0:
            return 0.0
        places.append(at)
        start = at + 1
    return len(wanted) / (places[-1] - places[0] + 1)
