"""Tables of variants at their best rates: of planted values, and of the pages."""

import json
from pathlib import Path

import numpy as np
import pytest

from evidence.generators import methods
from evidence.rows import ROOT

LOSSES = {
    ("waits", 0.5): ["3", "3.5", "4"],
    ("waits", 1.0): ["2", "2.25", "3"],
    ("waits", 2.0): [">=1", "0.5", "0.25"],  # one run diverged
    ("goes on", 0.5): ["1", "1.5", "2.75"],
    ("goes on", 1.0): ["9", "0.5", "0.5"],
}


@pytest.fixture
def values(tmp_path: Path) -> Path:
    lines = [f"variant,group,parameters,replicate,stop,{methods.METRIC}"]
    for (variant, rate), losses in LOSSES.items():
        parameters = json.dumps({"algorithm.step_size": rate}).replace('"', '""')
        for replicate, loss in enumerate(losses):
            lines.append(f'{variant},g,"{parameters}",{replicate},time,{loss}')
    path = tmp_path / "values.csv"
    # Replicates are paired by their numbers, in whatever order the rows stand.
    path.write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    return path


def test_each_variant_is_taken_at_the_best_of_its_own_rates(values: Path) -> None:
    found = methods.at_best_rates(values).set_index("variant")
    assert found["rate"].to_dict() == {"goes on": 0.5, "waits": 1.0}
    assert found["edge"].to_dict() == {"goes on": "the smallest", "waits": ""}
    assert found.loc["waits", "mean"] == pytest.approx(7.25 / 3)


def test_differences_are_paired(values: Path) -> None:
    text = methods.tables(values, (("goes on", "waits"),))
    one, other = np.array([1, 1.5, 2.75]), np.array([2, 2.25, 3])
    least, median, largest = np.sort(one - other)
    row = f"| {median:.3f} | {least:.3f} to {largest:.3f} | 3 of 3 |"
    assert f"| goes on | waits {row}" in text
    assert "| goes on | 0.5, the smallest | 1.750 |" in text


def test_the_pages_have_the_tables_of_the_results() -> None:
    for path, text in methods.pages(ROOT / "evidence/results", ROOT / "docs").items():
        assert path.read_text(encoding="utf-8") == text
        assert " of " in text
