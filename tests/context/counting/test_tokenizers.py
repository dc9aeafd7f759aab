from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context.helpers import registered
from tui.context.counting.bpe import ENCODINGS
from tui.context.counting.families import ESTIMATED, FAMILIES, RELATIVE_SIZES, family_of, plain_name
from tui.context.counting.tokenizers import (
    Tokenizer,
    count_text,
    fitted_families,
    get_tokenizer,
    heuristic_count,
)
from tui.context.counting.words import TokenizerError, WordCounter


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4", "cl100k"),
        ("GPT-4-turbo", "cl100k"),
        ("gpt-3.5-turbo-16k", "cl100k"),
        ("gpt-35-turbo", "cl100k"),  # Azure
        ("gpt-4o-mini", "o200k"),
        ("gpt-4.1-nano", "o200k"),
        ("gpt-4.5-preview", "o200k"),
        ("openai/gpt-5", "o200k"),
        ("gpt-6.2-sol", "o200k"),
        ("gpt-oss:20b", "o200k"),
        ("openrouter/openai/gpt-4", "cl100k"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-3"),
        ("global.anthropic.claude-opus-4-8-v1", "claude-4.7"),
        ("us-gov.anthropic.claude-haiku-4-5", "claude-3"),
        ("databricks-qwen35-122b-a10b", "qwen3.5"),
        ("apac.meta.llama3-2-3b-instruct-v1:0", "llama3"),
        ("anthropic/claude-sonnet-4.5", "claude-3"),
        ("claude-3-opus-20240229", "claude-3"),
        ("claude-sonnet-4-0", "claude-3"),
        ("claude-opus-4-7", "claude-4.7"),
        ("anthropic/claude-opus-4.8", "claude-4.7"),
        ("claude-sonnet-5", "claude-4.7"),
        ("gemini-2.5-pro", "gemma3"),
        ("gemini-3-flash-preview", "gemma3"),
        ("gemini-1.5-flash", "gemma2"),
        ("gemma2:9b", "gemma2"),
        ("google.gemma-3-27b-it", "gemma3"),
        ("llama-3.3-70b-versatile", "llama3"),
        ("llama3.2:1b", "llama3"),
        ("us.meta.llama4-maverick-17b-instruct-v1:0", "llama4"),
        ("meta-llama/llama-4-scout-17b-16e-instruct", "llama4"),
        ("qwen/qwen3-32b", "qwen2"),
        ("qwen.qwen3-32b-v1:0", "qwen2"),
        ("qwen3.5-plus", "qwen3.5"),
        ("codeqwen:7b", ESTIMATED),  # a vocabulary of its own
        ("deepseek-ai/DeepSeek-R1", "deepseek"),
        ("us.deepseek.r1-v1:0", "deepseek"),
        ("deepseek-r1-distill-llama-70b", "llama3"),
        ("deepseek-r1:70b", "llama3"),
        ("deepseek-r1:32b", "qwen2"),
        ("deepseek-r1:671b-q4_K_M", "deepseek"),
        ("deepseek/deepseek-r1:free", "deepseek"),
        ("ft:gpt-4o-mini-2024-07-18:org::id", "o200k"),
        ("mistral-large-latest", "tekken"),
        ("open-mixtral-8x22b", "mistral-v3"),
        ("z-ai/glm-4.6", "glm4"),
        ("zai/GLM-5.2", "glm5"),
        ("minimax.minimax-m2", "minimax"),
        ("command-r-plus", "command-r"),
        ("smollm2:135m", "smollm2"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama2"),
        ("codellama:34b", "llama2"),
        ("microsoft/Phi-3.5-mini-instruct", "llama2"),
        ("phi4:14b", "cl100k"),
        ("microsoft/Phi-4-mini-instruct", "o200k"),
        ("olmo2:7b", "cl100k"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "llama3"),
        ("openhermes", "mistral-v3"),
        ("mistral-openorca", "mistral-v3"),
        ("wizardlm2:7b", "mistral-v3"),
        ("cogito:32b", "qwen2"),
        ("medgemma:4b", "gemma3"),
        ("deepseek-coder-v2:16b", "deepseek-v2"),
        ("deepseek-ai/deepseek-coder-33b-instruct", "deepseek-coder"),
        ("somebody/unheard-of", ESTIMATED),
        ("moonshotai/kimi-k2", ESTIMATED),
        ("", ESTIMATED),
    ],
)
def test_models_find_their_family(model: str, family: str) -> None:
    assert family_of(model) == family


@pytest.mark.slow
def test_every_family_has_a_tokenizer_that_says_how_it_counts() -> None:
    for model, family in FAMILIES.items():
        shipped = family in ENCODINGS or family.startswith("claude")
        assert get_tokenizer(model).method == ("vocabulary" if shipped else "fitted"), model
        assert 1 <= get_tokenizer(model).count("hello") <= 3, model
    assert get_tokenizer("unheard-of").method == "estimated"


def test_what_is_said_of_families_is_said_of_ones_that_exist() -> None:
    assert set(RELATIVE_SIZES) <= set(FAMILIES.values())
    assert set(fitted_families()) - {ESTIMATED} <= set(FAMILIES.values())


def test_vendor_prefixes_are_stripped() -> None:
    assert plain_name("openai/GPT-5") == "gpt-5"
    assert plain_name("eu.anthropic.claude-x") == "claude-x"
    assert plain_name("deepseek-ai/DeepSeek-R1") == "deepseek-r1"
    assert plain_name("claude-sonnet-4.5") == "claude-sonnet-4-5"
    assert plain_name("glm-4.6") == "glm-4.6"


def test_only_the_vocabulary_used_last_is_in_memory() -> None:
    first, second = get_tokenizer("qwen3"), get_tokenizer("smollm2")
    counted = first.count("hello there")
    second.count("hello there")
    assert first._counter is None
    assert first.count("hello there") == counted


def test_a_vocabulary_that_cannot_be_read_is_tried_once() -> None:
    tries = []

    def missing() -> WordCounter:
        tries.append(1)
        raise TokenizerError("gone")

    tokenizer = Tokenizer("gone", missing)
    with registered("gone-1", tokenizer):
        for _ in range(3):
            assert tokenizer.count("x" * 400) == 100
            with pytest.raises(TokenizerError, match="gone"):
                count_text("x", "gone-1")
    assert len(tries) == 1


def test_counting_needs_no_network() -> None:
    code = (
        "import socket\n"
        "def refuse(*args, **kwargs): raise AssertionError('network')\n"
        "socket.socket.connect = refuse; socket.getaddrinfo = refuse\n"
        "from tui.context.counting.tokenizers import get_tokenizer\n"
        "assert {get_tokenizer(m).count('hello world') for m in ('gpt-5', 'gpt-4', 'glm-5', 'claude-3')} == {2}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PATH": ""})


@given(st.text(max_size=200))
def test_the_heuristic_is_never_zero_for_some_text(text: str) -> None:
    assert (heuristic_count(text) > 0) == bool(text)


def test_the_heuristic_knows_wide_characters() -> None:
    assert heuristic_count("a" * 400) == 100
    assert 100 <= heuristic_count("世" * 100) <= 140
    assert heuristic_count("привет" * 10) == 30
