"""Public names of a package, and modules, that are imported when they are used.

A package lists them once, as imports under `if TYPE_CHECKING:`, where type checkers
find them, too.
"""

import ast
from collections.abc import Callable
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path


def attach(
    package: str, file: str, made: Callable[[object], object] = lambda found: found
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Returns the attributes by which a package imports its public names late.

    Args:
        package: Its name.
        file: Its `__init__.py`.
        made: Makes the package's object of each imported name.

    Returns:
        Its `__getattr__`, `__dir__` and `__all__`, sorted.
    """
    modules = listed(Path(file).read_text(encoding="utf-8"), package)
    for name in [name for name in modules if name.startswith("*")]:
        inner = modules.pop(name)
        modules = dict.fromkeys(import_module(inner).__all__, inner) | modules
    names = sorted(modules)

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = modules[name]
        # A package's own modules would be asked of this function again.
        if module != package and hasattr(found := import_module(module), name):
            return made(getattr(found, name))
        return import_module(f"{module}.{name}")

    return get, lambda: names, names


def listed(source: str, package: str) -> dict[str, str]:
    """Returns the module of each name that a package imports for type checkers."""
    blocks = [
        block
        for block in ast.parse(source).body
        if isinstance(block, ast.If)
        and isinstance(block.test, ast.Name)
        and block.test.id == "TYPE_CHECKING"
    ]
    found = {}
    for line in (line for block in blocks for line in block.body):
        if isinstance(line, ast.ImportFrom):
            module = resolve_name("." * line.level + (line.module or ""), package)
            for alias in line.names:
                found[f"*{module}" if alias.name == "*" else alias.name] = module
    return found


class Late:
    """A module that is imported when something of it is first used.

    For modules whose classes compute, but are read without computing: a scenario is
    checked without JAX. Type checkers follow an import under `if TYPE_CHECKING:`.

    Args:
        name: Its name, which begins with dots if it is relative.
        package: Package that a relative name is of.
    """

    def __init__(self, name: str, package: str | None = None) -> None:
        self._name, self._package = name, package

    def __getattr__(self, name: str) -> object:
        found = getattr(import_module(self._name, self._package), name)
        setattr(self, name, found)
        return found
