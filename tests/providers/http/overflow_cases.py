"""Overflow texts as the servers write them, and what they mean."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tui.providers.base import ErrorKind

NO = None


class Case(NamedTuple):
    name: str
    status: int | None
    body: Any
    kind: ErrorKind
    limit: int | None = NO
    input: int | None = NO
    output: int | None = NO
    provider: str = ""


def openai(
    message: str, code: object = "context_length_exceeded", kind: str = "invalid_request_error"
) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": "messages", "code": code}}


def anthropic(message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


OVERFLOW = [
    Case(
        "anthropic",
        400,
        anthropic("prompt is too long: 213462 tokens > 200000 maximum"),
        "overflow_input",
        200_000,
        213_462,
    ),
    Case(
        "anthropic output",
        400,
        anthropic(
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, "
            "decrease input length or `max_tokens` and try again"
        ),
        "overflow_output",
        200_000,
        178_959,
        64_000,
    ),
    Case(
        "anthropic input alone too long",
        400,
        anthropic("input length and `max_tokens` exceed context limit: 210000 + 8000 > 200000, decrease input length"),
        "overflow_input",
        200_000,
        210_000,
        8_000,
    ),
    Case(
        "openai responses",
        400,
        openai("Your input exceeds the context window of this model. Please adjust your input and try again."),
        "overflow_input",
    ),
    Case(
        "openai responses in a stream",
        None,
        {
            "type": "error",
            "code": "context_length_exceeded",
            "message": "Your input exceeds the context window of this model.",
        },
        "overflow_input",
    ),
    Case("openai newer", 400, openai("Your input exceeds the model's context window", None), "overflow_input"),
    Case("openai newer, this", 400, openai("The prompt exceeds this model's context window", None), "overflow_input"),
    Case(
        "codex wrapper",
        None,
        "stream disconnected before completion: Your input exceeds the context window of this model. Please adjust.",
        "overflow_input",
    ),
    Case(
        "openai chat with functions",
        400,
        openai(
            "This model's maximum context length is 8192 tokens. However, you requested 8213 tokens (6683 "
            "in the messages, "
            "730 in the functions, and 800 in the completion). Please reduce the length of the messages, "
            "functions, or "
            "completion."
        ),
        "overflow_output",
        8192,
        7413,
        800,
    ),
    Case(
        "openai chat messages",
        400,
        openai(
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. "
            "Please reduce the length of the messages."
        ),
        "overflow_input",
        128_000,
        204_308,
    ),
    Case(
        "openai newest",
        400,
        openai("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens."),
        "overflow_input",
        272_000,
        300_123,
    ),
    Case(
        "gemini list",
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (1196265) exceeds the maximum number of tokens "
                    "allowed (1048576).",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
        "overflow_input",
        1_048_576,
        1_196_265,
    ),
    Case(
        "gemini nested text",
        400,
        {
            "error": {
                "message": json.dumps(
                    {
                        "error": {
                            "message": "The input token count (1196265) exceeds the maximum number of tokens allowed "
                            "(1048576).",
                            "status": "INVALID_ARGUMENT",
                        }
                    }
                )
            }
        },
        "overflow_input",
        1_048_576,
        1_196_265,
    ),
    Case(
        "deepseek",
        400,
        openai(
            "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens "
            "(122942 in the "
            "messages, 8192 in the completion). Please reduce the length of the messages or completion.",
            "invalid_request_error",
        ),
        "overflow_output",
        131_072,
        122_942,
        8192,
    ),
    Case(
        "vllm",
        400,
        openai(
            "This model's maximum context length is 196608 tokens. However, you requested 16384 output "
            "tokens and your "
            "prompt contains at least 180225 input tokens, for a total of at least 196609 tokens. Please reduce the "
            "length of the input prompt or the number of requested output tokens. (parameter=input_tokens, "
            "value=180225)",
            400,
            "BadRequestError",
        ),
        "overflow_output",
        196_608,
        180_225,
        16_384,
    ),
    Case(
        "vllm old, flat",
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 120000 tokens. However, you requested 122946 "
            "tokens (112946 "
            "in the messages, 10000 in the completion). Please reduce the length of the messages or completion.",
            "type": "BadRequestError",
            "code": 400,
        },
        "overflow_output",
        120_000,
        112_946,
        10_000,
    ),
    Case(
        "vllm prompt",
        400,
        openai("Input prompt (5000 tokens) is too long and exceeds limit of 4096", 400),
        "overflow_input",
        4096,
        5000,
    ),
    Case(
        "vllm decoder",
        400,
        openai("The decoder prompt (length 5001) is longer than the maximum model length of 4096.", 400),
        "overflow_input",
        4096,
        5001,
    ),
    Case(
        "vllm max_tokens",
        400,
        openai(
            "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context "
            "length is 8192 tokens "
            "and your request has 700 input tokens",
            400,
        ),
        "overflow_output",
        8192,
        700,
        9000,
    ),
    Case(
        "openrouter",
        400,
        openai(
            "This endpoint's maximum context length is 262144 tokens. However, you requested about 264896 "
            "tokens (52139 of "
            "text input, 12757 of tool input, 200000 in the output). Please reduce the length of either "
            "one, or use the "
            "context-compression plugin to compress your prompt automatically.",
            400,
        ),
        "overflow_output",
        262_144,
        64_896,
        200_000,
    ),
    Case(
        "openrouter, middle-out",
        400,
        openai(
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 "
            "tokens (140000 of "
            'text input). Please reduce the length of either one, or use the "middle-out" transform to '
            "compress your prompt "
            "automatically.",
            400,
        ),
        "overflow_input",
        131_072,
        140_000,
    ),
    Case(
        "openrouter, provider's words inside",
        400,
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {"raw": json.dumps(anthropic("prompt is too long: 213462 tokens > 200000 maximum"))},
            }
        },
        "overflow_input",
        200_000,
        213_462,
    ),
    Case("bedrock", 400, {"message": "Input is too long for requested model."}, "overflow_input"),
    Case(
        "xai",
        400,
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
        "overflow_input",
        131_072,
        537_812,
    ),
    Case("groq 400", 400, openai("Please reduce the length of the messages or completion.", None), "overflow_input"),
    Case("groq 413", 413, openai("Please reduce the length of the messages or completion.", None), "overflow_input"),
    Case(
        "copilot",
        400,
        openai("prompt token count of 130001 exceeds the limit of 128000", "model_max_prompt_tokens_exceeded"),
        "overflow_input",
        128_000,
        130_001,
    ),
    Case("copilot code alone", 400, openai("bad", "model_max_prompt_tokens_exceeded"), "overflow_input"),
    Case("minimax", 400, {"error": {"message": "invalid params, context window exceeds limit"}}, "overflow_input"),
    Case(
        "kimi",
        400,
        openai("Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)", None),
        "overflow_input",
        262_144,
        300_000,
    ),
    Case(
        "mistral",
        400,
        {
            "message": "Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 "
            "maximum context length"
        },
        "overflow_input",
        131_072,
        140_000,
    ),
    Case(
        "mistral 422",
        422,
        {"detail": "Prompt contains 140000 tokens, too large for model with 131072 maximum context length"},
        "overflow_input",
        131_072,
        140_000,
    ),
    Case("cerebras 400, no body", 400, None, "overflow_input", provider="cerebras"),
    Case("cerebras 413, no body", 413, "", "overflow_input", provider="cerebras"),
    Case(
        "cerebras",
        400,
        {"message": "Current length is 9001 while limit is 8192"},
        "overflow_input",
        8192,
        9001,
    ),
    Case(
        "qwen",
        400,
        openai("Range of input length should be [1, 129024]", "invalid_parameter_error"),
        "overflow_input",
        129_024,
    ),
    Case(
        "sglang",
        400,
        openai("The input (400013 tokens) is longer than the model's context length (262144 tokens).", 400),
        "overflow_input",
        262_144,
        400_013,
    ),
    Case(
        "tgi",
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: "
            "4000 `inputs` tokens "
            "and 500 `max_new_tokens`",
            "error_type": "validation",
        },
        "overflow_output",
        4096,
        4000,
        500,
    ),
    Case(
        "z.ai in a stream",
        None,
        {"code": "1261", "message": "Prompt exceeds max length: model_context_window_exceeded"},
        "overflow_input",
    ),
    Case(
        "numbers with separators",
        400,
        openai(
            "This model's maximum context length is 1,048,576 tokens. However, your messages resulted in "
            "1_200_000 tokens."
        ),
        "overflow_input",
        1_048_576,
        1_200_000,
    ),
]
