"""Markdown that is hard to draw piece by piece, for the tests of rendering."""

from __future__ import annotations

FENCE = "```python\ndef f(x):\n    return x  # \t tab\n\n\nclass A: ...\n```"
LONG_FENCE = "```\n" + "".join(f"line {number} of some output\n" for number in range(120)) + "```"
LONG_LIST = "".join(
    f"- item {number} with **bold** and `code` and enough words to wrap a line\n" for number in range(60)
)
LONG_NUMBERS = "".join(f"{number}. step {number}\n" for number in range(3, 120))
LONG_PARAGRAPH = "The quick brown fox jumps over **the** lazy dog, `code` and so on. " * 60
LONG_TABLE = "| name | value |\n|:-----|------:|\n" + "".join(f"| row {n:03} | {n * n:05} |\n" for n in range(100, 190))

PIECES: tuple[str, ...] = (
    "# Heading\n",
    "Setext\n======\n",
    "Some *emphasis*, **strong**, ~~gone~~ and `code` in a paragraph that is long enough to wrap at eighty cells.\n",
    "one line\nand another\nthird\n",
    "hard  \nbreak\\\nhere\n",
    "- a\n- b\n  - c\n    - d\n- e\n",
    "- loose\n\n- list\n\n  with a paragraph\n",
    "1. one\n2. two\n   ```sh\n   ls\n   ```\n3. three\n",
    "- [x] done\n- [ ] open\n* another list\n",
    "> quote\ncontinued\n>\n> > nested\n> - with a list\n",
    FENCE + "\n",
    "~~~\nunusual ``` fence\n~~~\n",
    "    indented\n\n    code\n",
    "| a | b |\n|---|--:|\n| 1 | 2 |\n| `x` | **y** |\n",
    "| only | head |\n|------|------|\n",
    "***\n",
    "<details><summary>x</summary>\n\nhidden\n\n</details>\n",
    "<!-- a\n\ncomment -->\n",
    "text with <b>inline</b> html<br>and a break\n",
    "[ref]: https://example.org/x 'title'\n",
    "a [link](https://example.org), a [ref] and https://example.org/bare?q=1.\n",
    "![picture](https://example.org/p.png)\n",
    "日本語のテキストは空白がないので、どこでも折り返す。「括弧」と句読点、など。\n",
    "emoji 👩‍👩‍👧 🎉 ✅ 🇩🇪 e\u0301 done\n",
    "x" * 300 + "\n",
    "escape \x1b[31mred\x1b[0m \x07 bell \u202eover\n",
    "windows\r\nline\r\n",
    "a\n#b\n#\n",
    "- \n-b\n-\n",
    "a\n---x\n",
    "* * *text\n",
    "1) paren\n2) paren\n",
    "inline $a_i^*b_j^*$ and \\(x_{*}\\) and it costs $5 to $10 *now*\n",
    "$$\na\n+ b\n- c\n$$\n",
    "text before\n$$ a*b*c $$\nand after\n",
    "$$\nnever closed\n- b\n",
    "\\[\n\n# a\n- b \\\\[2pt]\n\\]\n",
    "\\[ never closed\n",
    "\\begin{align}\na &= b \\\\\n\n- c\n\\end{align}\n",
    "- item\n  $$\n  - b\n  $$\n- next\n",
    "| a | b |\n|---|---|\n| `x|y` | $|z|$ | beyond |\n",
    "\\# not a heading \\* &amp; &lt;tag&gt;\n",
)
"""Blocks to be strung together; each ends with a newline."""

LONG_PIECES: tuple[str, ...] = (
    "".join(f"{number}. step\n" for number in range(1, 31)),
    "".join(f"- item {number}\n" for number in range(30)),
    "".join(f"- [x] task\n  - part {number}\n" for number in range(15)),
    "- last\n\n  with a second paragraph\n",
    "31. last\n\n    with a second paragraph\n",
    "| a | b |\n|---|--:|\n" + "".join(f"| {number} | x |\n" for number in range(30)),
    "| a wider cell than any above it | y |\n",
    "| " + "words that take several lines " * 4 + " | y |\n",
    "| " + "incomprehensibilities " * 3 + "| transcontinentalisms | more | columns |\n",
    "| a | b | c | d |\n|---|---|---|---|\n" + "| incomprehensibilities | x | transcontinentalisms | y |\n" * 30,
    "plain words to fill a long paragraph with, and a, b or c. " * 30 + "\n",
    "===\n",
    "---|---\n",
    "one | two\n---|---\n",
    "[ref]: <https://example.org/x>\n",
    "[ref]: not a definition\n",
    "1. [ref]: /inside\n",
    "```\n" + "line\n" * 40 + "```\n",
)
"""Blocks that are cut while they arrive, and what may make another thing of them."""

ENDLESS_STRING = "```python\nx = '''\n" + "".join(f"text {number}\n" for number in range(150)) + "'''\n```\n"
LONE_STAR = "words and 2 * 3 and more words " * 100
DEEP_LIST = "".join("  " * depth + f"- level {depth} with some words\n" for depth in range(9))

DOCUMENTS: dict[str, str] = {
    "everything": "\n".join(PIECES),
    "everything tight": "".join(PIECES),
    "long fence": f"before\n\n{LONG_FENCE}\n\nafter\n",
    "long list": f"before\n\n{LONG_LIST}\nafter\n",
    "long numbers": f"{LONG_NUMBERS}\nafter\n",
    "long paragraph": f"{LONG_PARAGRAPH}\n\nafter\n",
    "long table": f"{LONG_TABLE}\nafter\n",
    "endless string": ENDLESS_STRING,
    "lone star": f"{LONE_STAR}\n\nafter\n",
    "deep list": DEEP_LIST,
    "loose numbers": "".join(f"{number}. step\n\n   more\n\n" for number in range(1, 40)),
    "table of slivers": LONG_TABLE.replace("row", "incomprehensibilities-of-transcontinentalism"),
    "open fence": "text\n\n```js\nconst a = 1\n",
    "open emphasis": "this **is never closed and `neither is this",
    "empty": "",
    "blank": "\n\n  \n",
    "no newline": "just words",
}
