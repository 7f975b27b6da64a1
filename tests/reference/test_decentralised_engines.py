"""Decentralised algorithms: engines against each other, and identities."""

from itertools import product
from math import log, sqrt
from typing import Any

import jax
import numpy as np
import pytest

from evidence.theory import pairings as theory
from stalesim.simulator.engine.simulation import Prepared
from stalesim.simulator.files.timeline import Kind
from tests.reference.gossip_support import (
    ARCS,
    BATCH,
    GRAPHS,
    LINKED,
    NEAR,
    NUM_SAMPLES,
    PUSH,
    SLOW,
    WORLDS,
    K,
    Ran,
    gossip,
    method,
    noisy,
    plan_of,
    ran,
    sampled,
)
from tests.reference.test_push_gossip import PUSHED
from tests.support import everything

ENGINES: dict[str, tuple[dict[str, Any], ...]] = {
    "pairs": (gossip(order="during", **GRAPHS["bipartite"]), WORLDS["idle"]),
    "clipped, by age": (
        gossip(order="step_then_average"),
        WORLDS["idle"],
        noisy(1.0, clip="sample"),
        {"algorithm": {"merge": "age"}},
    ),
    "all at once": (gossip(average="all"),),
    "push gossip": (PUSHED,),
    "push": (
        gossip(
            average="neighbours",
            graph={"kind": "arcs", "arcs": ARCS},
            order="step_then_average",
        ),
        PUSH,
    ),
}


def assert_same(found: Ran, expected: Ran) -> None:
    np.testing.assert_allclose(found.model, expected.model, *NEAR)
    assert found.infos.keys() == expected.infos.keys()
    for name, values in expected.infos.items():
        np.testing.assert_allclose(found.infos[name], values, *NEAR, err_msg=name)
    own, other = (
        jax.tree.leaves(r.state._replace(key=None)) for r in (found, expected)
    )
    for one, another in zip(own, other, strict=True):
        np.testing.assert_allclose(one, another, *NEAR)


SEEDS = 12
ENGINES_ALWAYS = {("pairs", "batched"), ("pairs", "shared")}
MODES = ("stepwise", "batched", "shared")


@pytest.mark.parametrize(
    ("name", "mode"), sampled(product(ENGINES, MODES), ENGINES_ALWAYS)
)
def test_engines_agree(name: str, mode: str) -> None:
    if mode == "shared":
        sizes: list[Any] = [{"values": values} for values in ([0.5, 0.3], [0.2, 0.1])]
        changes = [{"algorithm": {"step_size": size}} for size in sizes]
        plans = [plan_of(*ENGINES[name], change) for change in changes]
    else:  # in pairs as many as below, so that there is one program less to compile
        seeds = range(SEEDS if name == "pairs" else 2)
        plans = [plan_of(*ENGINES[name], seed=seed) for seed in seeds]
    together = ran(plans[:1] if mode == "stepwise" else plans, mode)
    alone = [ran([plan])[0] for plan in plans[:2]]
    for found, expected in zip(together, alone, strict=False):
        assert_same(found, expected)
    assert not np.allclose(alone[0].model, alone[1].model)


EQUAL = {"clients": {"compute": {"law": "constant", "value": 1}}}


def test_all_with_equal_delays_is_synchronous_sgd() -> None:
    """The mean of K steps from one model is a step by the mean of K gradients."""
    few = {"stop": {"commits": None, "rounds": 17}}  # of one step size
    (all_,) = ran([plan_of(EQUAL, gossip(average="all"), few)])
    sync = {"protocol": {"kind": "synchronous"}}
    other = {"evaluate": {"metrics": ["objective"]}}
    (sgd,) = ran([plan_of(EQUAL, sync, method("sgd"), few, other)])
    assert np.square(sgd.model).sum() > 1
    np.testing.assert_allclose(all_.model, sgd.model, 1e-10, 1e-13)
    for model in all_.state.models:
        np.testing.assert_allclose(model, sgd.model, 1e-10, 1e-13)


@pytest.mark.parametrize(
    ("protocol", "precision"),
    [
        ("during", "float64"),
        pytest.param("all", "float32", marks=SLOW),
    ],
)
def test_without_noise_adp2sgd_is_psgd_bit_for_bit(
    protocol: str, precision: str
) -> None:
    how = {"average": "all"} if protocol == "all" else {"order": protocol}
    changes = (LINKED, gossip(**how), {"engine": {"precision": precision}})
    (psgd,) = ran([plan_of(*changes)])
    (private,) = ran([plan_of(*changes, noisy(0.0))])
    assert private.state.models.dtype == precision
    for name in ("models", "registers", "spread"):
        own, other = (jax.tree.leaves(getattr(r.state, name)) for r in (psgd, private))
        for one, another in zip(own, other, strict=True):
            assert np.asarray(one).tobytes() == np.asarray(another).tobytes(), name


def test_one_worker_that_averages_with_all_is_sgd() -> None:
    one = {"problem": {"partition": {"clients": 1}}, "stop": {"commits": 40}}
    (alone,) = ran([plan_of(EQUAL, gossip(average="all"), one)])
    plain = {"protocol": {"kind": "asynchronous"}}
    other = {"evaluate": {"metrics": ["objective"]}}
    (sgd,) = ran([plan_of(EQUAL, plain, method("sgd"), one, other)])
    assert np.square(sgd.model).sum() > 0.1
    np.testing.assert_allclose(alone.model, sgd.model, 1e-12, 1e-15)


WARM, COLD = 40, 100
# In epochs; half a commit less, so that rounding does not choose the commit.
FROZEN = {
    "kind": "piecewise",
    "values": [0.5, 0.0],
    "epochs": [(WARM - 0.5) * BATCH / NUM_SAMPLES],
}


def warmed(graph: str, commits: int) -> list[tuple[Prepared, Ran]]:
    """Runs that take 40 steps, and from then on average alone."""
    changes = (
        {"clients": {"compute": {"loc": 0.0}}},
        gossip(**GRAPHS[graph]),
        {"algorithm": {"step_size": FROZEN}},
        {"stop": {"commits": commits}, "evaluate": {"every": {"commits": commits}}},
    )
    plans = [plan_of(*changes, seed=seed) for seed in range(SEEDS)]
    return list(zip(plans, ran(plans, "batched"), strict=True))


@pytest.mark.parametrize(
    ("graph", "pairing", "initiator"),
    [
        ("complete", "any", "every"),
        pytest.param("bipartite", "random_receiver", "every", marks=SLOW),
        pytest.param("bipartite, senders", "random_receiver", "sender", marks=SLOW),
        pytest.param("ring", "ring_neighbour", "every", marks=SLOW),
        pytest.param("ring, senders", "ring_neighbour", "sender", marks=SLOW),
    ],
)
def test_averaging_alone_contracts_as_fast_as_its_spectrum_says(
    graph: str, pairing: theory.Pairing, initiator: theory.Initiator
) -> None:
    """Without steps the mean stays, and the expected distance falls by rho a commit.

    Gradients of exponential length end in a Poisson process, each time that of any
    worker alike, independently of the past; so are partners. An averaging A, symmetric
    and a projection (or I, where the worker does not initiate), maps the deviations D
    from the mean to AD, which are such again. So the distance's factor in a commit,
    X = |AD|^2 / |D|^2 = <D, A D> / |D|^2 in [0, 1], has an expectation given the past
    of <D, E[A] D> / |D|^2, from the least eigenvalue of E[A] to its second largest,
    rho. Differences of X from that are a martingale's, of range 1: by Azuma and
    Hoeffding, the mean of n of them exceeds t with probability exp(-2 n t^2), here
    1e-4. On a complete graph the two eigenvalues, and so the bounds, are the same.
    """
    factors = []
    for (plan, found), (_, before) in zip(
        warmed(graph, WARM + COLD), warmed(graph, WARM), strict=True
    ):
        rows, _, _ = everything(plan.timeline)
        commits = rows.kind == Kind.COMMIT
        steps = found.infos["step_size"][commits]
        assert (steps > 0).tolist() == [True] * WARM + [False] * COLD
        distance = found.infos["consensus_distance"][commits][WARM - 1 :]
        factors += (distance[1:] / distance[:-1]).tolist()
        np.testing.assert_allclose(found.model, before.model, 1e-12, 1e-14)
    law = theory.partner_law(pairing, K, initiator)
    mean = theory.expected_initiated_averaging(np.full(K, 1 / K), law)
    least, rho = np.linalg.eigvalsh(mean)[[0, -2]]
    assert rho == pytest.approx(theory.pairing_rho(pairing, K, initiator))
    assert max(factors) < 1 + 1e-6
    t = sqrt(log(1e4) / (2 * len(factors)))
    assert least - t <= np.mean(factors) <= rho + t
