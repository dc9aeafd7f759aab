"""No module imports another that imports it, on any way round, inside a function or not; types may in one folder."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tui"


def imports(tree: ast.AST, *, types: bool) -> set[str]:
    """What is imported anywhere in a file, for types only (below `if TYPE_CHECKING:`) or else not."""
    names: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Import(aliases) if not types:
                names |= {alias.name for alias in aliases}
            case ast.ImportFrom(str(module), aliases) if not types:
                names |= {module, *(f"{module}.{alias.name}" for alias in aliases)}
            case ast.If(ast.Name("TYPE_CHECKING"), body):
                names |= imports(ast.Module(body, []), types=False) if types else set()
            case _:
                names |= imports(node, types=types)
    return names


def graph(folder: Path) -> dict[str, set[str]]:
    """Which module below `folder` imports which; a package's own file goes by the package's name.

    Two modules of one folder may name each other's types.
    """
    files = {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in folder.rglob("*.py")
    }
    result = {}
    for name, path in files.items():
        tree = ast.parse(path.read_text("utf-8"))
        outside = {other for other in imports(tree, types=True) & files.keys() if files[other].parent != path.parent}
        result[name] = (imports(tree, types=False) & files.keys() | outside) - {name}
    return result


@pytest.mark.slow
def test_imports_go_in_no_circle() -> None:
    TopologicalSorter(graph(PACKAGE)).prepare()


@pytest.mark.parametrize("other", ["def f():\n    from p.a import A", "def f():\n    from p import a", "import p.a"])
def test_a_circle_would_be_seen(tmp_path: Path, other: str) -> None:
    folder = tmp_path / "p"
    (folder / "q").mkdir(parents=True)
    (folder / "a.py").write_text("if TYPE_CHECKING:\n    from p.q.b import B")
    (folder / "q" / "b.py").write_text(other)
    with pytest.raises(CycleError):
        TopologicalSorter(graph(folder)).prepare()


def test_in_one_folder_types_may_be_mutual(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "a.py").write_text("if TYPE_CHECKING:\n    from p.b import B")
    (folder / "b.py").write_text("from p.a import A")
    TopologicalSorter(graph(folder)).prepare()
    (folder / "a.py").write_text("def f():\n    from p.b import B")
    with pytest.raises(CycleError):
        TopologicalSorter(graph(folder)).prepare()
