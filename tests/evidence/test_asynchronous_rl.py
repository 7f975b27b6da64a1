"""The predicted steps of verl's asynchronous runs: arithmetic, and the page's table."""

import math
import re
from pathlib import Path

import pytest

from evidence.studies import asynchronous_rl as study

PAGE = Path(study.__file__).parents[1] / "pages/asynchronous-rl.md"


@pytest.mark.parametrize("mean", study.MEANS)
def test_speeds_give_back_generation_times_that_are_of_two_terms(mean: int) -> None:
    """And of one row: half of its time for the longest sample, half for all tokens."""
    run = study.RUNS["64:64"]
    slow, shared = 0.004, 2e-5
    each = {gpus: 512 * 16 * 4 / gpus for gpus in (32, 64, 128)}
    rows = {
        gpus: (slow * run.longest + shared * samples * mean, 1.0)
        for gpus, samples in each.items()
    }
    assert study.speeds(run._replace(rows=rows), mean) == pytest.approx((slow, shared))
    alone = study.RUNS["30B, 96:32"]
    slow, shared = study.speeds(alone, mean)
    assert slow * 8192 == pytest.approx(348.05 / 2)
    assert shared * 256 * mean == pytest.approx(348.05 / 2)


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("16:16", 2 * 269.80), ("32:32", 269.80), ("30B, 96:32", 4 * 107.13)],
)
def test_training_is_that_of_as_many_gpus(name: str, seconds: float) -> None:
    assert study.training(study.RUNS[name]) == pytest.approx(seconds)


def test_a_trainer_that_is_slower_sets_the_step() -> None:
    """The 8:8 trainer needs 860.526 s, all of it but the sending of weights."""
    run = study.LATER["10K tokens, 8:8"]
    found = study.seconds_of(run._replace(prompts=64), 1.0, 2048, 5)
    assert found == pytest.approx(2 * 430.263, rel=1e-3)


def test_the_page_has_the_numbers_of_the_tables() -> None:
    told, printed, factor = study.read("predicted"), study.read("printed"), 1.0
    for run in study.LEARNT:
        factor *= printed[run][0] / told[run][0]
    factor **= 1 / len(study.LEARNT)
    assert study.factor() == pytest.approx(factor)
    assert f"({factor:.3f}, the geometric mean" in PAGE.read_text()
    rows = re.findall(r"^\| (.*) \|$", PAGE.read_text(), re.MULTILINE)[2:]
    assert len(rows) == len(told) == len(printed) == 9
    errors = []
    for row in rows:
        name, *cells = (cell.strip() for cell in row.split(" | "))
        seconds, least, most = told[name]
        errors.append(seconds / printed[name][0] - 1)
        wanted = [
            *(f"{seconds:.1f}", f"{least:.1f} to {most:.1f}"),
            *(f"{printed[name][0]:.2f}", f"{100 * errors[-1]:+.1f}%"),
        ]
        if name in study.LATER:
            corrected = factor * seconds
            error = corrected / printed[name][0] - 1
            wanted += [f"{corrected:.1f}", f"{100 * error:+.1f}%"]
        assert [cell for cell in cells if cell.strip("| ")] == wanted
    within = [sum(abs(error) < bound for error in errors) for bound in (0.05, 0.12)]
    assert within == [2, 4]
    inside = [told[run][1] <= printed[run][0] <= told[run][2] for run in told]
    assert sum(inside) == 4
    assert math.isclose(max(errors), 1.05, abs_tol=0.005)
