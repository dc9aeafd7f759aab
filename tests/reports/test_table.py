from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| .* \| `(?P<file>tests/[\w/]+\.py)::(?P<test>test_\w+)` \|$", re.MULTILINE)


def test_every_test_in_the_table_is_there() -> None:
    rows = ROW.findall((ROOT / "tests" / "reports" / "README.md").read_text("utf-8"))
    assert len(rows) > 50
    texts = {file: (ROOT / file).read_text("utf-8") for file, _ in rows if (ROOT / file).exists()}
    assert [row for row in rows if f"def {row[1]}(" not in texts.get(row[0], "")] == []
