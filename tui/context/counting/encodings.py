"""The encoding of each model family. NOTICE names the source and licence of every vocabulary.

The patterns are those of the families' published tokenizers (`tokenizer.json`, `tekken.json`, tiktoken's
`openai_public.py`); `tests/corpus/test_vocabularies.py` compares the counts.
"""

from __future__ import annotations

from tui.context.counting.bpe import Encoding

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_LLAMA_3 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}"
_O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTIONS}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_REST}"
)
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_REST}"
)
_QWEN = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}"
_QWEN_3_5 = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_REST}"
)
_DEEPSEEK = (
    r"\p{N}{1,3}|[^\p{N}]+",
    r"[一-龥぀-ゟ゠-ヿ]+|[^一-龥぀-ゟ゠-ヿ]+",
    r"[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    rf"|{_REST}|\p{{N}}+|\S",
)
_GPT_2 = (r"\p{N}|[^\p{N}]+", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
# SentencePiece splits nothing, but no token of these two (Gemma's tags aside) goes on after a word, or from an ASCII
# letter to an ASCII mark or digit: short words are found again more often. `_OTHER` goes with both.
_LETTERS, _OTHER = "[A-Za-z]++", r"[\x80-\U0010ffff]"


def _split_by_kind(marks: str) -> str:
    return rf" *+(?:{_LETTERS}|{marks}|(?={_OTHER}))(?:{_OTHER}++(?:{_LETTERS}|{marks})?+)*+| +|[0-9]"


_MISTRAL_3 = _split_by_kind(r"[^A-Za-z0-9 \x80-\U0010ffff]++")
_TAG = (
    "</?(?:a|b|bbox|blockquote|body|caption|code|div|em|footer|h[1-6]|html|i|iframe|img|li|s|span|strong|sub|sup|table"
    "|tbody|td|tfoot|th|thead|tr|u|ul)>"
)
_GEMMA = rf"{_TAG}|\n+|" + _split_by_kind(rf"(?:[^A-Za-z0-9 \n<\x80-\U0010ffff]|(?!{_TAG})<)++")

ENCODINGS = {
    "o200k": Encoding("o200k_base", (_O200K,)),
    "cl100k": Encoding("cl100k_base", (_CL100K,)),
    "qwen2": Encoding("qwen2", (_QWEN,), nfc=True),
    "qwen3.5": Encoding("qwen3.5", (_QWEN_3_5,), nfc=True),
    "deepseek": Encoding("deepseek", _DEEPSEEK),
    "glm4": Encoding("glm", (_LLAMA_3,), size=151_329),  # GLM 5 has 3,491 tokens more
    "glm5": Encoding("glm", (_LLAMA_3,)),
    "minimax": Encoding("minimax", (_O200K,), nfc=True),
    "tekken": Encoding("tekken", (_TEKKEN,)),
    "mistral-v3": Encoding("mistral_v3", (_MISTRAL_3,), characters=True, leading_blank=True),
    "gemma3": Encoding("gemma3", (_GEMMA,), characters=True),
    "smollm2": Encoding("smollm2", _GPT_2),
}

# Tokenizer by prefix of the model's name; the longest prefix wins. Values that are not encodings are fitted families.
FAMILIES: dict[str, str] = {
    **dict.fromkeys(("gpt", "chatgpt", "codex", "o1", "o3", "o4", "computer-use"), "o200k"),
    **dict.fromkeys(("gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-oss"), "o200k"),
    **dict.fromkeys(("gpt-4", "gpt-3.5", "text-embedding-ada", "text-embedding-3"), "cl100k"),
    **dict.fromkeys(("claude", "claude-4-7", "claude-4-8"), "claude-4.7"),
    **dict.fromkeys(("claude-opus-4-7", "claude-opus-4-8", "claude-sonnet-4-7"), "claude-4.7"),
    **dict.fromkeys(("claude-1", "claude-2", "claude-3", "claude-instant"), "claude-3"),
    **dict.fromkeys(("claude-opus-4", "claude-sonnet-4", "claude-haiku-4", "claude-4"), "claude-3"),
    **dict.fromkeys(("gemini", "gemma", "gemma3", "gemma-3"), "gemma3"),
    **dict.fromkeys(("gemini-1", "gemma2", "gemma-2", "gemma-7b", "gemma-1", "gemma:", "codegemma"), "gemma2"),
    **dict.fromkeys(("llama", "meta-llama", "llama-3", "llama3", "smollm3"), "llama3"),
    **dict.fromkeys(("llama4", "llama-4", "meta-llama-4"), "llama4"),
    **dict.fromkeys(("deepseek-r1-distill-llama", "hermes-3-llama", "nemotron", "llama-3.1-nemotron"), "llama3"),
    **dict.fromkeys(("qwen", "qwq", "qvq", "coder-model", "deepseek-r1-distill-qwen"), "qwen2"),
    **dict.fromkeys(("qwen3.5", "qwen3.6", "qwen3.7", "qwen-3.5", "qwen-3.6", "qwen3-5", "qwen3-6"), "qwen3.5"),
    **dict.fromkeys(("deepseek", "r1-v1", "v3-v1", "v3.1", "v3.2"), "deepseek"),  # r1-v1: Bedrock's deepseek.r1-v1:0
    **dict.fromkeys(("mistral", "ministral", "magistral", "pixtral", "codestral", "devstral", "voxtral"), "tekken"),
    **dict.fromkeys(("open-mistral-nemo", "open-codestral"), "tekken"),
    **dict.fromkeys(("mistral:", "mistral-7b", "mistral-tiny", "open-mistral", "mathstral", "zephyr"), "mistral-v3"),
    **dict.fromkeys(("mixtral", "open-mixtral", "dolphin-mixtral", "mistral-large-24"), "mistral-v3"),
    **dict.fromkeys(("mistral-small-2402", "mistral-medium-2312", "codestral-2405", "codestral-22b"), "mistral-v3"),
    "mistral-large-2411": "tekken",
    **dict.fromkeys(("glm", "glm4", "glm-4", "zai-glm", "zai-glm-4", "chatglm"), "glm4"),
    **dict.fromkeys(("glm-5", "glm5", "zai-glm-5"), "glm5"),
    **dict.fromkeys(("minimax", "abab"), "minimax"),
    **dict.fromkeys(("command", "c4ai-command", "aya"), "command-r"),
    "smollm": "smollm2",
}
