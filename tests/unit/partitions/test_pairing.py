"""Shares are paired with clients by how long these compute."""

import math
from typing import Any, cast

import numpy as np
import pytest
from pydantic import ValidationError

from stalesim.simulator.engine.of_run import set_up
from stalesim.simulator.engine.setup import RunSetup
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.data.base import Dataset
from stalesim.simulator.problem.partition import Pairing
from stalesim.simulator.scenario.remarks import remarks
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.speeds import median_seconds
from tests.support import SGD, everything, scenario

SIZES = {"kind": "sizes", "clients": 6, "weights": [3, 1, 2, 6, 5, 4]}
LINEAR = {"clients": {"compute": {"law": "constant", "value": "m"}}}
DRAWS = 3000


def ranks(values: Any) -> np.ndarray:
    """Returns ranks of different values, from 0."""
    return np.argsort(np.argsort(values))


def run(partition: dict[str, Any], *changes: dict[str, Any], seed: int = 0) -> RunSetup:
    """Returns the facts of a run with a partition."""
    tree = scenario(
        SGD, {"seed": seed, "problem": {"partition": partition}}, LINEAR, *changes
    )
    return set_up(expand(tree)[0])


@pytest.mark.parametrize("by", ["rows", "target"])
def test_at_correlations_of_one_ranks_are_paired_exactly(by: str) -> None:
    for seed in range(20):
        for correlation in (1, -1):
            pairing = {"correlation": correlation, "by": by}
            facts = run(SIZES | {"pairing": pairing}, seed=seed)
            pools, data = facts.shares.pools, facts.shares.data
            found = [len(p) if by == "rows" else data.y_train[p].mean() for p in pools]
            assert list(ranks(found)[::correlation]) == list(range(6))
            assert facts.shares.num_samples == tuple(map(len, pools))
            np.testing.assert_array_equal(facts.shares.paired["paired_by"], found)


def test_shares_are_those_of_the_partition_and_the_timeline_is_the_same() -> None:
    alone = run(SIZES)
    paired = run(SIZES | {"pairing": {"correlation": -1}})
    each = [{tuple(p) for p in facts.shares.pools} for facts in (alone, paired)]
    assert each[0] == each[1]
    assert alone.shares.num_samples != paired.shares.num_samples
    assert not alone.shares.paired
    for ours, other in zip(
        *(everything(cast(Any, facts.timeline))[:2] for facts in (alone, paired)),
        strict=True,
    ):
        for one, two in zip(ours, other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("rho", [-0.8, -0.3, 0.0, 0.5, 0.9])
@pytest.mark.parametrize("K", [3, 12])
def test_the_mean_of_spearmans_coefficient_is_that_of_normal_samples(
    rho: float, K: int
) -> None:
    """E r = 6 / (pi (K + 1)) (asin rho + (K - 2) asin(rho / 2)).

    A coefficient lies in [-1, 1], so that by Hoeffding's inequality a mean of n of them
    is off by sqrt(2 ln(2e9) / n) with a chance below 1e-9.

    Source: Moran, Rank Correlation and Product-Moment Correlation (1948).
    """
    seconds, measure = np.arange(K)[::-1] ** 2.0, np.arange(float(K))
    found = []
    for seed in range(DRAWS):
        order = Pairing(correlation=rho).order(seconds, measure, seed)
        assert sorted(order) == list(range(K))
        found.append(np.corrcoef(ranks(seconds), ranks(measure[order]))[0, 1])
    known = math.asin(rho) + (K - 2) * math.asin(rho / 2)
    tolerance = math.sqrt(2 * math.log(2e9) / DRAWS)
    assert np.mean(found) == pytest.approx(6 / math.pi / (K + 1) * known, abs=tolerance)


def test_those_that_are_alike_are_in_random_order() -> None:
    """Of two slow clients either has the largest share, in about half of the seeds."""
    seconds, measure = np.array([1.0, 5.0, 5.0]), np.array([1.0, 2.0, 9.0])
    orders = [Pairing(correlation=1).order(seconds, measure, s) for s in range(400)]
    assert all(order[0] == 0 for order in orders)
    # Hoeffding: a share is off by 0.17 with a chance below 1e-9.
    assert np.mean([order[1] == 2 for order in orders]) == pytest.approx(0.5, abs=0.17)


@pytest.mark.parametrize(
    ("clients", "expected"),
    [
        ({"compute": {"law": "constant", "value": [4, 1, 2]}}, [4, 1, 2]),
        ({"world": "linear"}, [1, 2, 3]),
        ({"world": "one_slow"}, [1, 1, 100]),
        (
            {
                "groups": {
                    "slow": {"number": 1, "compute": {"law": "constant", "value": 9}},
                    "fast": {"number": 2, "compute": {"law": "constant", "value": "m"}},
                }
            },
            [9, 1, 2],
        ),
        (
            {
                "compute": {"law": "constant", "value": 2},
                "slowdowns": [{"kind": "named", "clients": [2], "factor": 5}],
            },
            [2, 10, 2],
        ),
    ],
)
def test_seconds_of_worlds(clients: dict[str, Any], expected: list[float]) -> None:
    found = median_seconds(Clients.model_validate(clients), 3, 0)
    assert found.tolist() == expected


def test_medians_are_those_of_the_law() -> None:
    """Of 101 evenly spread numbers the middle one is within 1/101 of a half."""
    law = {"law": "expon", "scale": [1, 10]}
    found = median_seconds(Clients.model_validate({"compute": law}), 2, 3)
    low, high = -np.log(0.5 + 1 / 101), -np.log(0.5 - 1 / 101)
    assert (found / [1, 10] > low).all()
    assert (found / [1, 10] < high).all()


def test_recorded_and_remembering_clients_have_medians() -> None:
    phones = median_seconds(Clients.model_validate({"world": "flash_phones"}), 160, 0)
    assert len({*phones}) > 50
    markov = {
        "law": "autoregressive",
        "of": {"law": "expon", "scale": "m"},
        "correlation": 0.9,
    }
    found = median_seconds(Clients.model_validate({"compute": markov}), 3, 0)
    assert (np.diff(found) > 0).all()


def test_a_share_is_measured_by_its_mean_target() -> None:
    data = Dataset(
        "made", np.zeros((3, 1)), np.array([0, 1, 1]), np.zeros((1, 1)), np.zeros(1),
        2, ("x0",),
    )  # fmt: skip
    assert Pairing(correlation=1, by="target").measured(
        data, [np.array([0, 1]), np.array([2])]
    ).tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"clients": {"compute": {"law": "constant", "value": 1}}},
            "correlation must be 0 where clients are alike, got 1, with 1 s for each",
        ),
        (
            {"timeline": {"replay": "somewhere"}},
            "pairing must be left out where a timeline is replayed, whose clients are",
        ),
        (
            {
                "clients": {
                    "compute": None,
                    "groups": {
                        "a": {"number": 3, "compute": {"law": "expon"}},
                        "b": {
                            "number": 3,
                            "compute": {"law": "expon"},
                            "compute_per": "sample",
                        },
                    },
                }
            },
            "pairing must be left out where groups have different compute_per; remove",
        ),
    ],
)
def test_what_cannot_be_paired_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises((ScenarioError, ValidationError), match=message):
        run(SIZES | {"pairing": {"correlation": 1}}, changes)


def test_shares_that_are_alike_are_refused() -> None:
    with pytest.raises(ScenarioError, match="0 where shares are alike, got -1, with 2"):
        Pairing(correlation=-1).order(np.arange(3.0), np.full(3, 2.0), 0)


REMARK = "computing times and data both go by the client's number"


@pytest.mark.parametrize(
    ("partition", "clients", "said"),
    [
        (SIZES, {}, True),
        (SIZES | {"pairing": {"correlation": 0}}, {}, False),
        (SIZES, {"compute": {"law": "constant", "value": 1}}, False),
        # Drawn by each seed: replicates pair them by chance.
        (SIZES, {"compute": {"law": "constant", "value": {"law": "expon"}}}, False),
        ({"kind": "dirichlet", "clients": 6, "alpha": 1, "weights": None}, {}, False),
        (SIZES | {"weights": "1"}, {}, False),
    ],
)
def test_an_arbitrary_pairing_is_remarked(
    partition: dict[str, Any], clients: dict[str, Any], said: bool
) -> None:
    partition = {k: v for k, v in partition.items() if v is not None}
    tree = SGD | {"problem": SGD["problem"] | {"partition": partition}}
    found = remarks(scenario(tree, LINEAR, {"clients": clients}))
    assert any(REMARK in line for line in found) == said
