"""Threads of computation trees, as the figure has them."""

import numpy as np

from evidence.generators import computation_trees
from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.collect.collect import Collect
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous


def _back(found: list[computation_trees.Thread]) -> np.ndarray:
    return np.array([one.applied - 1 - one.read for one in found])


def test_threads_of_asgd_are_those_of_a_run_by_hand() -> None:
    # arrivals at 1 (client 1), 1.3 (2), 2 (1), 2.1 (3), 2.6 (2), 3 (1), ...
    found = computation_trees.threads(Asynchronous(), 6)
    assert found == [
        (0, 0, 1),
        (1, 0, 2),
        (0, 1, 3),
        (2, 0, 4),
        (1, 2, 5),
        (0, 3, 6),
    ]


def test_no_thread_goes_back_farther_than_a_method_lets_it() -> None:
    ringmaster = Asynchronous(staleness_bound=2, beyond="stop")
    assert _back(computation_trees.threads(ringmaster, 40)).max() == 2
    rennala = Collect(count=4, late="stop")
    assert (_back(computation_trees.threads(rennala, 40)) == [0, 1, 2, 3] * 10).all()
    everyone = computation_trees.threads(Synchronous(), 8)
    assert [one.client for one in everyone] == [0, 1, 2, 3] * 2
    assert [one.read for one in everyone] == [0] * 4 + [4] * 4
