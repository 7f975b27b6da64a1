"""Noise of the server: its account, its law and its cost against blind twins."""

import itertools
from typing import Any, Literal

import numpy as np
import pytest
import scipy.stats
from pydantic import ValidationError

from stalesim.simulator.catalogue.algorithms.federated.chain import (
    AttackPart,
    WrittenChain,
)
from stalesim.simulator.catalogue.algorithms.federated.clients import Clip, LocalWork
from stalesim.simulator.catalogue.algorithms.federated.server import ServerStep, Weigh
from stalesim.simulator.engine.simulation import Prepared
from stalesim.simulator.extras.central_noise.part import ZEROED, NoisyMean
from stalesim.simulator.extras.central_noise.secure_aggregation import SecureAggregation
from stalesim.simulator.files.timeline import NO_COMMIT, Jobs, Rows, StopReason
from stalesim.simulator.parts.base import LocatedError
from stalesim.simulator.parts.errors import ScenarioError, UserError
from stalesim.simulator.privacy.budgets import calibrated
from stalesim.simulator.privacy.cohort import of_client, of_zeros
from stalesim.simulator.privacy.ledger import CommitCosts, Ledger
from stalesim.simulator.privacy.parts import make
from stalesim.simulator.privacy.releases import Gaussian, Guarantee
from stalesim.simulator.scenario.study import merge
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from tests.extras.central_noise import twin
from tests.reference.gossip_support import ran
from tests.runs import execute, prepared
from tests.support import SGD, everything, scenario

Z, BOUND, DELTA = 2.5, 0.7, 1e-5
ENCLAVE: dict[str, Any] = {"form": "enclave", "group": 9}
BASE = merge(
    SGD,
    {
        "engine": {"precision": "float64", "chunk": 16},
        "clients": {"compute": {"law": "expon", "scale": "m"}},
        "protocol": {"kind": "buffered", "size": 4},
        "stop": {"commits": 30},
        "evaluate": {"every": {"commits": 10}, "metrics": ["objective"]},
        "privacy": {"accountants": ["gdp"], "delta": DELTA},
    },
)
CHAIN: dict[str, Any] = {
    "moves": True,
    "weigh": {"weight": {"kind": "polynomial"}},
    "noise": {"multiplier": Z},
}
"""What `chained` makes FedBuff of."""
PLAIN = {"algorithm": {"moves": False, "weigh": {"weight": {"kind": "constant"}}}}
"""What it makes SGD of."""
PROTOCOLS: dict[str, dict[str, Any]] = {
    "buffered": {},
    "window": {"protocol": {"size": None, "window": 2.0}},
    "synchronous": PLAIN | {"protocol": {"kind": "synchronous", "size": None}},
    "asynchronous": PLAIN | {"protocol": {"kind": "asynchronous", "size": None}},
    "collect": PLAIN | {"protocol": {"kind": "collect", "size": None, "count": 6}},
}


def within(tree: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Returns a tree with entries replaced, whatever their kind; None removes one."""
    found = dict(tree)
    for key, value in change.items():
        there = found.get(key)
        nested = isinstance(value, dict) and isinstance(there, dict)
        found[key] = within(there or {}, value) if nested else value
    return {key: value for key, value in found.items() if value is not None}


def chained(
    moves: bool,
    weigh: dict[str, Any],
    noise: dict[str, Any],
    received: tuple[dict[str, Any], ...] = (),
) -> dict[str, Any]:
    """Returns FedBuff, or without moves SGD, with noise of the server."""
    chain = [{"kind": "local_work"}, {"kind": "clip", "clip_bound": BOUND}]
    chain += [{"kind": "as_moves"}] * moves
    chain += [*received, {"kind": "weigh", **weigh}, {"kind": "noisy_mean"} | noise]
    step = {"kind": "step"} | ({"step_size": 0.5} if moves else {})
    return {"kind": "chained", "step_size": 0.2, "batch": 7, "chain": [*chain, step]}


def plan(*changes: dict[str, Any], seed: int = 1) -> Prepared:
    tree = {**BASE, "algorithm": CHAIN}
    for change in changes:
        tree = within(tree, change)
    return prepared(tree | {"algorithm": chained(**tree["algorithm"])}, seed=seed)


def noised(**options: Any) -> dict[str, Any]:
    return {"algorithm": {"noise": options}}


def record(made: Prepared) -> tuple[Rows, Jobs, StopReason | None]:
    assert isinstance(made.timeline, SimulatedTimeline)
    return everything(made.timeline)


def messages(jobs: Jobs) -> list[tuple[int, int]]:
    there = jobs.commit != NO_COMMIT
    return list(zip(jobs.client[there], jobs.commit[there], strict=True))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_epsilon_is_that_of_the_commits_that_a_client_is_in(name: str) -> None:
    made = plan(PROTOCOLS[name])
    memory, (end,) = execute([made])
    _, jobs, _ = record(made)
    sent = messages(jobs)
    often = max(sent.count(each) for each in set(sent))
    assert (often > 1) == (name in ("buffered", "window", "collect"))
    (*_, last) = memory.tables["privacy"]
    expected = [float(twin.epsilon(sent, k, Z, DELTA)) for k in last["client"]]
    np.testing.assert_allclose(last["epsilon"], expected, rtol=1e-9)
    assert end["privacy"]["protects"] == ZEROED
    assert end["privacy"]["formal"]
    assert last["formal"].all()


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_costs_are_squares_of_messages_whatever_the_pieces(pieces: int) -> None:
    generator = np.random.default_rng(pieces)
    commit = np.sort(generator.integers(0, 12, 200))
    client = generator.integers(0, 4, 200)
    costs, found = CommitCosts(4), np.zeros(4, int)
    for some in np.array_split(np.arange(200), pieces):
        kept = CommitCosts(4)
        kept.restore(costs.state())
        np.add.at(found, client[some], kept.add(client[some], commit[some]))
        costs = kept
    expected = [
        sum(int(((client == k) & (commit == c)).sum()) ** 2 for c in range(12))
        for k in range(4)
    ]
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("name", "rtol"),
    [
        ("gdp", 1e-12),
        ("rdp", 1e-12),
        ("pld", 2e-3),  # each convolution rounds losses up by at most 1e-4
    ],
)
def test_m_messages_in_a_commit_are_as_m_squared_commits(
    name: str, rtol: float
) -> None:
    ledger = Ledger(
        [Guarantee(Gaussian(Z), True, "", "", ZEROED, by_commit=True)], [name], DELTA
    )
    ledger.evaluate(9.0)
    commit = np.repeat([1, 2, 3, 4], [1, 3, 2, 1])
    ledger.apply(np.zeros(7, int), commit, commit.astype(float))
    (entry,) = ledger.entries()
    mixed = make(name)
    for m in (1, 3, 2, 1):
        mixed.release(1, Gaussian(Z / m))
    assert entry["releases"] == [15]
    np.testing.assert_allclose(entry["epsilon"], mixed.epsilon(DELTA), rtol=rtol)


@pytest.mark.parametrize("name", ["buffered", "synchronous", "window"])
def test_the_noise_of_a_commit_is_what_the_ledger_says(name: str) -> None:
    """The model differs from that without noise by step times z C / K times N(0, I)."""
    total, size = 0.0, 0
    for seed in range(1, 5):
        changes = PROTOCOLS[name], {"stop": {"commits": 1}}
        noisy = plan(*changes, seed=seed)
        bare = plan(*changes, noised(multiplier=0.0), seed=seed)
        a, b = (ran([each])[0].model.reshape(-1) for each in (noisy, bare))
        _, jobs, _ = record(noisy)
        count = len(messages(jobs))
        step = 0.2 * 0.5 if name != "synchronous" else 0.2
        drawn = (a - b) / (step * Z * BOUND / count)
        total, size = total + float(drawn @ drawn), size + drawn.size
    low, high = scipy.stats.chi2.ppf([5e-7, 1 - 5e-7], size)  # fails once in a million
    assert low < total < high


def test_without_noise_it_is_the_mean() -> None:
    stages = [{"kind": "local_work"}, {"kind": "clip", "clip_bound": BOUND}]
    stages += [{"kind": "as_moves"}]
    models = []
    measures = [{"kind": "effective_size"}, {"kind": "cosine"}, {"kind": "weigh"}]
    for mean in (
        [{"kind": "weigh"}, {"kind": "mean"}],
        [*measures, {"kind": "noisy_mean", "multiplier": 0.0}],
    ):
        tree = {**BASE, "privacy": None} | {
            "algorithm": {
                "kind": "chained",
                "step_size": 0.2,
                "batch": 7,
                "chain": [*stages, *mean, {"kind": "step", "step_size": 0.5}],
            }
        }
        models.append(ran([prepared(tree)])[0].model)
    np.testing.assert_array_equal(*models)
    noisy = plan({"algorithm": PLAIN["algorithm"] | {"moves": True}})
    assert np.abs(ran([noisy])[0].model - models[0]).max() > 0.01


def test_runs_of_other_noise_share_a_program() -> None:
    plans = [plan(noised(multiplier=z)) for z in (0.5, 3.0)]
    together = ran(plans, "batched")
    for each, found in zip(plans, together, strict=True):
        alone = ran([each])[0].model
        np.testing.assert_allclose(found.model, alone, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("player", ["simpy", "fastest"])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_budget_ends_the_run_before_a_commit_that_exceeds_it(
    name: str, player: str
) -> None:
    changes = PROTOCOLS[name], {"stop": {"commits": 400}}
    free = plan(*changes)
    limited = plan(
        *changes, {"privacy": {"budget": 9.0}, "timeline": {"player": player}}
    )
    _, jobs, reason = record(limited)
    assert reason is StopReason.PRIVACY
    sent = messages(jobs)
    clients = range(limited.timeline.num_clients)
    spent = [float(twin.epsilon(sent, k, Z, DELTA)) for k in clients]
    assert 0 < max(spent) <= 9
    last = max(commit for _, commit in sent)
    longer = messages(record(free)[1])
    assert sorted(sent) == sorted(each for each in longer if each[1] <= last)
    further = [each for each in longer if each[1] <= last + 1]
    assert max(float(twin.epsilon(further, k, Z, DELTA)) for k in clients) > 9
    memory, (end,) = execute([limited])
    assert end["stop"] == "privacy"
    assert memory.tables["privacy"][-1]["epsilon"].max() == pytest.approx(max(spent))


def test_noise_is_calculated_for_a_budget() -> None:
    budget = {"epsilon": 6.0, "releases": 40, "delta": DELTA, "accountant": "gdp"}
    own = noised(budget=budget, multiplier=None)
    made = plan(own, {"stop": {"commits": 400}, "privacy": None})
    (z, *_) = {each.release.noise for each in made.guarantees}
    forty = [(0, commit) for commit in range(40)]
    assert float(twin.epsilon(forty, 0, z, DELTA)) == pytest.approx(6, rel=1e-5)
    _, jobs, reason = record(made)
    assert reason is StopReason.PRIVACY
    worst = max(
        float(twin.epsilon(messages(jobs), k, z, DELTA))
        for k in range(made.timeline.num_clients)
    )
    assert 4 < worst <= 6


def test_bytes_are_those_of_the_paper() -> None:
    """The abstract's 1.73 and 1.98 times the clear, of 16 bits."""
    for n, m, published in ((2**10, 2**20, 1.73), (2**14, 2**24, 1.98)):
        cost = SecureAggregation(form="pairwise", group=n, value_bits=16)
        sent, got = twin.pairwise_bits(n, m, 16, 256, 256)
        assert cost.upload_bytes(m) * 8 == sent
        assert cost.download_bytes * 8 == got
        # Section 7: 2 n a_K + (5 n - 4) a_S + m ceil(log2 R), both ways.
        assert sent + got == 2 * n * 256 + (5 * n - 4) * 256 + m * (16 + np.log2(n))
        assert (sent + got) / (16 * m) == pytest.approx(published, abs=0.005)


def test_an_enclave_costs_a_member_the_same_in_any_group() -> None:
    few, many = (SecureAggregation(form="enclave", group=n) for n in (513, 1024))
    assert few.upload_bytes(1000) == many.upload_bytes(1000) == 64 + 1000 * 42 // 8
    assert few.seconds(1000) == many.seconds(1000)
    assert few.download_bytes == 32


def test_seconds_are_those_of_the_formula() -> None:
    n, d, m = 7, 2, 100
    cost = SecureAggregation(
        form="pairwise", group=n, dropouts=d, agree_s=0.5, mask_s=0.01, round_trip_s=3
    )
    client = 2 * (n - 1) * 0.5 + n * m * 0.01
    server = 0.0
    for _ in range(n - d):
        server += m * 0.01  # a survivor's own mask
    for _ in range(d):
        for _ in range(n - d):
            server += 0.5 + m * 0.01  # a mask between a survivor and one that is gone
    assert cost.seconds(m) == pytest.approx(client + server + 9)


@pytest.mark.parametrize("name", ["buffered", "synchronous"])
def test_its_cost_is_in_bytes_times_and_stops(name: str) -> None:
    form = {"buffered": "enclave", "synchronous": "pairwise"}[name]
    secure = {"form": form, "group": 9, "agree_s": 0.25, "round_trip_s": 0.125}
    bare = plan(PROTOCOLS[name])
    dear = plan(PROTOCOLS[name], noised(secure=secure))
    cost, m = SecureAggregation.model_validate(secure), dear.shape.num_weights
    work = dear.timeline.workload
    assert work.upload_bytes == cost.upload_bytes(m)
    assert work.download_bytes == 4 * m + cost.download_bytes
    first, later = (record(each)[1] for each in (bare, dear))
    for k in range(bare.timeline.num_clients):  # the first job of each client
        taken = [
            np.nanmin(jobs.computed_time[jobs.client == k]) for jobs in (first, later)
        ]
        assert taken[1] - taken[0] == pytest.approx(cost.seconds(m), rel=1e-9)
    limit = (
        3 * (work.upload_bytes + work.download_bytes) * (4 if name == "buffered" else 1)
    )
    ended = plan(
        *(PROTOCOLS[name], noised(secure=secure)),
        {"stop": {"commits": None, "bytes": limit}},
    )
    _, jobs, reason = record(ended)
    assert reason is StopReason.BYTES
    each = work.upload_bytes + work.download_bytes
    sent = (~np.isnan(jobs.applied_time) | (jobs.outcome == 1)).sum() * each
    assert limit <= sent < limit + dear.timeline.num_clients * each


def test_a_commit_with_too_few_members_is_lost() -> None:
    changes = PROTOCOLS["window"], {"engine": {"chunk": 8}}
    secure = ENCLAVE | {"group": 10, "least": 4}
    made = plan(*changes, noised(secure=secure), {"privacy": None})
    found = ran([made])[0]
    _, jobs, _ = record(made)
    commits = [commit for _, commit in messages(jobs)]
    sizes = np.array([commits.count(c) for c in range(1, max(commits) + 1)])
    assert (sizes < 4).any()
    assert (sizes >= 4).any()
    noise = found.infos["noise_norm"]
    memory, _ = execute([made])
    kinds = memory.tables["commits"][0]["kind"].words
    rows = np.concatenate([p["kind"].codes for p in memory.tables["commits"]])
    applied = noise[rows == kinds.index("COMMIT")] > 0
    np.testing.assert_array_equal(applied, sizes >= 4)
    objective = memory.column("evaluations", "objective")
    assert np.isfinite(objective).all()


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "law": (noised(law="spherical_laplace"), "law must be gaussian"),
    "sizes": (
        {"algorithm": {"weigh": {"weighting": "samples"}}},
        "weighting must be equal",
    ),
    "weight": (
        {"algorithm": {"weigh": {"weight": {"kind": "inverse_share"}}}},
        "weight must be at most 1",
    ),
    "members": (
        noised(secure={"form": "pairwise", "group": 9}),
        "secure.form must be enclave for the protocol 'buffered'",
    ),
    "least": (
        noised(secure=ENCLAVE | {"least": 10}),
        "least must be at most group less dropouts, 9",
    ),
    "dropouts": (
        noised(secure=ENCLAVE | {"dropouts": 1}),
        "dropouts must be 0 with an enclave",
    ),
    "compensated": (
        {"algorithm": {"received": [{"kind": "compensate", "strength": 1.0}]}},
        "must be left out with noise of the server",
    ),
    "a world that asks": (
        {
            "clients": {
                "selection": {
                    "in_flight": 2,
                    "prefer": {"kind": "power_of_choice", "candidates": 3},
                }
            }
        },
        "must have no noise of the server where the world asks",
    ),
    "all clients' accountant": (
        {"privacy": {"accountants": ["theorem2"]}},
        "must count a client's own messages",
    ),
    "small group": (
        noised(secure=ENCLAVE | {"group": 3}),
        "secure.group must be at least 4",
    ),
    "never enough": (
        noised(secure=ENCLAVE | {"least": 5}),
        "secure.least must be at most 4",
    ),
    "small group of a window": (
        PROTOCOLS["window"] | noised(secure=ENCLAVE | {"group": 2}),
        "secure.group must be at least 10",
    ),
    "small group of a period of grace": (
        {"protocol": {"size": None, "grace": 1.5}}
        | noised(secure=ENCLAVE | {"group": 2}),
        "secure.group must be at least 5",
    ),
    "never enough in a window": (
        PROTOCOLS["window"] | noised(secure=ENCLAVE | {"group": 99, "least": 90}),
        "secure.least must be at most 10",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name: str) -> None:
    change, told = REFUSED[name]
    with pytest.raises((ValidationError, ScenarioError, UserError), match=told):
        execute([plan(change)])


class Loud(AttackPart):
    kind: Literal["loud"] = "loud"


def test_attacks_that_keep_to_no_bound_are_refused() -> None:
    """Their messages are of any length, and may tell those that they have heard."""
    mean = NoisyMean(multiplier=1.0)
    stages = (LocalWork(), Clip(clip_bound=1.0), Loud(), Weigh(), mean, ServerStep())
    with pytest.raises(LocatedError, match="left out with noise of the server"):
        mean.fits(WrittenChain.model_construct(chain=stages))


def test_unclipped_sums_are_refused() -> None:
    chain = [{"kind": "local_work"}, {"kind": "weigh"}]
    chain += [{"kind": "noisy_mean", "multiplier": 1.0}, {"kind": "step"}]
    tree = {"kind": "chained", "step_size": 0.2, "batch": 7, "chain": chain}
    with pytest.raises(ValidationError, match="must have clip as the last stage"):
        scenario(SGD | {"algorithm": tree})


DRAWN = (
    PLAIN,
    {"problem": {"partition": {"clients": 40}}},
    {"protocol": {"kind": "synchronous", "size": None}},
    {"clients": {"selection": {"in_flight": 10, "by": "uniform"}}},
    {"stop": {"commits": 40}},
    {"evaluate": {"every": {"commits": 40}}},
    {"privacy": {"accountants": ["gdp", "secret_cohort", "secret_poisson"]}},
    noised(multiplier=2.0),
)
"""The example of issue 56: 10 of 40 clients in 40 rounds."""


def test_secret_draws_amplify_and_the_field_s_convention_claims_more() -> None:
    made = plan(*DRAWN)
    memory, _ = execute([made])
    (*_, last) = memory.tables["privacy"]
    sent = messages(record(made)[1])
    gdp, cohort, poisson = last["epsilon"].reshape(40, 3).T
    largest = max(float(twin.epsilon(sent, k, 2.0, DELTA)) for k in range(40))
    assert gdp.max() == pytest.approx(largest)
    # Of all rounds, so alike for all; dp-accounting: 3.95423 for a Poisson draw of 1/4.
    np.testing.assert_allclose(cohort, 6.0777, atol=1e-3)
    np.testing.assert_allclose(poisson, 3.95423, atol=1e-3)
    assert last["formal"].reshape(40, 3)[0].tolist() == [True, True, False]


def test_draws_of_a_fixed_size_can_cost_more_than_poisson_s() -> None:
    # The client sends C, everybody else -C: the loss of 40 rounds, all rounded down.
    z, q, h, step = 2.0, 0.25, 1e-3, 1e-3
    y = np.arange(-30, 30, step)
    at = [scipy.stats.norm.pdf(y, mean, z) for mean in (-1, 0, 1)]
    with_it, without = ((1 - q) * at[0] + q * at[k] for k in (2, 1))
    place = np.floor(np.log(with_it / without) / h).astype(int)
    one = np.bincount(place - place.min(), with_it * step)
    size = 1 << int(np.ceil(np.log2(one.size * 40)))
    of_all = np.maximum(0, np.fft.irfft(np.fft.rfft(one, size) ** 40, size))
    loss = (np.arange(size) + 40 * place.min()) * h
    far = loss > 5.75
    assert (of_all[far] * -np.expm1(5.75 - loss[far])).sum() > DELTA
    assert make("secret_cohort").after(40, Gaussian(z, q)).epsilon(DELTA) > 5.75


@pytest.mark.parametrize("loss", [0.0, 0.3, 1.5])
def test_no_messages_of_two_clients_diverge_more(loss: float) -> None:
    z, q, step = 1.3, 0.3, 2e-3
    y, factor = np.arange(-16, 16, step), np.exp(loss)
    bounds = [one(np.array([loss]), z, q)[0] for one in (of_client, of_zeros)]
    worst = [0.0, 0.0]
    for a, x in itertools.product(np.linspace(-1, 1, 9), repeat=2):
        other, own, zero = (scipy.stats.norm.pdf(y, m, z) for m in (a, x, 0))
        p, r = ((1 - q) * other + q * one for one in (own, zero))
        for place, (one, two) in enumerate([(p, r), (r, p)]):
            found = np.maximum(0, one - factor * two).sum() * step
            worst[place] = max(worst[place], found)
    np.testing.assert_allclose(worst, bounds, rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"protocol": {"wait_for": 5}}, "the protocol 'synchronous' with"),
        ({"clients": {"selection": {"by": "cyclic"}}}, "clients.selection.by"),
        ({"clients": {"selection": None}}, "no clients.selection"),
        ({"clients": {"loss": {"chance": 0.1, "timeout": 9}}}, "lost or away"),
        ({"clients": {"leave": 9}}, "lost or away"),
        ({"privacy": {"accountants": ["secret_cohort"]}}, "got it as the first"),
    ],
)
def test_other_rounds_have_no_secret_draws(change: dict[str, Any], words: str) -> None:
    with pytest.raises((ValidationError, ScenarioError, UserError), match=words):
        plan(*DRAWN, change)


def test_clients_with_memory_have_no_secret_draws() -> None:
    made = Guarantee(Gaussian(2.0), True, "", "", ZEROED, by_commit=True)
    with pytest.raises(UserError, match="tells of earlier draws"):
        Ledger([made] * 4, ["gdp", "secret_cohort"], DELTA, 2)
    with pytest.raises(UserError, match="must be of messages"):
        calibrated(8, DELTA, 9, "gaussian", 0.5, "secret_cohort")
