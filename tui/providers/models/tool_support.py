"""Whether a model calls tools: what its server says of it. Which refusals mean that it takes no tools, or no images."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tui.providers.base import ProviderError
from tui.providers.config import ProviderConfig
from tui.providers.http.transport import get_json
from tui.providers.models import discovery
from tui.providers.models.probing import probe

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

# Ollama, OpenRouter, vLLM, llama.cpp without its template engine, Mistral and LiteLLM, in their own words.
_REFUSED = re.compile(
    r"does not support (?:tools|tool calling|function calling)|support tool use|--enable-auto-tool-choice"
    r"|tools param requires --jinja|(?:tools?|tool[ _]choice|tool (?:use|calls?|calling)|function calling)\b.{0,40}"
    r"\b(?:is|are) (?:not|un)[ -]?(?:supported|enabled|available)",
    re.IGNORECASE,
)
_KINDS = frozenset({"bad_request", "not_found", "server"})


@runtime_checkable
class SaysTools(Protocol):
    """A provider whose server may know whether a model calls tools."""

    async def takes_tools(self, model: str) -> bool | None:
        """What the server says; None where it says nothing. Raises `ProviderError`."""
        ...


# llama.cpp, OpenRouter, vLLM, Ollama, LiteLLM.
_NO_IMAGES = re.compile(
    r"image input is not supported|support image input|does not support (?:images?|vision)|is not a multimodal model"
    r"|(?:images?|image_url|vision|multimodal)\b.{0,40}\b(?:is|are) (?:not|un)[ -]?(?:supported|enabled|available)",
    re.IGNORECASE,
)

# Anthropic, OpenAI, Gemini, xAI, llama.cpp and vLLM, of a file that is broken, too large or not what it says.
_UNREADABLE = re.compile(
    r"could not process (?:the )?(?:image|pdf)|(?:unsupported|invalid) image|represent a valid image"
    r"|unable to process input image|cannot identify image|failed to (?:load|decode) (?:the )?image"
    r"|image dimensions exceed|image does not match|appears to be an? image/"
    r"|pdf (?:specified )?(?:was|is) (?:not valid|invalid|password protected)|maximum of \d+ pdf pages",
    re.IGNORECASE,
)


def cannot_read(error: ProviderError) -> bool:
    """Whether a request was refused because of a picture or a PDF in it that the server can make nothing of."""
    return error.kind in _KINDS and _UNREADABLE.search(str(error)) is not None


def refuses_images(error: ProviderError) -> bool:
    """Whether a request was refused because images were in it."""
    return error.kind in _KINDS and _NO_IMAGES.search(str(error)) is not None


def refuses_tools(error: ProviderError) -> bool:
    """Whether a request was refused because it offered tools."""
    return error.kind in _KINDS and _REFUSED.search(str(error)) is not None


async def server_takes_tools(client: AsyncOpenAI | AsyncAnthropic, config: ProviderConfig, model: str) -> bool | None:
    """What a server on one's own machine or network says of `model`. A hosted one is not asked: it refuses.

    llama.cpp leaves tools out of the prompt without a word where the model's template has no place for them.
    """
    if config.official or config.needs_key:
        return None
    root = str(client.base_url).rstrip("/").removesuffix("/v1")
    try:
        shown = await probe(client, f"{root}/api/show", config.name, {"model": model})
        words = shown.get("capabilities") if isinstance(shown, Mapping) else None
        if isinstance(words, list):
            return "tools" in words
    except ProviderError as error:
        if error.kind == "network":
            return None  # nobody is there to ask; otherwise it is not Ollama
    try:
        props = await probe(client, f"{root}/props", config.name)
        able = props.get("chat_template_caps") if isinstance(props, Mapping) else None
        said = able.get("supports_tools") if isinstance(able, Mapping) else None
        if isinstance(said, bool):
            return said
    except ProviderError:
        pass  # it is not llama.cpp
    try:
        entries = discovery.model_entries(await get_json(client, f"{root}/v1/models", config.name))
    except ProviderError:
        return None
    entry = discovery.find_entry(entries, model)
    return None if entry is None else discovery.entry_info(entry, model, None, None).tools
