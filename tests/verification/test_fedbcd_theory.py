"""FedBCD's two theorems on the simulator's own runs, and how long its rounds take."""

import itertools
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from evidence.theory import fedbcd as theory
from stalesim.analysis.theory import rounds
from stalesim.simulator.catalogue.algorithms.fedbcd import kernel as fedbcd
from stalesim.simulator.catalogue.protocols.rounds import Rounds
from stalesim.simulator.engine.execute import null_events, put
from stalesim.simulator.engine.row_stream import Segment
from stalesim.simulator.engine.simulation import Prepared, key_of
from stalesim.simulator.problem import convex
from stalesim.simulator.problem.vertical import VerticalProblem
from stalesim.simulator.scenario.study import merge
from stalesim.simulator.world.clients import Clients
from tests.reference.fedbcd_theory_twin import theorem2_bound
from tests.runs import prepared, rows_of
from tests.support import everything, played
from tests.verification import pooled as pools

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


def secret_rotation(theta: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Returns the orthogonal U = P diag(1, V) P with U theta = theta (section 6).

    P is the Householder reflection that maps theta / |theta| to e_1. Those that keep a
    start other than zero are the rotations of the d - 1 dimensions across it: two, the
    identity among them, for d = 2, so one alternative (F-08: "d >= 2"). From zero it is
    O(d): one for d = 1.

    Args:
        theta: Initial parameters of a linear party, [d], neither zero nor along e_1.
        V: Orthogonal, [d - 1, d - 1]; not I, or U is I.
    """
    v = theta / np.linalg.norm(theta) - np.eye(len(theta))[0]
    P = np.eye(len(theta)) - 2.0 * np.outer(v, v) / (v @ v)
    middle = np.eye(len(theta))
    middle[1:, 1:] = V
    return P @ middle @ P


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


# Theorem 2: the mean squared gradient norm over all local iterations.


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
@pytest.mark.parametrize(
    ("num_parties", "Q", "S", "T"),
    [
        *((2, 1, 20, 100), (3, 1, 200, 400), (3, 5, 50, 400)),
        *((2, 5, 200, 100), (3, 10, 200, 2_000)),
    ],
)
def test_the_gradient_lies_below_the_bound_of_theorem_2(
    num_parties: int, Q: int, S: int, T: int
) -> None:
    groups = {2: ["0-5", "6-11"], 3: ["0-1", "2-5", "6-11"]}[num_parties]
    with jax.enable_x64(True):
        at_first = _plan(groups, NUM_SAMPLES, S)
        pooled, columns = pools.of_parties(at_first.problem, L2)
        of_parties = convex.smoothness_of_parties(pooled.x, columns, "sigmoid", L2)
        step = theory.largest_steps(Q, of_parties, pooled.smoothness()).safe
        change = {
            "algorithm": {"step_size": step, "local_steps": Q},
            "stop": {"rounds": T // Q},
        }
        seeds = (1,) if S == NUM_SAMPLES else (1, 2, 3)
        plans = [_plan(groups, NUM_SAMPLES, S, change, seed=seed) for seed in seeds]
        ways = _iterates(plans)
    least = pooled.objective(pooled.minimiser())
    gap = pooled.objective(ways[0][0]) - least
    # The least that A2 lets sigma^2 / S be: the largest variance on the way of the
    # gradient of S different samples, which is 0 where a batch is all samples.
    share = (NUM_SAMPLES - S) / (NUM_SAMPLES - 1) / S
    variance = share * max(pooled.variance(w) for way in ways for w in way)
    bound = theory.theorem2(
        T,
        local_steps=Q,
        step_size=step,
        of_parties=of_parties,
        gap=gap,
        variance=variance,
    )
    squares = [[np.sum(pooled.gradient(w) ** 2) for w in way] for way in ways]
    assert len(squares[0]) == T
    means = np.mean(squares, axis=1)
    # Every run, though the theorem speaks of their mean. Found 0.01 to 0.04 of the
    # bound with noise, most of which is 2 K sigma^2 / S, and 0.47 to 0.54 without.
    assert (means < bound).all()
    if S == NUM_SAMPLES and Q == 1:
        # Without noise the bound is not empty. A step of gradient descent, with eta <=
        # 1 / (2 L), gains at most eta (1 + L eta / 2) |grad|^2, so 5 / 4 eta |grad|^2:
        # the mean is 4 / 5 of the gain / (eta T) or more, the bound 2 gap / (eta T).
        gained = 1 - (pooled.objective(ways[0][-1]) - least) / gap
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
LAWS: dict[str, tuple[dict[str, Any], Any]] = {
    "exponential": ({"law": "expon", "scale": "m"}, lambda m: scipy.stats.expon(0, m)),
    "lognormal": (
        {"law": "lognorm", "s": 0.5, "scale": "m"},
        lambda m: scipy.stats.lognorm(0.5, 0, m),
    ),
}


def _mean_round(order: Any, law: dict[str, Any], K: int) -> float:
    """Returns the mean duration of a round in virtual seconds."""
    clients = Clients.model_validate({"compute": law})
    rows, _, _ = everything(played(Rounds(order=order), clients, K, rounds=NUM_ROUNDS))
    assert rows.round[-1] == NUM_ROUNDS - 1
    return float(rows.time[-1]) / NUM_ROUNDS


@pytest.mark.parametrize("K", [2, 5])
@pytest.mark.parametrize("name", LAWS)
def test_a_round_lasts_as_long_as_its_slowest_party_or_as_all(
    name: str, K: int
) -> None:
    """Within five standard errors of the mean round; links are tested exactly.

    The largest of the phases changes by no more than any one of them does, so by Efron
    and Stein its variance is at most the sum of theirs, which that of their sum is.
    """
    law, of_party = LAWS[name]
    phases = [of_party(m) for m in range(1, K + 1)]
    bound = 5 * np.sqrt(sum(one.var() for one in phases) / NUM_ROUNDS)
    parallel, sequential = (_mean_round(o, law, K) for o in ("parallel", "sequential"))
    assert parallel == pytest.approx(rounds.expected_maximum(phases), abs=bound)
    assert sequential == pytest.approx(sum(one.mean() for one in phases), abs=bound)
