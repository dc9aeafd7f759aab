"""Messages to fill a transcript with."""

from __future__ import annotations

from tui.messages import Message, Text


def conversation(count: int, words: int = 20) -> list[Message]:
    """Questions and answers by turns, `n0`, `n1`, ... and as many words each."""
    return [
        Message(
            "assistant" if number % 2 else "user", (Text(f"n{number} " + "word " * words),), f"m{number}", model="m"
        )
        for number in range(count)
    ]


def odd(count: int) -> list[Message]:
    """Messages whose heights nobody can guess: blank lines that vanish, code and tables that grow."""
    bodies = ("few" + "\n" * 9 + "words", "|a|b|\n|-|-|\n|1|2|\n", "```\nx\n```\n" * 3, "# h\n\n" * 4, "plain " * 30)
    return [
        Message("assistant", (Text(f"n{number}\n\n{bodies[number % 5]}"),), f"m{number}", model="m")
        for number in range(count)
    ]
