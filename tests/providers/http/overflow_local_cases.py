"""Overflow texts of servers on one's own machine."""

from __future__ import annotations

from tests.providers.http.overflow_cases import Case, openai

LOCAL = [
    Case(
        "llama.cpp",
        400,
        {
            "error": {
                "code": 400,
                "message": "request (4267 tokens) exceeds the available context size (4096 tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 4267,
                "n_ctx": 4096,
            }
        },
        "overflow_input",
        4096,
        4267,
    ),
    Case(
        "llama.cpp old",
        500,
        openai(
            "the request exceeds the available context size. try increasing the context size or enable context shift",
            500,
        ),
        "overflow_input",
    ),
    Case(
        "llama-cpp-python",
        400,
        openai(
            "This model's maximum context length is 1024 tokens. However, you requested 3036 tokens (3031 "
            "in the messages, 5 "
            "in the completion). Please reduce the length of the messages or completion."
        ),
        "overflow_input",
        1024,
        3031,
        5,
    ),
    Case(
        "lm studio",
        400,
        {
            "error": "Trying to keep the first 15857 tokens when context the overflows. However, the model "
            "is loaded with "
            "context length of only 4096 tokens, which is not enough. Try to load the model with a larger "
            "context length, or "
            "provide a shorter input"
        },
        "overflow_input",
        4096,
        15_857,
    ),
    Case(
        "lm studio keep",
        400,
        {"error": "The number of tokens to keep from the initial prompt is greater than the context length."},
        "overflow_input",
    ),
    Case("lm studio stream", None, {"message": "Context size has been exceeded."}, "overflow_input"),
    Case(
        "lm studio n_keep",
        400,
        {"error": "Cannot truncate prompt with n_keep (9000) >= n_ctx (4096)"},
        "overflow_input",
        4096,
        9000,
    ),
    Case(
        "ollama",
        400,
        openai(
            "the prompt is longer than the context length currently available to the model; shorten the "
            "prompt, adjust the "
            "context length in settings, or use a model with a longer context length",
            None,
        ),
        "overflow_input",
    ),
    Case("ollama embed", 400, {"error": "the input length exceeds the context length"}, "overflow_input"),
    Case(
        "ollama mlx",
        400,
        {"error": "input length (9000 tokens) exceeds the model's maximum context length (8192 tokens)"},
        "overflow_input",
        8192,
        9000,
    ),
]
