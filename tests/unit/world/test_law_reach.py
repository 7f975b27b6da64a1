"""Every law of SciPy draws within a memory limit, or is refused in one line."""

import resource
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
from scipy.stats._distr_params import distcont, distdiscrete

from stalesim.simulator.catalogue.laws.truncated import Truncated
from stalesim.simulator.parts.base import LocatedError
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.world.laws import usual
from stalesim.simulator.world.laws.base import Draws, Population
from stalesim.simulator.world.laws.distributions import Scipy
from stalesim.simulator.world.streams import Purpose, Streams

MEMORY = 3 << 30
"""Bytes of address space; libraries take about 1 GiB of it."""
HEAVY = {
    "zipf": [{"a": 1.000001}, {"a": 1.2}, {"a": 2.2}, {"a": 3.0}],
    "betanbinom": [{"n": 5, "a": 0.5, "b": 1}],
    "betabinom": [{"n": 10**9, "a": 2, "b": 1}],
    "logser": [{"p": 1 - 1e-7}, {"p": 0.99}],
    "nhypergeom": [{"M": 10**9, "n": 5 * 10**8, "r": 10**8}],
    "yulesimon": [{"alpha": 0.01}, {"alpha": 0.5}],
    "zipfian": [{"a": 1.2, "n": 10**9}],
    "skellam": [{"mu1": 45, "mu2": 24}],
    "geom": [{"p": 1e-18}],
    "nbinom": [{"n": 1e-3, "p": 1e-12}],
    "pareto": [{"b": 0.01}],
    "gausshyper": [{"a": 275, "b": 62, "c": 50, "z": 103}],
}
"""Shapes of long tails and wide supports, besides SciPy's own examples."""
SLOW = ("dpareto_lognorm", "gausshyper", "genhyperbolic", "kstwo", "studentized_range")
"""Laws of which SciPy takes more than 20 ms a quantile, so that fewer are drawn."""
SUMMED = [
    law
    for law in dir(scipy.stats)
    if isinstance(getattr(scipy.stats, law), scipy.stats.rv_discrete)
    and usual.is_searched(getattr(scipy.stats, law))
]


def cases() -> dict[str, list[dict[str, float]]]:
    """Returns shapes of all laws of SciPy: its own examples, and heavy ones."""
    found: dict[str, list[dict[str, float]]] = {}
    for law, values in [*distcont, *distdiscrete]:
        if law in ("poisson_binom", "rv_histogram") or not isinstance(law, str):
            continue  # its shape is a list of any length
        names = (getattr(scipy.stats, law).shapes or "").split(", ")
        shapes = dict(zip(names, map(float, values), strict=False))
        found.setdefault(law, []).append(shapes)
    for law, heavy in HEAVY.items():
        found[law] += heavy
    return found


def drawn(law: str, shapes: dict[str, float], number: int) -> np.ndarray | None:
    """Returns draws of a law; None where it is refused in one line that helps."""
    try:
        config = Scipy(law=law, **shapes)  # pyright: ignore[reportCallIssue]
        config.check(1, "clients.compute")
        uniform = Streams(5).uniforms(Purpose.COMPUTE, 0, 0, number)
        # A draw that is as rare as one in a million, for a law that is accepted.
        uniform = np.r_[1 - 1e-6, uniform]
        sampler = config.make(Population(1, Streams(1)))
        return sampler.draw(Draws(uniform, 0, 0), None)
    except (LocatedError, ScenarioError) as error:
        text = str(error)
        assert " must " in text, text
        assert "; " in text, text
        assert "\n" not in text, text
        return None


def draw_all() -> None:
    """Draws of all laws, within the memory limit."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    np.seterr(all="ignore")
    count = 0
    for law, each in cases().items():
        for shapes in each:
            found = drawn(law, shapes, 5 if law in SLOW else 50)
            count += found is not None
    assert count > len(SUMMED)


@pytest.mark.slow
def test_every_law_draws_within_memory_or_is_refused_in_a_line() -> None:
    code = "from tests.unit.world import test_law_reach as t; t.draw_all()"
    command = [sys.executable, "-W", "ignore", "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-2000:]


def test_a_law_out_of_reach_names_its_bounded_relative() -> None:
    with pytest.raises(LocatedError, match=r"probability of 0\.056; take zipf"):
        Scipy(law="zipf", a=1.2).check(1, "x")  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("law", [law for law in SUMMED if law != "poisson_binom"])
def test_quantiles_that_are_searched_are_the_least_that_reach(law: str) -> None:
    known = getattr(scipy.stats, law)
    shapes = next(values for name, values in distdiscrete if name == law)
    uniform = np.r_[np.linspace(0.001, 0.999, 60), 1 - 1e-6]
    found = usual.ppf(known, uniform, *shapes)
    assert (found == np.round(found)).all()
    assert (known.cdf(found, *shapes) >= uniform).all()
    assert (known.cdf(found - 1, *shapes) < uniform).all()


def test_the_bounded_relatives_draw_what_the_law_does_given_the_bound() -> None:
    of = Scipy(law="zipf", a=1.2)  # pyright: ignore[reportCallIssue]
    config = Truncated(of=of, high=180)
    uniform = (np.arange(2000) + 0.5) / 2000
    sampler = config.make(Population(1, Streams(1)))
    found = sampler.draw(Draws(uniform, 0, 0), None)
    chance = np.arange(1, 181) ** -1.2
    expected = (chance / chance.sum()).cumsum().searchsorted(uniform) + 1
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ScenarioError, match=r"within 1,000,000 values .* zipfian"):
        Truncated(of=of, high=1e10).make(Population(1, Streams(1)))


def test_draws_beyond_the_clock_are_refused() -> None:
    law = Scipy(law="geom", p=1e-18)  # pyright: ignore[reportCallIssue]
    sampler = law.make(Population(1, Streams(1)))
    with pytest.raises(ScenarioError, match="durations >= 0 that a clock counts"):
        sampler.draw(Draws(np.array([0.5]), 0, 0), 1)  # pyright: ignore
