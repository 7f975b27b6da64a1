"""FedBCD's two theorems on the simulator's own runs, and how long its rounds take."""

import itertools
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from scipy.special import expit

from evidence.theory import fedbcd as theory
from stalesim.analysis.theory import rounds
from stalesim.simulator.algorithms.fedbcd import kernel as fedbcd
from stalesim.simulator.engine.execute import null_events, put
from stalesim.simulator.engine.row_stream import Segment
from stalesim.simulator.learning import convex
from stalesim.simulator.learning.vertical import VerticalProblem
from stalesim.simulator.protocols import Rounds
from stalesim.simulator.scenario.study import merge
from stalesim.simulator.simulation import Prepared, key_of
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.workload import Workload
from tests.reference.fedbcd_theory_twin import secret_rotation, theorem2_bound
from tests.runs import prepared, rows_of
from tests.support import everything, played

L2 = 0.01
WIDTH = 10
"""Most columns of a party whose data are turned."""


def _plan(
    groups: list[str], num_samples: int, batch: int, *changes: dict[str, Any], **options
) -> Prepared:
    """Prepares linear parties on synthetic data with so many training rows."""
    data = {
        "kind": "synthetic_logistic",
        "scale": "raw",
        "num_samples": num_samples * 5 // 4,
        "num_features": int(groups[-1].split("-")[-1]) + 1,
    }
    held = {f"party-{k}": [columns] for k, columns in enumerate(groups)}
    tree: dict[str, Any] = {
        "problem": {
            "data": data,
            "partition": {"parties": None, "groups": held},
            "l2": L2,
        },
        "protocol": {"kind": "rounds"},
        "algorithm": {
            "kind": "fed_bcd",
            "step_size": 0.3,
            "batch": batch,
            "local_steps": 4,
        },
        "stop": {"commits": None, "rounds": 15},
        "engine": {"precision": "float64"},
    }
    for change in changes:
        tree = merge(tree, change)
    return prepared(tree, **options)


def _events(plan: Prepared) -> fedbcd.Event:
    """Returns all rows of a run as its kernel sees them."""
    rows, samples = rows_of(plan)
    T = rows.time.size
    events = null_events(T, plan.timeline.width, plan.samples)
    slots = np.asarray(events.keep_slot)
    put(events, 0, Segment(rows, samples, slots, None, None, False, None))
    return events


# Theorem 1: whoever sees every message cannot tell x from x U.

CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "parallel, 2 parties": (2, {}),
    "parallel, 3 parties": (3, {}),
    "parallel, 3 parties, frozen": (3, {"algorithm": {"local_gradient": "frozen"}}),
    "sequential, 2 parties": (2, {"protocol": {"order": "sequential"}}),
    "sequential, 3 parties": (3, {"protocol": {"order": "sequential"}}),
}


class Run(NamedTuple):
    """What a run exchanges row by row, and where it ends.

    Attributes:
        outputs: of every party's model for the row's batch.
        error: the derivative of the batch's loss.
        weights: of the parties at the end.
    """

    outputs: np.ndarray
    error: np.ndarray
    weights: np.ndarray

    def distance(self, other: "Run") -> np.ndarray:
        """Returns for each row the largest difference of a number in a message."""
        outputs = np.abs(self.outputs - other.outputs).max(axis=(1, 2, 3))
        error = np.abs(self.error - other.error).max(axis=(1, 2))
        return np.maximum(outputs, error)


class Exchanges:
    """A case's kernel, to be executed on other features and from other weights.

    A party of d columns is one of `WIDTH` whose others are zero, so that one program
    serves all d. In sequence a row is a party's turn: rows hold what is exchanged of a
    new batch, and after every turn.
    """

    def __init__(self, case: str) -> None:
        self.num_parties, change = CASES[case]
        ends = WIDTH * np.arange(1, self.num_parties + 1)
        groups = [f"{end - WIDTH}-{end - 1}" for end in ends]
        plan = _plan(groups, 120, 17, change)
        self.problem: VerticalProblem = plan.problem
        algorithm, key = plan.kernel, key_of(plan.run.seed)
        assert isinstance(algorithm, fedbcd.BlockDescentKernel)
        self.start = np.array(algorithm.init(self.problem, key).weights)
        self._events = _events(plan)

        def run(x: jax.Array, start: jax.Array) -> Any:
            problem = replace(self.problem, x=x)

            def row(state: fedbcd.BlockDescentState, event: fedbcd.Event) -> Any:
                begun = fedbcd._of_workers(state.weights, event)
                _, own, h, _ = algorithm._fresh(problem, state, event, begun)
                _, received = fedbcd._received(problem, event, own, h, state.server)
                after, _ = algorithm.step(problem, state, event)
                return after, (h[0], received.error[0])

            begun = algorithm.init(problem, key)._replace(weights=start)
            state, sent = jax.lax.scan(row, begun, self._events)
            return *sent, state.weights

        self._run = jax.jit(run)

    def features(self, d: int) -> np.ndarray:
        """Returns those of parties of d columns."""
        return np.where(np.arange(WIDTH) < d, np.asarray(self.problem.x), 0)

    def run(self, start: np.ndarray, d: int, party: int, U: np.ndarray) -> Run:
        """Executes all rows, one party's features turned by U."""
        x = self.features(d)
        x[party, :, :d] = x[party, :, :d] @ U
        return Run(*map(np.asarray, self._run(jnp.asarray(x), jnp.asarray(start))))


def _orthogonal(d: int) -> np.ndarray:
    """Returns an orthogonal matrix that is not the identity."""
    if d == 1:
        return -np.eye(1)
    return np.linalg.qr(np.random.default_rng(5).normal(size=(d, d)))[0]


def _assert_hidden(
    exchanges: Exchanges, start: np.ndarray, party: int, U: np.ndarray
) -> None:
    d = len(U)
    x = exchanges.features(d)[party, :, :d]
    assert np.abs(x @ U - x).max() > 0.1
    true = exchanges.run(start, d, party, np.eye(d))
    other = exchanges.run(start, d, party, U)
    # Sums of at most 30 products below 10 are off by some 1e-15, to which every step
    # adds as much; steps below 2 / L do not enlarge a difference. Found below 1e-14.
    assert (true.distance(other) < 1e-10).all()
    mine = [run.weights[party, 0, :d] for run in (true, other)]
    np.testing.assert_allclose(mine[1], U.T @ mine[0], atol=1e-10)
    assert np.abs(mine[0] - start[party, 0, :d]).max() > 0.01, "nothing was learned"


@pytest.mark.parametrize("case", CASES)
def test_data_that_send_the_same_messages(case: str) -> None:
    generator = np.random.default_rng(6)
    with jax.enable_x64(True):
        exchanges = Exchanges(case)
        zero = exchanges.start
        assert not zero.any()
        for d, party in itertools.product(
            (1, 2, 3, WIDTH), range(exchanges.num_parties)
        ):
            # From zero, every rotation of a party's features does.
            _assert_hidden(exchanges, zero, party, _orthogonal(d))
            if d == 1:
                continue
            # From elsewhere, those that keep the start; others show at once.
            start = np.zeros_like(zero)
            start[:, :, :d] = 0.5 * generator.normal(size=(*zero.shape[:2], d))
            U = secret_rotation(start[party, 0, :d], _orthogonal(d - 1))
            _assert_hidden(exchanges, start, party, U)
            runs = [exchanges.run(start, d, party, V) for V in (np.eye(d), -np.eye(d))]
            assert runs[0].distance(runs[1])[0] > 0.1


def test_how_many_alternatives_there_are() -> None:
    # F-08, "larger than 2, i.e. d >= 2": rotations that keep a start other than zero
    # are those of the d - 1 dimensions across it, O(d - 1): two, the identity among
    # them, for d = 2, so one alternative. From zero it is O(d): one for d = 1.
    start = np.array([0.6, 0.8])
    U = secret_rotation(start, -np.eye(1))
    np.testing.assert_allclose(U, 2 * np.outer(start, start) - np.eye(2), atol=1e-15)
    for angle in np.linspace(0.1, 6.2, 62):
        c, s = np.cos(angle), np.sin(angle)
        assert np.abs(np.array([[c, -s], [s, c]]) @ start - start).max() > 0.05
        mirror = np.array([[c, s], [s, -c]])
        if np.abs(mirror @ start - start).max() < 1e-9:
            np.testing.assert_allclose(mirror, U, atol=1e-9)


# Theorem 2: the mean squared gradient norm over all local iterations.


class Pooled(NamedTuple):
    """The parties' pooled problem in NumPy, which has no bias."""

    x: np.ndarray
    y: np.ndarray

    def gradients(self, weights: np.ndarray) -> np.ndarray:
        residual = expit(self.x @ weights) - self.y
        return residual[:, None] * self.x + L2 * weights

    def objective(self, weights: np.ndarray) -> float:
        logits = self.x @ weights
        loss = np.logaddexp(0, logits) - self.y * logits
        return float(loss.mean() + 0.5 * L2 * np.sum(weights**2))

    def least(self) -> float:
        found = scipy.optimize.minimize(
            self.objective,
            np.zeros(self.x.shape[1]),
            jac=lambda weights: self.gradients(weights).mean(axis=0),
            method="BFGS",
            options={"gtol": 1e-8},
        )
        return float(found.fun)

    def batch_variance(self, weights: np.ndarray, batch: int) -> float:
        """Computes E |g(S) - grad L|^2 over all sets S of so many different samples."""
        N = len(self.y)
        one = float(self.gradients(weights).var(axis=0).sum())
        return one / batch * (N - batch) / (N - 1)


def _pooled(problem: VerticalProblem) -> Pooled:
    held = zip(np.asarray(problem.x, float), problem.num_features, strict=True)
    x = np.concatenate([part[:, :p] for part, p in held], axis=1)
    return Pooled(x, np.asarray(problem.y))


def _iterates(plans: list[Prepared]) -> list[np.ndarray]:
    """Returns Theta at the beginning of all local iterations of runs of one structure.

    What Q steps pass through is where kernels of fewer steps lead from the same start.
    """
    algorithm, problem = plans[0].kernel, plans[0].problem
    assert isinstance(algorithm, fedbcd.BlockDescentKernel)
    shorter = [
        replace(algorithm, local_steps=j) for j in range(1, algorithm.local_steps + 1)
    ]

    def row(state: fedbcd.BlockDescentState, event: fedbcd.Event) -> Any:
        ends = [one.step(problem, state, event)[0] for one in shorter]
        passed = [state, *ends[:-1]]
        return ends[-1], jnp.stack([each.weights for each in passed])

    begun = algorithm.init(problem, key_of(plans[0].run.seed))
    run = jax.jit(lambda events: jax.lax.scan(row, begun, events)[1])
    found = []
    for plan in plans:
        whole = np.asarray(run(_events(plan))).reshape(-1, *begun.weights.shape)
        parts = [whole[:, k, 0, :p] for k, p in enumerate(problem.num_features)]
        found.append(np.concatenate(parts, axis=1))
    return found


NUM_SAMPLES = 200


@pytest.mark.slow
@pytest.mark.parametrize("num_parties", [2, 3])
@pytest.mark.parametrize(
    ("Q", "S", "T"),
    [(1, 20, 100), (1, 200, 400), (5, 50, 400), (5, 200, 100), (10, 200, 2_000)],
)
def test_the_gradient_lies_below_the_bound_of_theorem_2(
    num_parties: int, Q: int, S: int, T: int
) -> None:
    groups = {2: ["0-5", "6-11"], 3: ["0-1", "2-5", "6-11"]}[num_parties]
    with jax.enable_x64(True):
        at_first = _plan(groups, NUM_SAMPLES, S)
        pooled = _pooled(at_first.problem)
        # L of the Hessian's bound x^T x / 4 N.
        smoothness = np.linalg.norm(pooled.x, 2) ** 2 / (4 * NUM_SAMPLES) + L2
        ends = np.cumsum(at_first.shares.num_features)
        columns = [
            np.arange(end - p, end)
            for end, p in zip(ends, at_first.shares.num_features, strict=True)
        ]
        of_parties = convex.smoothness_of_parties(pooled.x, columns, "sigmoid", L2)
        step = theory.largest_steps(Q, of_parties, float(smoothness)).safe
        change = {
            "algorithm": {"step_size": step, "local_steps": Q},
            "stop": {"rounds": T // Q},
        }
        seeds = (1,) if S == NUM_SAMPLES else (1, 2, 3)
        plans = [_plan(groups, NUM_SAMPLES, S, change, seed=seed) for seed in seeds]
        ways = _iterates(plans)
    gap = pooled.objective(ways[0][0]) - pooled.least()
    squares = [
        [float(np.sum(pooled.gradients(w).mean(axis=0) ** 2)) for w in way]
        for way in ways
    ]
    # The least that A2 lets sigma^2 / S be: the largest exact variance on the way,
    # which is 0 where a batch is all samples.
    variance = max(pooled.batch_variance(w, S) for way in ways for w in way)
    bound = theory.theorem2(
        T,
        local_steps=Q,
        step_size=step,
        of_parties=of_parties,
        gap=gap,
        variance=variance,
    )
    assert len(squares[0]) == T
    means = np.mean(squares, axis=1)
    # Every run, though the theorem speaks of their mean. Found 0.01 to 0.04 of the
    # bound with noise, most of which is 2 K sigma^2 / S, and 0.47 to 0.54 without.
    assert (means < bound).all()
    if S == NUM_SAMPLES and Q == 1:
        # Without noise the bound is not empty. A step of gradient descent, with eta <=
        # 1 / (2 L), gains at most eta (1 + L eta / 2) |grad|^2, so 5 / 4 eta |grad|^2:
        # the mean is 4 / 5 of the gain / (eta T) or more, the bound 2 gap / (eta T).
        gained = 1 - (pooled.objective(ways[0][-1]) - pooled.least()) / gap
        assert gained > 0.9
        assert means[0] > 0.4 * gained * bound


def test_the_steps_of_theorem_2() -> None:
    # Section 5 of the specification: K = 2, Q = 5 and L = L_k = 1.
    found = theory.largest_steps(5, (1.0, 1.0), 1.0)
    assert found.printed == pytest.approx(0.06325, abs=5e-6)
    assert found.exact == pytest.approx(0.06128, abs=5e-6)
    for Q, of_parties, L in [(5, (1.0, 1.0), 1.0), (1, (0.1, 2.0, 0.3), 4.0)]:
        steps = theory.largest_steps(Q, of_parties, L)
        expected = theorem2_bound(Q, of_parties, L)
        assert steps._asdict() == pytest.approx(expected._asdict(), rel=1e-12)
        assert steps.safe == pytest.approx(convex.largest_step(Q, of_parties, L))
        assert steps.safe <= steps.exact < steps.printed


def test_the_bound_of_theorem_2_by_hand() -> None:
    found = theory.theorem2(
        50, local_steps=5, step_size=0.1, of_parties=(1.0, 2.0), gap=3.0, variance=0.5
    )
    # 2 * 3 / 5 + 2 * 0.01 * 5 * 25 * 5 * 0.5 + 2 * 2 * 0.5
    assert found == pytest.approx(1.2 + 6.25 + 2)


# How long rounds take.

NUM_ROUNDS = 4_000
LATENCY = {"latency": {"law": "constant", "value": 0.7}}
LAWS: dict[str, tuple[dict[str, Any], Any]] = {
    "exponential": ({"law": "expon", "scale": "m"}, lambda m: scipy.stats.expon(0, m)),
    "lognormal": (
        {"law": "lognorm", "s": 0.5, "scale": "m"},
        lambda m: scipy.stats.lognorm(0.5, 0, m),
    ),
}


def _mean_round(order: str, clients: dict[str, Any], K: int, steps: int = 1) -> float:
    """Returns the mean duration of a round in virtual seconds."""
    config = Clients.model_validate(clients)
    protocol = Rounds.model_validate({"kind": "rounds", "order": order})
    plan = played(protocol, config, K, rounds=NUM_ROUNDS)
    rows, _, _ = everything(replace(plan, workload=Workload(4, 4, K, steps=steps)))
    assert rows.round[-1] == NUM_ROUNDS - 1
    return float(rows.time[-1]) / NUM_ROUNDS


def _five_errors(phases: list[Any]) -> float:
    """Bounds five standard errors of the mean round.

    The largest of the phases changes by no more than any one of them does, so by Efron
    and Stein its variance is at most the sum of theirs, which that of their sum is.
    """
    return 5 * np.sqrt(sum(law.var() for law in phases) / NUM_ROUNDS)


@pytest.mark.parametrize("K", [2, 5])
@pytest.mark.parametrize("name", LAWS)
def test_a_round_lasts_as_long_as_its_slowest_party_or_as_all(
    name: str, K: int
) -> None:
    law, of_party = LAWS[name]
    phases = [of_party(m) for m in range(1, K + 1)]
    bound = _five_errors(phases)
    parallel = _mean_round("parallel", {"compute": law}, K)
    sequential = _mean_round("sequential", {"compute": law}, K)
    expected = rounds.expected_maximum(phases)
    assert parallel == pytest.approx(expected, abs=bound)
    assert sequential == pytest.approx(sum(one.mean() for one in phases), abs=bound)


@pytest.mark.parametrize("Q", [1, 5])
def test_local_steps_and_links_of_a_round(Q: int) -> None:
    K = 3
    clients = {
        "compute": {"law": "expon", "scale": "m"},
        "compute_per": "step",
        "upload": LATENCY,
        "download": LATENCY,
    }
    # A job's steps are drawn one by one; both messages come on top.
    phases = [scipy.stats.gamma(Q, 2 * 0.7, m) for m in range(1, K + 1)]
    bound = _five_errors(phases)
    expected = rounds.expected_maximum(phases)
    assert _mean_round("parallel", clients, K, Q) == pytest.approx(expected, abs=bound)
    # In sequence, what all parties make of a new batch is sent first, at once (F-02).
    expected = 0.7 + sum(phase.mean() for phase in phases)
    found = _mean_round("sequential", clients, K, Q)
    assert found == pytest.approx(expected, abs=bound)


def test_a_new_batch_is_sent_by_all_at_once() -> None:
    K = 3
    clients = {
        "compute": {"law": "constant", "value": 1.0},
        "upload": {"latency": {"law": "expon", "scale": 1.0}},
    }
    latency = scipy.stats.expon()
    expected = rounds.expected_maximum([latency] * K) + K * (1.0 + 1.0)
    # K latencies at once, then K in turn, all independent.
    bound = _five_errors([latency] * (2 * K))
    assert _mean_round("sequential", clients, K) == pytest.approx(expected, abs=bound)
