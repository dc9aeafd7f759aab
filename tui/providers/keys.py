"""API keys: their sources, and keeping them out of everything that is shown or logged."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from tui.providers.base import ProviderError
from tui.text.clean import abbreviated, clean_line

# Seconds a key command may take; password managers may prompt first.
COMMAND_TIMEOUT = 60.0

# Keys of the usual providers, for texts that quote a key this program never read. The texts are untrusted, so patterns
# that can begin at every character are bounded in length.
_LOOKS_SECRET = re.compile(
    r"""
      \b(?:sk|pk|rk|gsk|xai|csk|fw|tgp|nvapi|hf|ghp|gho|github_pat|r8|pplx)[-_][A-Za-z0-9*._-]{8,}
    | \bAIza[A-Za-z0-9_-]{16,}
    | \b(?:Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}
    | \beyJ[A-Za-z0-9_-]{10,1000}+\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*
    """,
    re.VERBOSE,
)
_LABELLED = re.compile(
    r"(?i)\b(api[-_ ]?key|x-api-key|authorization|token|secret)([\"']?\s*[:=]\s*[\"']?)([A-Za-z0-9._~+/-]{12,})"
)
# A user alone may be a token; over SSH it is none.
_URL_USER = re.compile(r"(?<=://)[^/\s:@]*:[^/\s]+@|(?:(?<=http://)|(?<=https://))[^/\s:@?#]+@")

# Keys that this process has read, for `redact`. They are kept nowhere else.
_secrets: set[str] = set()


def hold_secret(secret: str) -> None:
    """Register a key so that `redact` removes it, also as it is written in an address.

    Values under 6 characters are ignored: they match ordinary words.
    """
    if len(secret) >= 6:
        _secrets.update((secret, quote(secret), quote(secret, safe="")))


def redact(text: str) -> str:
    """`text` without keys: registered ones, and everything that looks like one."""
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, "[key]")
    text = _LOOKS_SECRET.sub("[key]", text)
    text = _LABELLED.sub(r"\1\2[key]", text)
    return _URL_USER.sub("[key]@", text)


LOOKED_AT = 100_000  # characters of a text for one line: pages begin with many blanks


def one_line(text: str, limit: int = 400) -> str:
    """Untrusted text on one line of at most `limit` characters, without keys and control characters."""
    return abbreviated(redact(clean_line(text[:LOOKED_AT])), limit)


def key_from_env(names: Sequence[str], env: Mapping[str, str]) -> str | None:
    """The first non-empty variable of `names`, stripped."""
    return next((value for name in names if (value := env.get(name, "").strip())), None)


async def key_from_command(command: str, provider: str) -> str:
    """The first line printed by `command`, run in the shell (it is the person's, from the config file).

    Neither its output nor its error text is logged or shown. Raises `ProviderError` of kind "auth".
    """
    process = await asyncio.create_subprocess_shell(
        command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=os.name != "nt",
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), COMMAND_TIMEOUT)
    except TimeoutError:
        raise ProviderError(
            "auth", f"{provider}: api_key_command gave no key within {COMMAND_TIMEOUT:.0f} seconds; run it by hand."
        ) from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                if sys.platform == "win32":
                    process.kill()
                else:
                    os.killpg(process.pid, signal.SIGKILL)  # the shell and what it started
            await process.wait()
    key = next(iter(output.decode("utf-8", "replace").splitlines()), "").strip()
    if process.returncode:
        raise ProviderError(
            "auth", f"{provider}: api_key_command ended with exit code {process.returncode}; run it by hand to see why."
        )
    if not key:
        raise ProviderError("auth", f"{provider}: api_key_command printed nothing; it has to print the key.")
    return key
