"""Addresses of resources that a server does not list: they follow a template (RFC 6570), filled gap by gap. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

_VARIABLE = re.compile(r"\{([+#./;?&]?)([\w.]+)(?:[^\w.{}][^{}]*)?\}")  # in one go, however odd the template
_RESERVED = ":/?#[]@!$&'()*+,;="  # may stand as they are in the value of {+name} (RFC 6570, section 3.2.3)


@dataclass(frozen=True, slots=True)
class ServerPattern:
    """A template of a server, for `@server:...`."""

    server: str
    template: str
    description: str

    @property
    def head(self) -> str:
        """What every address of this kind begins with."""
        return self.template.partition("{")[0]


@dataclass(frozen=True, slots=True)
class Gap:
    """The variable of a URI template that is being typed.

    `before` is the address up to it, `value` what has been typed of it, `filled_in` are the variables before it,
    `after` is the text that follows it in the template. `last`: no variable follows.
    """

    variable: str
    before: str
    value: str
    filled_in: Mapping[str, str]
    after: str
    last: bool
    reserved: bool = False

    def filled(self, value: str) -> str:
        """The address with `value` in the gap, up to the next one."""
        return f"{self.before}{quote(value, safe=_RESERVED if self.reserved else '')}{self.after}"


def gap(template: str, uri: str) -> Gap | None:
    """Where `uri` stops following `template`; None where it does not follow it, or is whole."""
    pieces = _VARIABLE.split(template)  # text, operator, name, text, operator, name, ..., text
    values: dict[str, str] = {}
    at = 0
    for start in range(0, len(pieces) - 1, 3):
        text, operator, name, after = pieces[start : start + 4]
        if not uri.startswith(text, at):
            return None
        at += len(text)
        end = uri.find(after, at) if after else -1
        if end < 0:
            last = start + 4 == len(pieces)
            return Gap(name, uri[:at], unquote(uri[at:]), values, after, last, operator == "+")
        values[name] = unquote(uri[at:end])
        at = end
    return None
