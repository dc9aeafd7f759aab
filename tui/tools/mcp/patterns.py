"""URI templates (RFC 6570) of resources that a server does not list, filled in one variable at a time. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

_VARIABLE = re.compile(r"\{([+#./;?&]?)([\w.]+)(?:[^\w.{}][^{}]*)?\}")  # at most, for any template
_RESERVED = ":/?#[]@!$&'()*+,;="  # left unescaped in the value of {+name} (RFC 6570, section 3.2.3)


@dataclass(frozen=True, slots=True)
class ServerPattern:
    """A server's URI template, for `@server:...`."""

    server: str
    template: str
    description: str

    @property
    def head(self) -> str:
        """The beginning that all its addresses share."""
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
        """The address with `value` filled in, up to the next variable."""
        return f"{self.before}{quote(value, safe=_RESERVED if self.reserved else '')}{self.after}"


def gap(template: str, uri: str) -> Gap | None:
    """The variable at which `uri` stops following `template`; None if it does not follow it, or is complete."""
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
