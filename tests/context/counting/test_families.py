"""Names of one model, and names of another."""

from __future__ import annotations

import pytest

from tui.context.counting.families import FAMILIES, FAMILY_PRIORS, PRIORS, another_family, prior_of, shared_name


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("claude-3-5-sonnet@20240620", "claude-3-5-sonnet"),
        ("openai/gpt-5-mini-2025-08-07", "openai/gpt-5-mini"),
        ("magistral-medium-2507", "magistral-medium"),
        ("grok-4-0709", "grok-4"),
        ("qwen3:latest", "qwen3"),
        ("mistral-large-2407", "mistral-large-2407"),  # its vocabulary is another than the newest one's
        ("llama3-70b-8192", "llama3-70b-8192"),  # its window
        ("gpt-4-32k", "gpt-4-32k"),
        ("qwen3:0.6b", "qwen3:0.6b"),
        ("gpt-5", "gpt-5"),
        ("latest", "latest"),
        ("", ""),
    ],
)
def test_releases_of_a_model_share_a_name(model: str, name: str) -> None:
    assert shared_name(model) == name
    assert shared_name(name) == name


@pytest.mark.parametrize(
    ("requested", "answered", "another"),
    [
        ("auto", "anthropic/claude-sonnet-4.5", True),
        ("prod-chat", "gpt-4o-2024-08-06", True),
        ("gpt-5", "claude-haiku-4-5", True),
        ("gpt-5", "gpt-5-2025-08-07", False),
        ("gpt-5", "gpt-5-mini", False),
        ("gpt-5", "o3", False),  # one vocabulary
        ("claude-sonnet-4.6", "anthropic/claude-4.6-sonnet-20260217", False),
        ("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct", False),
        ("gpt-4", "gpt-4o", False),
        ("gpt-5", "model", False),  # what answers is not told
        ("gpt-5", "/srv/checkpoint.gguf", False),
        ("gpt-5", "", False),
        ("claude-sonnet", "claude-sonnet-4-5-20250929", True),  # the newest have another vocabulary
        ("work/claude-sonnet-latest", "claude-sonnet-4-6", True),
        ("mistral", "mistral-7b-instruct-v0.2", True),
        ("claude-sonnet-4-5", "claude-sonnet", False),
        ("claude-opus-4-8", "claude-opus-4-5", False),
    ],
)
def test_another_family_is_told_by_its_name(requested: str, answered: str, another: bool) -> None:
    assert another_family(requested, answered) is another


@pytest.mark.parametrize(
    ("model", "like"),
    [
        ("qwq-32b", "qwen3-32b"),
        ("coder-model", "qwen3-coder"),
        ("us.deepseek.r1-v1:0", "deepseek-r1"),
        ("glm5", "glm-5"),
        ("open-mixtral-8x22b", "mistral-large-latest"),
        ("chatgpt-5", "gpt-5"),
        ("claude-instant-1.2", "claude-2.1"),
        ("anthropic/claude-4.6-sonnet-20260217", "claude-sonnet-4-6"),
        ("claude-4.7-opus", "claude-opus-4-7"),
        ("meta.llama3-1-8b-instruct-v1:0", "llama3.1:8b"),
        ("meta-llama-3.1-8b-instruct", "llama-3.1-8b-instant"),
        ("meta-llama-3-70b", "llama3-70b-8192"),
        ("gemini-1.5-pro", "gemini-2.5-pro"),
        ("gemma3:4b", "gemma-2-9b-it"),
        ("deepseek-r1-distill-llama-70b", "deepseek-r1"),  # another vocabulary in DeepSeek's template
        ("chatgpt-4o-latest", "gpt-4"),  # another vocabulary in GPT-4's
    ],
)
def test_names_of_one_family_cost_the_same_beside_the_text(model: str, like: str) -> None:
    assert prior_of(model) is prior_of(like) is not PRIORS["default"]


def test_a_family_with_a_template_that_was_measured_has_no_name_that_is_treated_as_unknown() -> None:
    families = {name: family for name, family in FAMILIES.items() if family in FAMILY_PRIORS}
    unknown = {name for name in families if prior_of(name) is PRIORS["default"]}
    templates_of_their_own = ("hermes", "nemotron", "smollm3", "zephyr", "dolphin", "tulu", "phi", "olmo")
    assert unknown == {name for name in families if name.startswith(templates_of_their_own)}
