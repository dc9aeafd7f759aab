"""What is counted and shown is what is sent: the texts of a request are those of the body that its provider writes."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tui.chat.conversation.history import HistoryState
from tui.chat.conversation.projection import Target, build_request
from tui.messages import (
    Attachment,
    Message,
    Part,
    ProviderItem,
    Reasoning,
    Refusal,
    Request,
    Role,
    Source,
    SystemSection,
    Text,
    ToolCall,
    ToolResult,
    ToolSchema,
)
from tui.providers.base import NO_ANSWER
from tui.providers.config import PRESETS, ProviderConfig
from tui.providers.dialects.dialect import DialectProvider
from tui.providers.registry import make_provider

CONFIGS = {name: config for name, config in PRESETS.items() if config.dialect != "demo"}
CONFIGS["a proxy"] = ProviderConfig("a proxy", dialect="anthropic", base_url="http://h")
CONFIGS["responses"] = ProviderConfig("responses", dialect="openai-responses", base_url="http://h")
MODELS = {"openai": "gpt-5.6", "anthropic": "claude-sonnet-5-5"}
SYSTEM = (SystemSection("system", "prompt", "Be brief."), SystemSection("memory", "A.md", "I am Ada."))
SCHEMA = '{"properties":{"path":{"description":"whither","type":"string"}},"type":"object"}'
TOOLS = (ToolSchema("look", "looks around", SCHEMA),)


class Conversation:
    """A random conversation in which each text is a word of its own."""

    def __init__(self, seed: int, config: ProviderConfig, model: str) -> None:
        self.random = Random(seed)
        self.dialect, self.provider, self.model = config.dialect, config.name, model
        self.blobs: dict[str, bytes] = {}
        self.messages: list[Message] = []
        self.words = 0
        for _ in range(self.random.randrange(1, 12)):
            self.random.choice((self.ask, self.answer, self.call))()

    def ask(self) -> None:
        self.add("user", self.some((self.text, self.file, self.image, self.pdf), 1, 4))

    def answer(self) -> None:
        makers = (
            self.text,
            self.text,
            self.thought,
            self.refusal,
            self.explanation,
            self.source,
            self.item,
            self.image,
        )
        self.add("assistant", self.some(makers, 1, 5))

    def call(self) -> None:
        calls = [self.tool_call() for _ in range(self.random.randrange(1, 3))]
        self.add("assistant", [*self.some((self.thought, self.text), 0, 2), *calls])
        results: list[Part] = []
        for call in calls:
            results.append(ToolResult(call.id, call.name, self.random.choice((self.word(), self.word(), " "))))
            results += self.some((self.text, self.file, self.image, self.pdf), 0, 3)
        self.add("tool", results[self.random.choice((0, 0, 0, 1)) :])  # some without the first result

    def add(self, role: Role, parts: Sequence[Part]) -> None:
        made_by = self.random.choice(((self.provider, self.model), (self.provider, "other"), ("other", self.model)))
        ident = f"{len(self.messages):04}"
        self.messages.append(Message(role, tuple(parts), ident, provider=made_by[0], model=made_by[1]))

    def some(self, makers: Sequence[Callable[[], Part]], least: int, below: int) -> list[Part]:
        return [make() for make in self.random.choices(makers, k=self.random.randrange(least, below))]

    def word(self) -> str:
        self.words += 1
        return f"w{self.words}"

    def text(self) -> Part:
        return Text(self.random.choice((self.word(), self.word(), self.word(), " ")))

    def refusal(self) -> Part:
        return Refusal(self.word())

    def explanation(self) -> Part:
        return Refusal(self.word(), from_server=True)

    def source(self) -> Part:
        return Source(self.word())

    def item(self) -> Part:
        """Only Anthropic's have data, and go back."""
        data = json.dumps({"type": "item", "query": self.word()}) if self.dialect == "anthropic" else ""
        return ProviderItem("item", self.random.choice((self.provider, "other")), data)

    def thought(self) -> Part:
        made_by = self.random.choice(((self.provider, self.model), (self.provider, "other")))
        seal = self.word() if self.random.random() < 0.7 else None
        signature, encrypted = (seal if self.dialect == d else None for d in ("anthropic", "openai-responses"))
        return Reasoning(self.word(), *made_by, signature=signature, encrypted=encrypted)

    def tool_call(self) -> ToolCall:
        word = self.word()
        written = (f'{{"path":"{word}"}}', f'{{"path": "{word}"', f'["{word}"]', word, "", "{}")
        return ToolCall(f"c{self.words}", self.random.choice(("look", "a.look")), self.random.choice(written))

    def file(self) -> Part:
        return Attachment("text", self.word(), "text/plain", self.word(), 9, text=self.word())

    def image(self) -> Part:
        return Attachment("image", self.word(), "image/png", self.blob(), 9)

    def pdf(self) -> Part:
        return Attachment("pdf", self.word(), "application/pdf", self.blob(), 9)

    def blob(self) -> str:
        digest = self.word()
        self.blobs[digest] = digest.encode()
        return digest


# Not text that a model reads as part of the conversation.
FIELDS = {"role", "type", "id", "tool_call_id", "call_id", "tool_use_id", "media_type", "phase", "filename", "detail"}


def texts_of_body(body: Any) -> Iterator[str]:
    match body:
        case {"type": "function", "function": dict(function)}:
            yield from texts_of_body(function)
        case {"type": "base64", "data": str(data)}:
            yield base64.b64decode(data).decode()
        case dict():
            for key, value in body.items():
                if key in ("parameters", "input_schema") or (key == "input" and isinstance(value, dict)):
                    yield json.dumps(value)
                elif key not in FIELDS:
                    yield from texts_of_body(value)
        case list():
            for value in body:
                yield from texts_of_body(value)
        case str() if body.startswith("data:"):
            yield base64.b64decode(body.partition("base64,")[2]).decode()
        case str():
            yield body


def texts_of_request(request: Request) -> Iterator[str]:
    for section in request.system:
        yield section.text
    for tool in request.tools:
        yield from (tool.name, tool.description, tool.parameters)
    for message in request.messages:
        for part in message.parts:
            match part:
                case Text(text) | Refusal(text) | ToolResult(text=text):
                    yield text
                case Reasoning():
                    yield from (part.text, part.signature or part.encrypted or "")
                case ToolCall(name=name, arguments=arguments):
                    yield from (name, arguments)
                case Attachment():
                    yield part.text_sent or part.sha256
                case ProviderItem(data=data):
                    yield json.loads(data)["query"]


def words(texts: Iterable[str], markup: frozenset[str]) -> Counter[str]:
    return Counter(word for text in texts if text not in markup for word in re.findall(r"w\d+|[A-Za-z_.]+", text))


@pytest.mark.parametrize("name", CONFIGS)
def test_every_text_of_the_body_stands_in_the_request_and_the_other_way_round(name: str) -> None:
    """Apart from marks without words: the blank that stands for missing reasoning, and `{}` for no arguments."""
    provider, model = make_provider(name, CONFIGS[name]), MODELS.get(name, "m")
    assert isinstance(provider, DialectProvider)
    # Also written before the files of results, which are in one message with these until then.
    markup = frozenset({NO_ANSWER} if name == "mistral" else ())
    for seed in range(60):
        past = Conversation(seed, CONFIGS[name], model)
        tools = provider.tools_sent(model, TOOLS if seed % 2 else ())
        target = Target(name, model, provider.capabilities(model), SYSTEM, tools)
        request = build_request(past.messages, HistoryState(), target)
        body = provider._body(replace(request, blobs=past.blobs), provider.style(model))
        read = [body[key] for key in ("system", "instructions", "messages", "input", "tools") if key in body]
        assert words(texts_of_body(read), markup) == words(texts_of_request(request), markup), (seed, request, body)
