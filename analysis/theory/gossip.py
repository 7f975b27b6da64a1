"""How fast averaging between workers spreads: spectral gaps of averaging matrices."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float


def spectral_gap(averaging: Float[np.ndarray, "K K"]) -> float:
    """Computes one minus the second largest modulus of an averaging matrix.

    A round multiplies the disagreement of workers by that modulus in the long run; by
    at most as much in every round where the matrix is symmetric.

    Args:
        averaging: Weights, >= 0; every row sums to 1.

    Returns:
        From 1, where one round averages exactly, to 0, where some workers never agree.

    Raises:
        ValueError: A weight is negative or a row does not sum to 1.

    Source: Xiao and Boyd, Fast linear iterations for distributed averaging (2004).
    """
    averaging = np.asarray(averaging, dtype=float)
    if (averaging < 0).any() or not np.allclose(averaging.sum(axis=1), 1, atol=1e-9):
        raise ValueError(
            "averaging must have weights >= 0 and rows of sum 1, got a least weight of "
            f"{averaging.min()} and sums {averaging.sum(axis=1).tolist()}"
        )
    moduli = np.sort(np.abs(np.linalg.eigvals(averaging)))
    return 1 - float(moduli[-2]) if moduli.size > 1 else 1.0


def expected_pairwise_averaging(
    num_workers: int, edges: Sequence[tuple[int, int]]
) -> Float[np.ndarray, "K K"]:
    """Computes the expected averaging matrix of random-edge gossip.

    In every exchange the two ends of one edge, drawn uniformly, take the mean of their
    models: I - L / (2 |E|), with the graph's Laplacian L. An exchange is a projection,
    so the second largest eigenvalue is also the factor that bounds the expected squared
    disagreement per exchange.

    Args:
        num_workers: K.
        edges: Undirected edges, pairs of different workers, from 0. A repeated one is
            drawn twice as often, so that the edges that a run drew give its mean
            matrix.

    Raises:
        ValueError: There is no edge, or one is a loop or out of range.

    Source: Boyd, Ghosh, Prabhakar and Shah, Randomized gossip algorithms (2006),
        section II.
    """
    if not len(edges):
        raise ValueError("edges must hold a pair of workers, got none")
    ends = np.asarray(edges, dtype=np.int64)
    low, high = ends.min(axis=1), ends.max(axis=1)
    wrong = (low < 0) | (low == high) | (high >= num_workers)
    if wrong.any():
        raise ValueError(
            f"edges must be pairs of different workers below {num_workers}, got "
            f"{ends[wrong][0].tolist()}"
        )
    adjacency = np.zeros((num_workers, num_workers))
    np.add.at(adjacency, (low, high), 1)
    adjacency += adjacency.T
    laplacian = np.diag(adjacency.sum(axis=1)) - adjacency
    return np.eye(num_workers) - laplacian / (2 * len(ends))
