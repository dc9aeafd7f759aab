"""Which refusals mean that a server does not compact by itself, or can't read what it once compacted. Pure."""

from __future__ import annotations

import re

from tui.providers.base import ProviderError

_NOT_TAKEN = re.compile(r"context_management|compact_threshold", re.IGNORECASE)
# OpenAI names the item by its id ("cmp_..."); servers without such items name the type or its field.
_NAMED = re.compile(r"\bcmp_|\bcompaction\b", re.IGNORECASE)
_SEAL = re.compile(rf"{_NAMED.pattern}|\bencrypted[_ ]content\b", re.IGNORECASE)


def refuses_compacting(error: ProviderError) -> bool:
    """Whether a request was refused because the server was asked to compact."""
    return error.kind == "bad_request" and _NOT_TAKEN.search(str(error)) is not None


def refuses_seal(error: ProviderError) -> bool:
    """Whether a request with a sealed summary in it may have been refused because of that.

    The key's organisation has changed, or the model behind its name. Sealed reasoning is refused in the same words.
    """
    return error.kind in ("bad_request", "signature", "not_found") and _SEAL.search(str(error)) is not None


def names_seal(error: ProviderError) -> bool:
    """Whether such a refusal can't mean sealed reasoning."""
    return _NAMED.search(str(error)) is not None
