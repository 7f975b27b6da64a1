"""Citations for the program and the papers whose methods a scenario has."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import yaml

from ..parts.errors import UserError

FILE = "CITATION.cff"
ARXIV = re.compile(r"arxiv\.org/abs/([\d.]+)")
SPECIAL = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "²": r"\textsuperscript{2}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
ACCENTS = {"\u0301": r"\'", "\u0308": r"\"", "\u030c": r"\v ", "\u0300": r"\`"}
"""Accents of LaTeX, by the combining character."""


def read() -> dict[str, Any]:
    """Returns the citation file of this installation.

    Raises:
        UserError: There is none.
    """
    here = Path(__file__).parents[2] / FILE  # in a clone
    paths = [here] if here.is_file() else [*_installed()]
    if not paths:
        raise UserError(
            f"{FILE} must come with the package, but is gone; install again"
        )
    return yaml.safe_load(paths[0].read_text(encoding="utf-8"))


def papers(said: Mapping[str, Any], scenarios: Sequence[Any]) -> list[dict[str, Any]]:
    """Returns the papers whose methods some scenarios have, in the file's order.

    Args:
        said: Citation file.
        scenarios: Scenarios of runs, as mappings.
    """
    return [
        paper
        for paper in said.get("references", [])
        if any(
            _has(tree, keyword)
            for tree in scenarios
            for keyword in paper.get("keywords", [])
        )
    ]


def scenarios_of(path: Path) -> list[Any]:
    """Returns the scenarios of all runs of a study or a scenario file.

    Raises:
        UserError: It is neither.
    """
    if path.is_dir():
        from ..files import study as trace

        manifest: Any = trace.load(path).manifest
    else:
        from ..scenario.reading import read_any
        from ..scenario.study import expand

        config: Any = read_any(path)
        return [run.scenario.model_dump(mode="json") for run in expand(config)]
    return [run.get("scenario") or manifest["scenario"] for run in manifest["runs"]]


def bibtex(said: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> str:
    """Returns entries for the program and for papers."""
    program = {
        "author": " and ".join(_braced(each) for each in said["authors"]),
        "title": f"{{{_escaped(said['title'])}}}",
        "year": year(said),
        "version": said["version"],
        "url": said.get("url", ""),
        "license": said["license"],
    }
    parts = [_entry("software", said["title"], program)]
    keys: set[str] = set()
    for paper in found:
        fields = {
            "author": " and ".join(_braced(each) for each in paper["authors"]),
            "title": f"{{{_escaped(paper['title'])}}}",
            "year": str(paper["year"]),
        }
        if number := ARXIV.search(paper.get("url", "")):
            fields |= {"eprint": number[1], "archiveprefix": "arXiv"}
        elif paper.get("url"):
            fields["url"] = paper["url"]
        key = _key(paper)
        while key in keys:
            key += "a"
        keys.add(key)
        parts.append(_entry("article", key, fields))
    return "\n".join(parts)


def apa(said: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> str:
    """Returns the same in the style of the American Psychological Association."""
    program = f"{said['title']} (Version {said['version']}) [Computer software]."
    who, when = _listed(said["authors"]), year(said) or "n.d."
    lines = [f"{who} ({when}). {program} {said.get('url', '')}".rstrip()]
    lines += [
        f"{_listed(paper['authors'])} ({paper['year']}). {paper['title']}. "
        f"{paper.get('url', '')}".rstrip()
        for paper in found
    ]
    return "\n".join(lines) + "\n"


def year(said: Mapping[str, Any]) -> str:
    """Returns the year of the program: of its release, or of what is not released."""
    stated = said.get("preferred-citation", {}).get("year", "")
    return str(said.get("date-released", stated))[:4]


def _installed() -> Iterator[Path]:
    try:
        listed = files("stalesim") or ()
    except PackageNotFoundError:
        return
    for each in listed:
        if each.name == FILE and (path := Path(str(each.locate()))).is_file():
            yield path


def _has(tree: Any, keyword: str) -> bool:
    """Says whether a scenario has an entry, or an entry of a value: `a.b: c`."""
    path, _, wanted = keyword.partition(": ")
    for key in path.split("."):
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree == wanted if wanted else tree not in (None, False)


def _entry(kind: str, key: str, fields: Mapping[str, str]) -> str:
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{key},", *lines, "}", ""])


def _key(paper: Mapping[str, Any]) -> str:
    first = paper["authors"][0]["family-names"]
    words = re.findall(r"\w{4,}", paper["title"])
    plain = unicodedata.normalize("NFKD", f"{first}{paper['year']}{words[0]}")
    return re.sub(r"\W|_", "", plain.encode("ascii", "ignore").decode()).lower()


def _braced(author: Mapping[str, str]) -> str:
    """Returns an author; an organisation in braces, or it would be taken apart."""
    if "name" in author:
        return f"{{{_escaped(author['name'])}}}"
    given = author.get("given-names")
    family = _escaped(author["family-names"])
    family = f"{{{family}}}" if " " in family else family
    return f"{family}, {_escaped(given)}" if given else family


def _listed(authors: Sequence[Mapping[str, str]]) -> str:
    names = []
    for author in authors:
        given = author.get("given-names", "")
        initials = "".join(f" {part[0]}." for part in given.split())
        family = author.get("name") or author["family-names"]
        names.append(f"{family},{initials}" if initials else family)
    if len(names) < 2:
        return names[0]
    return f"{', '.join(names[:-1])}, & {names[-1]}"


def _escaped(text: str) -> str:
    """Returns text for LaTeX, in ASCII."""
    found = ""
    for letter in text:
        base, *marks = unicodedata.normalize("NFD", letter)
        if letter in SPECIAL:
            found += SPECIAL[letter]
        elif marks and marks[0] in ACCENTS:
            found += f"{{{ACCENTS[marks[0]]}{base}}}"
        else:
            found += letter
    return found
