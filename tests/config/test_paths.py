from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tui.config.paths import FileTooLargeError, at_home, from_home, new_file, read_all


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


def test_a_file_and_a_pipe_are_read_up_to_a_size(tmp_path: Path) -> None:
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.write_bytes(b"12345")
    assert read_all(file, 5) == b"12345"
    with pytest.raises(FileTooLargeError):
        read_all(file, 4)
    os.mkfifo(pipe)
    for most, whole in ((5, True), (4, False)):
        writer = threading.Thread(target=pipe.write_bytes, args=(b"12345",))
        writer.start()
        if whole:
            assert read_all(pipe, most) == b"12345"
        else:
            with pytest.raises(FileTooLargeError):
                read_all(pipe, most)
        writer.join()


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero on this system")
def test_a_device_never_ends_and_is_not_begun() -> None:
    with pytest.raises(OSError, match="it is a device"):
        read_all(Path("/dev/zero"), 1_000)
