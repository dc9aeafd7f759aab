"""Which entries of a model list can be talked to: lists also name what embeds, ranks, draws and speaks. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_OTHER_KINDS = frozenset(
    ("embedding", "embeddings", "rerank", "moderation", "image", "audio", "video", "transcribe", "tts", "stt")
)
# By name, where the list says no more. A server of one's own lists little, and every name could be a chat model's but
# these: LM Studio's and Ollama's embedding models stand among the others.
_EMBEDS = re.compile(
    r"(?:^|[-_/.])(?:embed|embeddings?|rerank|reranker|bge|minilm|whisper)(?:$|[-_/.:\d])", re.IGNORECASE
)
# Those that the providers of the presets list besides.
_HOSTED = re.compile(
    r"^(?:models/)?(?:tts|dall-e|gpt-image|chatgpt-image|sora|babbage|davinci|imagen|veo|lyria|aqa|grok-imagine|grok-\d-image)\b"
    r"|(?:^|[-_/.])(?:moderation|transcribe|transcription|realtime|tts|ocr|speech|orpheus)(?:$|[-_/.:\d])",
    re.IGNORECASE,
)


def is_for_chat(entry: Mapping[str, Any], name: str, *, hosted: bool) -> bool:
    """Whether the model `name` can be talked to, by its entry in the list. `hosted`: at a provider that wants a key."""
    if str(entry.get("type")).lower() in _OTHER_KINDS:
        return False
    able = entry.get("capabilities")
    if isinstance(able, Mapping) and able.get("completion_chat") is False:  # Mistral
        return False
    return not (_EMBEDS.search(name) or (hosted and _HOSTED.search(name)))
