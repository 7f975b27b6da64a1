"""What clients share: a factor is found and taken out, and chance is none."""

import numpy as np
import pytest

from stalesim.simulator.catalogue.laws import fitting
from stalesim.simulator.catalogue.laws.choosing import Series
from stalesim.simulator.extras.logs.shared import fit_clients
from tests.unit.test_series_fits import MEASURED, drawn


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
    assert shared["kind"] == "shared"
    # 350 steps of correlation 0.9 are worth 18: the spread's error is 17 %.
    assert abs(np.log(shared["factor"]["of"]["s"] / 0.5)) < 4 * 0.17
    assert all(fit.memory == "independent" for fit in fits)
    assert 0.15 < np.median([np.log(fit.values).std() for fit in fits]) < 0.25


def test_no_shared_factor_is_found_where_each_has_its_own_memory() -> None:
    law = "{law: autoregressive, of: {law: lognorm, s: 0.3}, correlation: 0.8}"
    for seed in range(8):
        every = [drawn(law, 200, 10 * seed + number) for number in range(4)]
        assert fit_clients(every, [MEASURED] * 4, 0.0)[1] is None
