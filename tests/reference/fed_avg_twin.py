"""Federated averaging: slow, plain NumPy, from Algorithm 1 of McMahan et al. (2017).

A round has some clients, each with its number of samples n_k and the batches that it
goes through, one after the other. Client k starts at the server's model w:

    w_k <- w;  for each batch b:  w_k <- w_k - eta grad l(w_k; b)

and the server takes the mean of their models, weighted by numbers of samples:

    w <- sum_k n_k / n w_k,  n = sum_k n_k over the clients of the round

FedProx (Li et al. 2020, eq. 2) adds mu / 2 |w_k - w|^2 to a client's loss. A server
with a step size (Reddi et al. 2021, Algorithm 2, by SGD) goes that part of the way.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tests.reference.federated_twin import Problem, penalty_gradient, sample_gradient


class Client(NamedTuple):
    """What a client does in a round.

    Attributes:
        num_samples: n_k, all samples that it has.
        batches: Sample ids of each batch.
    """

    num_samples: int
    batches: Sequence[np.ndarray]


def client_update(
    problem: Problem,
    w: np.ndarray,
    batches: Sequence[np.ndarray],
    eta: float,
    mu: float,
) -> np.ndarray:
    """Returns w_k: the model that a client ends with, [C, P + 1]."""
    own = w.copy()
    for batch in batches:
        slopes = [sample_gradient(problem, own, int(sample)) for sample in batch]
        gradient = sum(slopes) / len(batch) + penalty_gradient(problem, own)
        own = own - eta * (gradient + mu * (own - w))
    return own


def run(
    problem: Problem,
    start: np.ndarray,
    rounds: Sequence[Sequence[Client]],
    eta: float,
    *,
    mu: float = 0.0,
    server_step_size: float = 1.0,
    weighted: bool = True,
) -> list[np.ndarray]:
    """Returns the server's models, from the start on, one more than there are rounds.

    Args:
        problem: Data and loss.
        start: Model at the start, [C, P + 1].
        rounds: Clients of each round.
        eta: Step size of the clients.
        mu: FedProx's.
        server_step_size: Part of the way from w to the mean of the models.
        weighted: Whether clients count by n_k, or all alike.
    """
    models = [start]
    for clients in rounds:
        w = models[-1]
        sizes = [c.num_samples if weighted else 1 for c in clients]
        mean = np.zeros_like(w)
        for client, size in zip(clients, sizes, strict=True):
            own = client_update(problem, w, client.batches, eta, mu)
            mean = mean + size / sum(sizes) * own
        models.append(w + server_step_size * (mean - w))
    return models
