from __future__ import annotations

from pathlib import Path

import pytest

from tui.config.paths import at_home, from_home, new_file


def test_a_home_is_read_as_a_shell_reads_it() -> None:
    assert at_home("~/x") == Path.home() / "x"
    assert at_home("~nobody-here/x") == Path("~nobody-here/x")
    with pytest.raises(ValueError, match="'~nobody-here' is no home folder here"):
        from_home("~nobody-here/x")
    assert from_home("a/~b") == Path("a/~b")


def test_a_new_file_is_over_none_that_is_there(tmp_path: Path) -> None:
    assert new_file(f"{tmp_path}/a.md") == tmp_path / "a.md"
    (tmp_path / "a.md").touch()
    with pytest.raises(ValueError, match="is there already: name another file"):
        new_file(f"{tmp_path}/a.md")
    with pytest.raises(ValueError, match=r"no file can be called 'aaa.*name another"):
        new_file("a" * 5_000)
