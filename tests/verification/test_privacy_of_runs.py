"""Epsilons of whole runs from the clock and the papers alone, not from the ledger.

Client m of five takes m seconds for a message and has no links: by a time t it has sent
floor(t / m). What that costs is computed here by dp-accounting and in closed form.
"""

from typing import Any

import dp_accounting as dpa
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from dp_accounting.rdp import RdpAccountant

from stalesim.simulator.engine.simulation import prepare
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run
from tests.runs import execute
from tests.support import Memory

K, BATCH, BOUND, MULTIPLIER, DELTA = 5, 11, 0.7, 0.8, 1e-6
END, EVERY = 40.5, 7.25
COMPARED = (2 * EVERY, END)
"""When divergences are looked at: dp-accounting takes half a second for each."""
SAMPLES = (288, 288, 287, 287, 287)
"""1,437 digits of 1,797 are for training."""
NUM_WEIGHTS = 10 * 65


def executed(**mechanism: Any) -> Memory:
    tree = {
        "name": "accounted",
        "problem": {
            "data": {"kind": "digits"},
            "partition": {"kind": "iid", "clients": K},
        },
        "clients": {"compute": {"law": "constant", "value": "m"}},
        "protocol": {"kind": "asynchronous"},
        "algorithm": {
            "kind": "sgd",
            "step_size": 0.1,
            "batch": BATCH,
            "mechanism": {
                "clip_bound": BOUND, "multiplier": MULTIPLIER, **mechanism
            },
        },
        "privacy": {"delta": DELTA, "accountants": ["rdp", "gdp"]},
        "stop": {"time": END},
        "evaluate": {"every": {"time": EVERY}},
    }  # fmt: skip
    memory, _ = execute([prepare(Run(0, "", {}, 0, 1, Scenario.model_validate(tree)))])
    return memory


def said(memory: Memory, name: str) -> dict[tuple[float, int], tuple[int, float, bool]]:
    """Returns by time and client what the trace says of an accountant."""
    found = {}
    for part in memory.tables["privacy"]:
        names = np.array(part["accountant"].words)[part["accountant"].codes]
        columns = ("time", "client", "releases", "epsilon", "formal")
        for row in np.flatnonzero(names == name):
            time, client, *rest = (part[column][row].item() for column in columns)
            found[time, client] = tuple(rest)
    return found


def sent(time: float, client: int) -> int:
    return int(time // (client + 1))


def times() -> list[float]:
    return [EVERY * i for i in range(int(END / EVERY) + 1)] + [END]


@pytest.fixture(scope="module")
def of_samples() -> Memory:
    return executed(clip="sample")


def test_renyi_divergences_of_samples_drawn_without_replacement(
    of_samples: Memory,
) -> None:
    # A clipped mean moves by 2 C / b if a sample is replaced, and its noise has z times
    # that deviation: dp-accounting's multiplier of a replaced sample is z.
    found = said(of_samples, "rdp")
    assert sorted({time for time, _ in found}) == times()
    for client, n in enumerate(SAMPLES):
        noise = dpa.GaussianDpEvent(MULTIPLIER)
        once = dpa.SampledWithoutReplacementDpEvent(n, BATCH, noise)
        for time in times():
            releases, epsilon, formal = found[time, client]
            count = sent(time, client)
            assert releases == count
            assert formal
            if not count:
                assert epsilon == 0
            elif time in COMPARED:
                accountant = RdpAccountant(
                    neighboring_relation=dpa.NeighboringRelation.REPLACE_ONE
                )
                accountant.compose(once, count)
                expected = accountant.get_epsilon(DELTA)
                np.testing.assert_allclose(epsilon, expected, rtol=1e-9)


def test_the_noise_is_as_large_as_the_accounting_takes_it(of_samples: Memory) -> None:
    squares = of_samples.column("commits", "noise_norm").astype(np.float64) ** 2
    assert squares.size == sum(sent(END, client) for client in range(K))
    # A sum of P squared normal numbers has mean P s**2 and standard deviation
    # sqrt(2 P) s**2; the mean of 91 with P = 650 are within 5 deviations: 2.9 %.
    deviation = MULTIPLIER * 2 * BOUND / BATCH
    wanted = NUM_WEIGHTS * deviation**2
    error = 5 * wanted * np.sqrt(2 / (NUM_WEIGHTS * squares.size))
    assert abs(squares.mean() - wanted) < error


def test_gaussian_privacy_of_whole_contributions() -> None:
    # k messages of multiplier z are one of z / sqrt(k), whose delta at epsilon is known
    # (Balle and Wang 2018, Theorem 8).
    found = said(executed(clip="contribution"), "gdp")
    normal = scipy.stats.norm
    for (time, client), (releases, epsilon, formal) in found.items():
        count = sent(time, client)
        assert releases == count
        assert formal
        if not count:
            assert epsilon == 0
            continue
        mu = np.sqrt(count) / MULTIPLIER

        def delta(eps: float, mu: float = mu) -> float:
            tail = np.exp(eps + normal.logcdf(-mu / 2 - eps / mu))
            return normal.cdf(mu / 2 - eps / mu) - tail - DELTA

        expected = scipy.optimize.brentq(delta, 0, 500)
        np.testing.assert_allclose(epsilon, expected, rtol=1e-6)
