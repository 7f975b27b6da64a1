"""Measures the house: `python .ci/house.py` prints its numbers.

Read from the source alone: lines of product code, circles of imports, names of classes
that stand for several things, and questions about the kind of a part outside its own
module, or of a protocol or an algorithm outside their packages.
"""

import ast
import csv
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ("simulator", "analysis", "benchmarks", "docs", "evidence")
KINDS = (
    "simulator/catalogue/protocols/",
    "simulator/catalogue/algorithms/",
    "simulator/engine/optimizers/",
    "simulator/engine/algorithm.py",
    "simulator/extras/",
)
"""Packages that may ask which protocol or which algorithm it is."""
ASKS = re.compile(
    r"\b(?:algorithm|protocol)\.kind\s*(?:==|!=|in\b|not in\b)"
    r"|getattr\([^(),]*\b(?:algorithm|protocol)\s*,"
)
TABLES = ("columns", "flat", "jobs", "mine", "rows")
"""Names of tables, whose column `kind` is of rows and jobs and no part's."""
MANIFESTS = ("manifest", "packed.manifest")
"""Names of manifests, whose `kind` tells timelines from studies."""
WRITERS = ("simulator/world/recorders/", "simulator/timelines/arrays/")
"""Packages that write rows, as those of parts do, and may ask for their kinds."""
COUNTED = ("rounds",)
"""Names of parts that are also what columns and limits count."""
PRIVATE = re.compile(
    r"\b(?:bring|brings|brought|bringing|begun|beside|whoever|whom|nobody|somebody)\b"
    r"|\bin the mean\b|\b(?:is|are|was|were|be|been) told\b(?! apart)"
    r"|\b(?:is|are|was|were) said\b|\bthat there (?:is|are)\b|\bso many\b"
    r"|\bas of\b|(?<![`\"])\banew\b(?![`\"])|\b(?:go|goes|going|went|gone) on\b"
    r"|\bas nearly as goes\b|\bat the most\b",
    re.IGNORECASE,
)
"""Words and phrases that docs/style.md refuses, in favour of the field's."""

PRIVATE_NAME = re.compile(
    r"(?:^|_)(?:told|asked|hears?|heard|unheard|standing|fates?)(?:_|$)", re.IGNORECASE
)
"""Such words in a name, between underscores."""


def files(*folders: str) -> Iterator[Path]:
    """Yields the Python files of some folders, in a fixed order.

    Templates are no modules: a user's own are made of them.
    """
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "templates" not in path.parts:
                yield path


def name_of(path: Path) -> str:
    """Returns the dotted name of a module."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("stalesim", *parts)).removesuffix(".__init__")


def lines(*folders: str) -> int:
    """Returns the lines of the Python files of some folders."""
    return sum(len(path.read_text().splitlines()) for path in files(*folders))


def natures() -> dict[str, int]:
    """Returns how many lines of the product are code, docstrings, imports and so on."""
    found: dict[str, int] = defaultdict(int)
    for path in files("simulator", "analysis"):
        text = path.read_text()
        lines = text.splitlines()
        nature = ["code" if line.strip() else "blank" for line in lines]
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Expr(value=ast.Constant(value=str())):
                    what = "docstrings"
                case ast.Import() | ast.ImportFrom():
                    what = "imports"
                case _:
                    continue
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                nature[number] = what
        for line, what in zip(lines, nature, strict=True):
            comment = what == "code" and line.lstrip().startswith("#")
            found["comments" if comment else what] += 1
    return dict(found)


def to_open() -> int:
    """Returns the files in which an asynchronous commit is played and computed."""
    page = (ROOT / "docs/core.md").read_text("utf-8")
    stops = page.split("## Who acts when")[1].split("## What is kept")[0]
    return len({*re.findall(r"`simulator/[\w/]+\.py`", stops)})


def measured() -> dict[str, object]:
    """Returns what can be counted in the source, by what it is."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    kinds = natures()
    product = sum(kinds.values())
    shares = {f"of these {k}, in %": round(100 * n / product) for k, n in kinds.items()}
    return {
        "files to open for an asynchronous commit": to_open(),
        "direct dependencies": len(needed),
        "lines of simulator and analysis": product,
    } | shares


def doubles() -> dict[str, list[str]]:
    """Returns names of classes that several modules of the product define."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in files(*PRODUCT):
        for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(), re.MULTILINE):
            found[name].append(str(path.relative_to(ROOT)))
    return {name: where for name, where in found.items() if len(where) > 1}


def undocumented() -> list[str]:
    """Returns public methods without a docstring, unless one that they override has it.

    Of classes of one name, any is looked at.
    """
    classes: dict[str, list[ast.ClassDef]] = defaultdict(list)
    for path in files("simulator", "analysis"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(node)

    def says(name: str, method: str) -> bool:
        return any(
            method in _documented(node)
            or any(says(base, method) for base in _bases(node))
            for node in classes.get(name, ())
        )

    return [
        f"{name}.{method.name}"
        for name, nodes in classes.items()
        for node in nodes
        for method in node.body
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_")
        if not name.startswith("_") and not says(name, method.name)
    ]


def _bases(node: ast.ClassDef) -> list[str]:
    """Returns the names of a class's bases, without their modules and parameters."""
    return [ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases]


def _documented(node: ast.ClassDef) -> set[str]:
    """Returns the methods and fields of a class that have a docstring."""
    found = set()
    for member, after in zip(node.body, [*node.body[1:], None], strict=True):
        match member, after:
            case ast.FunctionDef(name=name), _ if ast.get_docstring(member):
                found.add(name)
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str())),
            ):
                found.add(name)
    return found


def circle() -> list[str]:
    """Returns the modules of a circle of imports, late ones too; none without any."""
    known = {name_of(path): path for path in files("simulator", "analysis")}
    graph = {name: set(_imports(path, known)) - {name} for name, path in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def _imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Yields the modules that one imports, also late.

    Not those for types alone, and not those of what a part makes, which know its
    options.
    """
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.FunctionDef(name="make"):
                continue
            case ast.ImportFrom(module=module, level=level):
                package = ".".join(("stalesim", *path.relative_to(ROOT).parent.parts))
                module = resolve_name("." * level + (module or ""), package)
                for alias in node.names:
                    inner = f"{module}.{alias.name}"
                    if inner in known or module in known:
                        yield inner if inner in known else module
            case ast.Import():
                yield from (alias.name for alias in node.names if alias.name in known)
        waiting += ast.iter_child_nodes(node)


def questions() -> list[str]:
    """Returns where a part's or a row's kind is asked by others.

    Any part's by its type; a protocol's or an algorithm's also by what an entry of a
    scenario is called, and in `analysis`, which is given facts in their place, wherever
    the name of one is written. What a kind of rows does is said next to it, in
    `simulator.timeline`.
    """
    of_rows, classes = row_kinds(), part_classes()
    found = []
    for path in files("simulator", "analysis"):
        place = str(path.relative_to(ROOT))
        if place.startswith(KINDS):
            continue
        text = path.read_text()
        lines = text.splitlines()
        asked = {n for n, line in enumerate(lines, 1) if ASKS.search(line)}
        names = part_names() if place.startswith("analysis/") else set()
        tree = ast.parse(text)
        asked |= set(_asked(tree, names))
        others = {name for name, at in classes.items() if at != name_of(path)}
        asked |= set(_of_types(tree, others))
        asked |= set() if place.startswith(WRITERS) else set(_of_rows(tree, of_rows))
        found += [f"{place}:{number}" for number in sorted(asked)]
    return found


def part_names() -> set[str]:
    """Returns the names of our protocols and algorithms."""
    kinds = ("protocols", "algorithms")
    return {name for kind, name, *_ in _listed() if kind in kinds} - {*COUNTED}


def part_classes() -> dict[str, str]:
    """Returns the modules of our parts, by their classes or records.

    Bases of a family of protocols or algorithms, next to these, are parts as well: what
    others may ask for is a capability (`simulator/problem/capabilities.py`).
    """
    found = {}
    for kind, _, place, *_ in _listed():
        module, name = place.split(":")
        if kind in ("protocols", "algorithms"):
            path = ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py")
            of_family = re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)
            found |= dict.fromkeys(of_family, module)
        found[name] = module
    return found


def _listed() -> list[list[str]]:
    with (ROOT / "simulator/parts/parts.csv").open(encoding="utf-8") as file:
        return [row for row in csv.reader(file) if row[1] != "*"]


def row_kinds() -> set[str]:
    """Returns the names of the kinds of rows."""
    tree = ast.parse((ROOT / "simulator/files/timeline.py").read_text())
    (kinds,) = (
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == "Kind"
    )
    names = (node.targets[0] for node in kinds.body if isinstance(node, ast.Assign))
    return {name.id for name in names if isinstance(name, ast.Name)}


def _of_types(tree: ast.AST, names: set[str]) -> Iterator[int]:
    """Yields the lines that ask whether something is of one of these classes."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, asked]):
                pass
            case ast.MatchClass(cls=asked):
                pass
            case _:
                continue
        if any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(asked)):
            yield asked.lineno


def _of_rows(tree: ast.AST, names: set[str]) -> Iterator[int]:
    """Yields the lines that compare the kind of rows with one of these names."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare() | ast.Call(func=ast.Attribute(attr="isin")):
                for inner in ast.walk(node):
                    match inner:
                        case ast.Attribute(value=ast.Name(id="Kind"), attr=name):
                            pass
                        case ast.Constant(value=str(name)):
                            pass
                        case _:
                            continue
                    if name in names:
                        yield inner.lineno


def _asked(tree: ast.AST, names: set[str]) -> Iterator[int]:
    """Yields the lines that read or compare what kind a part is."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if text in names:
                yield node.lineno
            case ast.Compare(left=left, comparators=[*others]):
                sides = [left, *others]
                if any(map(_is_kind, sides)) and any(map(_names, sides)):
                    yield node.lineno
            case ast.Subscript() | ast.Call() if _is_kind(node) and _of_part(node):
                yield node.lineno


def _is_kind(node: ast.AST) -> bool:
    """Says whether an expression is the `kind` of something that is no table."""
    match node:
        case ast.Subscript(value=owner, slice=ast.Constant(value="kind")):
            return not ast.unparse(owner).endswith(TABLES)
        case ast.Call(
            func=ast.Attribute(value=owner, attr="get"),
            args=[ast.Constant(value="kind"), *_],
        ):
            return not ast.unparse(owner).endswith(MANIFESTS)
    return False


def _names(node: ast.AST) -> bool:
    """Says whether an expression has a word in it, besides that of an entry."""
    return isinstance(node, ast.Name | ast.Attribute) or any(
        isinstance(each, ast.Constant) and isinstance(each.value, str)
        for each in (node, *getattr(node, "elts", ()))
    )


def _of_part(node: ast.AST) -> bool:
    """Says whether it is that of a protocol or of an algorithm."""
    return bool(re.search(r"\b(?:protocol|algorithm)\b", ast.unparse(node)))


def private_words() -> list[str]:
    """Returns where words stand that docs/style.md refuses."""
    found = []
    kept = ("results", "style.md", "house.py")
    texts = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *files(*PRODUCT)]
    texts += sorted(p for f in ("docs", "evidence") for p in (ROOT / f).rglob("*.md"))
    for path in texts:
        place = path.relative_to(ROOT)
        if {*place.parts} & {*kept} or not path.is_file():
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if PRIVATE.search(line):
                found.append(f"{place}:{number}: {line.strip()}")
    return found


def private_names() -> list[str]:
    """Returns where a public name of the product has a word that the field has not.

    Names of modules, of functions, classes and their parameters, of fields and of
    constants; not those of what stands in a function.
    """
    found = []
    for path in files("simulator", "analysis"):
        place = path.relative_to(ROOT)
        named = [(1, path.stem), *_public(ast.parse(path.read_text()))]
        for number, name in named:
            words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
            if PRIVATE_NAME.search(words):
                found.append(f"{place}:{number}: {name}")
    return found


def _public(tree: ast.Module | ast.ClassDef) -> Iterator[tuple[int, str]]:
    """Yields the public names of a module or a class, each with its line."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name, args=args):
                if name.startswith("_") and name != "__init__":
                    continue
                yield node.lineno, name
                given = [*args.posonlyargs, *args.args, *args.kwonlyargs]
                yield from ((each.lineno, each.arg) for each in given)
            case ast.ClassDef(name=name) if not name.startswith("_"):
                yield node.lineno, name
                yield from _public(node)
            case ast.Assign(targets=[ast.Name(id=name)]) if name[0] != "_":
                yield node.lineno, name
            case ast.AnnAssign(target=ast.Name(id=name)) if name[0] != "_":
                yield node.lineno, name


if __name__ == "__main__":
    for folder in PRODUCT:
        print(f"lines of {folder}: {lines(folder):,}")
    for what, number in measured().items():
        print(f"{what}: {number}")
    print(f"questions: {questions()}; circle: {circle()}; doubles: {doubles()}")
    print(f"private words: {len(private_words())}")
    print(f"private names: {private_names()}")
