"""No module imports another that imports it, on any way round: not inside a function and not for types either."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tui"


def imports(tree: ast.AST) -> set[str]:
    """What is imported anywhere in a file: modules, and names that may be modules."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                found |= {name.name for name in names}
            case ast.ImportFrom(str(module), names):
                found |= {module, *(f"{module}.{name.name}" for name in names)}
    return found


def graph(folder: Path) -> dict[str, set[str]]:
    """Which module below `folder` imports which; a package's own file goes by the package's name."""
    files = {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in folder.rglob("*.py")
    }
    return {name: (imports(ast.parse(path.read_text("utf-8"))) & files.keys()) - {name} for name, path in files.items()}


def test_imports_go_in_no_circle() -> None:
    TopologicalSorter(graph(PACKAGE)).prepare()


def test_a_circle_would_be_seen(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "a.py").write_text("if TYPE_CHECKING:\n    from p.b import B")
    (folder / "b.py").write_text("def f():\n    from p import a")
    with pytest.raises(CycleError):
        TopologicalSorter(graph(folder)).prepare()
