"""What terminals send for the keys in the README, through the parser that reads it."""

from __future__ import annotations

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import constants
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key, Paste
from textual.message import Message

from tui.terminal.input import TerminalParser, use_terminal_parser

KITTY = {  # https://sw.kovidgoyal.net/kitty/keyboard-protocol/, "disambiguate escape codes"
    "enter": "\r",
    "shift+enter": "\x1b[13;2u",
    "alt+enter": "\x1b[13;3u",
    "ctrl+j": "\x1b[106;5u",
    "escape": "\x1b[27u",
    "alt+up": "\x1b[1;3A",
    "alt+down": "\x1b[1;3B",
    "ctrl+home": "\x1b[1;5H",
    "ctrl+end": "\x1b[1;5F",
    "ctrl+c": "\x1b[99;5u",
    "ctrl+p": "\x1b[112;5u",
    "f1": "\x1b[P",
}
LEGACY = {
    "enter": "\r",
    "alt+enter": "\x1b\r",
    "ctrl+j": "\n",
    "escape": "\x1b",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "backspace": "\x7f",
    "alt+up": "\x1b[1;3A",
    "alt+down": "\x1b[1;3B",
    "ctrl+home": "\x1b[1;5H",
    "ctrl+end": "\x1b[1;5F",
    "ctrl+c": "\x03",
    "ctrl+d": "\x04",
    "ctrl+g": "\x07",
    "ctrl+p": "\x10",
    "ctrl+q": "\x11",
    "ctrl+r": "\x12",
    "ctrl+v": "\x16",
    "ctrl+z": "\x1a",
    "up": "\x1b[A",
    "pageup": "\x1b[5~",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "f1": "\x1bOP",
}
TERMINALS: dict[str, dict[str, str]] = {
    "xterm": LEGACY,
    "xterm, modifyOtherKeys": LEGACY
    | {"shift+enter": "\x1b[27;2;13~", "alt+enter": "\x1b[27;3;13~"}
    | {"ctrl+c": "\x1b[27;5;99~", "ctrl+j": "\x1b[27;5;106~"},
    "VTE (GNOME Terminal)": LEGACY,
    "Konsole": LEGACY | {"shift+enter": "\x1bOM"},
    "Terminal.app": LEGACY | {"alt+up": "\x1b\x1b[A", "alt+down": "\x1b\x1b[B"},
    "iTerm2": LEGACY | {"alt+up": "\x1b[1;9A", "alt+down": "\x1b[1;9B"},
    "iTerm2, option sends Esc+": LEGACY | {"alt+up": "\x1b\x1b[A"},
    "iTerm2, CSI u": KITTY,
    "kitty": KITTY,
    "WezTerm": LEGACY,
    "WezTerm, kitty protocol": KITTY,
    "Windows Terminal": LEGACY,
    "VS Code": LEGACY,
    "VS Code, shift+enter bound to a backslash": {"shift+enter": "\\\r\n"},
    "PuTTY": LEGACY
    | {"alt+up": "\x1b\x1b[A", "alt+down": "\x1b\x1b[B", "home": "\x1b[1~", "end": "\x1b[4~", "f1": "\x1b[11~"},
    "PuTTY, application cursor keys": {"alt+up": "\x1b\x1bOA", "alt+down": "\x1b\x1bOB"},
    "tmux": LEGACY | {"home": "\x1b[1~", "end": "\x1b[4~"},
    "tmux, extended-keys csi-u": KITTY | {"escape": "\x1b"},
    "tmux, extended-keys xterm": LEGACY | {"shift+enter": "\x1b[27;2;13~", "alt+enter": "\x1b[27;3;13~"},
    "tmux, xterm-keys off": {"alt+up": "\x1b\x1b[A"},
    "screen": LEGACY | {"alt+up": "\x1b\x1b[A", "home": "\x1b[1~", "end": "\x1b[4~"},
    "rxvt-unicode": LEGACY | {"home": "\x1b[7~", "end": "\x1b[8~", "ctrl+home": "\x1b[7^", "ctrl+end": "\x1b[8^"},
    "Linux console": LEGACY | {"f1": "\x1b[[A", "home": "\x1b[1~", "end": "\x1b[4~"},
}  # fmt: skip


def read(*pieces: str) -> list[Message]:
    """The events of what a terminal sends, once an escape that stands alone is taken for the key."""
    parser = TerminalParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    parser._timeout_time = 0.0 if parser._timeout_time is not None else None
    return [*events, *parser.tick()]


def names(events: list[Message]) -> list[str]:
    return [event.key if isinstance(event, Key) else type(event).__name__ for event in events]


def text_of(events: list[Message]) -> str:
    """What a prompt would hold: letters and pastes, in order."""
    return "".join(
        event.text if isinstance(event, Paste) else event.character or ""
        for event in events
        if isinstance(event, Paste) or (isinstance(event, Key) and event.is_printable)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "sent"),
    [pytest.param(*pair, id=f"{terminal} {pair[0]}") for terminal, keys in TERMINALS.items() for pair in keys.items()],
)
def test_a_terminal_s_key_is_that_key(key: str, sent: str) -> None:
    assert names(read(sent)) == [key]
    if len(sent) > 1 and sent != "\\\r\n":
        assert names(read(*sent)) == [key]  # one byte at a time
    assert [event.is_printable for event in read(sent) if isinstance(event, Key)] == [False]


def test_an_escape_that_was_read_before_belongs_to_the_arrow_behind_it() -> None:
    assert names(read("\x1b", "\x1b[A")) == ["alt+up"]
    assert names(read("x\x1b", "\x1bOB", "y")) == ["x", "alt+down", "y"]
    assert names(read("\x1b\x1b", "[A")) == ["alt+up"]
    assert names(read("\x1b\x1bx")) == ["escape", "alt+x"]


def test_escape_and_a_key_pressed_later_are_two_keys() -> None:
    parser = TerminalParser()
    events = list(parser.feed("\x1b"))
    time.sleep(constants.ESCAPE_DELAY)
    events += [*parser.tick(), *parser.feed("\x1b[A")]
    assert names(events) == ["escape", "up"]
    events = list(parser.feed("\x1b\x1b"))
    for _ in range(2):
        time.sleep(constants.ESCAPE_DELAY)
        events += parser.tick()
    assert names(events) == ["escape", "escape"]


def test_letters_of_modify_other_keys_are_letters() -> None:
    assert text_of(read("\x1b[27;2;69~")) == "E"
    assert text_of(read("\x1b[27;2;196~")) == "Ä"
    assert text_of(read("\x1b[27;5;101~")) == ""


ANSWERS = {
    "background, OSC 11, ended by BEL": "\x1b]11;rgb:1e1e/1e1e/2e2e\x07",
    "background, ended by ST": "\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\",
    "clipboard, OSC 52": "\x1b]52;c;aGVsbG8=\x07",
    "device attributes": "\x1b[?62;22;52c",
    "secondary device attributes": "\x1b[>1;5802;0c",
    "status": "\x1b[0n",
    "size": "\x1b[8;24;80t",
    "keyboard protocol": "\x1b[?1u",
    "name, XTVERSION": "\x1bP>|tmux 3.5a\x1b\\",
    "a setting, DECRQSS": "\x1bP1$r0 q\x1b\\",
    "kitty's graphics": "\x1b_Gi=31;OK\x1b\\",
    "a key of a number that is no character": "\x1b[99999999;1u",
    "a key that nobody knows": "\x1b[77;1^",
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_what_a_terminal_answers_is_not_typed(answer: str) -> None:
    for cut in (len(answer), *range(4, len(answer))):
        events = read(f"a{answer[:cut]}", f"{answer[cut:]}b{answer}")
        assert names(events) == ["a", "b"], cut
    assert names(read("\x1bP", "x")) == ["alt+shift+p", "x"]


def test_bytes_that_are_not_utf_8_are_typed_as_replacements() -> None:
    driver = use_terminal_parser(LinuxDriver)
    decoder = sys.modules[driver.__module__].getincrementaldecoder("utf-8")()
    assert decoder.decode(b"caf\xe9 \xc3") + decoder.decode(b"\xa4", final=True) == "caf\ufffd ä"


PASTES = (
    "two\nlines",
    "\x1bb\r/export\r\x07c",
    "\x1b[A\x1b[200~\x1b[B",
    "\x1b",
    "\x1b[20",
    "ends in half a bracket \x1b[201",
    "\x1b[31mred\x1b[0m \x00 \x9b1m \u202e",
    "",
)


@pytest.mark.parametrize("pasted", PASTES)
@pytest.mark.parametrize("size", [1, 3, 7, 4_096])
def test_a_paste_is_text_whatever_is_in_it(pasted: str, size: int) -> None:
    sent = f"a\x1b[200~{pasted}\x1b[201~b\r"
    events = read(*[sent[start : start + size] for start in range(0, len(sent), size)])
    assert names(events) == ["a", "Paste", "b", "enter"]
    (paste,) = [event for event in events if isinstance(event, Paste)]
    assert [
        letter for letter in paste.text if letter not in "\n\t" and (ord(letter) < 32 or 127 <= ord(letter) < 160)
    ] == []
    shown = [letter for letter in pasted if letter.isprintable()]
    assert [letter for letter in paste.text if letter in shown] == [letter for letter in shown if letter != "\u202e"]


@given(
    st.lists(st.sampled_from([*PASTES, "x" * 5_000]), max_size=4), st.lists(st.integers(1, 9), min_size=1, max_size=4)
)
def test_pastes_and_letters_keep_their_order(pastes: list[str], sizes: list[int]) -> None:
    sent = "".join(f"{number}\x1b[200~{text}\x1b[201~" for number, text in enumerate(pastes)) + "z"
    pieces, position, number = [], 0, 0
    while position < len(sent):
        pieces.append(sent[position : position + sizes[number % len(sizes)]])
        position, number = position + len(pieces[-1]), number + 1
    expected = [name for number in range(len(pastes)) for name in (str(number), "Paste")]
    assert names(read(*pieces)) == [*expected, "z"]


def test_a_large_paste_costs_what_its_length_costs() -> None:
    def seconds(lines: int) -> float:
        text = "some words in a line\n" * lines
        begin = time.process_time()
        (paste,) = read(f"\x1b[200~{text}\x1b[201~")
        assert isinstance(paste, Paste) and paste.text == text
        return time.process_time() - begin

    assert seconds(50_000) < 40 * max(seconds(5_000), 0.005)  # ten times as long
