"""The site: pages with what the program says of itself, and the pages of evidence.

A hook of mkdocs. Between `<!-- generated: NAME -->` and `<!-- end of NAME -->` a page
has a sentence for readers on a code host, and the site the result of `GENERATED[NAME]`.
The pages of `evidence/` stand in the folder of that name.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import pages_scenario  # noqa: E402
from pages_scenario import cell  # noqa: E402
from stalesim.simulator.parts import lazy  # noqa: E402

MARK = re.compile(r"<!-- generated: (\w+) -->\n.*?<!-- end of \1 -->", re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\(([\w./-]+)(#[^)]*)?\)")
PLACES = {
    "evidence/README.md": "evidence/README.md",
    "evidence/pages/": "evidence/",
    "docs/": "",
}
"""Files and folders of the repository, and what they are called in the site."""


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages of evidence with their figures, and those of scenarios' keys."""
    from mkdocs.structure.files import File

    own = [ROOT / "evidence/README.md", *(ROOT / "evidence/pages").rglob("*.*")]
    for path in sorted(own):
        if uri := uri_of(path.relative_to(ROOT).as_posix()):
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    for uri, text in pages_scenario.scenario_pages().items():
        if uri != pages_scenario.FIRST:
            files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Returns a page as the site has it; files that are no pages are only named."""
    here = PurePosixPath(page.file.src_uri)
    home = PurePosixPath(home_of(page.file.src_uri))

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        path = normpath(str(home.parent / target))
        uri = uri_of(path)
        if uri is None:
            return f"{text} (`{path}`)"
        if uri == pages_scenario.FIRST:
            uri = pages_scenario.homes().get(anchor[1:], uri)
        return f"[{text}]({relpath(uri, here.parent)}{anchor})"

    return LINK.sub(link, written(markdown))


def uri_of(path: str) -> str | None:
    """Returns what a file of the repository is called in the site, if it is there."""
    for place, uri in PLACES.items():
        if path.startswith(place):
            return uri + path.removeprefix(place)
    return None


def home_of(uri: str) -> str:
    """Returns which file of the repository is called so in the site."""
    place, prefix = next(pair for pair in PLACES.items() if uri.startswith(pair[1]))
    return place + uri.removeprefix(prefix)


def written(markdown: str) -> str:
    """Returns a page with its generated parts; those of evidence are in the files."""

    def part(mark: re.Match[str]) -> str:
        return GENERATED[mark[1]]().strip() if mark[1] in GENERATED else mark[0]

    return MARK.sub(part, markdown)


def on_post_page(output: str, **_: Any) -> str:
    """Returns a page whose dialogue for the search has a name, for screen readers."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def commands() -> str:
    """Returns every command with its arguments and options."""
    from typer.main import get_command

    from stalesim.simulator.cli import app

    root: Any = get_command(app)
    parts = [root.help or "", "", *_parameters(root), ""]
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
    yield "| argument or option | default | description |"
    yield "| --- | --- | --- |"
    for one in shown:
        argument = one.param_type_name == "argument"
        names = [*one.opts, *one.secondary_opts]
        name = one.name.upper() if argument else "`, `".join(names)
        default = "required" if one.required else _default(one.default)
        yield f"| `{name}` | {default} | {cell(getattr(one, 'help', '') or '')} |"


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else f"`{value}`"


def columns() -> str:
    """Returns the tables of a trace with their columns."""
    from stalesim.simulator.files.study import COLUMNS

    parts = []
    for table, of_table in COLUMNS.items():
        parts += [f"## {table}", "", "| column | type | unit | meaning |"]
        parts += ["| --- | --- | --- | --- |"]
        parts += [
            f"| `{name}` | {c.dtype} | {c.unit} | {cell(c.meaning)} |"
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
        lines = "\n".join(f"::: {at[name]}.{name}\n" for name in found.__all__)
        hidden = ".Scenario\n    options: {members: false}\n"  # scenario.md has them
        return lines.replace(".Scenario\n", hidden)

    return marks


def theory() -> str:
    """Returns every closed form with its source, module by module."""
    parts = []
    homes = ROOT / "analysis" / "theory", ROOT / "evidence" / "theory"
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
                    first = cell(text.split("\n\n")[0])
                    cited = cell(source[1])
                    parts.append(f"| `{node.name}` | {first} | {cited} |")
        parts.append("")
    return "\n".join(parts)


def fits() -> str:
    """Returns which algorithms run on which protocols."""
    from stalesim.simulator.parts.base import tag
    from stalesim.simulator.parts.catalogue import parts

    protocols = {tag(part): {tag(part), part.like} for part in parts("protocols")}
    lines = ["| algorithm | data | protocols |", "| --- | --- | --- |"]
    for part in parts("algorithms"):
        fit = [f"`{p}`" for p, names in protocols.items() if names & {*part.protocols}]
        lines.append(f"| `{tag(part)}` | {part.family} | {', '.join(fit)} |")
    return "\n".join(lines)


def words() -> str:
    """Returns what others call what has a name here."""
    from stalesim.simulator.parts.errors import OTHERS

    lines = ["| here | elsewhere |", "| --- | --- |"]
    lines += [f"| `{k}` | {', '.join(v)} |" for k, v in OTHERS.items()]
    return "\n".join(lines)


def synonyms() -> str:
    """Returns the words that a scenario may have in place of ours."""
    from stalesim.simulator.parts.errors import KEYS
    from stalesim.simulator.scenario.synonyms import VALUES

    lines = ["| you can write | for |", "| --- | --- |"]
    lines += [f"| `{word}` | `{ours}` |" for word, (ours, *_) in KEYS.items()]
    for key, words in VALUES.items():
        lines += [f"| `{key}: {w}` | `{key}: {ours}` |" for w, ours in words.items()]
    return "\n".join(lines)


GENERATED: dict[str, Callable[[], str]] = {
    "scenario": lambda: pages_scenario.scenario_pages()[pages_scenario.FIRST],
    "commands": commands,
    "columns": columns,
    "simulator": public("stalesim.simulator"),
    "analysis": public("stalesim.analysis"),
    "trackers": public("stalesim.simulator.extras.trackers"),
    "clusters": public("stalesim.simulator.extras.clusters"),
    "theory": theory,
    "fits": fits,
    "words": words,
    "synonyms": synonyms,
}
