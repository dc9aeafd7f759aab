from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tui.config.paths import TooLargeError, read_all


def test_a_file_and_a_pipe_are_read_up_to_a_size(tmp_path: Path) -> None:
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.write_bytes(b"12345")
    assert read_all(file, 5) == b"12345"
    with pytest.raises(TooLargeError):
        read_all(file, 4)
    os.mkfifo(pipe)
    for most, whole in ((5, True), (4, False)):
        writer = threading.Thread(target=pipe.write_bytes, args=(b"12345",))
        writer.start()
        if whole:
            assert read_all(pipe, most) == b"12345"
        else:
            with pytest.raises(TooLargeError):
                read_all(pipe, most)
        writer.join()


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero on this system")
def test_a_device_never_ends_and_is_not_begun() -> None:
    with pytest.raises(OSError, match="it is a device"):
        read_all(Path("/dev/zero"), 1_000)
