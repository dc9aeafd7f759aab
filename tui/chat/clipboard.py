"""The system clipboard, through the tools of the system: copying text, pasting an image or text."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tui.chat.attachments import MAX_FILE, picture_size
from tui.config.files import find_program, open_private, private_folder
from tui.errors import ExpectedError
from tui.text.numbers import plural, size_text

COPY_TIMEOUT = 2.0
"""Seconds a tool may take to copy."""

PASTE_TIMEOUT = 5.0
"""Seconds all tools together may take to paste: PowerShell alone needs two to start."""

_POWERSHELL_IMAGE = (
    "Add-Type -AssemblyName System.Windows.Forms,System.Drawing; $i=[Windows.Forms.Clipboard]::GetImage(); if($i)"
    "{$m=New-Object IO.MemoryStream; $i.Save($m,[Drawing.Imaging.ImageFormat]::Png);"
    "[Convert]::ToBase64String($m.ToArray())}"
)
_POWERSHELL_TEXT = "[Console]::OutputEncoding=[Text.Encoding]::UTF8; Get-Clipboard -Raw"


def copy_tool(environ: Mapping[str, str], platform: str = sys.platform) -> list[str] | None:
    """The command that copies its standard input here, or None.

    Inside tmux it sets tmux's buffer, and with `-w` the clipboard of the outer terminal, which the program's own escape
    sequence would not reach. Over ssh this machine's tools would reach the wrong clipboard.
    """
    candidates: list[list[str]] = []
    if environ.get("TMUX"):
        candidates.append(["tmux", "load-buffer", "-w", "-"])
    elif not environ.get("SSH_CONNECTION"):
        if platform == "darwin":
            candidates.append(["pbcopy"])
        if environ.get("WAYLAND_DISPLAY"):
            candidates.append(["wl-copy"])
        if environ.get("DISPLAY"):
            candidates += [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
        if platform == "win32" or environ.get("WSL_DISTRO_NAME"):
            candidates.append(["clip.exe"])
    return next((command for command in candidates if find_program(command[0])), None)


async def run_copy_tool(text: str) -> str | None:
    """Pass `text` to the system's clipboard tool. Returns its name; None if there is none, or it failed."""
    command = copy_tool(os.environ)
    program = None if command is None else find_program(command[0])
    if command is None or program is None:
        return None
    devnull = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            program, *command[1:], stdin=asyncio.subprocess.PIPE, stdout=devnull, stderr=devnull
        )
        async with asyncio.timeout(COPY_TIMEOUT):
            await process.communicate(text.encode("utf-8", "replace"))
    except (OSError, TimeoutError):
        return None
    return command[0] if process.returncode == 0 else None


def copied_line(name: str, characters: int, tool: str | None) -> str:
    """The message after copying: which `tool` copied the text (`name`, if any), or that it is uncertain."""
    size = plural(characters, "character")
    subject = f"{name}, {size}" if name else size
    if tool is not None:
        return f"Copied {subject} ({tool})."
    return f"Sent {subject} to the terminal's clipboard (OSC 52). If they don't arrive, the terminal does not allow it."


@dataclass(frozen=True, slots=True)
class Tool:
    """A command that prints the clipboard, and how to decode its output."""

    command: tuple[str, ...]
    decode: Callable[[bytes], bytes] = bytes


class ClipboardError(ExpectedError):
    """There is nothing to paste. `str()` is one line: why, and what to do."""


def paste_tools(environ: Mapping[str, str], platform: str = sys.platform) -> tuple[list[Tool], list[Tool]]:
    """The installed commands for an image and for text.

    Raises `ClipboardError` if there is none for an image.
    """
    pictures: list[Tool] = []
    texts: list[Tool] = []
    missing = ""
    if environ.get("WAYLAND_DISPLAY"):
        pictures += [Tool(("wl-paste", "--type", kind)) for kind in ("image/png", "image/jpeg")]
        texts.append(Tool(("wl-paste", "--no-newline", "--type", "text")))
        missing = "wl-clipboard"
    if environ.get("DISPLAY"):
        xclip = ("xclip", "-selection", "clipboard", "-out")
        pictures += [Tool((*xclip, "-target", kind)) for kind in ("image/png", "image/jpeg")]
        texts += [Tool((*xclip, "-target", "UTF8_STRING")), Tool(("xsel", "--clipboard", "--output"))]
        missing = missing or "xclip"
    if environ.get("SSH_CONNECTION") and not missing:
        raise ClipboardError("Over ssh the clipboard is not available: bring the image here as a file, name it @path.")
    if platform == "darwin":
        script = ("osascript", "-e", "get the clipboard as «class PNGf»")
        pictures += [Tool(("pngpaste", "-")), Tool(script, _from_osascript)]
        texts.append(Tool(("pbpaste",)))
    if platform == "win32" or environ.get("WSL_DISTRO_NAME"):
        shell = ("powershell.exe", "-NoProfile", "-NonInteractive", "-STA", "-Command")
        pictures.append(Tool((*shell, _POWERSHELL_IMAGE), base64.b64decode))
        texts.append(Tool((*shell, _POWERSHELL_TEXT)))
    for_pictures = [tool for tool in pictures if find_program(tool.command[0])]
    if not for_pictures:
        todo = f"install {missing}, or" if missing else "there is no display here;"
        raise ClipboardError(f"The clipboard can't be read: {todo} save the image and name it @path.")
    return for_pictures, [tool for tool in texts if find_program(tool.command[0])]


def _from_osascript(output: bytes) -> bytes:
    """`«data PNGf8950…»`, as AppleScript writes bytes."""
    match = re.search(rb"PNGf([0-9A-Fa-f]+)", output)
    return binascii.unhexlify(match.group(1)) if match else b""


async def read(pictures: Sequence[Tool], texts: Sequence[Tool]) -> bytes | str:
    """The image in the clipboard, else its text. Raises `ClipboardError` if there is neither, or too much."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PASTE_TIMEOUT):
            for tool in pictures:
                data = await _output(tool)
                if len(data) > MAX_FILE:
                    raise ClipboardError(f"The image has over {size_text(MAX_FILE)}: no model takes that.")
                if data and picture_size(data):
                    return data
            for tool in texts:
                if text := (await _output(tool)).decode("utf-8", "replace"):
                    return text
            raise ClipboardError("The clipboard holds neither an image nor text.")
    raise ClipboardError(f"The clipboard did not answer within {PASTE_TIMEOUT:.0f} seconds.")


async def _output(tool: Tool) -> bytes:
    """The output of a tool, up to the size of an image; empty if it fails or prints something else."""
    devnull = asyncio.subprocess.DEVNULL
    program = find_program(tool.command[0])
    if program is None:
        return b""
    try:
        process = await asyncio.create_subprocess_exec(
            program, *tool.command[1:], stdin=devnull, stdout=asyncio.subprocess.PIPE, stderr=devnull
        )
    except OSError:
        return b""
    assert process.stdout is not None
    try:  # base64 and hexadecimal digits take up to twice the bytes they encode
        output = await process.stdout.readexactly(2 * MAX_FILE + 1_000)
    except asyncio.IncompleteReadError as end:
        output = b"" if await process.wait() else end.partial
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    with suppress(ValueError):
        return tool.decode(output)
    return b""


def save_picture(data: bytes, folder: Path) -> Path:
    """Write an image to a file named by its content, so that it can be attached like any other. Raises OSError."""
    kind, *_ = picture_size(data) or ("image/png",)
    path = folder / f"picture-{hashlib.sha256(data).hexdigest()[:8]}.{kind.removeprefix('image/')}"
    private_folder(folder)
    if not path.exists():
        with open_private(path, "wb") as file:
            file.write(data)
    return path
