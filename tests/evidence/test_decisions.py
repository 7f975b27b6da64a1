"""The list of decisions has every number that is named, and no other."""

from pathlib import Path

import pytest

from evidence import decisions
from evidence.generate import NOTE, ROOT

NONE = "V-" + "99"
"""A number that nothing else names; put together, so that this file does not."""
GOOD = {"question": "What?", "choice": "This.", "why": "Because."}


def _listed(folder: Path, entries: dict[str, dict[str, str]]) -> Path:
    """Writes a list of decisions and returns its path."""
    lines = ["introduction: Text.", "papers:", "  V: {name: VAFL, source: A paper.}"]
    lines.append("decisions:")
    for number, entry in entries.items():
        lines.append(f"  {number}:")
        lines += [f"    {field}: {text}" for field, text in entry.items()]
    path = folder / "decisions.yaml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _repository(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_the_list_and_the_files_agree() -> None:
    listed = decisions.read(ROOT / decisions.LISTED)
    assert decisions.mistakes(listed.decisions, decisions.named()) == []
    assert {one.number[0] for one in listed.decisions} == {*listed.papers}


def test_the_page_is_up_to_date() -> None:
    page = (ROOT / decisions.PAGE).read_text(encoding="utf-8")
    listed = decisions.read(ROOT / decisions.LISTED)
    assert page == decisions.document(NOTE, listed, decisions.named()), (
        "run python -m evidence.generate"
    )


def test_a_number_without_an_entry_and_an_entry_without_a_file(tmp_path: Path) -> None:
    root = _repository(tmp_path / "r", {"simulator/a.py": f"# {NONE}, as in V-01\n"})
    listed = decisions.read(_listed(tmp_path, {"V-01": GOOD, "V-02": GOOD}))
    missing, unused = decisions.mistakes(listed.decisions, decisions.named(root))
    assert f"must have an entry {NONE}, which simulator/a.py names" in missing
    assert "must not have V-02, which no file names" in unused


def test_what_is_a_mention(tmp_path: Path) -> None:
    files = {
        "simulator/a.py": "# M-01, M-02. (M-03b)\n",
        "scenarios/mapa/one.yaml": "x: 1  # M-04\n",
        "scenarios/two.yaml": "x: 1  # M-04\n",
        "tests/t.py": "row = 'VAFL-F2', 'X-1', 'F722', 'xM-05', 'M-066', 'ADP-M-07'\n",
        "docs/written.md": "M-04\n",
        "docs/made.md": f"{NOTE}M-08\n",
        "evidence/results/one/about.yaml": "M-09\n",
        "evidence/pages/decisions.md": "M-10\n",
        "docs/data.csv": "M-11\n",
        "docs/.hidden/a.py": "M-12\n",
    }
    found = decisions.named(_repository(tmp_path, files))
    places = {number: [path.as_posix() for path in at] for number, at in found.items()}
    assert places == {
        "M-01": ["simulator/a.py"],
        "M-02": ["simulator/a.py"],
        "M-03b": ["simulator/a.py"],
        "M-04": ["docs/written.md", "scenarios/mapa", "scenarios/two.yaml"],
    }


@pytest.mark.parametrize(
    ("number", "entry", "said"),
    [
        ("V-1", GOOD, "V-1 must be a number such as V-05"),
        ("V-01", {"question": "What?"}, "V-01 must have question, choice, why"),
        ("V-01", GOOD | {"reason": "None."}, "got question, choice, why, reason"),
    ],
)
def test_wrong_entries_are_refused(
    tmp_path: Path, number: str, entry: dict[str, str], said: str
) -> None:
    with pytest.raises(SystemExit, match=said):
        decisions.read(_listed(tmp_path, {number: entry}))


def test_a_row_keeps_its_columns_with_bars_in_the_text(tmp_path: Path) -> None:
    entry = GOOD | {"choice": "'l2 |w|^2.'", "other": "'`a | b`.'"}
    listed = decisions.read(_listed(tmp_path, {"V-01": entry}))
    page = decisions.document("", listed, {"V-01": [Path("a.py")]})
    row = "| `V-01` | What? | **l2 \\|w\\|^2.** Because. | `a / b`. | `a.py` |"
    assert page.splitlines()[-1] == row
