"""Descriptions for hundreds of tools."""

from __future__ import annotations


def describe(number: int) -> str:
    """A description as long as those of real servers are."""
    kinds = ("invoice", "shipment", "customer", "ticket", "calendar entry", "repository", "payment", "report")
    verbs = ("Create", "Find", "Change", "Delete", "Archive", "Export", "Compare", "Approve")
    kind, verb = kinds[number % 8], verbs[number // 8 % 8]
    return (
        f"{verb} one {kind} in region {number}. Takes the identifier of the {kind} and gives back what was done, with"
        f" the state of the {kind} before and after it and the time in UTC. Fails where the {kind} is locked."
    )
