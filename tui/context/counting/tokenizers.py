"""Tokenizers: which one stands in for a model, real BPE offline, and a character heuristic if that fails.

Nothing is downloaded: both rank tables ship with the package as `ranks/*.xz` (token count, token lengths, tokens in
rank order), derived from the official files of openai/tiktoken (MIT); `official_text` gives those back byte for byte.
"""

from __future__ import annotations

import base64
import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import tiktoken

PIECE_BYTES = 100_000  # tiktoken panics on about 1,000,000 blanks in a row (facts §9), so nothing longer goes in

# Split patterns of the two encodings, from tiktoken_ext/openai_public.py of tiktoken 0.14.0 (MIT). A test compares.
_PATTERNS = {
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k_base": (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n/]*"
        r"|\s*[\r\n]+"
        r"|\s+(?!\S)"
        r"|\s+"
    ),
}


class TokenizerError(Exception):
    """A tokenizer could not count a text. The message is one line."""


class Tokenizer(Protocol):
    """Counts the tokens of a text. `exact` says that the numbers are the model's own, so no family factor applies."""

    @property
    def name(self) -> str: ...

    @property
    def exact(self) -> bool: ...

    def count(self, text: str) -> int:
        """Tokens of `text`. Raises `TokenizerError`."""
        ...


def load_ranks(encoding: str) -> dict[bytes, int]:
    """Token -> rank of a shipped encoding. Raises `TokenizerError` where the file is missing or damaged."""
    import lzma
    from importlib.resources import files

    try:
        data = lzma.decompress((files("tui.context.counting") / "ranks" / f"{encoding}.xz").read_bytes())
    except (OSError, lzma.LZMAError) as error:
        raise TokenizerError(f"token ranks of {encoding} cannot be read: {error}") from error
    count = int.from_bytes(data[:4], "big")
    lengths, at = data[4 : 4 + count], 4 + count
    ranks: dict[bytes, int] = {}
    for rank, length in enumerate(lengths):
        ranks[data[at : at + length]] = rank
        at += length
    if len(ranks) != count or at != len(data):
        raise TokenizerError(f"token ranks of {encoding} are damaged: reinstall chatctx")
    return ranks


def official_text(encoding: str) -> bytes:
    """The official `.tiktoken` file of `encoding`, rebuilt from the shipped one. Raises `TokenizerError`."""
    return b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in load_ranks(encoding).items())


def pack_ranks(official: bytes) -> bytes:
    """The shipped form of an official `.tiktoken` file: how `ranks/*.xz` were made. Ranks must be 0, 1, 2, ..."""
    import lzma

    tokens = [base64.b64decode(line.split()[0]) for line in official.splitlines()]
    data = len(tokens).to_bytes(4, "big") + bytes(map(len, tokens)) + b"".join(tokens)
    return lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)


def pieces(text: str) -> list[str]:
    """`text` in pieces of at most `PIECE_BYTES` bytes of UTF-8, cut after a line end or before a blank if there is one.

    Joined they are `text` again. A cut may change the count by a token.
    """
    size = PIECE_BYTES if text.isascii() else PIECE_BYTES // 4
    if len(text) <= size:
        return [text]
    found, start, end = [], 0, len(text)
    while end - start > size:
        cut = text.rfind("\n", start + size // 2, start + size) + 1
        if not cut:
            cut = text.rfind(" ", start + size // 2, start + size)
        if cut <= start:
            cut = start + size
        found.append(text[start:cut])
        start = cut
    found.append(text[start:])
    return found


class BpeTokenizer:
    """An encoding of tiktoken, built from the shipped ranks at its first use (0.2 to 0.5 s: not on the event loop)."""

    def __init__(self, encoding: str) -> None:
        self.name = encoding
        self.exact = False
        self._encoding: tiktoken.Encoding | None = None
        self._error: TokenizerError | None = None
        self._lock = threading.Lock()

    def load(self) -> tiktoken.Encoding:
        """The encoding, built once. Raises `TokenizerError`, the same one again without a second try."""
        with self._lock:
            if self._error is not None:
                raise self._error
            if self._encoding is None:
                try:
                    from tiktoken import Encoding

                    self._encoding = Encoding(
                        self.name,
                        pat_str=_PATTERNS[self.name],
                        mergeable_ranks=load_ranks(self.name),
                        special_tokens={},  # only `encode_ordinary` is used, which knows none
                    )
                except (ImportError, ValueError, TokenizerError) as error:
                    self._error = TokenizerError(str(error))
                    raise self._error from error
            return self._encoding

    def count(self, text: str) -> int:
        """Tokens of `text`; special tokens in it count as the text they are. Raises `TokenizerError`."""
        encode = (self._encoding or self.load()).encode_ordinary
        try:
            if len(text) <= PIECE_BYTES // 4:
                return len(encode(text))
            return sum(len(encode(piece)) for piece in pieces(text))
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # a Rust panic is no Exception
            raise TokenizerError(f"{self.name} failed: {type(error).__name__}") from error


def heuristic_count(text: str) -> int:
    """Tokens of `text` by classes of characters, rounded up: where no tokenizer can count.

    ASCII 4 characters a token, other letters 2, CJK and everything above 1 to 1.3 tokens a character (measured on
    o200k_base: English prose 4.6, Cyrillic 3.0, common CJK 1.3 characters a token, rare CJK 1.9 tokens a character).
    """
    if text.isascii():
        return -(-len(text) // 4)
    ascii_count = len(text.encode("ascii", "ignore"))
    wide = sum(1 for char in text if char >= "\u2e80")
    other = len(text) - ascii_count - wide
    return -(-(ascii_count * 10 + other * 20 + wide * 52) // 40)


O200K = BpeTokenizer("o200k_base")
CL100K = BpeTokenizer("cl100k_base")
_DEFAULT: Tokenizer = O200K
_registry: dict[str, Tokenizer] = {}
_found: dict[str, Tokenizer] = {}  # what `get_tokenizer` answered before


def plain_name(model: str) -> str:
    """`model` in lower case without vendor prefixes: "openai/GPT-5" -> "gpt-5", "us.anthropic.claude-x" likewise."""
    name = model.lower().rsplit("/", 1)[-1]
    for vendor in ("anthropic.", "openai.", "google.", "meta.", "mistral.", "qwen.", "deepseek."):
        head, found, rest = name.partition(vendor)
        if found and rest and len(head) <= 3:  # a region such as "us." may stand before it
            return rest
    return name


def register_tokenizer(name: str, tokenizer: Tokenizer) -> None:
    """Use `tokenizer` for the model `name` and for every model whose name starts with it, unless a longer name fits."""
    _registry[plain_name(name)] = tokenizer
    _found.clear()


def get_tokenizer(model: str) -> Tokenizer:
    """The tokenizer for `model`: exact name, then longest family prefix, then o200k_base."""
    found = _found.get(model)
    if found is None:
        name = plain_name(model)
        best = max((known for known in _registry if name.startswith(known)), key=len, default=None)
        found = _DEFAULT if best is None else _registry[best]  # an exact name is the longest prefix
        if len(_found) >= 1_000:
            _found.clear()
        _found[model] = found
    return found


for _family in (
    "gpt", "gpt-4o", "gpt-4.1", "gpt-4.5", "chatgpt", "codex", "o1", "o3", "o4", "claude", "gemini", "gemma", "llama",
    "meta-llama", "mistral", "ministral", "magistral", "mixtral", "pixtral", "codestral", "qwen", "deepseek", "glm",
    "kimi", "grok", "phi", "nova", "minimax", "smollm", "command",
):  # fmt: skip
    register_tokenizer(_family, O200K)
for _family in ("gpt-4", "gpt-3.5", "text-embedding-ada", "text-embedding-3"):
    register_tokenizer(_family, CL100K)
