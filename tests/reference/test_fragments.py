"""Streaming DiLoCo in slow, plain NumPy, by inner steps; its limits; what it refuses.

Source: Douillard et al. (2025), Algorithm 2: t counts inner steps, fragment p is sent
where t - t_p mod H = 0, and taken over tau steps later. t_p = (p + 1) H / P.
"""

from typing import Any, cast

import jax
import numpy as np
import pytest
from pydantic import ValidationError

from stalesim.simulator.catalogue.algorithms.federated.chain import WrittenChain
from stalesim.simulator.catalogue.algorithms.federated.fragments import (
    StreamingDiloco,
)
from stalesim.simulator.engine.simulation import Prepared
from tests.reference import server_twin as twin
from tests.reference.methods_support import (
    SEED,
    STEP,
    K,
    Tolerance,
    assert_models_alike,
    d,
    problem_of,
    tree_of,
)
from tests.runs import execute, prepared

OUTER, BETA, ROUNDS = 0.6, 0.7, 14
ADAM = {"kind": "adamw", "learning_rate": 0.05, "weight_decay": 0.1, "state": "kept"}


def streaming(plan: Prepared) -> twin.Server:
    """Returns the outer model after each round."""
    problem, o = problem_of(plan), cast("Any", plan.scenario.algorithm)
    h, P, tau = o.local_steps, o.fragments, o.delay
    H, parts = P * h, np.array([i * P // d for i in range(d)])
    outer, momentum = np.zeros(d), np.zeros(d)
    own, received = [np.zeros(d) for _ in range(K)], {}
    given = o.local_optimizer and o.local_optimizer.model_dump()
    inner = [given and twin.Optimizer(given) for _ in range(K)]
    server = twin.Server(problem, outer, K, STEP, OUTER)
    for t in range(1, ROUNDS * h + 1):
        for m in range(K):
            job, q = divmod(t - 1, h)
            ids = plan.sampler.batch(m, job).reshape(h, -1)[q]
            _, g, _ = twin.of_batch(problem, own[m], ids)
            way = STEP * g if inner[m] is None else inner[m](g, own[m], t - 1)
            own[m] = own[m] - way
        for p in range(P):
            mine, t_p = parts == p, (p + 1) * h
            if (t - t_p) % H == 0 and t >= t_p:
                delta = np.mean([outer - each for each in own], axis=0)
                momentum = np.where(mine, BETA * momentum + delta, momentum)
                stepped = outer - OUTER * (delta + BETA * momentum)
                outer = np.where(mine, stepped, outer)
                received[t + tau] = mine, outer
        if t in received:
            mine, sent = received.pop(t)
            own = [np.where(mine, sent, each) for each in own]
        if t % h == 0:
            server.becomes(outer)
    return server


def tree(**options: Any) -> dict[str, Any]:
    method = {"kind": "streaming_diloco", "step_size": STEP, "server_step_size": OUTER}
    method |= {"decay": BETA} | options
    return tree_of({"kind": "synchronous"}, method) | {"stop": {"commits": ROUNDS}}


CASES: dict[str, dict[str, Any]] = {
    "three fragments": {"fragments": 3, "local_steps": 2},
    "two of unequal sizes, late": {"fragments": 2, "local_steps": 4, "delay": 3},
    "late, AdamW": {"fragments": 3, "local_steps": 3, "delay": 1, "step_size": None}
    | {"local_optimizer": ADAM},
    "more fragments than weights": {"fragments": 5, "local_steps": 1},
}


@pytest.mark.parametrize("name", CASES)
def test_models_are_those_of_a_loop_of_inner_steps(name: str) -> None:
    error = 1e-7 if "AdamW" in name else 1e-9
    with jax.enable_x64(True):
        plan = prepared(tree(**CASES[name]), seed=SEED)
        memory, _ = execute([plan])
        near = Tolerance(error, 100 * error)
        assert_models_alike(memory, streaming(plan), near)


def objectives(whole: dict[str, Any], *modes: str) -> np.ndarray:
    with jax.enable_x64(True):
        memory, _ = execute([prepared(whole, seed=SEED)], *modes)
    return memory.column("evaluations", "objective")


def test_row_after_row_gives_the_same() -> None:
    whole = tree(**CASES["two of unequal sizes, late"])
    np.testing.assert_allclose(objectives(whole), objectives(whole, "stepwise"))


@pytest.mark.parametrize("changes", [{}, {"selection": {"in_flight": 3}}])
def test_one_fragment_without_delay_is_diloco(changes: dict[str, Any]) -> None:
    """Also of clients that were away, who take over all that was moved since."""
    one = tree(fragments=1, local_steps=4)
    one["clients"] = one["clients"] | changes
    nesterov = {"kind": "delayed_nesterov", "period": 1, "decay": BETA}
    usual = {"kind": "fed_avg", "server_step_size": OUTER, "optimizer": nesterov}
    usual |= {"weighting": "equal", "local_steps": 4, "step_size": STEP}
    usual = tree_of({"kind": "synchronous"}, usual) | {"stop": one["stop"]}
    found = objectives(usual | {"clients": one["clients"]})
    np.testing.assert_allclose(objectives(one), found, rtol=1e-9)


@pytest.mark.parametrize(("fragments", "delay"), [(1, 0), (1, 2), (3, 0), (3, 2)])
def test_a_delay_takes_its_steps_of_each_turn(fragments: int, delay: int) -> None:
    """Quadratics of one curvature, no momentum, and an outer step of 1.

    After n own steps a client's distance to its optimum is (1 - eta)^n of what it was.
    Fragment p first meets after (p + 1) h steps; then H = P h lie between meetings, of
    which the first tau are lost when the client takes over the mean. So its distance
    to the optimum of all is (1 - eta)^((p + 1) h + k (H - tau)) after k more meetings.
    """
    h, eta, rounds = 4, 0.1, 11
    data = {"condition": 1, "heterogeneity": 1.0, "noise": 0.0, "samples": 1}
    method = {"fragments": fragments, "local_steps": h, "delay": delay, "batch": 1}
    whole = tree(**method, step_size=eta, server_step_size=1, decay=0)
    whole |= {"stop": {"commits": rounds}}
    whole["problem"] = whole["problem"] | {"l2": 0.0}
    whole["problem"]["data"] = whole["problem"]["data"] | data
    with jax.enable_x64(True):
        plan = prepared(whole, seed=SEED)
        memory, _ = execute([plan])
    optimum = np.asarray(plan.problem.y / plan.problem.x, float).mean(axis=0)
    wanted = []
    for n in range(rounds + 1):
        apart = optimum.copy()
        for i in range(d):
            p = i * fragments // d
            if met := len(range(p, n, fragments)):
                steps = (p + 1) * h + (met - 1) * (fragments * h - delay)
                apart[i] *= (1 - eta) ** steps
        wanted.append((apart**2).sum() / 2)
    found = memory.column("evaluations", "optimality_gap")
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_a_message_is_a_part_of_the_model() -> None:
    """Peak bandwidth is a P-th of DiLoCo's: 4 of the 12 bytes of three weights."""
    for fragments, size in ((1, 12), (2, 6), (3, 4)):
        plan = prepared(tree(fragments=fragments, local_steps=1), seed=SEED)
        method = plan.scenario.algorithm
        sent = method.messages(plan.shape, common=False)
        assert sent == {"up": size, "down": size}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"local_steps": 2, "delay": 2}, "delay must be less than the 2 local steps"),
        ({"local_steps": 2, "fragments": 0}, "greater than or equal to 1"),
        ({"local_steps": 2, "speeds": [1, 2]}, "Extra inputs are not permitted"),
        ({"fragments": 2}, "must have local_epochs or local_steps"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], says: str) -> None:
    method = {"step_size": 1, "batch": 2, "fragments": 2} | options
    with pytest.raises(ValidationError, match=says):
        StreamingDiloco.model_validate(method)


def test_stages_of_a_written_chain_are_refused_alike() -> None:
    kinds = "fragment_work", "as_moves", "weigh", "mean", "fragment_step", "step"
    chain: list[dict[str, Any]] = [{"kind": kind} for kind in kinds]
    chain[0] |= {"fragments": 2, "delay": 1}
    chain[4] |= {"fragments": 2}
    method = {"step_size": 1, "batch": 2, "chain": chain}
    says = r"chain\.0\.delay must be less than the 1 local steps"
    with pytest.raises(ValidationError, match=says):
        WrittenChain.model_validate(method)
    chain[0]["local_steps"] = 2
    assert WrittenChain.model_validate(method).steps_per_job == 2
