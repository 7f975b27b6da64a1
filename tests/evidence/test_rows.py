"""The list of experiments, which README and docs count, names what there is."""

import json
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from evidence import rows
from stalesim.simulator.scenario.reading import read_any

ROOT = Path(__file__).parents[2]
OURS = ("fedbcd/asynchronous",)
"""Scenarios of the papers' methods that are no experiment of theirs."""


LISTED: list[Any] = rows.read(ROOT / rows.LISTED)
FAMILIES = {"VAFL": 18, "MAPA": 24, "BCD": 15, "ADP": 13, "PRIV": 3, "X": 5}
"""Experiments of each paper, as the specification and its revisions count them."""


def test_every_experiment_is_listed_once() -> None:
    ids = [row.id for row in LISTED]
    assert len({*ids}) == len(ids)
    families = pd.Series([name.split("-")[0] for name in ids]).value_counts()
    assert families.to_dict() == FAMILIES
    assert all(row.what and len(row.what) <= 50 for row in LISTED)


def _slug(heading: str) -> str:
    """Returns a heading's anchor, as GitHub has it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _exists(shown: str) -> bool:
    """Says whether a file is there, and in it the test or the heading that is named."""
    file, _, test = shown.partition("::")
    file, _, anchor = file.partition("#")
    if not (ROOT / file).is_file():
        return False
    text = (ROOT / file).read_text(encoding="utf-8")
    headings = (_slug(line) for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    found_test = not test or re.search(rf"^ *def {test}\(", text, re.MULTILINE)
    return bool(found_test) and (not anchor or anchor in headings)


@pytest.mark.parametrize("row", LISTED, ids=lambda row: row.id)
def test_what_is_named_exists(row: Any) -> None:
    assert [s for s in row.scenarios if not _file(s).is_file()] == []
    assert [shown for shown in row.shown if not _exists(shown)] == []


def test_what_does_not_exist_is_found_out() -> None:
    here = "tests/evidence/test_rows.py"
    assert _exists(f"{here}::test_every_experiment_is_listed_once")
    assert not _exists(f"{here}::test_nothing")
    assert not _exists("tests/unit/docs/test_nothing.py")
    assert _exists("docs/design.md#two-machines-and-one-record")
    assert not _exists("docs/design.md#nothing")


MARKED = """
import pytest

@pytest.mark.long
def test_long(): ...

@pytest.mark.parametrize("n", [0, pytest.param(1, marks=pytest.mark.long)])
def test_partly(n): ...

def test_short(): ...
"""


def test_named_tests_exist_and_are_not_long(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(MARKED)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)

    def said(*names: str) -> list[str]:
        shown = tuple(f"tests/test_some.py::test_{name}" for name in names)
        return rows.mistakes([rows.Row("X-1", "what", (), "", shown)], tmp_path)

    def line(name: str) -> str:
        return f"evidence/rows.csv: tests/test_some.py::test_{name} must"

    marked = said("short", "long", "partly")
    assert len(marked) == 2
    for found, name in zip(marked, ("long", "partly"), strict=True):
        assert found.startswith(f"{line(name)} not be marked long")
    (gone,) = said("short", "gone")
    assert "::test_gone must be a test" in gone


def _file(scenario: str) -> Path:
    return ROOT / "scenarios" / f"{scenario}.yaml"


@cache
def _says(scenario: str) -> list[str]:
    return [claim.says for claim in getattr(read_any(_file(scenario)), "claims", ())]


def test_every_claim_of_an_experiments_file_is_counted_somewhere() -> None:
    for scenario in {name for row in LISTED for name in row.scenarios}:
        users = [row for row in LISTED if scenario in row.scenarios]
        for says in _says(scenario):
            assert any(row.is_about(says) for row in users), (scenario, says)


def test_a_choice_of_claims_finds_some() -> None:
    for row in LISTED:
        if row.claims and row.claims != rows.NO_CLAIM:
            said = [says for scenario in row.scenarios for says in _says(scenario)]
            assert any(row.is_about(says) for says in said), row.id


def test_what_counts_apart_is_found_in_some_sentence() -> None:
    """A line of apart.csv about nothing is a slip, or was forgotten."""
    files = {name for row in LISTED for name in row.scenarios}
    said = [(name, says) for name in files for says in _says(name)]
    for one in rows.apart():
        assert any(one.is_about(*each) for each in said), one
        assert one.why


def test_every_scenario_of_a_paper_belongs_to_an_experiment() -> None:
    named = {scenario for row in LISTED for scenario in row.scenarios}
    for family in ("vafl", "mapa", "fedbcd", "adp2sgd", "cross"):
        there = {
            f"{family}/{path.stem}"
            for path in (ROOT / "scenarios" / family).glob("*.yaml")
        }
        missing = there - named - {*OURS}
        assert not missing, f"add them to evidence/rows.csv: {sorted(missing)}"


def _row(**entries: Any) -> Any:
    empty = {"id": "A-1", "what": "a", "scenarios": (), "claims": "", "shown": ()}
    return rows.Row(**(empty | entries))


def _study(
    root: Path, name: str, verdicts: dict[str, Any] | None, data: str = "digits"
) -> None:
    """Writes a scenario and, unless it has not been run, its results.

    A claim that has several verdicts has them at several points.
    """
    scenario = _scenario(root, name)
    scenario.parent.mkdir(parents=True, exist_ok=True)
    scenario.write_text(f"# A study.\nname: {name}\n")
    if verdicts is None:
        return
    folder = root / rows.RESULTS / name
    folder.mkdir(parents=True)
    (folder / "about.json").write_text(json.dumps({"name": name, "dataset": data}))
    claims = pd.DataFrame(verdicts.items(), columns=pd.Index(["says", "verdict"]))
    claims = claims.explode("verdict", ignore_index=True)
    own = claims["says"].str.startswith("ours")
    claims["origin"] = own.map({True: "own", False: "paper"})
    claims["replicates"] = [3 + 17 * (n % 2) for n in range(len(claims))]
    claims.to_csv(folder / "claims.csv", index=False)


def _scenario(root: Path, name: str) -> Path:
    return root / "scenarios" / "a" / f"{name}_file.yaml"


def _cells(row: Any, root: Path) -> list[Any]:
    return rows.table([row], root).iloc[0].tolist()[2:]


def test_verdicts_of_an_experiment_are_counted(tmp_path: Path) -> None:
    _study(tmp_path, "one", {"figure 1: a": "holds", "figure 2: b": "does not hold"})
    _study(tmp_path, "two", {"figure 1: c": "undecided", "figure 1: d": "holds"})
    _study(tmp_path, "idle", None)
    one, two = (f"[{n}_file](scenarios/a/{n}_file.yaml)" for n in ("one", "two"))
    both = ("a/one_file", "a/two_file")
    links = f"{one}, {two}"
    found = _cells(_row(scenarios=both), tmp_path)
    assert found == [links, "digits", 2, 1, 1, 0, "3-20", "", ""]
    found = _cells(_row(scenarios=both, claims="figure 1"), tmp_path)
    assert found == [links, "digits", 2, 0, 1, 0, "3-20", "", ""]
    # A part that was not run is said to be, and leaves the others' numbers.
    idle = "[idle_file](scenarios/a/idle_file.yaml) (not run)"
    found = _cells(_row(scenarios=("a/one_file", "a/idle_file")), tmp_path)
    assert found == [f"{one}, {idle}", "digits", 1, 1, 0, 0, "3-20", "", ""]
    assert rows.others([_row(scenarios=both[:1])], tmp_path) == two


def test_a_line_per_paper_counts_every_claim_once(tmp_path: Path) -> None:
    _study(tmp_path, "one", {"figure 1: a": "holds", "figure 2: b": "does not hold"})
    _study(tmp_path, "two", {"figure 1: c": "undecided", "ours: d": "holds"})
    _study(tmp_path, "idle", None)
    both = _row(id="VAFL-1", scenarios=("a/one_file", "a/two_file"))
    again = _row(id="VAFL-2", scenarios=("a/one_file",), claims="figure 1")
    idle = _row(id="VAFL-3", scenarios=("a/idle_file",))
    tested = _row(id="PRIV-1", shown=("tests/test_a.py::test_b",))
    found = rows.by_paper([both, again, idle, tested], tmp_path)
    assert found.to_numpy().tolist() == [
        [rows.PAPERS["VAFL"], 3, 1, 1, 1, 0, "", 0, 0, 1],
        [rows.PAPERS["PRIV"], 1, 0, 0, 0, 0, "", 0, 1, 0],
    ]


APART = """scenario,claims,as,why
a/*_file,other option,variant,the same
a/one_file,figure 2,sentence,one sentence
a/one_file,bound,content,met 20 times over
a/two_file,figure 3,setting,a tenth of its length
"""


def test_a_sentence_counts_once_at_the_papers_setting_with_content(
    tmp_path: Path,
) -> None:
    """Verdicts of one sentence are joined: all hold, or one does not."""
    (tmp_path / "evidence").mkdir()
    (tmp_path / rows.APART).write_text(APART)
    said = {
        "figure 1": ["holds", "holds"],
        "figure 1, other option": ["does not hold"],
        "figure 2: a": ["holds", "undecided"],
        "figure 2: b": ["does not hold"],
        "a bound": ["holds"],
        "another bound": ["undecided"],
        "figure 6": ["holds", "not decidable"],
        "figure 7": ["undecided", "not decidable"],
        "ours": ["holds"],
    }
    _study(tmp_path, "one", said)
    _study(tmp_path, "two", {"figure 3": ["holds"], "figure 4": ["undecided"]})
    _study(tmp_path, "less", {"figure 5": ["holds"]}, data="mnist5k (3, 8)")
    row = _row(id="VAFL-1", scenarios=("a/one_file", "a/two_file", "a/less_file"))
    found = rows.by_paper([row], tmp_path).to_numpy().tolist()
    # Counted: figures 1, 2, 4, 6 and 7, and the bound that is undecided.
    assert found == [[rows.PAPERS["VAFL"], 1, 1, 1, 3, 1, "2/0/0/0", 1, 0, 0]]
    cells = _cells(row, tmp_path)
    assert cells[2:6] == [1, 1, 3, 1]
    said = "setting 2/0/0/0, content 1/0/0/0, variant 0/1/0/0, own 1/0/0/0"
    assert cells[7] == said


MAPAS_CNN = {
    *("mapa/mnist_cnn_eps", "mapa/usps_cnn_eps", "mapa/testbed_cnn"),
    "mapa/params_cnn",
}
"""Deep models that a paper has, on its own data at its size."""


def test_a_line_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "evidence").mkdir()
    (tmp_path / rows.APART).write_text(APART.replace("variant", "varient"))
    with pytest.raises(SystemExit, match=r"as must be .*, got 'varient'"):
        rows.apart(tmp_path)


def test_a_line_of_identities_counts_these(tmp_path: Path) -> None:
    _study(tmp_path, "one", {"a": "holds", "b": "undecided"})
    file = tmp_path / rows.RESULTS / "one" / "claims.csv"
    pd.read_csv(file).assign(origin="identity").to_csv(file, index=False)
    found = rows.by_paper([_row(id="X-1", scenarios=("a/one_file",))], tmp_path)
    assert found.to_numpy().tolist() == [[rows.PAPERS["X"], 1, 1, 0, 1, 0, "", 0, 0, 0]]


def test_links_of_a_page_lead_where_those_of_the_readme_do() -> None:
    text = "[a](evidence/pages/b.md#c), [d](scenarios/a/d.yaml), [e](docs/e.md)"
    page = "[a](b.md#c), [d](../../scenarios/a/d.yaml), [e](../../docs/e.md)"
    assert rows.from_pages(text) == page


def test_claims_that_are_not_the_papers_are_listed_apart(tmp_path: Path) -> None:
    _study(tmp_path, "one", {"figure 1: a": "holds", "ours: b": "holds"})
    _study(tmp_path, "own", {"ours: a": "undecided", "ours: b": "does not hold"})
    found = _cells(_row(scenarios=("a/one_file",)), tmp_path)
    assert found[2:] == [1, 0, 0, 0, "3", "own 1/0/0/0", ""]
    found = _cells(_row(scenarios=("a/own_file",)), tmp_path)
    assert found[2:] == ["no claim", "", "", "", "", "own 0/1/1/0", ""]


def test_experiments_without_verdicts_say_why(tmp_path: Path) -> None:
    _study(tmp_path, "silent", {})
    _study(tmp_path, "idle", None)

    def first(**entries: Any) -> Any:
        return _cells(_row(**entries), tmp_path)[2]

    assert first() == "not run"
    assert first(scenarios=("a/idle_file",)) == "not run"
    assert first(scenarios=("a/silent_file",)) == "no claim"
    assert first(scenarios=("a/silent_file",), shown=("docs/a.md#b",)) == "table"
    assert first(shown=("docs/a.md", "tests/test_a.py::test_b")) == "test"
    links = _cells(_row(shown=("docs/a.md#b", "tests/test_a.py::test_b")), tmp_path)[-1]
    assert links == "[a](docs/a.md#b), [test_a](tests/test_a.py)"


def test_a_result_without_a_file_is_an_error(tmp_path: Path) -> None:
    _study(tmp_path, "lost", {})
    (tmp_path / "scenarios" / "a" / "lost_file.yaml").unlink()
    with pytest.raises(SystemExit, match="lost: no file of scenarios/ has this name"):
        rows.others([], tmp_path)


def test_small_networks_of_image_papers_count_on_no_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor are they the paper's when they are run on all of its images.

    But MAPA's CNN is, in layers, widths of the authors' code, iterations and images.
    """
    monkeypatch.setattr(rows, "PARTIAL", re.compile("(?!)"))
    judged = rows.sentences([row for row in LISTED if row.id[:3] in ("MAP", "ADP")])
    judged = judged[~judged["data"].str.startswith("synthetic")]
    trees = judged["scenario"].map(lambda name: yaml.safe_load(_file(name).read_text()))
    linear = {"kind": "linear"}
    small = trees.map(lambda tree: tree["problem"].get("model", linear) != linear)
    assert small.sum() > 40
    counted = judged[small & (judged["how"] == rows.COUNTED)]
    assert {*counted["scenario"]} == MAPAS_CNN
    (cnn,) = {*rows.sentences(LISTED).query("scenario == 'fedbcd/mnist_cnn'")["how"]}
    assert cnn == rows.SETTING
