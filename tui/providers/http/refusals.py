"""What a server refused: tools, images, or one file it can't read. Pure."""

from __future__ import annotations

import re

from tui.providers.base import ProviderError

# Ollama, OpenRouter, vLLM, llama.cpp without its template engine, Mistral and LiteLLM, in their own words.
_REFUSED = re.compile(
    r"does not support (?:tools|tool calling|function calling)|support tool use|--enable-auto-tool-choice"
    r"|tools param requires --jinja|(?:tools?|tool[ _]choice|tool (?:use|calls?|calling)|function calling)\b.{0,40}"
    r"\b(?:is|are) (?:not|un)[ -]?(?:supported|enabled|available)",
    re.IGNORECASE,
)
_KINDS = frozenset({"bad_request", "not_found", "server"})


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
