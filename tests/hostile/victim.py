"""Asks a hostile server in a process of its own: writes the errors, and by how many bytes its memory grew."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import cast

from tests.providers.collect import collect
from tests.providers.serving import REQUEST
from tui.providers.base import ProviderError
from tui.providers.config import Dialect, ProviderConfig
from tui.providers.registry import make_provider


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def main(url: str, dialect: Dialect, limit: int, attacks: Sequence[str]) -> None:
    """Ask for an answer and for the model list under each attack."""
    calm = make_provider("p", ProviderConfig("p", dialect, f"{url}/calm/v1"))
    await collect(calm, REQUEST)  # loads the HTTP library
    before = peak()
    errors = {}
    for attack in attacks:
        provider = make_provider("p", ProviderConfig("p", dialect, f"{url}/{attack}/v1", max_response=limit))
        try:
            async for _ in provider.stream(REQUEST):
                pass
        except ProviderError as error:
            errors[attack] = str(error)
        with suppress(ProviderError):
            await provider.models()
        await provider.close()
    sys.stdout.write(json.dumps([errors, peak() - before]))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], cast(Dialect, sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
