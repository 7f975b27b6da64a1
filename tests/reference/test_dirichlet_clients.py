"""The partition `dirichlet_clients` against its twin, and the law's moments."""

import numpy as np
import pytest

from stalesim.simulator.catalogue.partitions.classes import DirichletClients
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.data.base import Dataset
from stalesim.simulator.problem.partition import ORDER, PROPORTIONS, draws


def dataset(y: np.ndarray, num_classes: int) -> Dataset:
    x = np.zeros((y.size, 1), np.float32)
    return Dataset("made", x, y.astype(np.int32), x[:1], y[:1], num_classes, ("a",))


def partition(y: np.ndarray, clients: int, alpha: float, seed: int) -> list[list[int]]:
    """Returns the rows of each client, ascending, as Hsu, Qi and Brown tell it."""
    order = draws(seed, ORDER).permutation(len(y)).tolist()
    classes = sorted(set(y.tolist()))
    waiting = {k: [row for row in order if y[row] == k] for k in classes}
    p = {k: len(waiting[k]) / len(y) for k in classes}
    prior = [alpha * p[k] for k in classes]
    draw, shares = draws(seed, PROPORTIONS), []
    for client in range(clients):
        size = len(y) // clients + (1 if client < len(y) % clients else 0)
        q = dict(zip(classes, draw.dirichlet(prior), strict=True))
        rows = []
        for uniform in draw.random(size):
            chance = {k: q[k] for k in classes if waiting[k]}
            if not sum(chance.values()) > 0:
                chance = {k: p[k] for k in chance}
            place = uniform * sum(chance.values())
            taken = max(k for k, each in chance.items() if each > 0)
            for k, each in chance.items():
                place -= each
                if place < 0:
                    taken = k
                    break
            rows.append(waiting[taken].pop(0))
        shares.append(sorted(rows))
    return shares


@pytest.mark.parametrize("alpha", [1e-9, 0.05, 1.0, 30.0])
@pytest.mark.parametrize("clients", [1, 7, 40])
def test_as_the_twin(alpha: float, clients: int) -> None:
    """Also where classes are of unequal size, and class 2 of 5 has no row."""
    y = np.random.default_rng(4).choice(5, 203, p=[0.5, 0.1, 0, 0.1, 0.3])
    config = DirichletClients(clients=clients, alpha=alpha)
    for seed in range(3):
        found = config.make(dataset(y, 5), seed)
        assert [rows.tolist() for rows in found] == partition(y, clients, alpha, seed)


def test_first_client_has_the_laws_mean_and_variance() -> None:
    """Shares of n rows from q ~ Dir(alpha p): a Dirichlet multinomial's moments."""
    y, alpha, size, runs = np.repeat([0, 1, 2], [600, 300, 300]), 2.0, 60, 3000
    config = DirichletClients(clients=20, alpha=alpha)
    data = dataset(y, 3)
    share = np.array(
        [
            np.bincount(y[config.make(data, seed)[0]], minlength=3)
            for seed in range(runs)
        ]
    )
    p = np.array([0.5, 0.25, 0.25])
    variance = p * (1 - p) * size * (size + alpha) / (1 + alpha)
    assert (abs(share.mean(axis=0) - size * p) < 5 * np.sqrt(variance / runs)).all()
    assert share.var(axis=0) == pytest.approx(variance, rel=0.15)


def test_more_clients_than_rows_are_refused() -> None:
    config = DirichletClients(clients=4, alpha=1.0)
    with pytest.raises(ScenarioError, match="at most the 3 training rows of made"):
        config.make(dataset(np.array([0, 1, 1]), 2), 0)
