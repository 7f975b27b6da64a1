"""Citations for the program and the papers of a scenario's methods."""

import re
from pathlib import Path

import pytest

from stalesim.simulator.cli import citing
from stalesim.simulator.parts.catalogue import parts
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.parts.parts import tag
from tests.commands import invoked

ROOT = Path(__file__).parents[2]


def cited(*arguments: object) -> str:
    return invoked("cite", *arguments).stdout


def test_the_program_alone() -> None:
    text = cited()
    assert text.startswith("@software{stalesim,\n")
    assert text.count("@") == 1
    assert "{{The stalesim maintainers}}" in text
    assert "  year = {2026},\n" in text


def test_a_release_has_its_own_year_and_address() -> None:
    said = citing.read()
    assert citing.year(said) == "2026"
    released = said | {"date-released": "2031-02-03", "url": "https://example.org/s"}
    text = citing.bibtex(released, [])
    assert "  year = {2031},\n" in text
    assert "  url = {https://example.org/s},\n" in text
    line = "maintainers (2031). stalesim (Version 0.1.0) [Computer software]. https://e"
    assert line in citing.apa(released, [])
    bare = {key: said[key] for key in ("authors", "title", "version", "license")}
    assert "year" not in citing.bibtex(bare, [])
    assert "(n.d.)" in citing.apa(bare, [])


def test_both_citations_of_the_program_agree() -> None:
    said = citing.read()
    preferred = said["preferred-citation"]
    assert all(said[key] == value for key, value in preferred.items() if key != "year")


@pytest.mark.parametrize(
    ("scenario", "numbers"),
    [
        ("quickstart", ["1903.03934", "2106.06639", "1602.05629"]),
        ("quickstart_vafl", ["2007.06081"]),
        ("mapa/mnist_lr_eps", ["1912.07902"]),
        ("fedbcd/theory_rate", ["1912.11187"]),
        ("adp2sgd/case1_random_slow", ["2008.09246", "1710.06952"]),
    ],
)
def test_papers_of_a_scenario(scenario: str, numbers: list[str]) -> None:
    text = cited(ROOT / "scenarios" / f"{scenario}.yaml")
    assert re.findall(r"eprint = \{(.*)\}", text) == numbers
    keys = re.findall(r"^@\w+\{(.*),$", text, re.M)
    assert len({*keys}) == len(keys) == 1 + len(numbers)
    for entry in text.split("\n\n"):
        assert entry.count("{") == entry.count("}")
    assert text.isascii()


def test_apa() -> None:
    text = cited(ROOT / "scenarios" / "quickstart_vafl.yaml", "--apa")
    program, paper = text.splitlines()
    assert program.endswith("stalesim (Version 0.1.0) [Computer software].")
    assert paper.startswith("Chen, T., Jin, X., Sun, Y., & Yin, W. (2020). VAFL: a")


def test_keywords_name_what_there_is() -> None:
    """A keyword of an algorithm that is no longer called so would find nothing."""
    known = {tag(part) for part in parts("algorithms")}
    said = citing.read()
    named = {
        keyword.partition(": ")[2]
        for paper in said["references"]
        for keyword in paper["keywords"]
        if keyword.startswith("algorithm.kind: ")
    }
    assert named - known <= {"fed_avg"}
    assert len(named & known) >= 10


@pytest.mark.parametrize(
    ("tree", "keyword", "found"),
    [
        ({"algorithm": {"kind": "vafl"}}, "algorithm.kind: vafl", True),
        ({"algorithm": {"kind": "sgd"}}, "algorithm.kind: vafl", False),
        ({"algorithm": {"mechanism": {"clip_bound": 1}}}, "algorithm.mechanism", True),
        ({"algorithm": {"mechanism": None}}, "algorithm.mechanism", False),
        ({"algorithm": {"weight": "x"}}, "algorithm.weight.kind: x", False),
        ({}, "algorithm.mechanism", False),
    ],
)
def test_entries_that_a_keyword_finds(tree: object, keyword: str, found: bool) -> None:
    paper = {"title": "t", "keywords": [keyword]}
    assert bool(citing.papers({"references": [paper]}, [tree])) is found


def test_letters_of_names_and_keys() -> None:
    paper = {
        "authors": [{"family-names": "Agüera y Arcas", "given-names": "Blaise B"}],
        "title": "A_b & Konečný",
        "year": 2017,
        "keywords": [],
    }
    said = {
        "authors": [{"name": "X & Y"}],
        "title": "s",
        "version": "1",
        "license": "l",
    }
    text = citing.bibtex(said, [paper, paper])
    assert text.isascii()
    assert r"{Ag{\"u}era y Arcas}, Blaise B" in text
    assert r"A\_b \& Kone{\v c}n{\'y}" in text
    keys = re.findall(r"^@article\{(.*),$", text, re.M)
    assert len({*keys}) == 2
    assert "Agüera y Arcas, B. B. (2017)" in citing.apa(said, [paper])


def test_what_cannot_be_cited(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        cited(tmp_path)
    with pytest.raises(UserError):
        cited(tmp_path / "nothing.yaml")
