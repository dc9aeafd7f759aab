"""aider's `.aider.chat.history.md`: the words of a chat. What was sent beside them is not in the file."""

from __future__ import annotations

from collections.abc import Iterator

from tui.chat.interchange.foreign.reading import Builder, SourceFile, seconds
from tui.chat.interchange.recording import Recording
from tui.messages import Text

SOURCE, NAME = "aider", "aider"

START, PERSON, PROGRAM = "# aider chat started at ", "#### ", "> "
UNSCORED = "aider's history has only the text: not the files that were sent, and rounded usage"


def detect(file: SourceFile) -> bool:
    """Whether a chat begins in `file`."""
    return not file.is_database and file.text[:2000].lstrip().startswith(START)


def read(file: SourceFile) -> Iterator[Recording]:
    """Every chat in `file` in which something was answered."""
    for text in file.text.split(f"\n{START}"):
        head, _, body = text.removeprefix(START).partition("\n")
        chat = _chat(body, seconds(head.strip()))
        if chat.messages:
            yield chat.recording(SOURCE, file.stem, unscored=UNSCORED)


def _chat(body: str, at: float) -> Builder:
    model = "unknown"
    chat = Builder()
    role, lines = "", list[str]()

    def finish() -> None:
        text = "\n".join(lines).strip()
        if text and role == "user":
            chat.add("user", [Text(text)], at)
        elif text and role == "assistant" and chat.messages:
            chat.add("assistant", [Text(text)], at, provider="aider", model=model)
        lines.clear()

    fenced = False
    for line in body.split("\n"):
        if line.startswith("```"):
            fenced = not fenced
        if line.startswith(PERSON) and not fenced:
            if role != "user":
                finish()
            role = "user"
            lines.append(line.removeprefix(PERSON).rstrip())
        elif line.startswith(PROGRAM) and not fenced:
            for mark in ("> Model: ", "> Models: ", "> Main model: "):
                if line.startswith(mark):
                    model = line.removeprefix(mark).split(" with ")[0].strip() or model
        else:
            if role == "user" and line.strip():
                finish()
                role = "assistant"
            lines.append(line)
    finish()
    return chat
