"""What a worker's noisy gradients release, and what they cost, alone and together."""

import math
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.algorithms.decentralised.part import Adp2sgd
from stalesim.simulator.engine.of_run import set_up
from stalesim.simulator.files.timeline import Kind, Outcome, StopReason
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.privacy.accountants import Accountant, Lemma2, Theorem2
from stalesim.simulator.privacy.adp2sgd import (
    GossipSetting,
    achieved,
    best_order,
    least_noise,
)
from stalesim.simulator.privacy.gossip_noise import (
    Budget,
    Noise,
    lacking,
    release_of,
    sigma_of,
)
from stalesim.simulator.privacy.ledger import Ledger, epsilon
from stalesim.simulator.privacy.releases import (
    Gaussian,
    Guarantee,
    Release,
)
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run, merge
from tests.runs import execute, prepared
from tests.support import VAFL, Memory, everything
from tests.unit.test_gossip_runs import BASE, K

DELTA = 1e-5
SAMPLES = (60, 50, 80, 50)
BATCH = 5
BUDGET = Budget(epsilon=12, iterations=1000)


def noise(**options: Any) -> Noise:
    return Noise.model_validate({"sigma": 4.0, "clip": "sample", **options})


def for_budget(**options: Any) -> Noise:
    return noise(sigma=None, budget=BUDGET, **options)


def adp2sgd(noise: Noise, **options: Any) -> Adp2sgd:
    return Adp2sgd(step_size=0.1, batch=BATCH, noise=noise, **options)


def promised(config: Adp2sgd, num_samples: tuple[int, ...] = SAMPLES, batch: int = 5):
    return config.guarantees(num_samples, batch, 650)


def cost(
    kind: type[Accountant], *releases: tuple[int, Release], delta: float = DELTA
) -> float:
    accountant = kind()
    for count, event in releases:
        accountant.release(count, event)
    return accountant.epsilon(delta)


# noise


def test_a_stated_noise_is_taken_as_it_stands() -> None:
    assert sigma_of(noise(sigma=0.3), SAMPLES, BATCH) == 0.3
    assert sigma_of(noise(sigma=0.0, on="mean"), SAMPLES, BATCH) == 0


@pytest.mark.parametrize("bound", [1.0, 2.5])
def test_a_budgets_noise_is_theorem_2s_for_the_smallest_worker(bound: float) -> None:
    setting = GossipSetting(4, 50, BATCH, 1000, bound)
    best = least_noise(setting, 12)[0]
    assert best is not None
    mean = sigma_of(for_budget(on="mean", bound=bound), SAMPLES, BATCH)
    whole = sigma_of(for_budget(bound=bound), SAMPLES, BATCH)
    assert mean == best.sigma_mean
    assert whole == best.sigma_sum == pytest.approx(BATCH * mean, rel=1e-15)
    # By hand: sigma^2 = 20 G^2 T alpha / (K^2 n^2 mu epsilon), Theorem 2.
    alpha = math.log(1e5) / ((1 - best.mu) * 12) + 1
    square = 20 * bound**2 * 1000 * alpha / (4**2 * 50**2 * best.mu * 12)
    assert mean == pytest.approx(math.sqrt(square), rel=1e-12)
    # As printed, what is of the mean is put on the sum.
    for on in ("sum", "mean"):
        paper = for_budget(on=on, sensitivity="paper", bound=bound)
        assert sigma_of(paper, SAMPLES, BATCH) == mean


@pytest.mark.parametrize("sensitivity", ["consistent", "paper"])
@pytest.mark.parametrize("on", ["sum", "mean"])
def test_a_budget_is_met_by_all_steps_together(on: str, sensitivity: str) -> None:
    config = for_budget(on=on, sensitivity=sensitivity)
    release = release_of(config, sigma_of(config, SAMPLES, BATCH), 50, BATCH)
    assert release.sampling_ratio == BATCH / 50
    together = Gaussian(release.multiplier, release.sampling_ratio / 4)
    spent = cost(Theorem2, (1000, together))
    # The grid of mu has steps of 0.01; at its optimum epsilon hardly depends on it.
    assert 0.99 * 12 < spent <= 12 * (1 + 1e-12)


# releases


PROVED = "the noise is for the l2 sensitivity of clipped samples"


@pytest.mark.parametrize(
    ("options", "moves", "lacks"),
    [
        ({}, 2.0, ()),
        ({"on": "mean"}, 2 / 5, ()),
        ({"sensitivity": "paper"}, 2 / 5, ("A-02",)),
        ({"on": "mean", "sensitivity": "paper"}, 2 / 5, ()),
        ({"bound": 3.0}, 6.0, ()),
        ({"on": "mean", "bound": 3.0}, 6 / 5, ()),
        ({"clip": "none"}, 2.0, ("G = 1 is assumed (A-03)",)),
        ({"clip": "none", "sensitivity": "paper"}, 2 / 5, ("A-03", "A-02")),
    ],
)
def test_a_release_is_noise_over_what_a_replaced_sample_moves(
    options: dict[str, Any], moves: float, lacks: tuple[str, ...]
) -> None:
    on, clip = options.get("on", "sum"), options.get("clip", "sample")
    assert len(lacking(noise(**options))) == len(lacks)
    for found, n in zip(promised(adp2sgd(noise(**options))), SAMPLES, strict=True):
        assert isinstance(found.release, Gaussian)
        assert found.release.multiplier == pytest.approx(4 / moves, rel=1e-15)
        assert found.release.sampling_ratio == BATCH / n
        assert found.mechanism == f"Gaussian on the {on}, clip: {clip}"
        assert found.formal == (not lacks)
        assert found.why.startswith(f"{PROVED}, but " if lacks else PROVED)
        assert all(words in found.why for words in lacks)
        assert found.why.isprintable()


def test_without_noise_nothing_is_protected() -> None:
    found = promised(adp2sgd(noise(sigma=0.0)))
    assert found[0].release == Gaussian(0.0, BATCH / 60)
    for name in ("lemma2", "theorem2", "rdp"):
        assert epsilon(found[0].release, 1, name, DELTA) == math.inf


def test_only_a_fresh_draw_of_distinct_samples_amplifies() -> None:
    # 5 divides 60, 50 and 80, and not 51: there a batch may end one epoch and begin
    # the next.
    found = promised(adp2sgd(noise(), sampling="shuffled"), (60, 51))
    assert [g.release for g in found] == [Gaussian(2.0), Gaussian(1.0)]
    assert all(g.formal for g in found)
    assert found[0].why == PROVED
    assert "may be 2 times (sampling: shuffled)" in found[1].why
    again = promised(adp2sgd(noise(), sampling="replacement"))
    assert {g.release for g in again} == {Gaussian(2 / BATCH)}
    assert "may be 5 times (sampling: replacement)" in again[0].why
    paper = noise(sensitivity="paper", clip="none")
    unproved = promised(adp2sgd(paper, sampling="replacement"))[0]
    assert (unproved.release, unproved.formal) == (Gaussian(2.0), False)
    common = promised(adp2sgd(noise(), samples="common"))
    assert not any(g.formal for g in common)
    assert "all clients send of the same samples" in common[0].why
    # A batch may be larger than what it is drawn from.
    (large,) = promised(adp2sgd(noise(), sampling="replacement"), (10,), 20)
    assert "may be 20 times" in large.why
    assert large.release == Gaussian(2 / 20)


# accountants

OWN = [(50, 5, 40, 2.0), (287, 8, 1000, 1.3), (3125, 32, 3663, 2.5), (400, 1, 9, 1.3)]


@pytest.mark.parametrize(("n", "batch", "steps", "multiplier"), OWN)
def test_both_are_those_of_a_worker_alone_and_of_all_as_published(
    n: int, batch: int, steps: int, multiplier: float
) -> None:
    own = GossipSetting(1, n, batch, steps)
    found = cost(Lemma2, (steps, Gaussian(multiplier, batch / n)))
    assert best_order(own, multiplier).hold == (found < math.inf)
    assert found == pytest.approx(achieved(own, multiplier), rel=1e-12)
    setting = GossipSetting(16, n, batch, 16 * steps)
    together = achieved(setting, multiplier)
    assert together < math.inf
    found = cost(Theorem2, (16 * steps, Gaussian(multiplier, batch / n / 16)))
    assert found == pytest.approx(together, rel=1e-12)


def test_lemma_2_is_used_only_where_it_holds() -> None:
    enough = math.sqrt(1.5) * (1 + 1e-12)
    assert cost(Lemma2, (1, Gaussian(enough, 0.01))) < math.inf
    assert cost(Lemma2, (1, Gaussian(math.sqrt(1.5) * 0.999, 0.01))) == math.inf
    # The largest order, log(1 / (gamma (1 + z^2))), is to be above 1.
    largest = math.sqrt(1 / (0.01 * math.e) - 1)
    assert cost(Lemma2, (1, Gaussian(largest * 0.99, 0.01))) < math.inf
    assert cost(Lemma2, (1, Gaussian(largest * 1.01, 0.01))) == math.inf
    assert cost(Lemma2, (9, Gaussian(2.0, 0.01)), (1, Gaussian(1.0, 0.01))) == math.inf
    # Without a draw it needs no conditions.
    assert cost(Lemma2, (1, Gaussian(0.5))) < math.inf
    assert cost(Lemma2, (1, Gaussian(0.0))) == math.inf


def test_without_a_draw_it_is_the_least_over_all_orders() -> None:
    # min over alpha of s alpha + log(1 / delta) / (alpha - 1), at s = 30 / (2 z^2)
    s = 30 / (2 * 4.0**2)
    tail = math.log(1e5)
    expected = s + 2 * math.sqrt(s * tail)
    assert cost(Lemma2, (30, Gaussian(4.0))) == pytest.approx(expected, rel=1e-12)


def test_unequal_releases_are_added_at_one_order() -> None:
    releases = (300, Gaussian(2.0, 0.01)), (200, Gaussian(3.0, 0.02)), (1, Gaussian(9))
    slope = 300 * 5 * 0.01**2 / 4 + 200 * 5 * 0.02**2 / 9 + 1 / (2 * 81)
    largest = min(-math.log(0.01 * 5), -math.log(0.02 * 10))
    orders = np.linspace(1, largest, 100_001)[1:]
    every = slope * orders + math.log(1e5) / (orders - 1)
    assert cost(Lemma2, *releases) == pytest.approx(every.min(), rel=1e-8)
    assert cost(Lemma2, *releases[::-1]) == cost(Lemma2, *releases)


# the ledger


def promise(multiplier: float, ratio: float) -> Guarantee:
    return Guarantee(Gaussian(multiplier, ratio), True, "because", "noise", "a sample")


def test_theorem_2_counts_what_all_clients_have_sent() -> None:
    made = [promise(1.5, 0.02), promise(1.5, 0.02), promise(1.5, 0.025)]
    book = Ledger(made, ["lemma2", "theorem2"], DELTA)
    sent = [(1.0, 0, 20), (2.0, 1, 30), (3.0, 2, 50)]
    totals = [20, 50, 100]
    for time, client, count in sent:
        book.evaluate(time)
        book.send(np.full(count, client), np.full(count, time))
    for entry, total in zip(book.entries(), totals, strict=True):
        own = [count if time <= entry["time"][0] else 0 for time, _, count in sent]
        assert entry["releases"].tolist() == np.repeat(own, 2).tolist()
        assert entry["formal"].tolist() == [True, False] * 3
        found = entry["epsilon"].reshape(3, 2)
        for client, count in enumerate(own):
            release = made[client].release
            assert isinstance(release, Gaussian)
            assert found[client, 0] == cost(Lemma2, (count, release))
            together = Gaussian(1.5, release.sampling_ratio / 3)
            assert found[client, 1] == cost(Theorem2, (total, together))
        assert found[1, 1] == found[0, 1] < found[2, 1]


# runs

PRIVATE = {
    "problem": {"data": {"limit": None}},
    "algorithm": {
        "kind": "adp2sgd",
        "step_size": 0.1,
        "batch": 8,
        "noise": {"sigma": 2.6, "clip": "sample"},
    },
    "privacy": {"budget": 7.5, "accountants": ["lemma2", "theorem2"]},
    "stop": {"commits": 5000},
    "evaluate": {"every": {"commits": 60}},
}
PROTOCOLS = {
    "average_then_step": {},
    "step_then_average": {"order": "step_then_average"},
    "during": {"order": "during", "initiator": "every"},
    "all": {"average": "all"},
    "neighbours": {"average": "neighbours", "graph": {"kind": "ring"}},
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_run_ends_before_a_worker_exceeds_its_budget(name: str) -> None:
    latency = {"upload": {"latency": {"law": "expon", "scale": 0.5}}}
    protocol = {"protocol": PROTOCOLS[name], "clients": latency}
    tree = merge(merge(merge(VAFL, BASE), PRIVATE), protocol)
    plan = set_up(Run(0, "base", {}, 0, 1, Scenario.model_validate(tree)))
    quota = plan.timeline.quota.each
    for n, most in zip(plan.shares.num_samples, quota, strict=True):
        release = Gaussian(1.3, 8 / n)
        assert cost(Lemma2, (most, release)) <= 7.5
        assert cost(Lemma2, (most + 1, release)) > 7.5
    rows, jobs, reason = everything(plan.timeline)
    assert reason is StopReason.PRIVACY
    steps = np.bincount(rows.worker[rows.kind == Kind.COMMIT, 0], minlength=K)
    assert (steps <= quota).all()
    assert (steps == quota).any()
    sent = ~np.isnan(jobs.sent_time)
    assert (sent == (jobs.outcome == Outcome.APPLIED)).all()
    assert np.bincount(jobs.client[sent], minlength=K).tolist() == steps.tolist()


def table(memory: Memory, accountant: str) -> dict[str, np.ndarray]:
    """Returns the last evaluation's rows of one accountant."""
    part = memory.tables["privacy"][-1]
    kept = np.array(part["accountant"].words)[part["accountant"].codes] == accountant
    return {
        name: np.asarray(part[name])[kept]
        for name in ("client", "releases", "epsilon", "formal", "delta")
    }


def test_a_runs_tables_say_what_was_spent() -> None:
    plan = prepared(BASE, PRIVATE)
    memory, (end,) = execute([plan])
    assert end["stop"] == "privacy"
    assert end["privacy"]["formal"]
    assert end["privacy"]["accountants"] == ["lemma2", "theorem2"]
    assert end["privacy"]["mechanism"] == "Gaussian on the sum, clip: sample"
    steps = memory.column("clients", "num_applied")
    assert steps.sum() == end["commits"]
    alone, together = table(memory, "lemma2"), table(memory, "theorem2")
    for found in (alone, together):
        assert found["client"].tolist() == [*range(K)]
        assert found["releases"].tolist() == steps.tolist()
        assert (found["delta"] == DELTA).all()
    assert alone["formal"].all()
    assert not together["formal"].any()
    assert (alone["epsilon"] <= 7.5).all()
    for client, n in enumerate(plan.shares.num_samples):
        own, all_ = Gaussian(1.3, 8 / n), Gaussian(1.3, 8 / n / K)
        assert alone["epsilon"][client] == cost(Lemma2, (int(steps[client]), own))
        total = int(steps.sum())
        assert together["epsilon"][client] == cost(Theorem2, (total, all_))
    noisy = memory.column("commits", "noise_norm")
    made = ~np.isnan(memory.column("commits", "loss"))
    # 650 normal numbers of deviation 2.6 / 8: the norm's own deviation is 0.23.
    expected = 2.6 / 8 * math.sqrt(650)
    np.testing.assert_allclose(noisy[made].mean(), expected, atol=0.1)


def test_a_budget_below_one_step_is_refused() -> None:
    budget = {"privacy": {"budget": 1.0}}
    with pytest.raises(ScenarioError, match="must allow one message of every client"):
        prepared(BASE, PRIVATE, budget)
