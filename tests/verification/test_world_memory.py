"""Delays with memory, and delays that clients share, against theory.

Correlations over n independent pairs have a standard error of at most 1 / sqrt(n); five
of those bound each difference. The Kolmogorov-Smirnov statistic times sqrt(n) exceeds
2.2 with a probability of 1.3e-4.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.stats
from pydantic import TypeAdapter
from scipy.special import ndtri

from stalesim.analysis import theory
from stalesim.analysis.laws import distinct, laws, means, rates
from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.delays import StageDelays
from stalesim.simulator.world.laws.base import AnyLaw, Draws, Law, Population
from stalesim.simulator.world.slowdowns import SharedFactors, SharedSlowdown
from stalesim.simulator.world.streams import Purpose, Streams
from stalesim.simulator.world.workload import Workload
from stalesim.simulator.world.world import World
from tests.support import everything, played
from tests.unit.timelines.random_worlds import compare, of_few

GAMMA = {"law": "gamma", "a": 2.0, "scale": 3.0}
LOGNORM = {"law": "lognorm", "s": 0.5}


def law_of(config: dict[str, Any]) -> Law:
    return TypeAdapter(AnyLaw).validate_python(config)


def drawn(config: dict[str, Any], clients: int, number: int) -> np.ndarray:
    """Returns the first durations of some clients, drawn at once."""
    streams = Streams(3)
    law = law_of(config)
    law.check(clients, "law")
    sampler = law.make(Population(clients, streams))
    who = np.repeat(np.arange(clients), number)
    position = np.tile(np.arange(number), clients)
    uniform = streams.scattered(Purpose.COMPUTE, who, position)
    return sampler.draw(Draws(uniform, who, position), None).reshape(clients, number)


def remembering(of: dict[str, Any] = GAMMA, **options: Any) -> dict[str, Any]:
    return {"law": "autoregressive", "of": of, **options}


@pytest.mark.parametrize(
    ("options", "correlations"),
    [
        ({"correlation": 0.8}, [0.8, 0.64, 0.512]),
        ({"correlation": -0.5}, [-0.5, 0.25, -0.125]),
        ({"correlation": 0.9, "noise": 0.4}, [0.54, 0.486, 0.4374]),
        ({"correlation": 1, "noise": 0.7}, [0.3, 0.3, 0.3]),
    ],
)
def test_memory_changes_correlations_alone(
    options: dict[str, Any], correlations: list[float]
) -> None:
    clients, number = 10_000, 8
    durations = drawn(remembering(**options), clients, number)
    marginal = scipy.stats.gamma(2.0, scale=3.0)
    for place in (0, number - 1):
        found: Any = scipy.stats.kstest(durations[:, place], marginal.cdf)
        assert found.statistic * np.sqrt(clients) < 2.2
    scores = ndtri(marginal.cdf(durations))
    for lag, expected in enumerate(correlations, start=1):
        for first in (0, number - 1 - lag):
            pair = np.corrcoef(scores[:, first], scores[:, first + lag])
            assert pair[0, 1] == pytest.approx(expected, abs=5 / np.sqrt(clients))


def test_each_client_has_a_correlation_of_its_own() -> None:
    durations = drawn(remembering(correlation=(0.95, 0)), 2, 4_000)
    lagged = [
        np.corrcoef(scipy.stats.rankdata(mine)[1:], scipy.stats.rankdata(mine)[:-1])
        for mine in durations
    ]
    assert lagged[0][0, 1] > 0.85
    assert abs(lagged[1][0, 1]) < 5 / np.sqrt(4_000)


@pytest.mark.parametrize(
    "config",
    [
        remembering(correlation=0.9, noise=0.2),
        remembering({"law": "poisson", "mu": 3}, correlation=0.9),
        {"law": "drifting", "of": remembering(correlation=0.9), "factor": 3, "over": 9},
    ],
)
def test_draws_in_pieces_are_those_at_once(config: dict[str, Any]) -> None:
    clients, number = 3, 700
    streams = Streams(3)
    sampler = law_of(config).make(Population(clients, streams))
    stage = StageDelays(sampler, Purpose.COMPUTE, Population(clients, streams), None)
    stage.prefetch(np.array([1, 2]))  # the other is drawn in blocks from the first on
    pieces = [[stage.next(client) for _ in range(number)] for client in range(clients)]
    np.testing.assert_array_equal(pieces, drawn(config, clients, number))


def test_measured_durations_may_have_memory(tmp_path: Any) -> None:
    path = tmp_path / "times.csv"
    path.write_text("t\n3\n1\n2\n")
    measured = {"law": "empirical", "path": str(path), "column": "t"}
    durations = drawn(remembering(measured, correlation=0.9), 3_000, 2)
    counts = np.array([(durations[:, 1] == value).sum() for value in (1, 2, 3)])
    np.testing.assert_allclose(counts, 1_000, atol=5 * np.sqrt(3_000 * 2 / 9))
    assert np.corrcoef(durations.T)[0, 1] > 0.7


def test_a_drawn_correlation_is_checked_when_it_is_known() -> None:
    config = remembering(correlation={"law": "uniform", "scale": 3})
    law_of(config).check(50, "law")
    with pytest.raises(ScenarioError, match=r"autoregressive\.correlation must be"):
        law_of(config).make(Population(50, Streams(1)))


def test_a_drift_multiplies_draws_and_stays() -> None:
    drifting = {"law": "drifting", "of": GAMMA, "factor": (8, 0.5), "over": 3}
    factors = drawn(drifting, 2, 6) / drawn(GAMMA, 2, 6)
    expected = [[1, 2, 4, 8, 8, 8], 0.5 ** (np.array([0, 1, 2, 3, 3, 3]) / 3)]
    np.testing.assert_allclose(factors, expected)


@pytest.mark.parametrize(
    "config",
    [
        {"law": "lognorm", "s": 0.1, "scale": LOGNORM},
        {"law": "scaled", "of": {"law": "lognorm", "s": 0.1}, "scale": LOGNORM},
    ],
)
def test_a_scale_of_a_client_is_drawn_once(config: dict[str, Any]) -> None:
    clients, number = 4_000, 5
    logs = np.log(drawn(config, clients, number))
    # Variances over n values have a standard error of sqrt(2 / n) of theirs.
    within = logs.var(axis=1, ddof=1).mean()
    bound = 5 * np.sqrt(2 / (clients * (number - 1)))
    assert within == pytest.approx(0.01, rel=bound)
    between = logs.mean(axis=1).var() - within / number
    assert between == pytest.approx(0.25, rel=5 * np.sqrt(2 / clients))


def test_the_closed_form_with_memory_is_of_single_durations() -> None:
    memory = remembering({"law": "expon", "scale": "m"}, correlation=0.9)
    np.testing.assert_allclose(means(memory, 3), [1, 2, 3])
    with pytest.raises(ValueError, match="depend on those before"):
        rates(laws(memory, 3))


@pytest.mark.parametrize("law", ["markov", "autoregressive"])
def test_a_refresh_remembers_nothing_of_computing(law: str) -> None:
    config = remembering(correlation=0.9)
    if law == "markov":
        config = {
            "law": "markov",
            "of": [{"law": "constant", "value": n} for n in (1, 2)],
            "transition": [[0.9, 0.1], [0.1, 0.9]],
        }
    clients = Clients.model_validate({"compute": config})
    alone, both = World(clients, 2, 1), World(clients, 2, 1)
    for client in (0, 1):
        both.draw(Purpose.REFRESH, client)
        for _ in range(600):
            expected = alone.draw(Purpose.COMPUTE, client)
            assert both.draw(Purpose.COMPUTE, client) == expected


def test_memory_changes_no_rate() -> None:
    number = 5
    config = remembering({"law": "gamma", "a": 2.0, "scale": "m"}, correlation=0.7)
    own, clients = laws(config, number), {"compute": config}
    # The variance of sums is (1 + 0.7) / (1 - 0.7) times that of independent draws at
    # most, so that counts over n draws deviate by sqrt(5.7 / 2 / n) relative to n.
    rows, _, _ = everything(played(Asynchronous(), clients, number, commits=40_000))
    rate = 40_000 / rows.time[-1]
    expected = theory.asynchronous_throughput(means(config, number))
    assert rate == pytest.approx(expected, rel=5 * np.sqrt(2.85 / 40_000))
    rows, _, _ = everything(played(Synchronous(), clients, number, commits=10_000))
    slowest = theory.expected_maximum(*distinct([own]))
    round_s = rows.time[-1] / 10_000
    assert round_s == pytest.approx(slowest, rel=5 * np.sqrt(2.85 / 10_000))


def shared(share: float, **options: Any) -> dict[str, Any]:
    return {"kind": "shared", "factor": LOGNORM, "every": 1, "share": share, **options}


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_clients_share_as_much_of_their_factors_as_is_said(share: float) -> None:
    number, memory = 20_000, remembering(LOGNORM, correlation=0.6)
    bound = 5 * np.sqrt((1 + 0.36) / (1 - 0.36) / number)
    config = shared(share, factor=memory, room="ceil(m/2)")
    slowdown = SharedSlowdown.model_validate(config)
    slowdown.check(3, "s")
    factors = SharedFactors(slowdown, Population(3, Streams(2)))
    found = np.array(
        [factors.of_each(np.arange(3), np.full(3, j + 0.5)) for j in range(number)]
    )
    scores = np.log(found) / 0.5
    # Successive scores are dependent: every tenth of one client hardly is (0.6^10).
    thin: Any = scipy.stats.kstest(scores[::10, 0], "norm")
    assert thin.statistic * np.sqrt(number / 10) < 2.2
    correlation: Any = np.corrcoef(scores.T)
    assert correlation[0, 1] == pytest.approx(share, abs=bound)
    assert correlation[0, 2] == pytest.approx(0, abs=bound)
    for mine in scores.T:
        lagged = np.corrcoef(mine[1:], mine[:-1])[0, 1]
        assert lagged == pytest.approx(0.6, abs=bound)
    # One at a time, and back in time, they are the same.
    alone = SharedFactors(slowdown, Population(3, Streams(2)))
    assert alone(1, 0, number - 0.5) == found[-1, 1]
    assert [alone(1, 0, j + 0.5) for j in range(100)] == found[:100, 1].tolist()


def test_of_named_clients_others_are_not_slowed() -> None:
    everyone = SharedSlowdown.model_validate(shared(0.5))
    some = SharedSlowdown.model_validate(shared(0.5, clients=[1, 3]))
    at = np.arange(4), np.full(4, 7.5)
    made = [one.make(Population(4, Streams(2))) for one in (everyone, some)]
    wanted, found = (factors.of_each(*at) for factors in made)
    np.testing.assert_array_equal(found[[0, 2]], wanted[[0, 2]])
    np.testing.assert_array_equal(found[[1, 3]], 1)
    assert (wanted != 1).all()


def test_rounds_are_the_faster_the_more_clients_share() -> None:
    # Jobs take at least an interval, so that each begins in a new one, whose factor
    # depends on nothing before: rounds are independent.
    number, rounds = 8, 20_000
    times = {}
    for share in (0.0, 0.5, 0.9, 1.0):
        clients = {
            "compute": {"law": "constant", "value": 1},
            "slowdowns": [shared(share, factor={"law": "expon", "loc": 1})],
        }
        rows, _, _ = everything(played(Synchronous(), clients, number, commits=rounds))
        times[share] = rows.time[-1] / rounds
        # Clients that do not wait are as fast, whatever they share.
        rows, _, _ = everything(played(Asynchronous(), clients, number, commits=rounds))
        rate = rounds / rows.time[-1]
        # Factors of variance 1 and mean 2; of one interval for all, at worst.
        assert rate == pytest.approx(number / 2, rel=5 * np.sqrt(number / (4 * rounds)))
    assert all(later < earlier for earlier, later in pairwise(times.values()))
    expon = scipy.stats.expon(loc=1)
    slowest = theory.expected_maximum([expon], [number])
    assert slowest == pytest.approx(1 + (1 / np.arange(1, number + 1)).sum())
    assert times[0.0] == pytest.approx(slowest, abs=5 * np.sqrt(1.53 / rounds))
    assert times[1.0] == pytest.approx(2, abs=5 / np.sqrt(rounds))


def test_links_and_computing_share_a_shock() -> None:
    clients = {
        "compute": {"law": "constant", "value": 1},
        "upload": {"latency": {"law": "constant", "value": 0.5}, "bandwidth": 120},
        "download": {"bandwidth": 60},
        "slowdowns": [
            shared(1, every=10_000, stages=["compute", "download"]),
            shared(1, every=10_000, stages=["upload"]),
        ],
    }
    _, jobs, _ = everything(
        played(Asynchronous(), clients, 2, 1, Workload(60, 60, 2), commits=20)
    )
    over = np.isfinite(jobs.arrived_time)
    took = [
        (end - start)[over]
        for start, end in (
            (jobs.read_time, jobs.begun_time),
            (jobs.begun_time, jobs.computed_time),
            (jobs.sent_time, jobs.arrived_time),
        )
    ]
    np.testing.assert_allclose(took[0], took[1])
    np.testing.assert_allclose(took[2], took[2][0])
    assert took[0][0] != pytest.approx(1)
    assert took[2][0] != pytest.approx(took[0][0])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_both_players_share_alike(share: float) -> None:
    number = 40
    clients = {
        "compute": remembering(correlation=0.9),
        "upload": {"latency": {"law": "expon"}},
        "slowdowns": [
            shared(share, room="ceil(m/20)", every=2.5),
            shared(share, every=7, stages=["upload"]),
        ],
    }
    work = Workload(60, 60, number)
    plan = played(Asynchronous(), clients, number, 1, work, commits=900)
    assert not plan.feedback
    compare(of_few(plan))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"factor": {"law": "poisson", "mu": 1}}, "of factors > 0"),
        ({"every": 1e-9}, "at most 10,000,000 intervals"),
    ],
)
def test_factors_with_which_time_stands_still_are_refused(
    options: dict[str, Any], words: str
) -> None:
    slowdown = SharedSlowdown.model_validate(shared(1, **options))
    factors = SharedFactors(slowdown, Population(1, Streams(1)))
    with pytest.raises(ScenarioError, match=words):
        factors(0, 0, 30.0)
