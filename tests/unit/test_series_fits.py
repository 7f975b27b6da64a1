"""Laws of series: known memory is found again, and independence is not refused."""

import numpy as np
import pytest

from stalesim.simulator.laws import fitting
from stalesim.simulator.laws.base import Draws, Population
from stalesim.simulator.laws.choosing import Series, fit_clients
from stalesim.simulator.scenario.reading import loads_any
from stalesim.simulator.streams import Streams

MEASURED = {"law": "empirical", "path": "x.parquet", "column": "compute"}


def drawn(law: str, n: int, seed: int) -> Series:
    """Returns durations as the simulator draws them."""
    text = f"name: a\nclients: {{number: 1, compute: {law}}}\n"
    text += "protocol: {kind: asynchronous}\nstop: {time: 1}\n"
    compute = loads_any(text, "a").clients.compute
    sampler = compute.make(Population(1, Streams(seed), stage="compute"))
    uniform = np.random.default_rng(seed).random(n)
    seconds = np.asarray(sampler.draw(Draws(uniform, 0, 0), None), np.float64)
    return Series(np.r_[0.0, np.cumsum(seconds)[:-1]], seconds)


def test_of_many_independent_clients_none_is_taken_for_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fitting, "RESAMPLES", 9)  # of tests of families, not of memory
    # The second half of one is predicted by an autoregression with p = 0.003, as is to
    # be expected of 34 clients and three models: these are held to 1 % together.
    every = [drawn("{law: expon}", 60, seed) for seed in range(35, 69)]
    fits, shared = fit_clients(every, [MEASURED] * 34, 0.0)
    assert {fit.memory for fit in fits} == {"independent"}
    assert not any("drift" in fit.why for fit in fits)
    assert shared is None
    (alone,), _ = fit_clients(every[25:26], [MEASURED], 0.0)
    assert alone.memory == "autoregressive"


def test_memory_of_one_client_is_found_among_many_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fitting, "RESAMPLES", 9)
    law = "{law: autoregressive, of: {law: lognorm, s: 0.3}, correlation: 0.8}"
    every = [drawn("{law: lognorm, s: 0.3}", 60, seed) for seed in range(11)]
    fits, _ = fit_clients([drawn(law, 200, 1), *every], [MEASURED] * 12, 0.0)
    assert fits[0].memory == "autoregressive"


def test_autoregression_is_found_with_its_noise_and_marginal_law() -> None:
    law = ("{law: autoregressive, of: {law: lognorm, s: 0.3, scale: 5}, "
           "correlation: 0.9, noise: 0.2}")  # fmt: skip
    (fit,), shared = fit_clients([drawn(law, 3000, 1)], [MEASURED], 0.0)
    assert shared is None
    assert fit.memory == "autoregressive"
    # Bounds are four standard errors: sqrt((1 - r^2) / n) of a correlation, tripled for
    # what the noise hides; n (1 - r) / (1 + r) values are as good as independent.
    assert abs(fit.law["correlation"] - 0.9) < 4 * 3 * np.sqrt(0.19 / 3000)
    assert abs(fit.law["noise"] - 0.2) < 0.1
    n = 3000 * 0.1 / 1.9
    assert fit.law["of"]["law"] == "lognorm"
    assert abs(fit.law["of"]["s"] - 0.3) < 4 * 0.3 / np.sqrt(2 * n)
    assert abs(np.log(fit.law["of"]["scale"] / 5)) < 4 * 0.3 / np.sqrt(n)
    assert fit.gains["autoregressive"] > 0.2
    assert fit.errors["chosen"] < fit.errors["independent fit"]


def test_regimes_are_found() -> None:
    law = ("{law: markov, transition: [[0.95, 0.05], [0.1, 0.9]], of: [{law: lognorm, "
           "s: 0.1, scale: 1}, {law: lognorm, s: 0.2, scale: 4}]}")  # fmt: skip
    (fit,), _ = fit_clients([drawn(law, 2000, 2)], [MEASURED], 0.0)
    assert fit.memory == "regimes"
    fast, slow = sorted(fit.law["of"], key=lambda one: one["scale"])
    assert abs(np.log(fast["scale"])) < 4 * 0.1 / np.sqrt(1333)
    assert abs(np.log(slow["scale"] / 4)) < 4 * 0.2 / np.sqrt(667)
    left = max(row[0] for row in fit.law["transition"])
    assert abs(left - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 1333)


def test_drift_is_found_and_extrapolated() -> None:
    law = "{law: drifting, of: {law: lognorm, s: 0.1}, factor: 3, over: 600}"
    (fit,), _ = fit_clients([drawn(law, 600, 3)], [MEASURED], 0.0)
    assert fit.memory == "drifting"
    # The slope's error is s sqrt(12 / n) over the whole.
    assert abs(np.log(fit.law["factor"] / 3)) < 4 * 0.1 * np.sqrt(12 / 600)


def shared_world(seed: int, spread: float) -> list[Series]:
    """Returns six clients whose jobs a wandering factor slows at the same time."""
    level = drawn("{law: autoregressive, correlation: 0.9, of: {law: lognorm, "
                  f"s: {spread}}}}}", 400, seed).seconds  # fmt: skip
    rng, every = np.random.default_rng(seed), []
    for _ in range(6):
        start, seconds, time = [], [], 0.0
        while time < 700:
            took = rng.lognormal(0, 0.2) * level[int(time / 2)]
            start.append(time)
            seconds.append(took)
            time += took
        every.append(Series(np.array(start), np.array(seconds)))
    return every


def test_a_shared_factor_is_found_and_taken_out() -> None:
    fits, shared = fit_clients(shared_world(1, 0.5), [MEASURED] * 6, 0.0)
    assert shared is not None
    assert shared.slowdown["kind"] == "shared"
    # 350 steps of correlation 0.9 are worth 18: the spread's error is 17 %.
    assert abs(np.log(shared.slowdown["factor"]["of"]["s"] / 0.5)) < 4 * 0.17
    assert all(fit.memory == "independent" for fit in fits)
    assert 0.15 < np.median([np.log(fit.values).std() for fit in fits]) < 0.25


def test_no_shared_factor_is_found_where_each_has_its_own_memory() -> None:
    law = "{law: autoregressive, of: {law: lognorm, s: 0.3}, correlation: 0.8}"
    for seed in range(8):
        every = [drawn(law, 200, 10 * seed + number) for number in range(4)]
        assert fit_clients(every, [MEASURED] * 4, 0.0)[1] is None


def test_what_no_family_fits_keeps_its_values_and_its_memory() -> None:
    rng = np.random.default_rng(5)
    two = np.where(rng.random(400) < 0.5, 1.0, 2.0) + rng.uniform(0, 0.2, 400)
    start = np.r_[0.0, np.cumsum(two)[:-1]]
    (fit,), _ = fit_clients([Series(start, two)], [MEASURED], 0.0)
    assert "Anderson-Darling" in fit.why
    assert fit.law == MEASURED
