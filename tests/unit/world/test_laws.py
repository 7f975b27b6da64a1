"""Laws of durations: what they draw, on which clock, and keyed by what."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

from simulator.scenario.errors import ScenarioError
from simulator.scenario.laws import Constant, Scipy
from simulator.streams import BLOCK, Purpose, Streams
from simulator.world.laws import FAST, common_tick, constant, scipy_law
from simulator.world.world import Stage

SHAPES = {
    "expon": {},
    "gamma": {"a": 2.5},
    "lognorm": {"s": 0.7},
    "norm": {},
    "pareto": {"b": 3.0},
    "poisson": {"mu": 3},
    "uniform": {},
    "weibull_min": {"c": 1.5},
}


@pytest.mark.parametrize("name", FAST)
def test_fast_draws_have_scipys_law(name: str) -> None:
    shapes = SHAPES[name]
    drawn = FAST[name](np.random.default_rng(0), 20_000, *shapes.values())
    law = getattr(scipy.stats, name)(**shapes)
    # Kolmogorov-Smirnov at level 1e-6 with a fixed seed: 2.73 / sqrt(n). For a discrete
    # law the distance is at most that, evaluated at its atoms.
    points = np.unique(drawn)
    empirical = np.searchsorted(np.sort(drawn), points, side="right") / drawn.size
    assert np.abs(empirical - law.cdf(points)).max() < 2.73 / np.sqrt(drawn.size)


def test_every_scipy_law_can_be_drawn() -> None:
    law = scipy_law(Scipy(law="geninvgauss", parameters={"p": 1.0, "b": 2.0}), 1)
    drawn = law.draw(np.random.default_rng(0), 0, 1000, None)
    assert np.isfinite(drawn).all()
    assert (drawn > 0).all()


def test_parameters_differ_by_client() -> None:
    law = scipy_law(Scipy(law="poisson", parameters={"mu": "2*m"}, scale="1/(2*M)"), 4)
    generator = np.random.default_rng(0)
    means = [law.draw(generator, m, 40_000, None).mean() for m in range(4)]
    # The mean of client m is m/4 s; its standard error sqrt(2 m) / 8 / 200 < 0.0018 s.
    np.testing.assert_allclose(means, [0.25, 0.5, 0.75, 1.0], atol=5 * 0.0018)


@pytest.mark.parametrize(
    ("configs", "tick"),
    [
        ([Constant(value="m/7")], Fraction(1, 7)),
        ([Constant(value=0.1), Constant(value=0.25)], Fraction(1, 20)),
        (
            [Scipy(law="poisson", parameters={"mu": 2}, scale="1/14", shift=1e-6)],
            Fraction(1, 7_000_000),
        ),
        ([Scipy(law="expon")], None),
        ([Scipy(law="poisson", parameters={"mu": 2}, scale="sqrt(2)")], None),
        ([Constant(value=1e-15)], None),
    ],
)
def test_lattice_laws_have_a_common_tick(configs: list, tick: Fraction | None) -> None:
    build = {Constant: constant, Scipy: scipy_law}
    assert common_tick([build[type(c)](c, 3) for c in configs]) == tick


def test_ticks_are_exact() -> None:
    config = Scipy(law="poisson", parameters={"mu": 2}, scale="1/14", shift=1e-6)
    law = scipy_law(config, 1)
    ticks = law.draw(np.random.default_rng(5), 0, 100, Fraction(1, 7_000_000))
    seconds = law.draw(np.random.default_rng(5), 0, 100, None)
    assert ticks.dtype == np.int64
    np.testing.assert_allclose(ticks / 7_000_000, seconds, rtol=1e-15)
    assert set(np.unique(ticks % 500_000)) == {7}


def test_an_impossible_duration_is_an_error_when_it_is_drawn() -> None:
    law = scipy_law(Scipy(law="norm", shift=1), 1)
    with pytest.raises(ScenarioError, match=r"finite durations >= 0.*client 1"):
        law.draw(np.random.default_rng(0), 0, 10_000, None)


def _draws(seed: int, num_clients: int, client: int, n: int) -> list[float]:
    law = scipy_law(Scipy(law="expon"), num_clients)
    stage = Stage(law, Purpose.COMPUTE, Streams(seed), num_clients, None)
    return [stage.next(client) for _ in range(n)]


def test_a_clients_draws_depend_on_nobody_else() -> None:
    alone = _draws(1, 3, 2, 3 * BLOCK)
    law = scipy_law(Scipy(law="expon"), 1000)
    stage = Stage(law, Purpose.COMPUTE, Streams(1), 1000, None)
    mixed = []
    for _ in range(3 * BLOCK):
        stage.next(999)
        mixed.append(stage.next(2))
        stage.next(0)
    assert alone == mixed


def test_draws_differ_by_seed_client_block_and_purpose() -> None:
    first = Streams(1).at(Purpose.IDLE, 0, 0).random(4).tolist()
    others = [
        Streams(2).at(Purpose.IDLE, 0, 0),
        Streams(1).at(Purpose.COMPUTE, 0, 0),
        Streams(1).at(Purpose.IDLE, 1, 0),
        Streams(1).at(Purpose.IDLE, 0, 1),
    ]
    for other in others:
        assert other.random(4).tolist() != first
    streams = Streams(1)
    streams.at(Purpose.IDLE, 7, 3).integers(0, 5, 3, dtype=np.uint32)
    assert streams.at(Purpose.IDLE, 0, 0).random(4).tolist() == first


def test_blocks_of_a_stream_are_uncorrelated() -> None:
    streams = Streams(3)
    draws = np.stack(
        [streams.at(Purpose.IDLE, c, b).random(64) for c in range(40) for b in range(5)]
    )
    correlation = np.corrcoef(draws)[np.triu_indices(len(draws), 1)]
    # 19,900 pairs of 64 draws: standard deviation 1/8; six of them bound the maximum.
    assert np.abs(correlation).max() < 6 / 8
    assert abs(correlation.mean()) < 6 / 8 / np.sqrt(correlation.size)
