"""Mistakes in FedBCD's scenarios: one line with its place and remedy."""

from pathlib import Path

import pytest

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.scenario.reading import read
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.simulation import check

GOOD = """\
name: study
problem:
  data: {kind: breast_cancer}
  partition: {kind: vertical, parties: 2}
  model: {kind: mlp, hidden: 4}
  transfer: {overlap: 0.5}
protocol: {kind: rounds}
clients: {compute: {law: expon}}
algorithm: {kind: fed_bcd, step_size: 0.1, batch: 8, local_steps: 3}
stop: {rounds: 10}
evaluate: {every: {commits: 5}, metrics: [test_accuracy]}
"""
TRANSFER = "  transfer: {overlap: 0.5}\n"
MODEL = "  model: {kind: mlp, hidden: 4}\n"
PLAIN = GOOD.replace(TRANSFER, "").replace(MODEL, "  model: {kind: linear}\n")
OTHERWISE = "with problem.transfer; change it or remove problem.transfer"


@pytest.mark.parametrize("loss", ["taylor", "auto"])
def test_the_good_one_is_good(loss: str, tmp_path: Path) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD.replace(TRANSFER, f"{TRANSFER}  loss: {loss}\n"), "utf-8")
    scenario = read(path)
    assert scenario.problem.transfer is not None
    assert scenario.problem.transfer.alpha == 100
    for run in expand(scenario):
        check(run)


TEN = ("{kind: breast_cancer}", "{kind: digits}")
GAP = ("metrics: [test_accuracy]", "metrics: [optimality_gap]")
ONLY = (
    "evaluate.metrics must have optimality_gap only where the minimum is known: linear "
    "models with the loss softmax or sigmoid, the model diagonal with squared; remove "
    "it"
)
NO_IMAGE = "columns must be a square image, grey or of three planes, got"
AS_LINEAR = "  model: {kind: linear}\n"
# What only the data can say: (what is replaced by what, what is said)
UNFIT = {
    "an area of ten classes": (
        (TEN, ("[test_accuracy]", "[test_auc]")),
        "evaluate.metrics must not have test_auc for the 10 classes of digits; remove",
    ),
    "an expansion of ten classes": (
        (TEN, (AS_LINEAR, "  loss: taylor\n")),
        "problem.loss must be softmax for 10 classes, got taylor; leave it out",
    ),
    "the gap of a hinge loss": ((GAP, (AS_LINEAR, "  loss: hinge\n")), ONLY),
    "the gap of an expansion": ((GAP, (AS_LINEAR, "  loss: taylor\n")), ONLY),
    "the gap of a network": ((GAP, ("kind: linear", "kind: mlp")), ONLY),
    "strips of no image": (
        (("vertical, parties: 2", "strips, parties: 2"),),
        f"{NO_IMAGE} 30 columns; set problem.partition.image to (height, width, depth)",
    ),
    "a batch of more than there are in common": (
        ((AS_LINEAR, MODEL + TRANSFER), ("batch: 8", "batch: 300")),
        "algorithm.batch must be at most the 228 samples of a client, got 300; take",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_what_does_not_fit_the_data_is_one_line(case: str, tmp_path: Path) -> None:
    changes, expected = UNFIT[case]
    text = PLAIN
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    (run,) = expand(read(path))
    with pytest.raises(ScenarioError) as caught:
        check(run)
    assert str(caught.value).startswith(expected)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("new", ["[test_auc, optimality_gap]", "[test_accuracy]"])
def test_the_plain_one_fits_its_data(new: str, tmp_path: Path) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(PLAIN.replace("[test_accuracy]", new), encoding="utf-8")
    (run,) = expand(read(path))
    check(run)
