"""Makes untrusted text safe for a terminal: it can't move the cursor, set colours or reorder cells."""

from __future__ import annotations

import errno
import re

from tui.errors import ExpectedError

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


_NEXT_STEPS = {
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "close other programs, or allow more open files (ulimit -n)"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space and try again"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "change the permissions and try again"),
    errno.EIO: "check the disk and try again",
}


def error_line(error: BaseException) -> str:
    """The text of an error on one line; its type if it has none. One of the system has its reason and a next step."""
    match error:
        case OSError(errno=int(number), strerror=str(reason), filename=place) if reason:
            return clean_line(f"{reason}{f' ({place})' if place else ''}: {_NEXT_STEPS.get(number, 'try again')}")
        case _:
            return clean_line(str(error)) or type(error).__name__


def failure_line(error: BaseException, log_file: object = None) -> str:
    """An error that nothing else handles, on one line; if it is not one of the system, it is a bug."""
    text = error_line(error)
    if isinstance(error, ExpectedError) and str(error):
        return text
    if not (isinstance(error, OSError) and error.errno):
        text = f"a bug: {type(error).__name__}: {str(error) and text}".rstrip(": ")
    return f"{text[:300]}. Nothing stored is lost{f'; details are in {log_file}' if log_file else ''}"


def clean_url(url: str) -> str:
    """`url` if it is safe in an OSC 8 link and is a web or mail address, else ""."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return ""
    return url if url.lower().startswith(("http://", "https://", "mailto:")) else ""


def abbreviated(text: str, length: int) -> str:
    """At most `length` characters of `text`, with an ellipsis if something was cut off."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
