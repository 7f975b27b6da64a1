"""Methods that must coincide, and mistakes of public simulators that are not made here.

Where programs differ, equal numbers may differ in their last bits; where only numbers
do, everything is equal bit for bit.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.engine.kernel import TOGETHER, norm, summed
from stalesim.simulator.scenario.study import merge
from tests.runs import execute, prepared, rows_of
from tests.support import SGD, Memory

DOUBLE = {"engine": {"precision": "float64"}}
BASE = merge(SGD, {"stop": {"commits": 60}, "evaluate": {"every": {"commits": 10}}})
ALONE = {"problem": {"partition": {"kind": "iid", "clients": 1}}}
QUIET = {"noise": "spherical_laplace", "clip_bound": 1e6, "epsilon": 1e300}


def run(*changes: dict[str, Any], seed: int = 3) -> Memory:
    """Executes a run in double precision."""
    with jax.enable_x64(True):
        memory, _ = execute([prepared(BASE, DOUBLE, *changes, seed=seed)])
    return memory


def losses(memory: Memory) -> np.ndarray:
    return memory.column("evaluations", "test_loss")


def test_one_client_alone_is_plain_sgd() -> None:
    alone = losses(run(ALONE))
    central = losses(run(ALONE, {"protocol": {"kind": "centralised"}}))
    np.testing.assert_array_equal(alone, central)
    assert np.unique(alone).size == alone.size


@pytest.mark.parametrize("clip", ["mean", "sample"])
def test_no_noise_and_no_clipping_is_not_private(clip: str) -> None:
    # The step of AUDP is given, or it would follow the bound.
    shared = {"kind": "audp", "step_size": 0.05, "batch": 11, "clip": clip, **QUIET}
    private = losses(run({"algorithm": shared}))
    public = losses(
        run({"algorithm": {"kind": "asgd", "step_size": 0.05, "batch": 11}})
    )
    if clip == "mean":
        np.testing.assert_array_equal(private, public)
    # A sum of single gradients is rounded in another order.
    np.testing.assert_allclose(private, public, rtol=1e-12)


def test_a_clients_copy_does_not_change_when_the_server_steps() -> None:
    """Aliasing: a copy that follows the server has a staleness of zero in effect."""
    slow = {"clients": {"compute": {"law": "constant", "value": "m"}}}
    probe = {"probe": {"every": 1, "what": ["state"]}}
    memory = run(slow, probe)
    with jax.enable_x64(True):
        rows, _ = rows_of(prepared(BASE, DOUBLE, slow, probe, seed=3))
    states = [np.asarray(p["state"][0]) for p in memory.tables["probes"]]
    # What a row read is what the first row that read the same version had.
    first: dict[int, np.ndarray] = {}
    for state, version in zip(states, rows.read_version[:, 0], strict=True):
        np.testing.assert_array_equal(state, first.setdefault(int(version), state))
    assert (rows.version - rows.read_version[:, 0]).max() > 5
    distinct = {state.tobytes() for state in first.values()}
    assert len(distinct) == len(first)


@pytest.mark.parametrize(
    "shape",
    [(1,), (5,), (TOGETHER,), (TOGETHER + 1,), (50_003,), (), (10, 785), (3, 9)],
)
def test_sums_are_those_of_products_with_ones(shape: tuple[int, ...]) -> None:
    both = np.random.default_rng(len(shape)).normal(size=(2, *shape))
    one, other = both.astype(np.float32)
    expected = np.sum((one.astype(float) - other) ** 2)
    found = summed(lambda a, b: (a - b) ** 2, jnp.asarray(one), jnp.asarray(other))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    table = norm({"a": jnp.asarray(one), "b": jnp.ones(2)})
    np.testing.assert_allclose(table, np.sqrt(np.sum(one.astype(float) ** 2) + 2), 1e-6)
    added = [
        sum_of.invars[0].aval.size
        for sum_of in jax.make_jaxpr(norm)(jnp.asarray(one)).eqns
        if sum_of.primitive.name == "reduce_sum"
    ]
    assert max(added) <= max(TOGETHER, one.size // TOGETHER)
