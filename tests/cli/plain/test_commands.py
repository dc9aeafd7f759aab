"""The commands of `chatctx --plain`, one after another in one process: what they say, and what they refuse."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run

SAID = {
    "/rename My title": "This conversation is called My title.",
    "/find demo": "1 line.",
    "/window 16k": "The window of this model is 16,000 tokens.",
    "/window reset": "The window of this model is 8,192 tokens.",
    "/thinking high": "Reasoning effort: high.",
    "/system Be brief.": "The system prompt is changed from the next message on.",
    "/system": "Be brief.",
    "/memory": "AGENTS.md: sent",
    "/memory AGENTS.md": "AGENTS.md is not sent any more.",
    "/usage": "this conversation      1",
    "/export out.md": "Written to ",
    "/rolling-context on": "Rolling context is on: old content is left out.",
    "/rolling-context": "Rolling context is off.",
    "/undo": "There is no compaction to take back.",
    "/sessions": "/sessions and an id opens one.",
    "/sessions no such words": "No conversation contains that.",
    "/model demo": "demo/guide answers from now on.",
    "/retry": "This is the demo",
    "/delete": "My title is deleted. /delete undo brings it back.",
}
REFUSED = {
    "/find": "/find needs words to look for",
    "/rename": "/rename needs a title",
    "/window big": "'big' is not a number of tokens",
    "/thinking hard": "/thinking takes off, low, medium, high or default, not 'hard'",
    "/memory x": "there is no one memory file 'x'",
    "/export out.md": "out.md is there already: name another file",
    "/export no/x.md": "no/x.md can't be written (No such file or directory)",
    "/export x.doc": "x.doc: the ending says the form",
    "/import": "/import needs a file",
    "/import no": "no: No such file or directory",
    "/rolling-context maybe": "/rolling-context takes on or off, not 'maybe'",
    "/compact --foo": "/compact knows --preview, not --foo",
    "/model no/x": "unknown provider 'no'",
    "/theme": "/theme needs the screen",
    "/mcp restart x": "There is no MCP server 'x'",
    "/nonsense": "There is no command /nonsense",
    "/delete undo": "nothing was deleted since the start",
}


def test_what_they_say_and_refuse(run: Run, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be kind.")
    last = "/delete"
    lines = ["hello", *(line for line in SAID if line != last), *REFUSED, last, last, "/delete undo", "/quit"]
    done = run("--plain", stdin="\n".join(lines) + "\n", cwd=tmp_path)
    assert done.returncode == 0
    assert [words for words in SAID.values() if words not in done.stdout] == []
    errors = done.stderr.splitlines()
    assert [words for words in REFUSED.values() if not any(words in line for line in errors)] == []
    assert len(errors) == len(REFUSED) + 1  # and that an empty conversation can't be deleted
    assert all(line.startswith("chatctx: ") and "Nothing was lost" not in line for line in errors)  # no own errors
    assert "hello" in (tmp_path / "out.md").read_text()
