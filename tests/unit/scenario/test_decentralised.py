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
from tests.unit.scenario.mistakes import complaint
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


def network(options: str) -> tuple[str, str]:
    return "{kind: linear}", f"{{kind: cifar_net, {options}}}"


Change = tuple[str, str]
ONE_WAY = "must have either sigma or budget, not both or neither; remove one or add one"
UNDIRECTED = "must be undirected for the algorithm 'psgd', got 'exponential'; take the"
PUSHING = (
    "must have average: neighbours and order: step_then_average for the algorithm 'sgp'"
)
RISING = "must rise, got [3.0, {}]; sort them"
ARCS = "arcs: [[1, 2], [2, 3], [3, 4]]"
# name: (what is replaced by what, line and key, what else it says)
BAD: dict[str, tuple[tuple[Change, ...], str, str]] = {
    "a noise and a budget": (
        ((SIGMA, "{sigma: 1, budget: {epsilon: 10, iterations: 9}}"),),
        "8: algorithm.noise",
        ONE_WAY,
    ),
    "neither of them": (
        ((SIGMA, "{clip: sample}"),),
        "8: algorithm.noise",
        ONE_WAY,
    ),
    "no noise at all": (
        ((", noise: {sigma: 1}", ""),),
        "8: algorithm.noise",
        "is missing",
    ),
    "noise below zero": (
        ((SIGMA, "{sigma: -1}"),),
        "8: algorithm.noise.sigma",
        "must be >= 0, got -1",
    ),
    "noise on something else": (
        ((SIGMA, "{sigma: 1, on: max}"),),
        "8: algorithm.noise.on",
        "must be one of sum, mean, got 'max'",
    ),
    "another sensitivity": (
        ((SIGMA, "{sigma: 1, sensitivity: papre}"),),
        "8: algorithm.noise.sensitivity",
        "paper",
    ),
    "contributions are clipped": (
        ((SIGMA, "{sigma: 1, clip: contribution}"),),
        "8: algorithm.noise.clip",
        "sample",
    ),
    "a bound of nothing": (
        ((SIGMA, "{sigma: 1, bound: 0}"),),
        "8: algorithm.noise.bound",
        "must be > 0, got 0",
    ),
    "a budget of nothing": (
        (budget("epsilon: 0, iterations: 9"),),
        "8: algorithm.noise.budget.epsilon",
        "must be > 0, got 0",
    ),
    "a budget for nothing": (
        (budget("epsilon: 9, iterations: 0"),),
        "8: algorithm.noise.budget.iterations",
        "must be >= 1, got 0",
    ),
    "a budget for how long": (
        (budget("epsilon: 9"),),
        "8: algorithm.noise.budget.iterations",
        "is missing",
    ),
    "a delta of one": (
        (budget("epsilon: 9, iterations: 9, delta: 1"),),
        "8: algorithm.noise.budget.delta",
        "must be < 1, got 1",
    ),
    "a delta of zero": (
        (budget("epsilon: 9, iterations: 9, delta: 0"),),
        "8: algorithm.noise.budget.delta",
        "must be > 0, got 0",
    ),
    "noise without privacy": (
        ((NOISY, f"{PLAIN}, noise: {{sigma: 1}}"),),
        "8: algorithm.noise",
        "psgd",
    ),
    "privacy without noise": (
        (PSGD, ("stop:", "privacy: {}\nstop:")),
        "9: privacy",
        "must be left out where clients send no noisy gradients",
    ),
    "an accountant of pure epsilons": (
        (("stop:", "privacy: {accountants: [theorem2, basic]}\nstop:"),),
        "9: privacy.accountants",
        "must account for gaussian noise, got 'basic'; take rdp, pld or gdp",
    ),
    "pushing in pairs": ((SGP,), "6: protocol", f"{PUSHING}, got pairwise"),
    "pushing to everyone": (
        (SGP, gossip("average: all")),
        "6: protocol",
        f"{PUSHING}, got all",
    ),
    "pushing before the step": (
        (SGP, gossip("average: neighbours, graph: {kind: exponential}")),
        "6: protocol",
        f"{PUSHING}, got neighbours and average_then_step; add them",
    ),
    "push-sum of different ages": (
        ((NOISY, "kind: sgp, step_size: 0.1, batch: 8, merge: age"),),
        "8: algorithm.merge",
        "sgp",
    ),
    "one way only without push-sum": (
        (PSGD, gossip("average: neighbours, graph: {kind: exponential}")),
        "6: protocol.graph",
        f"{UNDIRECTED} algorithm sgp",
    ),
    "one way only with noise": (
        (gossip("average: neighbours, graph: {kind: exponential}"),),
        "6: protocol.graph",
        "must be undirected for the algorithm 'adp2sgd'",
    ),
    "one way only in pairs": (
        (PSGD, gossip("graph: {kind: exponential}")),
        "6: protocol.graph",
        "must not be directed for pairwise averaging, got 'exponential'; take average",
    ),
    "some never hear of others": (
        (SGP, gossip(f"average: neighbours, graph: {{kind: arcs, {ARCS}}}")),
        "6: protocol.graph",
        "must be strongly connected, or some workers never hear of others; add arcs",
    ),
    "ages of everyone": (
        (AGE, gossip("average: all")),
        "8: algorithm.merge",
        "must be mean where all average at once, got 'age' with average: all; leave",
    ),
    "ages of neighbours": (
        (AGE, gossip("average: neighbours")),
        "8: algorithm.merge",
        "got 'age' with average: neighbours; leave it out",
    ),
    "merging by something else": (
        ((NOISY, f"{PLAIN}, merge: median"),),
        "8: algorithm.merge",
        "'mean'",
    ),
    "momentum of one": (
        ((NOISY, f"{PLAIN}, optimizer: {{kind: momentum, decay: 1}}"),),
        "8: algorithm.optimizer.decay",
        "must be < 1, got 1",
    ),
    "an optimizer of another name": (
        ((NOISY, f"{PLAIN}, optimizer: {{kind: nesterov}}"),),
        "8: algorithm.optimizer.kind",
        "'nesterov'",
    ),
    "momentum of push-sum": (
        ((NOISY, "kind: sgp, step_size: 0.1, batch: 8, optimizer: {kind: momentum}"),),
        "8: algorithm.optimizer",
        "sgp",
    ),
    "crops of less than nothing": (
        ((NOISY, f"{PLAIN}, augmentation: {{crop: -1}}"),),
        "8: algorithm.augmentation.crop",
        "must be >= 0, got -1",
    ),
    "changes that change nothing": (
        ((NOISY, f"{PLAIN}, augmentation: {{crop: 0, flip: false}}"),),
        "8: algorithm.augmentation.crop",
        "must be >= 1 without flip, got 0; leave augmentation out",
    ),
    "crops of what is no image": (
        ((NOISY, f"{PLAIN}, augmentation: {{}}"),),
        "8: algorithm.augmentation",
        "must be with a network for images, got the model 'linear'; leave it out",
    ),
    "gossip with a server": (
        (PSGD, ASYNCHRONOUS),
        "6: protocol.kind",
        "must be one of gossip, push_gossip for the algorithm 'psgd', got 'asynch",
    ),
    "a server without one": (
        (SGD,),
        "6: protocol.kind",
        "for the algorithm 'sgd', got 'gossip'; change one of them",
    ),
    "columns of workers": (
        (PSGD, ("{kind: iid, clients: 4}", "{kind: vertical, parties: 4}")),
        "4: problem.partition.kind",
        "must be horizontal for the algorithm 'psgd', got 'vertical'",
    ),
    "a single worker": (
        (PSGD, ("clients: 4", "clients: 1")),
        "6: protocol.graph",
        "must have at least 2 workers, got 1; add clients",
    ),
    "rounds of pairs": (
        (PSGD, ("every: {commits: 5}", "every: {rounds: 5}")),
        "10: evaluate.every.rounds",
        "must not be set for the protocol 'gossip', which has no rounds; take commits",
    ),
    "distances of a server's model": (
        (SGD, ASYNCHRONOUS, own("consensus_distance")),
        "10: evaluate.metrics",
        "'sgd', whose workers have no models of their own; remove it",
    ),
    "accuracies of a server's model": (
        (SGD, ASYNCHRONOUS, own("worker_accuracy")),
        "10: evaluate.metrics",
        "must not have worker_accuracy for the algorithm 'sgd'",
    ),
    "losses of a server's model": (
        (SGD, ASYNCHRONOUS, own("worker_loss")),
        "10: evaluate.metrics",
        "must not have worker_loss for the algorithm 'sgd'",
    ),
    "a target that is not measured": (
        (("stop: {", "stop: {target: {consensus_distance: 0.1}, "),),
        "9: stop.target",
        "must name a metric of evaluate.metrics (test_accuracy)",
    ),
    "too few epochs": (
        (step("kind: piecewise, values: [0.4, 0.04, 0.004], epochs: [160]"),),
        "8: algorithm.step_size.epochs",
        "must be one fewer than the 3 values, got 1; the first value begins at 0",
    ),
    "too many epochs": (
        (step("kind: piecewise, values: [0.4], epochs: [160]"),),
        "8: algorithm.step_size.epochs",
        "must be one fewer than the 1 values, got 1",
    ),
    "epochs that fall": (
        (step("kind: piecewise, values: [1, 2, 3], epochs: [3, 2]"),),
        "8: algorithm.step_size.epochs",
        RISING.format("2.0"),
    ),
    "epochs that stay": (
        (step("kind: piecewise, values: [1, 2, 3], epochs: [3, 3]"),),
        "8: algorithm.step_size.epochs",
        RISING.format("3.0"),
    ),
    "a first epoch of nothing": (
        (step("kind: piecewise, values: [1, 2], epochs: [0]"),),
        "8: algorithm.step_size.epochs.0",
        "must be > 0, got 0",
    ),
    "no values": (
        (step("kind: piecewise, values: [], epochs: []"),),
        "8: algorithm.step_size.values",
        "at least 1",
    ),
    "steps backwards": (
        (step("kind: piecewise, values: [1, -2], epochs: [1]"),),
        "8: algorithm.step_size.values.1",
        "must be >= 0, got -2",
    ),
    "no epochs": (
        (step("kind: piecewise, values: [1, 2]"),),
        "8: algorithm.step_size.epochs",
        "is missing",
    ),
    "no warm-up": (
        (step("kind: warmup, first: 0.1, value: 1, rising: 0"),),
        "8: algorithm.step_size.rising",
        "must be >= 2, got 0",
    ),
    "a batch's statistics at a server": (
        (ASGD, ASYNCHRONOUS, network("norm: batch")),
        "5: problem.model.norm",
        "'asgd', which has no place for a batch's statistics, got 'batch'; change it",
    ),
    "samples that are normalised together and clipped apart": (
        ((SIGMA, "{sigma: 1, clip: sample}"), network("norm: batch")),
        "8: algorithm.noise.clip",
        "must be none where samples are normalised together, got 'sample'; change it",
    ),
    "no hidden layer": (
        (("{kind: linear}", "{kind: dense, hidden: []}"),),
        "5: problem.model.hidden",
        "at least 1",
    ),
    "a hidden layer of nothing": (
        (("{kind: linear}", "{kind: dense, hidden: [8, 0]}"),),
        "5: problem.model.hidden.1",
        "must be >= 1, got 0",
    ),
}


BAD_WARMUPS: dict[str, tuple[tuple[Change, ...], str, str]] = {
    "a factor of nothing": (
        (step("kind: warmup, first: 0.1, value: 1, rising: 2, factor: 0"),),
        "8: algorithm.step_size.factor",
        "must be > 0, got 0",
    ),
    "a factor that grows": (
        (step("kind: warmup, first: 0.1, value: 1, rising: 2, factor: 1.5"),),
        "8: algorithm.step_size.factor",
        "must be <= 1, got 1.5",
    ),
    "falling upwards": (
        (step("kind: warmup, first: 0.1, value: 1, rising: 2, falling: -1"),),
        "8: algorithm.step_size.falling",
        "must be >= 0, got -1",
    ),
}


def said_of(changes: tuple[Change, ...], folder: Path) -> str:
    text = GOOD
    for old, new in changes[:-1]:
        assert old in text
        text = text.replace(old, new)
    return complaint(text, *changes[-1], folder)


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_one_line(case: str, tmp_path: Path) -> None:
    changes, place, words = BAD[case]
    said = said_of(changes, tmp_path)
    assert said.startswith(f"{place} "), said
    assert words in said, said


@pytest.mark.parametrize("case", BAD_WARMUPS)
def test_a_mistake_in_a_warm_up_is_placed(case: str, tmp_path: Path) -> None:
    changes, place, words = BAD_WARMUPS[case]
    said = said_of(changes, tmp_path)
    assert words in said, said
    assert said.startswith(f"{place} "), said


PUSH = "average: neighbours, order: step_then_average"
GOOD_ONES: dict[str, tuple[Change, ...]] = {
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
        network("norm: group, width: 0.1"),
    ),
    "rounds": (
        PSGD,
        gossip("average: all"),
        ("every: {commits: 5}", "every: {rounds: 5}"),
    ),
    "closed forms": (
        (("stop:", "privacy: {accountants: [lemma2, theorem2, rdp]}\nstop:")),
    ),
    "batch normalisation": (PSGD, network("norm: batch")),
    "batch normalisation with noise": (network("norm: batch"),),
    "group normalisation, clipped": (
        (SIGMA, "{sigma: 1, clip: sample}"),
        network("norm: group"),
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
        if scenario.problem.model.kind != "cifar_net":
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
