"""Terminal input as keys and pastes: Textual's parser with corrections.

A paste is text. Textual (8.2) treats an ESC inside a bracketed paste as the beginning of a key and the rest as keys:
lines are sent, commands run. Here everything between the brackets is one `Paste`, cleaned.

What a terminal answers, mostly to a program that ran before, and keys that Textual does not know do nothing; Textual
types them, and a BEL in them is ctrl+g. Bytes that are not UTF-8 are replaced; Textual ends with a traceback.

Older key encodings: alt+enter (ESC CR) and shift+enter of modifyOtherKeys and of Konsole were read as enter, alt+up of
PuTTY or screen (ESC ESC [ A) as escape and up.
"""

from __future__ import annotations

import re
import sys
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING

from textual._xterm_parser import XTermParser
from textual.events import Key, Paste
from textual.keys import Keys
from textual.message import Message

from tui.text.clean import clean_text

if TYPE_CHECKING:
    from textual.driver import Driver

PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"

_SEQUENCES = {
    "\x1b\r": "alt+enter",
    "\x1b\n": "alt+enter",
    "\x1bOM": "shift+enter",  # Konsole's default keytab; elsewhere the keypad's enter, in a mode not used here
    "\x1b[7^": "ctrl+home",  # rxvt
    "\x1b[8^": "ctrl+end",
    **{f"\x1b[1;9{letter}": f"alt+{key}" for letter, key in zip("ABCD", ("up", "down", "right", "left"), strict=True)},
}
"""Sequences missing or different in Textual's table. `1;9` is alt in iTerm2 (its modifier 8 is meta)."""

_OTHER_KEY = re.compile(r"\x1b\[27;(\d{1,3});(\d{1,7})~")  # xterm's modifyOtherKeys with formatOtherKeys=0
_ALT_KEY = re.compile(r"\x1b\x1b(?:[\[O]([A-DHF])|\[([1-8])~)")
_HALF = re.compile(r"\x1b(\x1b(?:[\[O]|\[[1-8])?|[\]P_^X][^\x07\x1b]+\x1b?)$")  # of an alt key, of an answer
_ANSWER = re.compile(r"\x1b[\]P_^X][^\x07\x1b]+(?:\x07|\x1b\\)")  # OSC, DCS, APC, PM, SOS
_IGNORED_CSI = "\x1b[?c"
_CSI = re.compile(r"\x1b\[[0-?]+[ -/]*[@-LN-ln-xz~]")  # except mouse (M, m) and mode (y) reports, which Textual reads
_SHIFT = 0b1


class TerminalParser(XTermParser):
    """Textual's parser with corrections. Installed by `use_terminal_parser`."""

    in_line_mode = 0
    """Bytes typed while the terminal was still in line mode, which makes a newline of enter."""

    def __init__(self, debug: bool = False) -> None:
        self._paste: list[str] | None = None  # the pieces of an unfinished paste
        self._after_escape = False  # whether the last input to Textual's parser was an ESC
        self._partial_key = ""  # the beginning of a key or answer, except for an ESC that Textual's parser has
        self._tail = ""  # the end of the input, which may begin a bracket
        super().__init__(debug)

    def feed(self, data: str) -> Iterable[Message]:
        """The events in `data`, which may be cut anywhere; "" is the end of the input."""
        if not data:
            yield from super().feed(data)
        elif TerminalParser.in_line_mode:
            size, TerminalParser.in_line_mode = TerminalParser.in_line_mode, 0
            data = with_enter(data, size)
        while data:
            data = yield from (self._read_keys(data) if self._paste is None else self._read_paste(data))

    def _read_keys(self, data: str) -> Generator[Message, None, str]:
        """The events before a paste, whose opening bracket Textual's parser reads too. Returns the rest."""
        at = (self._tail + data).find(PASTE_START)
        end = len(data) if at < 0 else at + len(PASTE_START) - len(self._tail)
        keys, rest = self._partial_key + data[:end], data[end:]
        escape = "\x1b" if self._timeout_time is not None and self._after_escape else ""  # pending
        self._tail = (self._tail + data[:end])[1 - len(PASTE_START) :]
        half = _HALF.search(escape + keys) if at < 0 else None
        self._partial_key = half.group(1) if half else ""
        keys = keys[: len(keys) - len(self._partial_key)]
        if keys:
            self._after_escape = keys.endswith("\x1b")
            yield from super().feed(_with_new_encodings(escape + keys)[len(escape) :])
        if at >= 0:
            self._paste, self._tail = [], ""
        return rest

    def _read_paste(self, data: str) -> Generator[Message, None, str]:
        """The paste, once its end arrives. Returns the rest."""
        assert self._paste is not None
        data = self._tail + data
        text, end, rest = data.partition(PASTE_END)
        if not end:
            partial = next(size for size in range(len(PASTE_END) - 1, -1, -1) if data.endswith(PASTE_END[:size]))
            self._paste.append(data[: len(data) - partial])
            self._tail = PASTE_END[:partial]
            return ""
        self._paste.append(text)
        pasted, self._paste, self._tail = "".join(self._paste), None, ""
        for event in super().feed(PASTE_END):
            if not isinstance(event, Paste):  # Textual's own, which is empty
                yield event
        yield Paste(clean_text(pasted))
        return rest

    def tick(self) -> Iterable[Message]:
        """Emit a pending escape, and a pending partial key, as keys once nothing follows."""
        yield from super().tick()
        if self._partial_key and self._timeout_time is None:
            keys, self._partial_key = self._partial_key, ""
            self._after_escape = keys == "\x1b"
            yield from super().feed(keys)

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[Key]:
        if key := _SEQUENCES.get(sequence):
            return [Key(key, None)]
        if match := _OTHER_KEY.fullmatch(sequence):
            modifiers, code = int(match.group(1)), int(match.group(2))
            if (modifiers - 1) & ~_SHIFT or code < 32 or code == 127:  # otherwise it is a letter
                return [key.copy() for key in self._parse_extended_key(f"\x1b[{code};{modifiers}u") or ()]
        try:
            keys = list(super()._sequence_to_key_events(sequence, alt))
        except (ValueError, OverflowError):  # no character has that number
            keys = []
        return [Key(Keys.Ignore, sequence)] if not keys and _CSI.fullmatch(sequence) else keys


def with_enter(data: str, size: int) -> str:
    """`data` with enter as a key, if that ends the first `size` bytes, which are a single line.

    Several lines may be pasted: they stay text.
    """
    typed = data.encode()[:size].decode(errors="ignore")
    return f"{typed[:-1]}\r{data[len(typed) :]}" if typed.find("\n") == len(typed) - 1 >= 0 else data


def _with_new_encodings(data: str) -> str:
    """`data` without answers, and with alt as a modifier instead of a leading ESC, which Textual takes for a key."""
    if data == "\\\r\n":  # sent by some VS Code configurations for shift+enter
        return "\x1b[13;2u"
    if "\x1b" not in data:
        return data
    data = _ANSWER.sub(_IGNORED_CSI, data)
    return _ALT_KEY.sub(lambda match: f"\x1b[1;3{match[1]}" if match[1] else f"\x1b[{match[2]};3~", data)


def _any_bytes(encoding: str) -> Callable[[], IncrementalDecoder]:
    """A maker of decoders that replace what is not in `encoding`."""
    return lambda: getincrementaldecoder(encoding)("replace")


def use_terminal_parser(driver: type[Driver], in_line_mode: int = 0) -> type[Driver]:
    """Let `driver` read with `TerminalParser` and any bytes; Textual has no other way to set them.

    `in_line_mode` is how many bytes were typed before the terminal was in raw mode.
    """
    TerminalParser.in_line_mode = in_line_mode
    for name in (driver.__module__, "textual.drivers.win32"):
        if hasattr(module := sys.modules.get(name), "XTermParser"):
            setattr(module, "XTermParser", TerminalParser)  # noqa: B010
        if hasattr(module, "getincrementaldecoder"):
            setattr(module, "getincrementaldecoder", _any_bytes)  # noqa: B010
    return driver
