from __future__ import annotations

import pytest

from tui.tools.files.walk import expanded, make_glob


@pytest.mark.parametrize(
    ("glob", "path", "anchored", "fits"),
    [
        ("*.py", "a.py", False, True),
        ("*.py", "src/deep/a.py", False, True),
        ("*.py", "src/a.py", True, False),
        ("src/**/*.py", "src/a.py", True, True),
        ("src/**/*.py", "src/x/y/a.py", True, True),
        ("src/**", "src", True, False),
        ("src/**", "src/x/y", True, True),
        ("**/deep", "a/b/deep", True, True),
        ("a?c/[!x]*", "abc/yz", True, True),
        ("a?c/[!x]*", "abc/xz", True, False),
        ("a[^x]", "ay", True, True),
        ("a[^x]", "ax", True, False),
        ("\\[^x]", "[^x]", True, True),
        ("\\*.py", "*.py", False, True),
        ("\\*.py", "a.py", False, False),
        ("[z-a]", "a", False, False),
        ("a**b", "a/b", True, False),
    ],
)
def test_globs(glob: str, path: str, anchored: bool, fits: bool) -> None:
    assert make_glob(glob, anchored=anchored).match(path) is fits


def test_braces() -> None:
    assert expanded("{a,b}.{py,md}") == ["a.py", "a.md", "b.py", "b.md"]
    with pytest.raises(ValueError, match="braces"):
        expanded("{a,b}" * 12)
    with pytest.raises(ValueError, match="too long"):
        make_glob("x" * 2_000, anchored=False)


def test_no_glob_takes_for_ever() -> None:
    """Each of these would keep a plain regular expression busy for years."""
    path = "/".join(["a" * 250] * 30)
    for glob in ("**/" * 300 + "b", "*a" * 100 + "b", "a*" * 400 + "b", "**/*a*a*a*a*a*a*a*a*b/**/" * 20):
        assert not make_glob(glob, anchored=True).match(path)
