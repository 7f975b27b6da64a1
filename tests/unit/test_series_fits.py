"""Laws of series: known memory is found again, and independence is not refused."""

import numpy as np

from stalesim.simulator.catalogue.laws.choosing import (
    Series,
    choose,
    fit_alone,
    fit_each,
    halve,
)
from stalesim.simulator.scenario.reading import loads_any
from stalesim.simulator.world.laws.base import Draws, Population
from stalesim.simulator.world.streams import Streams

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


def test_autoregression_is_found_with_its_noise_and_marginal_law() -> None:
    law = ("{law: autoregressive, of: {law: lognorm, s: 0.3, scale: 5}, "
           "correlation: 0.9, noise: 0.2}")  # fmt: skip
    fit = fit_alone(drawn(law, 3000, 1), MEASURED, 0.0)
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


def test_a_client_that_ends_early_has_halves_of_its_own() -> None:
    law = "{law: autoregressive, of: {law: lognorm, s: 0.5}, correlation: 0.8}"
    early, late = drawn(law, 400, 1), drawn(law, 400, 2)
    late = Series(10 * late.start, 10 * late.seconds)  # ten times as long
    few = Series(late.start[:30], late.seconds[:30])
    halved = halve([early, late, few], 0.0)
    assert [one and one.half for one in halved[::2]] == [200, None]
    choose(halved)
    measured = [MEASURED] * 3
    found = fit_each([early, late, few], halved, measured, 0.0)
    memory = [fit.memory for fit in found]
    assert memory == ["autoregressive", "autoregressive", "independent"]


def test_regimes_are_found() -> None:
    law = ("{law: markov, transition: [[0.95, 0.05], [0.1, 0.9]], of: [{law: lognorm, "
           "s: 0.1, scale: 1}, {law: lognorm, s: 0.2, scale: 4}]}")  # fmt: skip
    fit = fit_alone(drawn(law, 2000, 2), MEASURED, 0.0)
    assert fit.memory == "regimes"
    fast, slow = sorted(fit.law["of"], key=lambda one: one["scale"])
    assert abs(np.log(fast["scale"])) < 4 * 0.1 / np.sqrt(1333)
    assert abs(np.log(slow["scale"] / 4)) < 4 * 0.2 / np.sqrt(667)
    left = max(row[0] for row in fit.law["transition"])
    assert abs(left - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 1333)


def test_drift_is_found_and_extrapolated() -> None:
    law = "{law: drifting, of: {law: lognorm, s: 0.1}, factor: 3, over: 600}"
    fit = fit_alone(drawn(law, 600, 3), MEASURED, 0.0)
    assert fit.memory == "drifting"
    # The slope's error is s sqrt(12 / n) over the whole.
    assert abs(np.log(fit.law["factor"] / 3)) < 4 * 0.1 * np.sqrt(12 / 600)


def test_what_no_family_fits_keeps_its_values_and_its_memory() -> None:
    rng = np.random.default_rng(5)
    two = np.where(rng.random(400) < 0.5, 1.0, 2.0) + rng.uniform(0, 0.2, 400)
    start = np.r_[0.0, np.cumsum(two)[:-1]]
    fit = fit_alone(Series(start, two), MEASURED, 0.0)
    assert "Anderson-Darling" in fit.why
    assert fit.law == MEASURED
