"""Widths of waves against the birthday problem, and against an independent simulation.

Every run has 40,000 contributions.
"""

from math import sqrt
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.buffered import Buffered
from stalesim.simulator.engine.row_waves import CriticalPath
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.distributions import Scipy
from tests.support import played

CONTRIBUTIONS = 40_000
SEEDS = range(8)
EXPON = Scipy(law="expon")
STEADY = Scipy(law="lognorm", parameters={"s": 0.25})
SLOWER = Scipy(law="expon", scale="m/M")


def width(protocol: Any, law: Any, number: int, seed: int) -> float:
    """Returns the jobs a wave of one run."""
    clients = Clients(compute=law)
    plan = played(protocol, clients, number, seed, contributions=CONTRIBUTIONS)
    path = CriticalPath(number)
    for chunk in plan.chunks(8192):
        path.add(chunk)
    assert path.waves is not None
    return path.jobs / path.waves


@pytest.mark.parametrize("number", [1, 2, 4, 10, 32, 100, 1000])
def test_a_wave_of_equal_exponential_clients_ends_with_a_repeated_birthday(
    number: int,
) -> None:
    """Each commit is of any client alike, and a client has read its own last one.

    So a wave goes on until a client comes for the second time, and that one begins the
    next: lengths are independent, with as many clients as days. Their mean is
    Ramanujan's Q (Knuth, The Art of Computer Programming 1, section 1.2.11.3). By
    renewal theory n jobs over their waves deviate from it by s sqrt(mean / n), where s
    is the standard deviation of a length; five of those bound the difference, and one
    wave more, for the last one is cut.
    """
    no_repeat = np.cumprod(1 - np.arange(number) / number)  # of k + 1 clients
    mean = no_repeat.sum()
    s = sqrt(((2 * np.arange(number) + 1) * no_repeat).sum() - mean**2)
    bound = 5 * s * sqrt(mean / CONTRIBUTIONS) + mean**2 / CONTRIBUTIONS
    for seed in (1, 2):
        found = width(Asynchronous(), EXPON, number, seed)
        assert found == pytest.approx(mean, abs=bound)


@pytest.mark.parametrize(
    ("protocol", "law", "widths"),
    [
        (Asynchronous(), STEADY, {10: 8.5, 100: 68}),
        (Asynchronous(), SLOWER, {10: 2.6, 100: 4.5}),
        (Buffered(size=10), EXPON, {10: 10, 100: 17}),
    ],
)
def test_widths_are_those_of_an_independent_simulation(
    protocol: Any, law: Any, widths: dict[int, float]
) -> None:
    """Compares with one run each of a simulation of its own, rounded to two digits.

    Half of the last digit bounds their difference, and five standard deviations of a
    run and of our mean, as our runs estimate it: Student's t with 7 degrees of freedom
    exceeds five with probability 0.002. That must be within a tenth.
    """
    for number, other in widths.items():
        found = [width(protocol, law, number, seed) for seed in SEEDS]
        half = 0.05 if other < 10 else 0.5
        bound = half + 5 * float(np.std(found, ddof=1)) * sqrt(1 + 1 / len(found))
        assert np.mean(found) == pytest.approx(other, abs=bound)
        assert bound < 0.1 * other + half
