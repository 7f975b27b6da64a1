"""Forecasts of a review are held against the verdicts that we publish."""

import shutil
from pathlib import Path

import pytest
import yaml

import forecasts

ROOT = Path(__file__).parents[3]
CLAIMS = """says,verdict,measured
"figure 1, read anew: a",holds,1.5
"figure 1, read anew: b",undecided,0.5
"figure 2",does not hold,0.1
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Returns a repository with one study that was judged."""
    results = tmp_path / "docs/results/one"
    results.mkdir(parents=True)
    (results / "claims.csv").write_text(CLAIMS)
    shutil.copy(ROOT / "docs/rows.csv", tmp_path / "docs/rows.csv")
    return tmp_path


def _write(root: Path, **entry: object) -> None:
    whole = {
        "row": "VAFL-F2a",
        "forecast": "both hold",
        "study": "one",
        "once": "read anew",
        "claims": ["figure 1"],
        "why": "too few runs",
    } | entry
    (root / forecasts.LISTED).write_text(yaml.safe_dump([whole], sort_keys=False))


def test_the_verdicts_of_its_claims_answer_a_forecast(root: Path) -> None:
    _write(root)
    (row,) = forecasts.read(root).itertuples(index=False)
    assert tuple(row) == (
        "VAFL-F2a",
        "both hold",
        "1/0/1",
        "1.5; last: 0.5",
        "too few runs",
    )


@pytest.mark.parametrize("entry", [{"study": "other"}, {"once": "read a third time"}])
def test_a_study_in_its_former_form_waits(root: Path, entry: dict[str, object]) -> None:
    _write(root, **entry)
    (row,) = forecasts.read(root).itertuples(index=False)
    assert row.here == forecasts.WAITS
    assert row.measured == row.why == ""


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"row": "VAFL-F99"}, "must name a row"),
        ({"claims": ["figure 3"]}, "must have words of a claim"),
        ({"more": 1}, "must have row, forecast"),
    ],
)
def test_a_mistake_is_named(root: Path, entry: dict[str, object], said: str) -> None:
    _write(root, **entry)
    with pytest.raises(SystemExit, match=said):
        forecasts.read(root)
