"""Parts of pages that come from the program: keys, commands, columns, formulas.

`docs/generate.py` writes the result of `GENERATED[NAME]` between `<!-- generated: NAME
-->` and `<!-- end of NAME -->`, so that a code host shows it, and checks that it is up
to date. In the site, lists of Python names become their documentation.
"""

import ast
import csv
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import house  # noqa: E402
from pages_scenario import scenario_keys  # noqa: E402
from stalesim.simulator import lazy  # noqa: E402

MARK = re.compile(r"<!-- generated: (\w+) -->\n.*?<!-- end of \1 -->", re.DOTALL)
OUTSIDE = re.compile(r"\[([^\]]*)\]\(\.\./([^)#]*)[^)]*\)")
"""A link to a file that is not part of the pages."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Returns a page with documented names; files elsewhere are only named."""
    found = MARK.sub(lambda mark: SITE.get(mark[1], lambda: mark[0])(), markdown)
    if "/" in page.file.src_uri:  # `../` leads to other pages
        return found
    return OUTSIDE.sub(r"\1 (`\2`)", found)


def written(markdown: str) -> str:
    """Returns a page with its generated parts as they are now."""

    def part(mark: re.Match[str]) -> str:
        name = mark[1]
        text = GENERATED[name]().strip()
        return f"<!-- generated: {name} -->\n{text}\n<!-- end of {name} -->"

    return MARK.sub(part, markdown)


def documents() -> dict[Path, str]:
    """Returns the pages with generated parts, by file."""
    texts = {path: path.read_text("utf-8") for path in ROOT.glob("docs/**/*.md")}
    return {path: written(text) for path, text in texts.items() if MARK.search(text)}


def on_post_page(output: str, **_: Any) -> str:
    """Returns a page whose dialogue for the search has a name, for screen readers."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def commands() -> str:
    """Returns every command with its arguments and options."""
    from typer.main import get_command

    from stalesim.simulator.cli import app

    parts = []
    root: Any = get_command(app)
    parts += [root.help or "", "", *_parameters(root), ""]
    for name, command in _commands(root):
        words = " ".join(
            f"[{p.name.upper()}]" if not p.required else p.name.upper()
            for p in command.params
            if p.param_type_name == "argument"
        )
        about = (command.help or "").strip()
        parts += [f"## stalesim {name}", "", f"    stalesim {name} {words}".rstrip()]
        parts += ["", about, "", *_parameters(command), ""]
    return "\n".join(parts)


def _commands(group: Any) -> Iterator[tuple[str, Any]]:
    """Yields names and commands of a group, and of the groups in it."""
    for name, command in group.commands.items():
        if not hasattr(command, "commands"):
            yield name, command
            continue
        for inner, one in _commands(command):
            yield f"{name} {inner}", one


def _parameters(command: Any) -> Iterator[str]:
    shown = [p for p in command.params if p.name != "help"]
    if not shown:
        return
    yield "| argument or option | by default | what it is |"
    yield "| --- | --- | --- |"
    for one in shown:
        argument = one.param_type_name == "argument"
        names = [*one.opts, *one.secondary_opts]
        name = one.name.upper() if argument else "`, `".join(names)
        default = "required" if one.required else _default(one.default)
        yield f"| `{name}` | {default} | {_cell(getattr(one, 'help', '') or '')} |"


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else f"`{value}`"


def columns() -> str:
    """Returns the tables of a trace with their columns."""
    from stalesim.simulator.trace import COLUMNS

    parts = []
    for table, of_table in COLUMNS.items():
        parts += [f"## {table}", "", "| column | type | unit | meaning |"]
        parts += ["| --- | --- | --- | --- |"]
        parts += [
            f"| `{name}` | {c.dtype} | {c.unit} | {_cell(c.meaning)} |"
            for name, c in of_table.items()
        ]
        parts.append("")
    return "\n".join(parts)


def public(package: str) -> Callable[[], str]:
    """Returns what writes mkdocstrings' marks of a package's public names."""

    def marks() -> str:
        found = import_module(package)
        listed = lazy.listed(Path(str(found.__file__)).read_text("utf-8"), package)
        at = dict.fromkeys(found.__all__, package)
        # mkdocstrings does not follow `import *`, by which a package takes another's.
        for inner in (listed[name] for name in listed if name.startswith("*")):
            own = [name for name in import_module(inner).__all__ if name not in listed]
            at |= dict.fromkeys(own, inner)
        return "\n".join(f"::: {at[name]}.{name}\n" for name in found.__all__)

    return marks


def names(package: str) -> Callable[[], str]:
    """Returns what writes a table of a package's public names."""

    def table() -> str:
        found = import_module(package)
        lines = ["| name | content |", "| --- | --- |"]
        for name in found.__all__:
            text = inspect.getdoc(getattr(found, name)) or ""
            lines.append(f"| `{name}` | {_cell(text.split(chr(10) * 2)[0])} |")
        return "\n".join(lines)

    return table


def theory() -> str:
    """Returns every closed form with its source, module by module."""
    parts = []
    homes = ROOT / "analysis" / "theory", ROOT / "docs" / "generators" / "theory"
    paths = [path for home in homes for path in sorted(home.glob("[!_]*.py"))]
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        title, *_ = (ast.get_docstring(tree) or "").splitlines()
        parts += [f"### `{path.relative_to(ROOT)}`", "", title, ""]
        parts += ["| closed form | what it is | source |", "| --- | --- | --- |"]
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                text = ast.get_docstring(node) or ""
                source = re.search(r"Source:(.*?)(?:\n\n|$)", text, re.DOTALL)
                if source:
                    first = _cell(text.split("\n\n")[0])
                    cited = _cell(source[1])
                    parts.append(f"| `{node.name}` | {first} | {cited} |")
        parts.append("")
    return "\n".join(parts)


def fits() -> str:
    """Returns which algorithms run on which protocols."""
    from stalesim.simulator.config.catalogue import parts
    from stalesim.simulator.config.parts import tag

    protocols = {tag(part): {tag(part), part.like} for part in parts("protocols")}
    lines = [f"| algorithm | data | {' | '.join(protocols)} |"]
    lines += ["| --- " * (2 + len(protocols)) + "|"]
    for part in parts("algorithms"):
        fits = (names & {*part.protocols} for names in protocols.values())
        fit = ("yes" if each else "" for each in fits)
        lines.append(f"| `{tag(part)}` | {part.family} | {' | '.join(fit)} |")
    return "\n".join(lines)


def words() -> str:
    """Returns what others call what has a name here."""
    from stalesim.simulator.config.text import OTHERS

    lines = ["| here | elsewhere |", "| --- | --- |"]
    return "\n".join(
        [*lines, *(f"| `{k}` | {', '.join(v)} |" for k, v in OTHERS.items())]
    )


def sentences() -> str:
    """Returns how many sentences of each draw were supported, and what others said."""
    from stalesim.analysis.markup import literal

    with (ROOT / "docs" / "sentences.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    drawn: dict[str, Counter[str]] = {}
    for row in rows:
        drawn.setdefault(row["commit"], Counter())[row["verdict"]] += 1
    counts = (
        f"at {commit} {', '.join(f'{n} {word}' for word, n in sorted(found.items()))}"
        for commit, found in drawn.items()
    )
    others = [row for row in rows if row["verdict"] != "supported"]
    lines = [
        f"Of each draw's forty: {'; '.join(counts)}. Not supported were:\n",
        f"| {' | '.join(rows[0])} |",
        f"|{' --- |' * len(rows[0])}",
        *(f"| {' | '.join(map(literal, row.values()))} |" for row in others),
    ]
    return "\n".join(lines)


def hours() -> str:
    """Returns what studies have cost, and what more hours would decide."""
    from generators import hours

    return hours.hours()


def lacking() -> str:
    """Returns what the papers' studies lack."""
    from generators import hours

    return hours.lacking()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


GENERATED: dict[str, Callable[[], str]] = {
    "scenario": scenario_keys,
    "commands": commands,
    "columns": columns,
    "simulator": names("stalesim.simulator"),
    "analysis": names("stalesim.analysis"),
    "theory": theory,
    "fits": fits,
    "words": words,
    "sentences": sentences,
    "hours": hours,
    "lacking": lacking,
    "house": house.measured,
}
SITE = {name: public(f"stalesim.{name}") for name in ("simulator", "analysis")}
"""What takes the place of some parts in the site."""
