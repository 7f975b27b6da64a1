"""One gradient of the workers of a row, against their gradients one by one."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stalesim.simulator.catalogue.algorithms.federated import joint
from stalesim.simulator.engine import client_work
from stalesim.simulator.files.timeline import NO_SAMPLE, NO_WORKER
from tests.property.test_worlds import worlds
from tests.runs import execute, prepared
from tests.support import SGD, everything

ROUNDS = {"protocol": {"kind": "synchronous"}}
DOUBLE = {"engine": {"precision": "float64"}, "stop": {"commits": 40}}
FED_AVG = {"kind": "fed_avg", "step_size": 0.3, "batch": 11, "local_steps": 1}
UNEVEN = {
    "problem": {"partition": {"kind": "sizes", "weights": "m**3", "clients": 7}},
    "algorithm": {**FED_AVG, "batch": 40},
}
ADAM = {"kind": "adam"}
JOINT: dict[str, tuple[Any, ...]] = {
    "linear": (),
    "network": ({"problem": {"model": {"kind": "dense", "hidden": [9]}}},),
    "more than a block": ({"algorithm": {"batch": 57}},),
    "unequal batches, by size": (UNEVEN,),
    "absent workers": (
        {"protocol": {"deadline": 0.6}},
        {"clients": {"compute": {"law": "expon"}}},
    ),
    "over-selection": ({"protocol": {"wait_for": 2}},),
    "optimiser of the server": ({"algorithm": {"step_size": 0.03, "optimizer": ADAM}},),
    "as moves": ({"algorithm": FED_AVG},),
    "evaluated within blocks of rows": (
        {"evaluate": {"every": {"commits": 3}}, "engine": {"chunk": 16}},
    ),
}
SINGLE: dict[str, tuple[Any, ...]] = {
    "several versions": ({"protocol": {"kind": "t_synchronous", "t": 2}},),
    "one worker": ({"protocol": {"kind": "asynchronous"}},),
    "clipped": ({"algorithm": {"mechanism": {"clip_bound": 1.0, "multiplier": 0.1}}},),
    "compensated": ({"algorithm": {"compensation": {"strength": 0.1}}},),
    "local steps": ({"algorithm": {**FED_AVG, "local_steps": 2}},),
}


@pytest.mark.parametrize("family", JOINT)
def test_rounds_of_one_gradient_are_those_of_single_messages(family: str) -> None:
    changes = (SGD, ROUNDS, DOUBLE, *JOINT[family])
    steps = [{"algorithm": {"step_size": s}} for s in (0.3, 0.1)]
    seeds = [prepared(*changes, seed=s, number=s) for s in (0, 1)]
    alike = [prepared(*changes, s, number=i) for i, s in enumerate(steps)]
    with jax.enable_x64(True):
        found, (end,) = execute([seeds[1]])
        single, (other,) = execute([seeds[1]], "stepwise")
        batched, (first, _) = execute(seeds, "batched")
        shared, (second, _) = execute(alike, "shared")
        alone, _ = execute([alike[1]], "stepwise")
    assert (end["joint"], first["joint"], second["joint"]) == (True, True, True)
    assert not other["joint"]
    for table, name, most in (
        *(("commits", name, 1e-6) for name in ("loss", "gradient_norm", "weight")),
        *(("evaluations", name, 1e-9) for name in ("test_loss", "test_accuracy")),
    ):
        expected = single.column(table, name, 1)
        assert expected.size > 1
        np.testing.assert_allclose(found.column(table, name, 1), expected, most)
        np.testing.assert_allclose(batched.column(table, name, 1), expected, most)
        expected = alone.column(table, name, 1)
        np.testing.assert_allclose(shared.column(table, name, 1), expected, most)


@pytest.mark.parametrize("family", SINGLE)
def test_messages_that_are_needed_one_by_one_are_made_so(family: str) -> None:
    _, (end,) = execute(
        [prepared(SGD, ROUNDS, {"stop": {"commits": 3}}, *SINGLE[family])]
    )
    assert end["joint"] is False


SHAPES = (1, 90), (7, 9), (5, 13), (9, 20)
"""Workers and samples: more than a block of one's own; one block; several, the last of
them with fewer workers, or not. Each shape is compiled."""


@cache
def gradients_of(model: str, loss: str) -> tuple[Any, Any, Any]:
    """Returns a problem, and what gives one gradient of it or those of workers."""
    kinds = {"model": {"kind": model}, "reduction": loss, "l2": 0.01}
    problem = prepared(SGD, ROUNDS, DOUBLE, {"problem": kinds}).problem
    both = (joint.gradient, client_work.gradient_of)
    return problem, *(jax.jit(partial(function, problem)) for function in both)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.sampled_from(["linear", "dense"]),
    st.sampled_from(["mean", "sum"]),
    st.sampled_from(SHAPES),
    st.randoms(use_true_random=False),
)
def test_one_gradient_is_the_weighted_sum_of_gradients(
    model: str, loss: str, shape: tuple[int, int], random: Any
) -> None:
    problem, one_gradient, gradient = gradients_of(model, loss)
    draws = np.random.default_rng(random.getrandbits(32))
    workers, width = shape
    sizes = draws.integers(width + 1, size=workers) * draws.integers(4, size=workers)
    sizes = np.minimum(sizes, width)  # a quarter of them empty, about as many full
    samples = np.full(shape, NO_SAMPLE, np.int32)
    for own, size in zip(samples, sizes, strict=True):
        own[:size] = draws.integers(len(problem.y), size=size)
    factors = np.where(sizes > 0, draws.uniform(0, 2, len(sizes)), 0.0)
    with jax.enable_x64(True):
        weights = problem.registers(1, problem.start(jax.random.key(0)))[0]
        weights = weights + jnp.asarray(draws.normal(size=weights.shape) / 9)
        losses, total = one_gradient(weights, *map(jnp.asarray, (samples, factors)))
        found = [gradient(weights, jnp.asarray(own)) for own in samples]
    np.testing.assert_allclose(losses, [loss for loss, _ in found], 1e-12)
    expected = sum(f * np.asarray(g) for f, (_, g) in zip(factors, found, strict=True))
    np.testing.assert_allclose(total, expected, 1e-9, 1e-12)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(worlds("synchronous", "rounds", "phases", "collect"))
def test_all_workers_of_a_row_have_read_the_same_version(plan: Any) -> None:
    assume(plan.cadence.reads_alike)
    rows, _, _ = everything(plan)
    for workers, read in zip(rows.worker, rows.read_version, strict=True):
        assert len({*read[workers != NO_WORKER].tolist()}) <= 1
