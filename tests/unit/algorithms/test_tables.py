"""Tables of one vector per client: their sums, and limits of their methods."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import ValidationError

from stalesim.simulator.catalogue.algorithms.tables import ClientTable
from stalesim.simulator.scenario.study import merge
from tests.reference.methods_support import BASE, COMMITS
from tests.runs import execute, prepared
from tests.support import Memory

REPLACEMENTS = 200_000
SGD = BASE["algorithm"]


def test_the_sum_stays_the_sum_of_the_entries() -> None:
    """A plain running sum in single precision would be wrong in the third digit."""
    draw = np.random.default_rng(1)
    clients = jnp.asarray(draw.integers(0, 8, REPLACEMENTS))
    values = jnp.asarray(draw.standard_normal((REPLACEMENTS, 2)) * 1e3, jnp.float32)

    def step(carry: Any, new: Any) -> tuple[Any, None]:
        table, plain = carry
        client, value = new
        plain = plain + (value - table.of(client))
        return (table.replaced(client, value), plain), None

    start = (ClientTable.empty(8, jnp.zeros(2, jnp.float32)), jnp.zeros(2, jnp.float32))
    (table, plain), _ = jax.jit(lambda c, x: jax.lax.scan(step, c, x))(
        start, (clients, values)
    )
    exact = np.asarray(table.written(), np.float64).sum(axis=0)
    scale = np.abs(np.asarray(table.written())).sum(axis=0)
    bound = 4 * np.finfo(np.float32).eps * scale
    assert (np.abs(np.asarray(table.sum, np.float64) - exact) <= bound).all()
    assert (np.abs(np.asarray(plain, np.float64) - exact) > bound).any()
    assert int(table.counts.sum()) == REPLACEMENTS


def test_padding_changes_nothing() -> None:
    table = ClientTable.empty(3, jnp.zeros(2))
    table = table.averaged(jnp.int32(1), jnp.array([2.0, 4.0]))
    after = table.averaged(jnp.int32(2**31 - 1), jnp.array([9.0, 9.0]))
    for own, other in (
        (table.written(), after.written()),
        (table.counts, after.counts),
        (table.sum, after.sum),
    ):
        np.testing.assert_array_equal(own, other)


def objectives(*changes: dict[str, Any]) -> np.ndarray:
    tree = BASE
    for change in changes:
        tree = merge(tree, change)
    with jax.enable_x64(True):
        memory: Memory
        memory, _ = execute([prepared(tree, seed=3)])
    return memory.column("evaluations", "objective")


def test_everyone_with_stops_is_synchronous() -> None:
    collect = {"kind": "collect", "count": 5, "repeats": False, "late": "stop"}
    found = objectives({"protocol": collect})
    wanted = objectives({"protocol": {"kind": "synchronous"}})
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert np.ptp(found) > 0.1


def test_with_one_contribution_each_malenia_is_the_mean() -> None:
    equal = {"clients": {"compute": {"law": "constant", "value": 1}}}
    collect = {"kind": "collect", "harmonic_mean": 1, "late": "stop"}
    kind = {"algorithm": SGD | {"kind": "malenia"}}
    found = objectives({"protocol": collect}, equal, kind)
    wanted = objectives({"protocol": collect}, equal)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("rule", [{"count": 5}, {"seconds": 3}, {"quota": 2}])
def test_malenia_is_refused_where_a_client_may_be_missing(
    rule: dict[str, Any],
) -> None:
    tree = merge(BASE, {"protocol": {"kind": "collect"} | rule})
    with pytest.raises(ValidationError, match=r"protocol.harmonic_mean must be given"):
        prepared(merge(tree, {"algorithm": SGD | {"kind": "malenia"}}), seed=3)


def test_a_count_of_one_with_stops_is_the_fastest_client_alone() -> None:
    """Constant times: the others never finish a job."""
    clients = {"compute": {"law": "constant", "value": "m"}}
    collect = {"kind": "collect", "count": 1, "late": "stop"}
    found = objectives({"protocol": collect, "clients": clients})
    assert found.size == COMMITS + 1
    only = {"protocol": collect | {"fastest": 1}, "clients": clients}
    np.testing.assert_allclose(found, objectives(only), rtol=1e-12)


def test_constant_gradients_move_a_table_by_their_mean_whatever_the_speeds() -> None:
    """With l2 = 0 and steps so small that gradients stay what they are at the start.

    Plain SGD follows the fast client. Source: methods.md, section 6.
    """
    data = {"optima": [0, 0, 0, 0, 10], "noise": 0.0, "samples": 1, "dimension": 1}
    data |= {"condition": 1, "heterogeneity": 0.0}
    tiny = {
        "problem": {"data": data, "l2": 0.0},
        "clients": {"compute": {"law": "constant", "value": "m"}},
        "evaluate": {"metrics": ["objective", "gradient_norm_squared"]},
    }
    step = {"step_size": 1e-6, "batch": 1}
    table = {"algorithm": step | {"kind": "ia2sgd"}, "protocol": {"warm_up": True}}
    slope = -np.diff(objectives(tiny, table))
    # F falls by step * |mean gradient|^2 = 1e-6 * 2^2 at each commit.
    np.testing.assert_allclose(slope, 4e-6, rtol=1e-3)
    plain = -np.diff(objectives(tiny, {"algorithm": step}))
    assert plain.mean() < 0.5 * 4e-6


def test_a_table_needs_a_warm_up() -> None:
    with pytest.raises(ValidationError, match="warm_up must be true"):
        prepared(merge(BASE, {"algorithm": SGD | {"kind": "ia2sgd"}}))


@pytest.mark.parametrize(
    ("algorithm", "end"),
    [
        ({}, 1.174),
        ({"weight": {"kind": "inverse_share"}}, 3.667),
        ({"weight": {"kind": "inverse_share", "shares": "1 / (4*m - 2.5)"}}, None),
    ],
)
def test_weights_by_shares_undo_the_bias_towards_fast_clients(algorithm, end) -> None:
    """Times 1, 2 and 7, optima 0, 1 and 10, whose mean is 3.667.

    Plain SGD ends at their mean weighted by speed. Source: methods.md, section 8.
    """
    data = {"clients": 3, "optima": [0, 1, 10], "noise": 0.0, "samples": 1}
    data |= {"dimension": 1, "condition": 1, "heterogeneity": 0.0}
    found = objectives(
        {
            "problem": {
                "data": data,
                "partition": {"clients": 3},
                "l2": 0.0,
            },
            "algorithm": {"step_size": 0.002, "batch": 1, **algorithm},
            "clients": {"compute": {"law": "constant", "value": [1, 2, 7]}},
            "stop": {"commits": 6000},
            "evaluate": {"every": {"commits": 6000}},
        }
    )
    place = 11 / 3 - np.sqrt(2 * (found[-1] - 91 / 9))
    if end is None:  # given shares that are wrong: the weighted mean that they make
        weights = np.array([1, 1 / 2, 1 / 7]) / np.array([1 / 1.5, 1 / 5.5, 1 / 9.5])
        end = weights @ [0, 1, 10] / weights.sum()
        place = 11 / 3 + abs(place - 11 / 3) * np.sign(end - 11 / 3)
    assert place == pytest.approx(end, abs=0.06)
