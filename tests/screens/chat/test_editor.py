"""The external editor: whatever becomes of it, neither the draft nor what was written in it is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.commands import EditorError
from tui.screens.chat.ui import edit_externally


def in_editor(monkeypatch: pytest.MonkeyPatch, script: str) -> str:
    """What comes of the draft "before" where this shell script (`$1` is the file) is the editor."""
    monkeypatch.setenv("VISUAL", f"sh -c '{script}' editor")
    return edit_externally("before", ())


def test_what_was_written_is_the_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_editor(monkeypatch, 'printf "after\\n" > "$1"') == "after"
    assert in_editor(monkeypatch, 'printf "a\\377b" > "$1"') == "a\ufffdb"
    assert in_editor(monkeypatch, ': > "$1"') == ""


@pytest.mark.parametrize(
    ("script", "says", "written"),
    [
        ('printf after > "$1"; exit 1', "code 1", "after"),
        ('printf after > "$1"; kill -SEGV $$', "code -11", "after"),
        ("exit 1", "code 1", ""),
        ('rm "$1"', "left no file", ""),
        ('rm "$1"; mkdir "$1"', "left no file", ""),
        ('rm -r "${1%/*}"; touch "${1%/*}"', "left no file", ""),
    ],
)
def test_an_editor_that_fails_leaves_the_draft_as_it_was(
    monkeypatch: pytest.MonkeyPatch, script: str, says: str, written: str
) -> None:
    with pytest.raises(EditorError, match=says) as failed:
        in_editor(monkeypatch, script)
    assert failed.value.written == written and "the draft is as it was" in str(failed.value)


def test_an_editor_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for command in (str(tmp_path / "editor"), "'unclosed"):
        monkeypatch.setenv("VISUAL", command)
        with pytest.raises(EditorError, match="could not be started"):
            edit_externally("before", ())


def test_a_draft_without_a_file_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(EditorError, match="can't be made"):
        in_editor(monkeypatch, ":")
