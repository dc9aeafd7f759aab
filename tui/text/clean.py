"""Makes untrusted text safe for a terminal: it can't move the cursor, set colours or reorder cells."""

from __future__ import annotations

import re

TAB_SIZE = 4
"""Columns of a tab stop."""

# C0 but tab and newline, DEL, C1, line and paragraph separators, bidirectional overrides (they reorder what a reader
# sees), lone surrogates (they cannot be encoded and would end the program while it writes to the terminal).
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # C0 but tab and newline, DEL, C1
_ESCAPE = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # CSI, as in ECMA-48 5.4
    "|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)"  # OSC up to its terminator
    "|\x1b[PX^_][^\x1b]*\x1b\\\\"  # DCS, SOS, PM, APC
    "|\x1b[ -/]*[0-~]"
)


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)  # the control pictures block
    if code == 0x7F:
        return "\u2421"
    if code in (0x2028, 0x2029):
        return "\n"
    return "\ufffd"


def clean_text(text: str) -> str:
    """`text` with control characters made visible; keeps tabs and newlines, CR LF and CR become LF."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSAFE.sub(_visible, text)


def clean_copied(text: str) -> str:
    """`text` for the clipboard: control characters are made visible, since they could end a paste into a terminal.

    Marks of direction stay: what is copied is not rewritten.
    """
    return _CONTROLS.sub(_visible, text.replace("\r\n", "\n").replace("\r", "\n"))


def clean_output(text: str) -> str:
    """Like `clean_text`, but removes whole escape sequences: a program's coloured output stays readable."""
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    return clean_text(text)


def clean_line(text: str) -> str:
    """One line for a label or a summary: cleaned, with runs of white space as single blanks."""
    return " ".join(clean_output(text).split())


def error_line(error: BaseException) -> str:
    """The text of an error on one line; its type if it has none."""
    return clean_line(str(error)) or type(error).__name__


def clean_url(url: str) -> str:
    """`url` if it is safe in an OSC 8 link and is a web or mail address, else ""."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return ""
    return url if url.lower().startswith(("http://", "https://", "mailto:")) else ""


def abbreviated(text: str, length: int) -> str:
    """At most `length` characters of `text`, with an ellipsis if something was cut off."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
