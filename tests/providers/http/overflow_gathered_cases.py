"""Refusals that clients of many servers reported in public, beyond those of the first tables."""

from __future__ import annotations

import json
from typing import Any

from tests.providers.http import overflow_cases
from tests.providers.http.overflow_cases import Case, anthropic
from tui.providers.base import ErrorKind


def openai(message: str, code: object = None, kind: str = "invalid_request_error") -> dict[str, Any]:
    """A body whose code does not give the kind away."""
    return overflow_cases.openai(message, code, kind)


_SGLANG = (
    "Requested token count exceeds the model's maximum context length of 262144 tokens. You requested a total of "
    "263925 tokens: 199925 tokens from the input messages and 64000 tokens for the completion. Please reduce the "
    "number of tokens in the input messages or the completion to fit within the limit."
)
_VLLM = 400, "BadRequestError"
_LONG: ErrorKind = "overflow_input"
_COHERE = "too many tokens: size limit exceeded by 11001 tokens. Try using shorter or fewer inputs. "

GATHERED = [
    Case("sglang, both", 400, openai(_SGLANG, *_VLLM), "overflow_output", 262_144, 199_925, 64_000),
    Case(
        "sglang, a number with a point",  # iFlow
        400,
        openai(
            "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total "
            "of 524300.0 tokens: 12 tokens from the input messages and 524288.0 tokens for the completion.",
            400,
        ),
        "overflow_output",
        131_072,
        12,
        524_288,
    ),
    Case(
        "sglang behind Cloudflare",
        400,
        {
            "errors": [
                {
                    "message": "AiError: AiError: "
                    + json.dumps({"object": "error", "message": _SGLANG, "code": 400})
                    + " (82a04848)",
                    "code": 8007,
                }
            ],
            "success": False,
        },
        "overflow_output",
        262_144,
        199_925,
        64_000,
    ),
    Case(
        "sglang scheduler",
        400,
        openai("Input length (265330 tokens) exceeds the maximum allowed length (262138 tokens). Use a shorter input."),
        "overflow_input",
        262_138,
        265_330,
    ),
    Case(
        "sglang memory",
        400,
        openai("Request prompt exceeds the KV memory budget: input_len=300000", 400),
        "overflow_input",
        None,
        300_000,
    ),
    Case(
        "vllm 0.16",
        400,
        openai(
            "You passed 9001 input tokens and requested 1000 output tokens. However, the model's context length is "
            "only 8192 tokens, resulting in a maximum input length of 7192 tokens. Please reduce the length of the "
            "input prompt. (parameter=input_tokens, value=9001)",
            *_VLLM,
        ),
        "overflow_input",
        8192,
        9001,
        1000,
    ),
    Case(
        "vllm, characters",
        400,
        openai(
            "This model's maximum context length is 8192 tokens. However, you requested 1000 output tokens and your "
            "prompt contains 90210 characters (more than 57536 characters, which is the upper bound for 7192 input "
            "tokens). Please reduce the length of the input prompt or the number of requested output tokens.",
            *_VLLM,
        ),
        "overflow_input",
        8192,
        None,
        1000,
    ),
    Case(
        "vllm, plus max_tokens",
        400,
        openai(
            "This model's maximum context length is 2048 tokens. However, your request has 8 input tokens plus 2045 "
            "'max_tokens'. Please reduce one or the other. (parameter=input_tokens, max_tokens, value=(8, 2045))",
            *_VLLM,
        ),
        "overflow_output",
        2048,
        8,
        2045,
    ),
    Case(
        "vllm, answer longer than the window",
        400,
        openai("max_tokens=9000 cannot be greater than max_model_len=8192. Please request fewer output tokens.", 400),
        "overflow_input",
        8192,
        None,
        9000,
    ),
    Case(
        "vllm, nothing left",
        400,
        {"object": "error", "message": "max_tokens must be at least 1, got -186.", "type": "BadRequestError"},
        "overflow_input",
    ),
    Case(
        "vllm, messages alone",
        400,
        openai(
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in the messages."
        ),
        "overflow_input",
        4096,
        5000,
    ),
    Case(
        "vllm engine, one token more",
        400,
        openai(
            "The decoder prompt (length 4096) plus the number of requested output tokens (at least 1) is longer than "
            "the maximum model length of 4096.",
            400,
        ),
        "overflow_input",
        4096,
        4096,
    ),
    Case(
        "completions of old",
        400,
        openai(
            "This model's maximum context length is 4097 tokens, however you requested 4116 tokens (3860 in your "
            "prompt; 256 for the completion). Please reduce your prompt; or completion length."
        ),
        "overflow_output",
        4097,
        3860,
        256,
    ),
    Case(
        "numbers in brackets",
        400,
        openai("Input length (265330) exceeds model's maximum context length (262144).", 400),
        "overflow_input",
        262_144,
        265_330,
    ),
    Case(
        "poolside behind OpenRouter",
        400,
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {"raw": "Input length 131393 exceeds the maximum allowed input length of 131040 tokens."},
            }
        },
        "overflow_input",
        131_040,
        131_393,
    ),
    Case(
        "ds4",
        400,
        openai("Prompt has 5,958,968 tokens, but the configured context size is 256,000 tokens", 400),
        "overflow_input",
        256_000,
        5_958_968,
    ),
    Case(
        "fireworks",
        400,
        openai("The prompt is too long: 140000, model maximum context length: 131071", "invalid_request_error"),
        "overflow_input",
        131_071,
        140_000,
    ),
    Case(
        "vertex",
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "Unable to submit request because the input token count is 1200000 but the model only "
                    "supports up to 1048576. Reduce the input token count and try again.",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
        "overflow_input",
        1_048_576,
        1_200_000,
    ),
    Case(
        "bedrock, claude",
        400,
        {"message": "The model returned the following errors: prompt is too long: 200049 tokens > 200000 maximum"},
        "overflow_input",
        200_000,
        200_049,
    ),
    Case("z.ai", 400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}, "overflow_input"),
    Case("z.ai in a stream", None, {"code": "1261", "message": "Prompt too long"}, "overflow_input"),
    Case("glm in Chinese", 400, openai("输入内容超过模型最大上下文长度", None), "overflow_input"),
    Case("moonshot of old", 400, openai("model max length exceeded, max length:8192", None), "overflow_input", 8192),
    Case("litellm, class name", 400, openai("litellm.ContextWindowExceededError: x", "400"), "overflow_input"),
    Case(
        "litellm, as unavailable",
        503,
        openai(
            "litellm.ServiceUnavailableError: litellm.APIConnectionError: OpenAIException - Requested token count "
            "exceeds the model's maximum context length of 131072 tokens.",
            "503",
        ),
        "overflow_input",
        131_072,
    ),
    Case(
        "together", 403, openai("input tokens + max_tokens exceed the maximum context length", None), "overflow_input"
    ),
    Case(
        "openrouter names the kind",
        None,
        {"code": "x", "metadata": {"error_type": "context_length_exceeded"}},
        "overflow_input",
    ),
    Case("mlx-serve", 400, anthropic("Prompt exceeds maximum context length"), "overflow_input"),
    Case(
        "ollama cloud",
        400,
        {"StatusCode": 400, "error": "prompt too long; exceeded max context length by 4 tokens"},
        "overflow_input",
    ),
    Case(
        "ollama, shortened", 500, {"error": "input after truncation exceeds maximum context length"}, "overflow_input"
    ),
    Case(
        "llama.cpp slot",
        400,
        openai("input (9000 tokens) is larger than the max context size (8192 tokens). skipping", 400),
        "overflow_input",
        8192,
        9000,
    ),
    Case(
        "llama.cpp slot of old",
        500,
        openai("input is larger than the max context size. skipping", 500),
        "overflow_input",
    ),
    Case(
        "llama-cpp-python, low level",
        500,
        openai("Requested tokens (21277) exceed context window of 8192", None),
        "overflow_input",
        8192,
        21_277,
    ),
    Case("lm studio n_keep of old", 400, {"error": "n_keep: 9000 >= n_ctx: 4096"}, "overflow_input", 4096, 9000),
    Case(
        "tgi, input alone",
        422,
        {"error": "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000"},
        "overflow_input",
        4095,
        5000,
    ),
    Case(
        "github models",  # RooCodeInc/Roo-Code#3344
        413,
        openai("Request body too large for gpt-5-mini model. Max size: 4000 tokens.", "tokens_limit_reached"),
        "overflow_input",
        4000,
    ),
    Case(
        "cohere, by how much", 400, {"message": _COHERE + "The limit for this model is 131072 tokens."}, _LONG, 131_072
    ),
    *(
        Case(text[:24], 400, openai(text, None), _LONG, limit, given, output)
        for text, limit, given, output in (
            ("The input token count exceeds the maximum number of tokens allowed 1048576.", 1_048_576, None, None),
            ("Too many input tokens. Max input tokens: 131072, request input token count: 140000", 131_072, None, None),
            ("The number of input tokens (70000) exceeds the model's limit of 65536", 65_536, None, None),
            ("Input length 240000 exceeds the maximum length 229376. Request id: 02177", 229_376, 240_000, None),
            ("input length 5000 is too long. The maximum input length is 4096", 4096, None, None),
            ("Context length exceeded: 4500 tokens > 4096", 4096, None, None),
            ("Prompt length 9000 is greater than max_seq_len 8192", 8192, None, None),
            ("too many tokens: tokens in the prompt cannot exceed 128000 - received 150000.", 128_000, None, None),
            ("The conversation is too long: 9,000 tokens; model supports 8,192 tokens", 8192, None, None),
            ("Prompt length (9000) exceeds maximum input length (8192).", 8192, None, None),
            ("Token limit exceeded: 140000 tokens used, 131072 allowed", 131_072, None, None),
            ("This model's maximum context length is 128k tokens", 128_000, None, None),
            ("Reached context length of 4096 tokens with model (arch: llama)", 4096, None, None),
            ("input_tokens (140000) + max_tokens (4096) must be <= max_model_len (131072)", 131_072, None, None),
            (
                "The input and maximum output tokens (30000) exceeded this model context window limit (24000).",
                24_000,
                None,
                None,
            ),
            ("输入的tokens超过最大限制，最大限制为32768", 32_768, None, None),
            ("Your input of 5000 tokens plus 16000 exceeds the context window", None, None, None),
            ("invalid params, context window exceeds limit (2013)", None, None, None),
            # watsonx.ai, SiliconFlow (langgenius/dify#19394), Databricks, SambaNova, TensorRT-LLM
            # (NVIDIA/TensorRT-LLM#9277), TabbyAPI (SillyTavern/SillyTavern#3543), Snowflake (posit-dev/positron#11737),
            # Salesforce.
            (
                "the number of input tokens 4098 cannot exceed the total tokens limit 4096 for this model",
                4096,
                None,
                None,
            ),
            ("length of prompt_tokens (57535) must be less than max_seq_len (32768)", 32_768, None, None),
            (
                "prompt token count (5,052) cannot exceed 4096. Please decrease the length of the prompt",
                4096,
                None,
                None,
            ),
            (
                "The maximum context length of Meta-Llama-3.1-405B-Instruct is 8192. However, answering your request "
                "will take 32929 tokens. Please reduce the length of the messages.",
                8192,
                None,
                None,
            ),
            (
                "The sum of prompt length (9351.0), query length (0) should not exceed max_num_tokens (8192)",
                8192,
                None,
                None,
            ),
            (
                "`default_max_tokens` (-5) must be greater than 0, `default_max_tokens` (-5) = max_seq_len (2048) - "
                "`splited_prompt_len` (2053) - `query_token_len` (0)",
                2048,
                None,
                None,
            ),
            ("Request length 71599 + 2048 is greater than max_seq_len 65536", 65_536, 71_599, 2048),
            ("max tokens of 200000 exceeded", 200_000, None, None),
            ("Request input tokens exceed model token limit. Reduce the input size.", None, None, None),
            ("exceeds model context window: input=33120 max=32768", 32_768, None, None),
            ("n_tokens (33120) > n_ctx (32768)", 32_768, None, None),
            ("The context window is 32768 tokens, but the request used 33120", 32_768, None, None),
            ("33120 tokens, which exceeds the 32768-token context window", 32_768, None, None),
            ("输入token数33120超过模型限制32768", 32_768, None, None),
            # YandexGPT, and words of no known server.
            ("number of input tokens must be no more than 32768, got 59830", 32_768, None, None),
            ("The prompt has 33120 tokens but the model only accepts 32768", 32_768, 33_120, None),
            ("message tokens 33120 over limit 32768", 32_768, None, None),
            ("Prompt tokens(33120) exceeds max allowed(32768)", 32_768, None, None),
            ("Total tokens (33120) would exceed window (32768)", 32_768, None, None),
            ("The prompt of 33120 tokens exceeds the token limit by 1352 tokens", None, None, None),
            # A number that is called the limit is one, whatever others there are.
            ("Invalid request: Your request exceeded model token limit: 8192", 8192, None, None),
            ("prompt is too long: 213462 tokens > 200000 maximum (request 100007)", 200_000, 213_462, None),
            ("The input exceeds the context window of 131072 tokens (16384 reserved)", 131_072, None, None),
            ("The prompt exceeds the context window (request 84723, limit 131072)", 131_072, None, None),
            ("Prompt exceeds the context window: 5000 tokens over the limit of 200000", 200_000, None, None),
            ("Context window exceeded: sequence length 33024 > 32768 (HTTP 4001)", 32_768, None, None),
            ("Prompt exceeds maximum context length of 1M. You sent 1,200,000 tokens", 1_000_000, None, None),
            ("This model's maximum context length is 8192.Make the prompt shorter", 8192, None, None),
            ("This model's maximum context length is 1.5M tokens", None, None, None),
            # The lower of two numbers alone is none.
            ("The request exceeds the context size. Try again in 3000 ms. Request 84723", None, None, None),
            ("Prompt exceeds the context window (error 40003), port 11434", None, None, None),
            ("Prompt exceeds maximum context tokens; batch size 2048, ubatch 512", None, None, None),
            ("The conversation exceeds the context limit: system 3000 tokens, messages 210000", None, None, None),
            ("Prompt exceeds the context window (131072) with 2000 tokens reserved", None, None, None),
            ("Context window exceeded: 5000 tokens more than allowed, 205000 in all", None, None, None),
            ("Context window exceeded: prompt 30000 and maximum 8192 output tokens", None, None, None),
            ("Prompt too large: 2100000 characters, maximum 1048576 characters", None, None, None),
            ("Audio input too long: 1800 seconds, maximum is 1500 seconds", None, None, None),
        )
    ),
]

NOT_THE_CONTEXT = [
    Case("groq, a call the model got wrong", 400, openai("Failed to call a function.", "tool_use_failed"), "server"),
    Case("groq flex", 498, openai("capacity exceeded", None), "overloaded"),
    Case("ollama, too large for the machine", 500, openai("model requires more system memory (9 GiB)"), "bad_request"),
    Case("lm studio, not loaded", 500, {"error": "Failed to load model x"}, "bad_request"),
    Case(
        "openrouter moderation",
        403,
        openai("Your chosen model requires moderation and your input was flagged", 403),
        "bad_request",
    ),
    Case("xai guidelines", 403, {"code": "x", "error": "Content violates usage guidelines."}, "bad_request"),
    Case(
        "openrouter, credit that other requests hold",
        402,
        {
            "error": {
                "message": "This request would exceed your available credits given your current in-flight requests.",
                "code": 402,
                "metadata": {"limit_source": "openrouter_in_flight_budget"},
            }
        },
        "rate_limit",
    ),
    Case(
        "openrouter names the kind: credit",
        None,
        {"error": {"message": "x", "code": "whatever", "metadata": {"error_type": "payment_required"}}},
        "auth",
    ),
    Case(
        "openrouter, upstream pool",
        429,
        {
            "error": {
                "message": "Provider returned error",
                "code": 429,
                "metadata": {
                    "raw": "x is temporarily rate-limited upstream. Please retry shortly, or add your own key",
                    "provider_error_code": "engine_overloaded",
                },
            }
        },
        "rate_limit",
    ),
    Case(
        "openrouter in a stream",
        None,
        {"code": 429, "message": "x is temporarily rate-limited upstream."},
        "rate_limit",
    ),
    Case("openrouter, unknown model", 400, openai("openrouter/foo is not a valid model ID", 400), "not_found"),
    Case("deepseek, unknown model", 400, openai("Model Not Exist", "invalid_request_error"), "not_found"),
    Case(
        "openrouter, credit for no such prompt",
        402,
        openai("Prompt tokens limit exceeded: 84578 > 45156. To increase, visit https://openrouter.ai/x", 402),
        "auth",
    ),
    Case(
        "mistral tier",
        429,
        {"object": "error", "message": "Service tier capacity exceeded for this model.", "code": "3505"},
        "rate_limit",
    ),
    Case("mistral month", 429, {"object": "error", "message": "Tokens per month exceeded."}, "rate_limit"),
    Case("kimi busy", 429, openai("The engine is currently overloaded", None, "engine_overloaded_error"), "overloaded"),
    Case("kimi quota", 429, openai("Your account is suspended", None, "exceeded_current_quota_error"), "auth"),
    Case("z.ai balance", 429, openai("Insufficient balance or no resource package.", "1113"), "auth"),
    Case(
        "groq day",
        429,
        openai(
            "Rate limit reached for model `x` on tokens per day (TPD): Limit 100000, Used 99990, Requested 1000.",
            "rate_limit_exceeded",
            "tokens",
        ),
        "rate_limit",
    ),
    Case("azure filter", 400, openai("The response was filtered due to the prompt.", "content_filter"), "bad_request"),
    Case("azure deployment", 404, openai("The API deployment does not exist.", "DeploymentNotFound"), "not_found"),
    Case("lm studio, none", 400, openai("No models loaded. Please load a model in the developer page."), "bad_request"),
    Case(
        "vertex bytes",
        400,
        [{"error": {"code": 400, "message": "Request payload size exceeds the limit: 20971520 bytes."}}],
        "too_many_bytes",
    ),
    Case(
        "anthropic image",
        400,
        anthropic(
            "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes"
        ),
        "too_many_bytes",
    ),
    *(
        Case(text, 400, openai(text, None), "bad_request")
        for text in (
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got one with length 150.",
            "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40.",
            "`max_tokens` must be greater than `thinking.budget_tokens`",
            "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels",
            "A maximum of 100 PDF pages may be provided.",
            "The description's length exceeds the maximum length of 1024",
            "The request exceeds the maximum number of tools (128)",
            "max_tokens (64000) exceeds the maximum output tokens of this model",
            "The tools in your request total 4000 tokens, more than the 2048 allowed",
            "Total cost of 4000 tokens exceeds the credit of 1000",
            "The reasoning budget of 40960 total tokens exceeds 32768",
            "A system message of 9000 tokens exceeds 8192",
            "prompt contains token id 151936 which is greater than the maximum 151935",
            "Your prompt of 33120 tokens is over the limit by 1352 tokens",
            "Total tokens per message: 2048, but 4 messages were sent",
            "The image has 5000 tokens, more than the maximum of 4096 tokens per image",
        )
    ),
]
