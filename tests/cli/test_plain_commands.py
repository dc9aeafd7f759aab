"""Every command in `chatctx --plain`, one after another; `/copy` and `/paste` with the tools of a desktop."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.machine import program
from tests.messages import PNG
from tui.commands import all_commands

SAID = {
    "/context": "next request, as it would be sent",
    "/rename My title": "This conversation is called My title.",
    "/find demo": "1 line.",
    "/window 16k": "The window of this model is 16,000 tokens (set by you).",
    "/window reset": "The window of this model is 8,192 tokens",
    "/thinking high": "Reasoning effort: high.",
    "/system Be brief.": "The system prompt is changed from the next message on.",
    "/system": "System prompt (/system off removes it): Be brief.",
    "/system off": "No system prompt is sent from the next message on.",
    "/memory": "/memory FILE",
    "/memory AGENTS.md": "AGENTS.md is not sent any more, from the next message on.",
    "/usage": "estimates off by",
    "/export out.md": "Written to ",
    "/rolling-context on": "Rolling context is on: old content is left out",
    "/rolling-context toggle": "Rolling context is off: old content is summarised",
    "/sessions": "/sessions ID chooses one.",
    "/sessions no such words": "No matches.",
    "/model": "/model NAME chooses one.",
    "/model demo": "demo/guide is the model from now on.",
    "/provider": "/provider NAME",
    "/tools": "This model does not support tools",
    "/mcp": "No servers yet.",
    "/prompt": "No running MCP server offers prompts.",
    "/retry": "This is the demo",
    "/leave-out": "The last turn is not sent any more",
    "/help": "/rolling-context [on|off]",
    "/delete": "'My title' is deleted. /delete undo restores it.",
    "/delete undo": "'My title' is restored.",
}
REFUSED = {
    "/undo": "There is no compaction to undo.",
    "/summary": "There is no summary",
    "/find": "/find needs words to look for",
    "/rename": "/rename needs a title",
    "/window big": "'big' is not a number of tokens",
    "/thinking hard": "/thinking takes off, minimal, low, medium, high, xhigh, max or default, not 'hard'",
    "/memory x": "No single memory file matches 'x'",
    "/export out.md": "There is a file out.md already: name another",
    "/export no/x.md": "Can't write no/x.md (No such file or directory)",
    "/export x.doc": "x.doc: the suffix names the format",
    "/import": "/import needs a file",
    "/import no": "no: No such file or directory",
    "/rolling-context maybe": "/rolling-context takes on or off, not 'maybe'",
    "/compact --foo": "/compact has the option --preview, not --foo",
    "/compact --preview": "Nothing was changed.",
    "/provider demo": "There is no provider 'demo'",
    "/provider anthropic": "Setting up a provider asks questions",
    "/model no/x": "Unknown provider 'no'",
    "/theme": "/theme needs the screen",
    "/fold": "/fold needs the screen",
    "/times": "/times needs the screen",
    "/edit": "/edit needs the screen",
    "/copy": "The clipboard is not available here",
    "/paste": "The clipboard can't be read",
    "/mcp restart x": "There is no MCP server 'x'",
    "/nonsense": "There is no command /nonsense",
    "/delete undo": "No conversation was deleted since chatctx started",
    "/new": "",  # says nothing: what follows finds an empty conversation
    "/delete": "This conversation is empty.",
}
NO_CLIPBOARD = dict.fromkeys(("TMUX", "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "WSL_DISTRO_NAME"), "")


@pytest.mark.slow
def test_what_they_say_and_refuse(run: Run, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be kind.")
    last = ("/delete", "/delete undo")
    told = {line.split()[0] for line in (*SAID, *REFUSED)}
    lines = [
        "hello",
        *(f"/{command.name}" for command in all_commands() if f"/{command.name}" not in told | {"/quit"}),
        *(line for line in SAID if line not in last),
        *(line for line in REFUSED if line not in ("/new", "/delete")),
    ]
    lines += [*last, "/new", "/delete", "/quit", "/help"]
    done = run("--plain", stdin="\n".join(lines) + "\n", cwd=tmp_path, **NO_CLIPBOARD)
    assert done.returncode == 0
    assert [words for words in SAID.values() if words not in done.stdout] == []
    errors = done.stderr.splitlines()
    assert [words for words in REFUSED.values() if not any(words in line for line in errors)] == []
    assert all(
        line.startswith("chatctx: ") and "Nothing stored is lost" not in line for line in errors
    )  # no own errors
    assert "hello" in (tmp_path / "out.md").read_text()
    assert done.stdout.count("/rolling-context [on|off]") == 1  # nothing runs after /quit
    assert "\x1b" not in done.stdout + done.stderr


DESKTOP = {"TMUX": "", "DISPLAY": "", "SSH_CONNECTION": "", "WSL_DISTRO_NAME": "", "WAYLAND_DISPLAY": "wayland-0"}


@pytest.fixture
def bin_dir(tmp_path: Path) -> Path:
    """The only folder in which commands are found."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_an_answer_is_copied_and_a_picture_kept(run: Run, bin_dir: Path, tmp_path: Path) -> None:
    (bin_dir / "data").write_bytes(PNG)
    program(bin_dir, "wl-copy", f"exec /bin/cat > {bin_dir}/copied")
    program(bin_dir, "wl-paste", f"exec /bin/cat {bin_dir}/data")
    done = run("--plain", stdin="/copy\nhi\n/copy\n/paste\n", PATH=str(bin_dir), **DESKTOP)
    assert done.returncode == 0
    assert done.stderr == "chatctx: There is no answer to copy yet.\n"
    assert (bin_dir / "copied").read_text().startswith("**This is the demo")
    assert "characters (wl-copy)." in done.stdout
    [picture] = (tmp_path / "data" / "pictures").iterdir()
    assert picture.read_bytes() == PNG
    assert f"@{picture}" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.slow
def test_without_tools_the_lines_say_what_to_do_and_a_deletion_is_taken_back(run: Run, bin_dir: Path) -> None:
    lines = "/delete\n/delete undo\nfirst words\n/copy\n/paste\n/delete\n/sessions\n/delete undo\n/find first\n"
    done = run("--plain", stdin=lines, PATH=str(bin_dir), **DESKTOP)
    nothing, none, copy, paste = done.stderr.splitlines()
    assert "This conversation is empty" in nothing
    assert "No conversation was deleted" in none
    assert "/export FILE" in copy
    assert "install wl-clipboard" in paste
    assert "'first words' is deleted. /delete undo restores it.\nNo conversations yet." in done.stdout
    assert "user: first words" in done.stdout
