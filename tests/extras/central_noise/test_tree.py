"""Noise of DP-FTRL: its model, its law and its account, against a tree of its own."""

import itertools
from typing import Any

import dp_accounting
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from dp_accounting.rdp import RdpAccountant
from pydantic import ValidationError

from stalesim.simulator.catalogue.algorithms.federated.stage import in_program
from stalesim.simulator.catalogue.algorithms.federated.stages import ServerRow
from stalesim.simulator.engine.client_work import OF_SERVER
from stalesim.simulator.engine.kernel import Event
from stalesim.simulator.engine.simulation import key_of
from stalesim.simulator.extras.central_noise.tree import TreeMean
from stalesim.simulator.files.timeline import Kind, StopReason
from stalesim.simulator.parts.errors import ScenarioError, UserError
from stalesim.simulator.privacy import mechanisms
from stalesim.simulator.privacy.ledger import CommitCosts, Ledger
from stalesim.simulator.privacy.releases import Gaussian, Guarantee
from tests.extras.central_noise import twin
from tests.extras.central_noise.test_central_noise import (
    BOUND,
    DELTA,
    PROTOCOLS,
    Z,
    messages,
    plan,
    record,
)
from tests.extras.central_noise.tree_twin import cover, squares, tree_mean
from tests.reference import server_twin
from tests.reference.gossip_support import ran
from tests.reference.methods_support import SEED, assert_like_twin, d, tree_of
from tests.runs import execute

RUNS: dict[str, tuple[int, dict[str, Any]]] = {
    "one tree": (64, {}),
    "restarts": (7, {}),
    "buffers": (16, {"kind": "buffered", "size": 3}),
    "windows of unequal numbers": (16, {"kind": "buffered", "window": 0.7}),
    "rounds": (5, {"kind": "synchronous"}),
}


def trees(commits: int, **noise: Any) -> dict[str, Any]:
    return {"algorithm": {"noise": {"kind": "tree_mean", "commits": commits, **noise}}}


@pytest.mark.parametrize("name", RUNS)
def test_models_are_those_of_an_explicit_tree(name: str) -> None:
    commits, protocol = RUNS[name]
    key = jax.random.fold_in(key_of(SEED), OF_SERVER)

    def normals(commit: int) -> np.ndarray:
        own, zero = jax.random.fold_in(key, commit), jnp.zeros(d, float)
        return np.asarray(mechanisms.gaussian(own, zero, jnp.asarray(1.0))[0])

    chain = [
        {"kind": "local_work"},
        {"kind": "clip", "clip_bound": BOUND},
        {"kind": "weigh", "weight": {"kind": "polynomial"}},
        {"kind": "tree_mean", "multiplier": 0.3, "commits": commits},
        {"kind": "step"},
    ]
    stage = tree_mean(0.3 * BOUND, normals)
    stages = server_twin.STAGES | {"tree_mean": ("commit", stage)}
    tree = tree_of(protocol, {"kind": "chained", "chain": chain})
    assert_like_twin(tree, stages=stages)


@pytest.mark.parametrize("commits", [64, 13])
def test_noise_of_a_sum_has_a_node_for_each_binary_digit(commits: int) -> None:
    size, steps = 4000, 40
    written = TreeMean.model_construct(multiplier=1.0, commits=commits)
    facts = {"_scale": jnp.float32(Z), "_commits": jnp.int32(commits)}
    stage = in_program(written, (), **facts)
    zero, none = jnp.zeros(size, jnp.float32), jnp.zeros(1, jnp.int32)

    def drawn(version: jax.Array) -> jax.Array:
        kind = jnp.int32(Kind.COMMIT)
        event = Event(kind, none, none, version, none, none, none[0], none[None])
        key, one = jax.random.key(3), jnp.float32(1)
        row: Any = ServerRow(None, event, zero, one, one, one, key)  # pyright: ignore
        return stage.drawn(row, zero)

    noise = np.asarray(jax.vmap(drawn)(jnp.arange(steps)), float)
    sums = np.cumsum(noise, axis=0)
    for t in range(1, steps + 1):
        whole, rest = divmod(t, commits)
        digits = whole * commits.bit_count() + rest.bit_count()
        low, high = scipy.stats.chi2.ppf([1e-8, 1 - 1e-8], size)  # 80: once in 10^6
        assert low < (sums[t - 1] ** 2).sum() / (digits * Z**2) < high
    # Nodes are apart: of two sums, the covariance is the noise of what they share.
    for s, t in itertools.combinations(range(1, min(steps, commits) + 1), 2):
        shared = len({*cover(s)} & {*cover(t)})
        found = sums[s - 1] @ sums[t - 1] / size / Z**2
        assert abs(found - shared) < 6 * np.sqrt((5 * 5 + shared**2) / size)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_epsilon_is_that_of_the_nodes_that_a_client_is_in(name: str) -> None:
    made = plan(PROTOCOLS[name], trees(12))
    memory, (end,) = execute([made])
    sent = messages(record(made)[1])
    (*_, last) = memory.tables["privacy"]
    counts = [squares(sent, k, 12) for k in last["client"]]
    assert last["releases"].tolist() == counts
    single = [squares(sent, k, 1) for k in last["client"]]
    assert all(a > b for a, b in zip(counts, single, strict=True) if b)
    expected = [
        float(twin.epsilon([(0, commit) for commit in range(count)], 0, Z, DELTA))
        for count in counts
    ]
    np.testing.assert_allclose(last["epsilon"], expected, rtol=1e-9)
    assert end["privacy"]["formal"]
    assert "a node of the tree" in end["privacy"]["why"]


@pytest.mark.parametrize("steps", [1, 2, 5, 64, 100, 1600])
def test_one_contribution_costs_what_dp_accounting_says(steps: int) -> None:
    """The first of a tree costs most, and no other more."""
    found = [CommitCosts(1, steps).add(*_once(t))[0] for t in range(1, steps + 1)]
    assert max(found) == found[0]
    assert min(found) >= 1
    ledger = Ledger(
        [Guarantee(Gaussian(Z), True, "", "", "", by_commit=steps)], ["rdp"], DELTA
    )
    ledger.evaluate(2.0)
    ledger.apply(*_once(1), np.ones(1))
    (entry,) = ledger.entries()
    event = dp_accounting.SingleEpochTreeAggregationDpEvent(Z, steps)
    relation = dp_accounting.NeighboringRelation.REPLACE_SPECIAL
    other = RdpAccountant(neighboring_relation=relation)
    other.compose(event)
    np.testing.assert_allclose(entry["epsilon"], other.get_epsilon(DELTA), rtol=1e-9)


@pytest.mark.parametrize(("z", "published"), [(1.13, 19.74), (8.83, 2.04)])
def test_epsilons_of_the_paper_come_from_the_same_count(
    z: float, published: float
) -> None:
    """StackOverflow: 1,600 rounds, a client in one of them, delta 1e-6.

    The numbers are in dp-accounting's `test_compute_eps_tree`. The paper converts Renyi
    divergences by Mironov (2017), Proposition 3, in place of a tighter bound.
    """
    guarantee = Guarantee(Gaussian(z), True, "", "", "", by_commit=1600)
    ledger = Ledger([guarantee], ["rdp", "gdp"], 1e-6)
    ledger.evaluate(2.0)
    ledger.apply(*_once(1), np.ones(1))
    (entry,) = ledger.entries()
    rho = entry["releases"][0] / (2 * z**2)
    assert rho + 2 * np.sqrt(rho * np.log(1e6)) == pytest.approx(published, abs=0.006)
    rdp, gdp = entry["epsilon"]
    assert gdp < rdp < published


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("commits", [1, 6, 16])
def test_costs_are_squares_in_nodes_whatever_the_pieces(
    pieces: int, commits: int
) -> None:
    generator = np.random.default_rng(commits)
    commit = np.sort(generator.integers(1, 40, 150))
    client = generator.integers(0, 4, 150)
    costs, found = CommitCosts(4, commits), np.zeros(4, int)
    for some in np.array_split(np.arange(150), pieces):
        kept = CommitCosts(4, commits)
        kept.restore(costs.state())
        np.add.at(found, client[some], kept.add(client[some], commit[some]))
        costs = kept
    sent = list(zip(client.tolist(), commit.tolist(), strict=True))
    assert found.tolist() == [squares(sent, k, commits) for k in range(4)]


def test_a_tree_of_one_commit_is_noise_of_the_mean() -> None:
    plain, tree = (ran([plan(change)])[0].model for change in ({}, trees(1)))
    np.testing.assert_array_equal(plain, tree)
    larger = ran([plan(trees(8))])[0].model
    assert np.abs(larger - plain).max() > 0.01


def test_runs_of_other_trees_share_a_program() -> None:
    plans = [plan(trees(commits)) for commits in (3, 32)]
    together = ran(plans, "batched")
    for each, found in zip(plans, together, strict=True):
        alone = ran([each])[0].model
        np.testing.assert_allclose(found.model, alone, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("player", ["simpy", "fastest"])
def test_a_budget_ends_the_run_before_a_commit_that_exceeds_it(player: str) -> None:
    free, limited = (
        plan({"stop": {"commits": 400}}, trees(16), change)
        for change in (
            {},
            {"privacy": {"budget": 12.0}, "timeline": {"player": player}},
        )
    )
    _, jobs, reason = record(limited)
    assert reason is StopReason.PRIVACY

    def most(sent: list[tuple[int, int]]) -> float:
        clients = range(limited.timeline.num_clients)
        count = max(squares(sent, k, 16) for k in clients)
        return float(twin.epsilon([(0, c) for c in range(count)], 0, Z, DELTA))

    sent = messages(jobs)
    last = max(commit for _, commit in sent)
    longer = messages(record(free)[1])
    assert most(sent) <= 12 < most([each for each in longer if each[1] <= last + 1])


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "commits that are lost": (
        trees(16, secure={"form": "enclave", "group": 9, "least": 2}),
        "secure must have least 1 with tree_mean",
    ),
    "no commits": (trees(0), "commits"),
    "secret draws": (
        PROTOCOLS["synchronous"]
        | {
            "clients": {"selection": {"in_flight": 3, "by": "uniform"}},
            "privacy": {"accountants": ["gdp", "secret_cohort"]},
            "algorithm": {
                **PROTOCOLS["synchronous"]["algorithm"],
                **trees(4)["algorithm"],
            },
        },
        "must be without 'secret_cohort'",
    ),
    "weights above 1": (
        {
            "algorithm": trees(4)["algorithm"]
            | {"weigh": {"weight": {"kind": "inverse_share"}}}
        },
        "weight must be at most 1",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name: str) -> None:
    change, told = REFUSED[name]
    with pytest.raises((ValidationError, ScenarioError, UserError), match=told):
        execute([plan(change)])


def _once(commit: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(1, int), np.array([commit])
