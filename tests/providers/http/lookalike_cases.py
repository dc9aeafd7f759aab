"""Error texts that are no overflow, though some look like one."""

from __future__ import annotations

from tests.providers.http.overflow_cases import Case, anthropic, openai

BUSY = "Too many tokens, please wait before trying again."

NOT_OVERFLOW = [
    Case("429, no body", 429, None, "rate_limit"),
    Case("429 that names a length", 429, openai("maximum context length is 8192 tokens", None), "rate_limit"),
    Case("tokens per minute", 400, openai("Limit 8000 tokens per minute reached", None), "rate_limit"),
    Case(
        "organisation TPD as 429",
        429,
        openai("Your request reached organization TPD rate limit, current: 1506556, limit: 1500000", None),
        "rate_limit",
    ),
    Case(
        "organisation TPD in a stream",
        None,
        openai("request reached organization TPD rate limit, current: 1506556, limit: 1500000", None),
        "rate_limit",
    ),
    Case("too many tokens per minute", 400, openai("Too many tokens per minute", None), "rate_limit"),
    Case("bedrock throttle", 429, {"message": BUSY}, "rate_limit"),
    Case("bedrock throttle in words", 400, {"message": "ThrottlingException: too many tokens"}, "rate_limit"),
    Case("bedrock throttle without its status", 503, {"message": BUSY}, "overloaded"),
    Case("bedrock throttle in a stream", None, {"message": BUSY}, "rate_limit"),
    Case("tokens of a day", 400, openai("Too many tokens today", None), "bad_request"),
    Case("每分钟", 400, openai("该模型每分钟tokens超过限制 60000，当前 80000", None), "bad_request"),
    Case("余额", 400, openai("您的tokens余额超出限制", None), "bad_request"),
    Case("图片", 400, openai("输入的图片超过限制 4096 x 2048", None), "bad_request"),
    Case(
        "30000 a minute",
        400,
        openai("This request exceeds the limit of 30000 tokens per minute", None),
        "rate_limit",
    ),
    Case(
        "groq TPM as 413",
        413,
        openai(
            "Request too large for model `llama` on tokens per minute (TPM): Limit 6000, Requested 8000, "
            "please reduce your "
            "message size and try again.",
            "rate_limit_exceeded",
            "tokens",
        ),
        "bad_request",  # it can never pass
    ),
    Case("kv cache", 500, openai("failed to find free space in the KV cache", 500), "server"),
    Case("ollama lost the user message", 500, openai("no user query found in messages", None), "server"),
    Case(
        "one field too long",
        400,
        openai(
            "Invalid 'input[0].content': string too long. Expected a string with maximum length 10485760, "
            "but got 20000000",
            "string_above_max_length",
        ),
        "too_many_bytes",
    ),
    Case(
        "user field too long",
        400,
        openai("Invalid 'user': string too long. Expected a string with maximum length 64", "string_above_max_length"),
        "bad_request",
    ),
    Case(
        "anthropic bytes",
        413,
        anthropic("Request exceeds the maximum allowed number of bytes", "request_too_large"),
        "too_many_bytes",
    ),
    Case("proxy 413", 413, "<html><head><title>413 Request Entity Too Large</title></head></html>", "too_many_bytes"),
    Case("payload", 413, {"error": "payload too large"}, "too_many_bytes"),
    Case("express", 413, {"message": "request body too large"}, "too_many_bytes"),
    Case("kimi bytes", 400, openai("total message size 10176584 exceeds limit 2097152", None), "too_many_bytes"),
    Case("413, no body", 413, None, "too_many_bytes"),
    Case(
        "long context tier",
        429,
        anthropic("Extra usage is required for long context requests.", "rate_limit_error"),
        "long_context_tier",
    ),
    Case("1M credits", 400, anthropic("Usage credits required for 1M context"), "long_context_tier"),
    Case("overloaded", 529, anthropic("Overloaded", "overloaded_error"), "overloaded"),
    Case("overloaded in a stream", 200, anthropic("Overloaded", "overloaded_error"), "overloaded"),
    Case("503", 503, "upstream connect error", "overloaded"),
    Case("500", 500, None, "server"),
    Case("a Go program's deadline", 500, {"error": "context deadline exceeded (Client.Timeout exceeded)"}, "server"),
    Case("an allowance", 403, openai("Your request exceeds the daily token limit.", None), "auth"),
    Case("an account", 403, openai("The token limit of your API key has been exceeded", None), "auth"),
    Case(
        "a name",
        400,
        openai("Invalid request: tool name is longer than the maximum allowed length (64)", None),
        "bad_request",
    ),
    Case("images", 400, openai("The request exceeds the model's limit of 20 images", None), "bad_request"),
    Case("a queue", 503, {"message": "queue is full: 5000 requests exceed max queue length 1024"}, "overloaded"),
    Case("a key", 400, openai("access token is longer than the maximum length 4096 tokens", None), "bad_request"),
    Case("an id", 400, openai("messages[3].tool_call_id: input exceeds maximum length 40", None), "bad_request"),
    Case("a file", 400, openai("The input is too large: a file may have 5 MB", None), "bad_request"),
    Case("image not supported", 500, openai("image input is not supported", 500, "server_error"), "bad_request"),
    Case("stream error without status", None, {"code": 500, "message": "boom"}, "server"),
    Case("status inside an Anthropic stream", 200, {"error": {"code": 429, "message": "slow"}}, "rate_limit"),
    Case("wrong key", 401, openai("Incorrect API key provided: sk-abcdefghijkl", "invalid_api_key"), "auth"),
    Case(
        "llama.cpp key",
        401,
        {"error": {"message": "Invalid API Key", "type": "authentication_error", "code": 401}},
        "auth",
    ),
    Case("no credit", 400, anthropic("Your credit balance is too low to access the Anthropic API."), "auth"),
    Case(
        "no quota",
        429,
        openai("You exceeded your current quota, please check your plan and billing details.", "insufficient_quota"),
        "auth",
    ),
    Case(
        "gemini quota that passes",
        429,
        [
            {
                "error": {
                    "code": 429,
                    "message": "You exceeded your current quota, please check your plan and billing details.",
                    "status": "RESOURCE_EXHAUSTED",
                    "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "33s"}],
                }
            }
        ],
        "rate_limit",
    ),
    Case("no model", 404, openai("The model `x` does not exist", "model_not_found"), "not_found"),
    Case("no path", 404, {"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}}, "not_found"),
    Case("length is no error", 400, openai("finish_reason: length", None), "bad_request"),
    Case("400, no body, not Cerebras", 400, None, "bad_request", provider="openai"),
]

THINKING = [
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These "
    "blocks must remain as "
    "they were in the original response.",
    "messages.39.content.0: Invalid `signature` in `thinking` block",
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different "
    "conversation. Remove the "
    'block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
    "messages.3.content.0.thinking.signature: Field required",
    "signature: Field required",
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.",
    "Expected `thinking` or `redacted_thinking`, but found `tool_use`",
    "The encrypted content for item rs_0123 could not be verified.",
    "Item with id 'rs_68c4' not found. Items are not persisted when `store` is set to false.",
    "Item 'rs_68c4' of type 'reasoning' was provided without its required following item.",
]

PAIRING = [
    "messages.5: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_x",
    "messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_01A. Each "
    "`tool_result` block must have "
    "a corresponding `tool_use` block in the previous message.",
    "No tool call found for function call output with call_id call_x",
    "messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
    "an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'",
    "(insufficient tool messages following tool_calls message)",
    "tool_call_id  is not found",
    "missing field tool_call_id",
    "`tool_use` ids must be unique",
    "text content blocks must be non-empty",
    "text content blocks must contain non-whitespace text",
    'first message must use the "user" role',
    "roles must alternate",
    "the message at position 3 with role 'assistant' must not be empty",
]
