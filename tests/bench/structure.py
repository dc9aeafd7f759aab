"""`python -m tests.bench structure [FOLDER]`: how large `tui` is and how it is divided, read from its source.

Lines are all lines of the `.py` files. A folder's size is its own modules, without `__init__.py` and sub-folders. An
importer is a module that names another in an import statement anywhere in it, also inside a function or for types only.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "tui"
LONGEST = 10
"""How many of the longest modules are printed."""


@dataclass(frozen=True, slots=True)
class Module:
    """One source file."""

    name: str
    path: Path
    lines: int
    imports: frozenset[str]  # names in import statements: modules, and names that may be modules


def read_package(folder: Path) -> dict[str, Module]:
    """All modules below `folder` by their dotted names; an `__init__.py` goes by the package's name."""
    modules = {}
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
        source = path.read_text("utf-8")
        modules[name] = Module(name, path, len(source.splitlines()), frozenset(_imports(ast.parse(source))))
    return modules


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(str(module), names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)


def importers(modules: Mapping[str, Module]) -> dict[str, set[str]]:
    """For each module the others that import it."""
    return {
        name: {other.name for other in modules.values() if name in other.imports and other.name != name}
        for name in modules
    }


def report(folder: Path = PACKAGE) -> str:
    """The figures for people."""
    modules = read_package(folder)
    empty = sum(module.path.name == "__init__.py" and not module.imports for module in modules.values())
    sizes: dict[Path, int] = {}
    for module in modules.values():
        parent = module.path.parent
        sizes[parent] = sizes.get(parent, 0) + (module.path.name != "__init__.py")
    largest = max(sizes, key=sizes.__getitem__)
    single = sorted(name for name, users in importers(modules).items() if len(users) == 1)
    longest = sorted(modules.values(), key=lambda module: -module.lines)[:LONGEST]
    return "\n".join(
        [
            f"lines                       {sum(module.lines for module in modules.values()):>7,}",
            f"modules                     {len(modules):>7,}   ({empty} of them __init__.py without imports)",
            f"folders                     {len(sizes):>7,}",
            f"modules in largest folder   {sizes[largest]:>7,}   ({largest.relative_to(folder.parent)})",
            f"modules with one importer   {len(single):>7,}",
            "longest modules",
            *(f"{module.lines:>7,}  {module.path.relative_to(folder.parent)}" for module in longest),
        ]
    )


def main(arguments: Sequence[str]) -> int:
    """Prints the report on `tui`, or on another package's folder."""
    print(report(Path(arguments[0]).resolve() if arguments else PACKAGE))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
