"""Files with one conversation, read as the program reads them."""

from __future__ import annotations

from pathlib import Path

from tui.chat.interchange.foreign import read_recordings
from tui.chat.interchange.recording import Recording


def read_recording(path: Path) -> Recording:
    """The one conversation in `path`, or the newest of several. Raises `RecordingError`."""
    return max(read_recordings(path), key=lambda recording: recording.messages[-1].created_at)
