"""Sentences in which servers refused something, as users quoted them in public issues, and what they mean.

Neighbours stand beside each other: a rule that takes a sentence too many is seen here.
"""

from __future__ import annotations

from tui.providers.http.refusals import Cause

SENTENCES: tuple[tuple[str, Cause | None], ...] = (
    # Reasoning and tools that exclude each other (openai/openai-openapi#541, GoogleChromeLabs/webmcp-tools#417).
    (
        "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use "
        "/v1/responses instead.",
        "reasoning_with_tools",
    ),
    (
        "Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use "
        "function tools, use /v1/responses or set reasoning_effort to 'none'.",
        "reasoning_with_tools",
    ),
    # Tools.
    ("registry.ollama.ai/library/gemma:2b does not support tools", "tools"),
    ("No endpoints found that support tool use. To learn more about provider routing, visit: ...", "tools"),
    ('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', "tools"),
    ("tools param requires --jinja flag", "tools"),
    ("Function calling is not enabled for models/gemma-3-27b-it", "tools"),
    ("Function calling is not enabled for this model", "tools"),
    ("Tool calling is not supported with this model", "tools"),
    # Not that tools are refused, but how they were used.
    ("tool_use ids were found without tool_result blocks immediately after: toolu_01", None),
    ("Parallel tool calls are not supported by this model", None),
    ("tool choice 'required' is not supported by this endpoint", None),
    ("Tools with more than 128 functions are not supported", None),
    ("Tool schemas with $ref are not supported", None),
    ("Invalid 'tools': array too long. Expected an array with maximum length 128, but got 203 instead.", None),
    ("Invalid 'tools[43].function.name': string too long. Expected a string with maximum length 64, got 71", None),
    # A tool's description (getsentry/sentry-mcp#106, opensumi/core#4439).
    (
        "Invalid 'tools[13].function.description': string too long. Expected a string with maximum length 1024, but "
        "got a string with length 1103 instead.",
        "description",
    ),
    ("tools.3.custom.description: String should have at most 1024 characters", "description"),
    # A tool's schema (anthropics/claude-code#5319, nspady/google-calendar-mcp#39).
    (
        "tools.106.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
        "schema",
    ),
    ("tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12", "schema"),
    ("tools.11.custom.input_schema.type: Field required", "schema"),
    (
        "Invalid schema for function 'update-event': schema must have type 'object' and not have 'oneOf'/'anyOf'/"
        "'allOf'/'enum'/'not' at the top level.",
        "schema",
    ),
    ("Invalid schema for function 'x': In context=(), reference '#/$defs/A' not found", "schema"),
    ("Invalid schema for function 'x': not supported keyword", "schema"),
    ("Invalid JSON payload received. Unknown name \"$schema\" at 'tools[0].function_declarations[0]'", "schema"),
    (
        "* GenerateContentRequest.tools[0].function_declarations[4].parameters.properties[a].items: missing field.",
        "schema",
    ),
    ("Invalid request: tools.function.parameters is not a valid moonshot flavored json schema, details: <x>", "schema"),
    ('JSON schema conversion failed: Unrecognized schema: {"not":{}}', "schema"),
    ("Failed to initialize samplers: failed to parse grammar", "schema"),
    # Images, and one image.
    ("image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", "images"),
    ("No endpoints found that support image input", "images"),
    ("llama-3 is not a multimodal model", "images"),
    ("Could not process image", "file"),
    ("messages.0.content.1.image: At least one of the image dimensions exceed max allowed size: 8000 pixels", "file"),
    ("Image does not match the provided media type image/png", "file"),
    ("You uploaded an unsupported image. Please make sure your image has of one the following formats", "file"),
    ("The image data you provided does not represent a valid image.", "file"),
    ("The image was specified using the image/jpeg media type, but the image appears to be a image/png image", "file"),
    ("Unable to process input image.", "file"),
    ("cannot identify image file <_io.BytesIO object at 0x7f>", "file"),
    ("Failed to load image or audio file", "file"),
    ("The PDF specified was not valid.", "file"),
    ("A maximum of 100 PDF pages may be provided.", "file"),
    # The level of reasoning (anomalyco/opencode#4451, Kilo-Org/cloud#3807, livekit/agents#3966).
    (
        "Unsupported value: 'minimal' is not supported with the 'gpt-5.1' model. Supported values are: 'none', 'low', "
        "'medium', and 'high'.",
        "effort",
    ),
    ("Unsupported value: 'reasoning_effort' does not support 'none' with this model.", "effort"),
    ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", "effort"),
    ("Unsupported parameter: 'reasoning_effort' is not supported with this model.", "effort"),
    ("Unrecognized request argument supplied: reasoning_effort", "effort"),
    ("Model grok-4 does not support parameter reasoningEffort.", "effort"),
    ("`reasoning_effort` must be one of `low`, `medium`, or `high`", "effort"),
    ("Reasoning is mandatory for this endpoint and cannot be disabled.", "effort"),
    ('"gemma3" does not support thinking', "effort"),
    ("adaptive thinking is not supported on this model", "effort"),
    ("thinking.type: Input should be 'enabled' or 'disabled'", "effort"),
    ('"thinking.type.disabled" is not supported for this model.', "effort"),
    ("Budget 0 is invalid. This model only works in thinking mode.", "effort"),
    ("output_config: Extra inputs are not permitted", "effort"),
    # Not the level, but what stands beside it.
    ("The `reasoning_content` in the thinking mode must be passed back to the API.", "missing_reasoning"),
    (
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        "missing_reasoning",
    ),
    ("The content[].thinking in the thinking mode must be passed back to the API.", None),
    ("Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) is supported.", None),
    ("`temperature` may only be set to 1 when thinking is enabled.", None),
    ("`max_tokens` must be greater than `thinking.budget_tokens`.", None),
    ("messages.1.content.0.type: thinking blocks are not allowed in the first message", None),
    ("Thinking may not be enabled when tool_choice forces tool use.", None),
    # Fields of the request.
    ("Your organization must be verified to generate reasoning summaries.", "summaries"),
    ("Your organization must be verified to stream this model.", "streams"),
    (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "max_tokens_name",
    ),
    (
        "[{'type': 'extra_forbidden', 'loc': ['body', 'stream_options'], 'msg': 'Extra inputs are not permitted'}]",
        "field",
    ),
    ("Unrecognized request arguments supplied: stream_options", "field"),
    # The order and the names of roles.
    ("Unexpected role 'user' after role 'tool'", "role_order"),
    (
        "After the optional system message, conversation roles must alternate user and assistant roles except for tool "
        "calls and results.",
        "role_order",
    ),
    ("Unexpected role 'tool' after role 'user'", None),
    ("System role not supported", "system_role"),
    ("Unsupported value: 'messages[0].role' does not support 'system' with this model.", "system_role"),
    # Others.
    ('messages: roles must alternate between "user" and "assistant"', None),
    ("Invalid value for 'model': 'x'.", None),
)
