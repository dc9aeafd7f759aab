from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from tui.providers.http.body import BodyEncoder
from tui.providers.wire import whole_texts

TEXTS = ("plain", "naïve 漢字 🎉", "\ud83d", "a\ud83d", '"quoted"\n', "")


def any_message(chance: Random) -> dict[str, Any]:
    content: Any = chance.choice(TEXTS)
    if chance.random() < 0.4:
        content = [{"type": "text", "text": chance.choice(TEXTS)}, {"type": "x", "n": chance.choice((1, 1.5, None))}]
    return {"role": chance.choice(("user", "assistant")), "content": content}


@pytest.mark.parametrize("field", ["messages", "input", "other"])
@pytest.mark.parametrize("seed", range(5))
def test_a_request_that_repeats_another_is_the_json_of_its_own(seed: int, field: str) -> None:
    chance, encoder = Random(seed), BodyEncoder()
    messages: list[dict[str, Any]] = []
    for _ in range(40):
        match chance.choice(("add", "add", "cut", "edit", "equal")):
            case "add":
                messages = [*messages, any_message(chance)]
            case "cut":
                messages = messages[: chance.randrange(len(messages) + 1)]
            case "edit" if messages:
                index = chance.randrange(len(messages))
                messages = [*messages[:index], any_message(chance), *messages[index + 1 :]]
            case _:  # other objects, the same values
                messages = [dict(message) for message in messages]
        body = {"model": "m", field: list(messages), "stream": True, "note": chance.choice(TEXTS)}
        encoded = encoder.encode(body)
        assert json.loads(encoded) == whole_texts(body)
        expected = json.dumps(whole_texts(body), ensure_ascii=False, separators=(",", ":"))
        assert encoded == expected.encode()
