"""The code of a user's own: a module, and every module of theirs that it imports.

Imports are read from the source, anywhere in it, also within functions. Modules whose
names are computed at run time are not seen.
"""

import ast
import hashlib
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

LIBRARY_FOLDERS = {"site-packages", "dist-packages"}
"""Folders of installed code, which is identified by its version."""
PACKAGE = "__init__.py"
THIS_PROGRAM = {"stalesim"}


class Content(NamedTuple):
    """The content of a run's inputs: a file, a function, a plug-in.

    Attributes:
        at: Its file or folder; of an object its class.
        sha256: Digest of the content, and of the code that it is made by; "" for
            objects in no readable file, as in a notebook.
        bytes: Size, as far as it is noted.
        imports: File and SHA-256 of modules of the user's that it needs, by name.
        libraries: Installed modules that all these need, outermost names.
    """

    at: str
    sha256: str
    bytes: int = 0
    imports: dict[str, tuple[str, str]] = {}  # noqa: RUF012 (never changed)
    libraries: tuple[str, ...] = ()

    @property
    def digests(self) -> dict[str, str]:
        """Digests of the content, named "", and of its imports, at any depth."""
        imports = {name: digest for name, (_, digest) in self.imports.items()}
        return {"": self.sha256, **imports}


def of(
    *names: str, installed: bool = False
) -> tuple[dict[str, tuple[str, str]], tuple[str, ...]]:
    """Returns the code of modules and of their imports, and installed libraries.

    That is file or folder, and SHA-256, of each module or package, by its name; and the
    outermost names of installed modules that these import, in order.

    Args:
        names: Dotted names. For a package all files count; imports are followed from
            those that are executed.
        installed: Whether the code of these names counts also where they are installed.
    """
    modules: dict[str, tuple[str, str]] = {}
    libraries: set[str] = set()
    seen: set[Path] = set()
    left = list(names)
    while left:
        dotted = left.pop()
        name, file = _outermost(dotted)
        top = name.partition(".")[0]
        if file is None or top in THIS_PROGRAM or top in sys.stdlib_module_names:
            continue
        if LIBRARY_FOLDERS & {*file.parts} and not (installed and dotted in names):
            libraries.add(top)
            continue
        if name not in modules and (digest := _digest(file)):
            is_package = file.name == PACKAGE
            modules[name] = str(file.parent if is_package else file), digest
        for path, package in _executed(dotted, name, file):
            if path not in seen:
                seen.add(path)
                left += _imported_by(path, package)
    return dict(sorted(modules.items())), tuple(sorted(libraries))


def _outermost(dotted: str) -> tuple[str, Path | None]:
    """Returns the outermost module of a dotted name that has a file.

    Namespaces have none, and others' packages may lie in them.
    """
    for name in accumulate(dotted.split("."), "{}.{}".format):
        if file := getattr(sys.modules.get(name), "__file__", None):
            return name, Path(file)
        spec = _spec(name)
        if spec is None:
            break
        if spec.has_location and spec.origin:
            return name, Path(spec.origin)
    return dotted, None


def _spec(name: str) -> ModuleSpec | None:
    """Returns where a module is; none is executed to find out."""
    try:
        return find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None


def _digest(file: Path) -> str:
    """Returns the digest of a module, or of its package; "" where none can be read."""
    is_package = file.name == PACKAGE
    files = sorted(file.parent.rglob("*.py")) if is_package else [file]
    try:
        digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    except OSError:  # in a zip file, say
        return ""
    if not is_package:
        return digests[0]
    named = zip(files, digests, strict=True)
    told = [f"{p.relative_to(file.parent).as_posix()} {each}\n" for p, each in named]
    return hashlib.sha256("".join(told).encode()).hexdigest()


def _executed(dotted: str, name: str, file: Path) -> Iterator[tuple[Path, str]]:
    """Yields the files that importing a name executes, and the package of each."""
    yield file, name if file.name == PACKAGE else name.rpartition(".")[0]
    for word in dotted[len(name) + 1 :].split("."):
        if file.name != PACKAGE:
            return
        inner = file.parent / word / PACKAGE
        is_package = bool(word) and inner.is_file()
        file = inner if is_package else file.with_name(f"{word}.py")
        if not file.is_file():
            return
        above, name = name, f"{name}.{word}"
        yield file, name if is_package else above


def _imported_by(file: Path, package: str) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            words = [*above, *filter(None, [node.module])]
            yield from (".".join([*words, each.name]) for each in node.names)
