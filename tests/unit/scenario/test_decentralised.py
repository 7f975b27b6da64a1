"""Mistakes in scenarios of workers with models of their own, each said in one line."""

from pathlib import Path

import numpy as np
import pytest

from stalesim.simulator.algorithms.decentralised.part import Adp2sgd, Psgd, Sgp
from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.scenario.reading import read
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.simulation import _row_stream, check
from stalesim.simulator.timeline import Kind
from tests.runs import execute, prepared
from tests.unit.test_gossip_runs import BASE

GOOD = """\
name: study
problem:
  data: {kind: digits}
  partition: {kind: iid, clients: 4}
  model: {kind: linear}
protocol: {kind: gossip}
clients: {compute: {law: expon}}
algorithm: {kind: adp2sgd, step_size: 0.1, batch: 8, noise: {sigma: 1}}
stop: {commits: 10}
evaluate: {every: {commits: 5}, metrics: [test_accuracy]}
"""
SIGMA = "{sigma: 1}"
NOISY = "kind: adp2sgd, step_size: 0.1, batch: 8, noise: {sigma: 1}"
PLAIN = "kind: psgd, step_size: 0.1, batch: 8"
PSGD = (NOISY, PLAIN)
SGP = (NOISY, "kind: sgp, step_size: 0.1, batch: 8")
SGD = (NOISY, "kind: sgd, step_size: 0.1, batch: 8")
ASGD = (NOISY, "kind: asgd, step_size: 0.1, batch: 8")
AGE = (NOISY, f"{PLAIN}, merge: age")
ASYNCHRONOUS = ("kind: gossip", "kind: asynchronous")
METRIC = "metrics: [test_accuracy]"


def budget(options: str) -> tuple[str, str]:
    return SIGMA, f"{{budget: {{{options}}}}}"


def gossip(options: str) -> tuple[str, str]:
    return "kind: gossip", f"kind: gossip, {options}"


def step(options: str) -> tuple[str, str]:
    return "step_size: 0.1", f"step_size: {{{options}}}"


def own(metric: str) -> tuple[str, str]:
    return METRIC, f"metrics: [test_accuracy, {metric}]"


ARCS = "arcs: [[1, 2], [2, 3], [3, 4]]"


PUSH = "average: neighbours, order: step_then_average"
GOOD_ONES: dict[str, tuple[tuple[str, str], ...]] = {
    "as it stands": (),
    "a budget": (budget("epsilon: 10, iterations: 1000"),),
    "clipped, on the mean": ((SIGMA, "{sigma: 1, on: mean, clip: sample}"),),
    "no noise": ((SIGMA, "{sigma: 0}"),),
    "ages in pairs": (AGE,),
    "ages with noise": ((SIGMA, "{sigma: 1}, merge: age"),),
    "everyone": (PSGD, gossip("average: all")),
    "neighbours": (PSGD, gossip("average: neighbours, graph: {kind: ring}")),
    "push-sum": (SGP, gossip(f"{PUSH}, graph: {{kind: exponential}}")),
    "push-sum along listed arcs": (
        (*SGP,),
        gossip(f"{PUSH}, graph: {{kind: arcs, {ARCS.replace(']]', '], [4, 1]]')}}}"),
    ),
    "push-sum of a ring": (SGP, gossip(f"{PUSH}, graph: {{kind: ring}}")),
    "piecewise": (
        (step("kind: piecewise, values: [0.4, 0.04, 0.004], epochs: [160, 240]")),
    ),
    "one piece": ((step("kind: piecewise, values: [0.4], epochs: []")),),
    "warm-up": ((step("kind: warmup, first: 0.1, value: 1, rising: 9, factor: 0.5")),),
    "metrics of workers": (
        (METRIC, "metrics: [consensus_distance, worker_accuracy, worker_loss]"),
        ("stop: {", "stop: {target: {worker_accuracy: 0.9}, "),
    ),
    "metrics of workers that push": (
        SGP,
        gossip(PUSH + ", graph: {kind: ring}"),
        (METRIC, "metrics: [worker_accuracy]"),
    ),
    "momentum and noise": ((SIGMA, "{sigma: 1}, optimizer: {kind: momentum}"),),
    "crops and mirrors": (
        (SIGMA, "{sigma: 1, clip: sample}, augmentation: {crop: 2}"),
        ("{kind: linear}", "{kind: cnn, kernel: 2}"),
    ),
    "rounds": (
        PSGD,
        gossip("average: all"),
        ("every: {commits: 5}", "every: {rounds: 5}"),
    ),
    "closed forms": (
        (("stop:", "privacy: {accountants: [lemma2, theorem2, rdp]}\nstop:")),
    ),
    "hidden layers": (("{kind: linear}", "{kind: dense, hidden: [8]}"),),
}


@pytest.mark.parametrize("case", GOOD_ONES)
def test_the_good_ones_are_good(case: str, tmp_path: Path) -> None:
    text = GOOD
    for old, new in GOOD_ONES[case]:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "good.yaml"
    path.write_text(text, encoding="utf-8")
    scenario = read(path)
    assert isinstance(scenario.algorithm, Adp2sgd | Psgd | Sgp)
    again = type(scenario).model_validate(scenario.model_dump(mode="json"))
    assert again == scenario
    for run in expand(scenario):
        check(run)


def checked(old: str, new: str, folder: Path) -> None:
    """Checks the good scenario with one change against its data."""
    path = folder / "study.yaml"
    path.write_text(GOOD.replace(old, new), encoding="utf-8")
    (run,) = expand(read(path))
    check(run)


def refusal(old: str, new: str, folder: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        checked(old, new, folder)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 400
    return message


def least_of(message: str) -> float:
    """Returns the epsilon that a refusal names."""
    begun = "algorithm.noise.budget.epsilon must be at least "
    assert message.startswith(begun)
    return float(message.removeprefix(begun).split()[0])


BUDGET = "epsilon: {}, iterations: 600"


def test_a_budget_that_theorem_2_cannot_meet_is_refused(tmp_path: Path) -> None:
    message = refusal(*budget(BUDGET.format(0.5)), tmp_path)
    least = least_of(message)
    assert "for Theorem 2 to hold, got 0.5" in message
    assert message.endswith("; raise it, or give sigma")
    assert "fails order: alpha must be > 1" in message
    assert least_of(refusal(*budget(BUDGET.format(0.97 * least)), tmp_path)) == least


def test_the_epsilon_that_is_named_can_be_met(tmp_path: Path) -> None:
    least = least_of(refusal(*budget(BUDGET.format(0.5)), tmp_path))
    checked(*budget(BUDGET.format(least)), tmp_path)


def test_a_budget_that_needs_too_little_noise_is_not_to_be_raised(
    tmp_path: Path,
) -> None:
    # More noise than the theorem asks for would do: its sigma / sensitivity is 0.58.
    message = refusal(*budget("epsilon: 10, iterations: 100"), tmp_path)
    assert message.endswith("; lower it, or give sigma")


def test_where_no_epsilon_can_be_met_none_is_named(tmp_path: Path) -> None:
    # 300 of 4 * 359 samples: 2.5 times the rate is above 1 / e, so no order is left.
    options = "epsilon: 9, iterations: 600"
    half = f"batch: 300, noise: {{budget: {{{options}}}}}"
    message = refusal("batch: 8, noise: {sigma: 1}", half, tmp_path)
    assert "inf" not in message


def test_gradients_of_workers_can_be_probed() -> None:
    probe = {"probe": {"every": 7, "what": ["message", "gradient", "state"]}}
    memory, _ = execute([prepared(BASE, probe)])
    assert memory.column("probes", "commit").tolist() == [7 * n for n in range(1, 18)]
    sent, found = memory.column("probes", "message"), memory.column("probes", "state")
    assert sent.shape == found.shape == (17, 650)
    np.testing.assert_array_equal(sent, memory.column("probes", "gradient"))
    rows = np.isin(memory.column("commits", "commit"), range(7, 120, 7))
    rows &= ~np.isnan(memory.column("commits", "loss"))
    np.testing.assert_allclose(
        np.linalg.norm(sent, axis=1),
        memory.column("commits", "gradient_norm")[rows],
        rtol=1e-5,
    )
    np.testing.assert_array_equal(
        memory.column("probes", "client"), memory.column("commits", "client")[rows]
    )
    assert (np.abs(found).max(axis=1) > 0).any()


def test_every_commit_can_be_probed_and_nothing_else() -> None:
    feed, kinds = _row_stream(prepared(BASE, {"probe": {"every": 1}}), 64), []
    while not feed.ended:
        piece = feed.next(64)
        if piece.probed:
            kinds.append(Kind(piece.rows.kind[0]))
    assert kinds == [Kind.COMMIT] * 120
