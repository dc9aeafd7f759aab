"""Models and limits reported by a running server, under any of the keys in use."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tui.context.usage.limits import ModelLimits
from tui.messages import EFFORTS
from tui.providers.base import MAX_NAME, ModelInfo, ProviderError
from tui.providers.config import PRESETS
from tui.providers.http.client import Client
from tui.providers.http.refusals import to_int
from tui.providers.http.transport import COUNTING_TIMEOUT, ask_json
from tui.providers.windows import table_window
from tui.providers.wire import Json, as_object, at_path, count_of, find_count, object_of, objects_of, text_of

log = logging.getLogger(__name__)

# Keys for the window of a model, at the top of its entry of a list or in an object of the server's own.
CONTEXT_KEYS = frozenset((
    "context_length", "context_window", "max_context_length", "max_model_len", "n_ctx", "context_size", "ctx_size",
    "max_context_window_tokens", "loaded_context_length", "max_seq_len", "max_prompt_length", "contextLength",
    "contextWindow", "max_context_tokens", "max_sequence_length", "maxContextLength", "availableContextTokens",
))  # fmt: skip
MAX_KEY_DEPTH = 4  # objects and lists around a key
# What runs with it, and who will answer or could: their windows count beside the one at the top of the entry. Others
# within it are of a draft model, of what sees pictures, of a price; where the top has none, by their names.
_RUNNING = frozenset(("meta", "limits", "capabilities", "top_provider", "providers", "endpoints", "loaded_instances"))
_OF_OTHERS = re.compile(r"draft|spec_|vision|image|audio|video|embed|pric|permission|adapter|lora", re.IGNORECASE)
# Dots lead into inner objects.
INPUT_KEYS = (
    "limits.max_prompt_tokens", "capabilities.limits.max_prompt_tokens", "limits.max_input_tokens", "limits.input",
    "limit.input",
)  # fmt: skip
OUTPUT_KEYS = (
    "max_completion_tokens", "max_output_tokens", "top_provider.max_completion_tokens", "limits.max_output_tokens",
    "limits.max_completion_tokens", "capabilities.limits.max_output_tokens", "limits.output", "limit.output",
    "outputTokenLimit", "max_output_length", "metadata.max_tokens",
)  # fmt: skip

MAX_MODELS = 10_000

_HOSTED_AT = frozenset(config.host for config in PRESETS.values() if config.needs_key)
_OTHER_KINDS = frozenset(
    ("embedding", "embeddings", "rerank", "moderation", "image", "audio", "video", "transcribe", "tts", "stt")
)
# By name, if the list says no more. On a person's own server every model may be for chat except these: LM Studio and
# Ollama list embedding models among the others.
_EMBEDS = re.compile(
    r"(?:^|[-_/.])(?:embed|embeddings?|rerank|reranker|bge|minilm|whisper)(?:$|[-_/.:\d])", re.IGNORECASE
)
# Further ones listed by hosted providers.
_HOSTED = re.compile(
    r"^(?:models/)?(?:tts|dall-e|gpt-image|chatgpt-image|sora|babbage|davinci|imagen|veo|lyria|aqa|grok-imagine|grok-\d-image)\b"
    r"|(?:^|[-_/.])(?:moderation|transcribe|transcription|realtime|tts|ocr|speech|orpheus)(?:$|[-_/.:\d])",
    re.IGNORECASE,
)


def is_for_chat(entry: Mapping[str, Any], name: str, *, hosted: bool) -> bool:
    """Whether the model `name` is for chat, by its entry in the list. `hosted`: by a company, which has others too."""
    if str(entry.get("type")).lower() in _OTHER_KINDS:
        return False
    able = entry.get("capabilities")
    if isinstance(able, Mapping) and able.get("completion_chat") is False:  # Mistral
        return False
    return not (_EMBEDS.search(name) or (hosted and _HOSTED.search(name)))


# Places of the reasoning efforts of a model.
_EFFORTS = ("supported_efforts", "supported_reasoning_efforts", "supported_reasoning_levels", "reasoning_efforts")
EFFORT_KEYS = (*_EFFORTS, *(f"reasoning.{key}" for key in _EFFORTS))


def entry_limits(entry: Mapping[str, Any], detail: str = "the server's model list") -> ModelLimits | None:
    """The limits in one entry of a model list, or None."""
    most_input = find_count(entry, *INPUT_KEYS, least=1)
    stated = find_count(entry, "max_input_tokens", "inputTokenLimit", "limits.context", "limit.context", least=1)
    context = min(_windows(entry), default=most_input or stated)
    if context is None:
        return None
    beside = ("max_tokens",) if "max_input_tokens" in entry else ()  # Anthropic: the longest answer
    most_output = find_count(entry, *OUTPUT_KEYS, *beside, least=1)
    return ModelLimits(
        context, most_input if most_input is not None and most_input < context else None, most_output, "probe", detail
    )


def _windows(value: object, depth: int = 0) -> Iterator[int]:
    """The windows of a model and of who answers for it, named in its entry, in tokens."""
    inner: Iterable[object] = value if isinstance(value, list) else ()
    if isinstance(value, Mapping):
        stated = [size for key in CONTEXT_KEYS & value.keys() if (size := _window(value[key]))]
        yield from stated
        inner = (one for key, one in value.items() if (key in _RUNNING if stated else not _OF_OTHERS.search(key)))
    for one in inner if depth < MAX_KEY_DEPTH else ():
        if isinstance(one, Mapping | list):
            yield from _windows(one, depth + 1)


def _window(value: object) -> int | None:
    """A window as servers write it: a count, or a text such as "131,072" or "128k"."""
    written = isinstance(value, str) and re.fullmatch(r"[0-9]+(,[0-9]{3})*[kKmM]?", value)
    return to_int(written[0]) if written else count_of(value)


def model_entries(listing: object) -> list[Json]:
    """The first `MAX_MODELS` entries of a model list: `{"data": [...]}`, `{"models": [...]}` or a bare list."""
    if isinstance(listing, Mapping):
        listing = next((listing[key] for key in ("data", "models") if isinstance(listing.get(key), list)), [])
    return objects_of(listing)[:MAX_MODELS]


def entry_id(entry: Mapping[str, Any]) -> str:
    """An entry's model name, "" without a plausible one. Gemini's list writes "models/gemini-x"."""
    name = entry.get("id") or entry.get("key") or entry.get("model") or entry.get("name")
    return name.removeprefix("models/") if isinstance(name, str) and len(name) <= MAX_NAME else ""


def find_entry(entries: list[Json], model: str) -> Json | None:
    """The entry of `model`: by name, by alias, or by name without its ":latest"."""
    for entry in entries:
        aliases = entry.get("aliases")
        if entry_id(entry) == model or (isinstance(aliases, list) and model in aliases):
            return entry
    return next(
        (entry for entry in entries if entry_id(entry).removesuffix(":latest") == model.removesuffix(":latest")), None
    )


async def list_models(client: Client) -> list[ModelInfo]:
    """The chat models of a server, in its own order. Raises `ProviderError`."""
    listing = await ask_json(client, _list_path(client))
    return await asyncio.to_thread(_chat_models, listing, hosted=client.config.hosted)  # 400 models take 11 ms


def _chat_models(listing: object, *, hosted: bool) -> list[ModelInfo]:
    named = [(entry, entry_id(entry)) for entry in model_entries(listing)]
    return [entry_info(entry) for entry, name in named if name and is_for_chat(entry, name, hosted=hosted)]


def entry_info(entry: Mapping[str, Any]) -> ModelInfo:
    """What an entry of a model list says about its model.

    OpenRouter writes modalities, parameters and prices (dollars per token, as text); Anthropic, Mistral, llama.cpp and
    LM Studio capabilities, as a table or a list of words.
    """
    name, title = entry_id(entry), text_of(entry.get("display_name")) or text_of(entry.get("name"))
    return ModelInfo(
        name,
        title if title not in ("", name) else None,
        entry_limits(entry),
        price=_entry_price(entry.get("pricing")),
        images=_says(
            entry,
            "architecture.input_modalities:image",
            "capabilities.image_input",
            "capabilities.vision",
            "capabilities:multimodal",
        ),
        pdfs=_says(entry, "architecture.input_modalities:file", "capabilities.pdf_input"),
        tools=_says(
            entry,
            "supported_parameters:tools",
            "capabilities.function_calling",
            "capabilities.tool_use",
            "capabilities.trained_for_tool_use",
        ),
        thinking=_thinking_types(entry),
        efforts=_efforts(entry),
    )


def _says(entry: object, *places: str) -> bool | None:
    """What the first of `places` says that says anything: true or false, or an object with "supported".

    "list:word" is true if the word is in the list.
    """
    for place in places:
        path, colon, word = place.partition(":")
        value = at_path(entry, path)
        if colon:
            value = word in value if isinstance(value, list) else None
        elif isinstance(value, Mapping):
            value = value.get("supported")
        if isinstance(value, bool):
            return value
    return None


def _thinking_types(entry: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Anthropic: {"types": {"adaptive": {"supported": true}, ...}}; None if not listed."""
    types = object_of(at_path(entry, "capabilities.thinking.types"))
    return tuple(sorted(name for name in types if _says(types, name))) if types else None


def _efforts(entry: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The reasoning efforts in an entry: Anthropic's `effort` capability, or a list of words; None without one.

    Anthropic's `off` follows from the types of thinking.
    """
    if effort := object_of(at_path(entry, "capabilities.effort")):
        off = {"disabled", "between_tools"} & set(_thinking_types(entry) or ())
        efforts = [name for name in EFFORTS if _says(effort, name)]
        return (*(["off"] if off else []), *efforts) if efforts else None
    for listed in (at_path(entry, key) for key in EFFORT_KEYS):
        entries = listed if isinstance(listed, list) else []
        words = [one.get("effort") or one.get("name") if isinstance(one, Mapping) else one for one in entries]
        if efforts := [name for name in EFFORTS if name in words or (name == "off" and "none" in words)]:
            return tuple(efforts)
    return None


def _entry_price(pricing: object) -> tuple[float, float] | None:
    if not isinstance(pricing, Mapping):
        return None
    try:
        input_price, output_price = (float(pricing[key]) * 1_000_000 for key in ("prompt", "completion"))
    except (KeyError, TypeError, ValueError):
        return None
    # -1: OpenRouter's router, it depends
    return (input_price, output_price) if input_price >= 0 and output_price >= 0 else None


async def describe(client: Client, model: str) -> ModelInfo:
    """What a running server says of `model`: its window, and whether it calls tools. Raises `ProviderError`.

    Hosted providers are asked for their list only, and refuse tools by themselves. llama.cpp silently drops tools from
    the prompt if the model's template does not support them. A person's own server that wants a key may be a hosted one
    or any other: its routes are asked only for a window that is known nowhere else.
    """
    config = client.config
    if config.family == "gemini":  # its own list has the limits, its list in OpenAI's dialect does not
        entry = object_of(await ask_json(client, _gemini_url(client, model)))
        return ModelInfo(model, limits=entry_limits(entry, "Gemini models API"))
    if config.official and config.dialect != "anthropic":
        return ModelInfo(model)  # OpenAI's list holds names only
    hosted = config.official or config.host in _HOSTED_AT
    path = _list_path(client)
    entries = model_entries(await (ask_json(client, path) if hosted else _probe(client, path, renew=True)))
    alone = entries[0] if len(entries) == 1 and not hosted else {}
    # OpenRouter's ":nitro" and Hugging Face's ":cerebras" choose who answers.
    stem, colon, _ = model.rpartition(":")
    chosen = next((entry for entry in entries if colon and entry_id(entry) == stem), alone)
    entry = find_entry(entries, model) or chosen
    info = replace(entry_info(entry), id=model)
    if hosted or (config.hosted and (info.limits or table_window(model))):
        return replace(info, tools=None)
    try:
        return await _with_details(client, info)
    except ProviderError:  # some gateways drop the connection for a path that they don't know
        return info


async def _with_details(client: Client, info: ModelInfo) -> ModelInfo:
    """`info` with what routes of Ollama, llama.cpp, LM Studio and LiteLLM add. Raises `ProviderError`."""
    shown, props = await asyncio.gather(
        _probe(client, f"{client.root}/api/show", {"model": info.id}),  # Ollama
        _probe(client, f"{client.root}/props"),  # llama.cpp
    )
    tools = (_says(shown, "capabilities:tools"), _says(props, "chat_template_caps.supports_tools"), info.tools)
    limits = info.limits
    if limits is None and (slot := find_count(props, "default_generation_settings.n_ctx", "n_ctx", least=1)):
        limits = ModelLimits(slot, source="probe", detail="llama.cpp (/props)")
    if limits is None:
        stated = await asyncio.gather(
            _ollama_limits(client, info.id, shown), _lmstudio_limits(client, info.id), _litellm_limits(client, info.id)
        )
        limits = next(filter(None, stated), None)
    return replace(info, limits=limits, tools=next((takes for takes in tools if takes is not None), None))


def _list_path(client: Client) -> str:
    return "/v1/models?limit=1000" if client.config.dialect == "anthropic" else "/models"


def _gemini_url(client: Client, model: str) -> str:
    return f"{client.base_url.removesuffix('/openai')}/models/{model.removeprefix('models/')}"


async def _ollama_limits(client: Client, model: str, shown: object) -> ModelLimits | None:
    """The window that the model is loaded with; before it is loaded, the setting in its Modelfile."""
    running = find_entry(model_entries(await _probe(client, f"{client.root}/api/ps")), model)
    if context := find_count(running, "context_length", least=1):
        return ModelLimits(context, source="probe", detail="Ollama, as loaded (/api/ps)")
    for line in text_of(at_path(shown, "parameters")).splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == "num_ctx" and words[1].isdigit():
            return ModelLimits(int(words[1]), source="probe", detail="Ollama, num_ctx of the model (/api/show)")
    return None  # its trained length is not the window it will be loaded with


async def _lmstudio_limits(client: Client, model: str) -> ModelLimits | None:
    """The window that the model is loaded with, which may be less than its maximum."""
    for path in ("/api/v1/models", "/api/v0/models"):  # from 0.4 on, and before
        entry = find_entry(model_entries(await _probe(client, client.root + path)), model) or {}
        for place in (entry, *objects_of(entry.get("loaded_instances"))):
            if context := find_count(place, "loaded_context_length", "config.context_length", least=1):
                return ModelLimits(context, source="probe", detail=f"LM Studio ({path})")
    return None


async def _litellm_limits(client: Client, model: str) -> ModelLimits | None:
    """What LiteLLM's proxy knows of the model behind a name."""
    entries = model_entries(await _probe(client, f"{client.root}/model/info"))
    infos = [object_of(entry.get("model_info")) for entry in entries if entry.get("model_name") == model]
    listed = [limits for info in infos if (limits := entry_limits(info, "LiteLLM (/model/info)"))]
    return min(listed, key=lambda limits: limits.context or 0, default=None)  # of several deployments


async def _probe(client: Client, path: str, body: Json | None = None, *, renew: bool = False) -> object:
    """The JSON of a route, None if it is refused; one that is missing, or not for this key, is asked for once.

    `renew` is that of `Client.ask`. Raises `ProviderError` if the server can't be reached.
    """
    route = (path, *(body or {}).values())
    if route in client.missing_routes:
        return None
    try:
        return await ask_json(client, path, body, renew=renew)
    except ProviderError as error:
        if error.kind == "network":
            raise
        not_allowed = error.status in (401, 403) and not renew
        if not_allowed or error.kind == "not_found" or error.status in (404, 405, 501):
            client.missing_routes.add(route)
        return None


async def input_tokens(client: Client, body: Json) -> int | None:
    """The server's count of the input of a request; None if it has no such route. Raises `ProviderError`.

    Each kind of server has a route of its own, which takes some fields of the request. A server that may lack it can
    answer anything there (400, 500, a web page), so that only what will pass is an error, and a key that the last route
    does not take.
    """
    config = client.config
    may_lack = not config.official and config.family not in ("llamacpp", "gemini")
    llama = "/chat/completions/input_tokens", body.keys() - {"stream", "stream_options"}
    match config.dialect:
        case "anthropic":
            fields = body.keys() - {"max_tokens", "context_management", "stream"}
            if "budget_tokens" in body.get("thinking", {}):
                fields.remove("thinking")  # the budget is checked against max_tokens, which this route rejects
            routes = [("/v1/messages/count_tokens", fields)]
        case "openai-responses":
            routes = [("/responses/input_tokens", {"model", "input", "instructions", "tools", "reasoning"})]
        case _ if config.family == "gemini":
            path, body = f"{_gemini_url(client, body['model'])}:countTokens", gemini_body(body)
            routes = [(path, set(body))]
        case _ if config.family == "llamacpp":
            routes = [llama]
        case _:
            vllm = f"{client.root}/tokenize", {"model", "messages", "tools", "chat_template_kwargs"}
            routes = [vllm, llama]
    for path, fields in routes:
        counted = {name: value for name, value in body.items() if name in fields}
        try:
            answer = await ask_json(client, path, counted, patience=COUNTING_TIMEOUT)
        except ProviderError as error:
            missing = error.kind == "not_found" or error.status in (404, 405, 501)
            wrong_key = error.status == 401 and path == routes[-1][0]
            told = wrong_key or error.kind in ("network", "rate_limit", "overloaded")
            if not missing and (told or not may_lack):
                raise
            log.info("%s does not count: %s", path, error)
        else:
            if tokens := find_count(answer, "input_tokens", "count", "totalTokens", least=1):
                return tokens
    return None


def gemini_body(body: Json) -> Json:
    """A Chat Completions body as Gemini's `countTokens` takes it (ai.google.dev/api/tokens)."""
    contents: list[Json] = []
    request: Json = {"model": f"models/{body['model'].removeprefix('models/')}", "contents": contents}
    names: dict[str, str] = {}  # of calls, by id
    for message in body["messages"]:
        parts = _gemini_parts(message["content"])
        if message["role"] == "system":
            request["systemInstruction"] = {"parts": parts}
            continue
        if message["role"] == "tool":
            output = "".join(part["text"] for part in parts)
            name = names.get(message["tool_call_id"], "tool")
            parts = [{"functionResponse": {"name": name, "response": {"output": output}}}]
        for call in message.get("tool_calls", ()):
            function = call["function"]
            names[call["id"]] = function["name"]
            parts.append({"functionCall": {"name": function["name"], "args": as_object(function["arguments"])}})
        role = "model" if message["role"] == "assistant" else "user"
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": role, "parts": parts})
    functions = [dict(tool["function"]) for tool in body.get("tools", ())]
    for function in functions:
        function["parametersJsonSchema"] = function.pop("parameters")  # JSON Schema, which it takes beside its own form
    if functions:
        request["tools"] = [{"functionDeclarations": functions}]
    return {"generateContentRequest": request}


def _gemini_parts(content: str | list[Json] | None) -> list[Json]:
    """Text and inline files."""
    parts: list[Json] = []
    for piece in [{"text": content}] if isinstance(content, str) else content or []:
        match piece:
            case {"image_url": {"url": str(url)}} | {"file": {"file_data": str(url)}}:
                kind, _, data = url.removeprefix("data:").partition(";base64,")
                parts.append({"inlineData": {"mimeType": kind, "data": data}})
            case _:
                parts.append({"text": piece["text"]})
    return parts
