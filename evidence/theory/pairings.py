"""Averaging between random pairs of workers: expected matrices, rho and rho bar.

An averaging of two workers is a projection A, symmetric and equal to A^T A; so the
expected matrix of random pairs is also the expectation in rho of A(DP)2SGD.

Source: Xu, Zhang and Wang, A(DP)2SGD (2020); decisions (A-) are in
evidence/pages/decisions.md.
"""

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

Pairing = Literal["random_receiver", "ring_neighbour", "any"]
"""Workers that a worker averages with (A-08): the other half, both neighbours on the
ring, or any other. Even workers are senders, odd ones receivers."""


Initiator = Literal["sender", "every"]
"""Workers whose gradients come with an averaging (A-09)."""


def expected_initiated_averaging(
    shares: Sequence[float] | Float[np.ndarray, " K"],
    partners: Float[np.ndarray, "K K"],
) -> Float[np.ndarray, "K K"]:
    """Computes the expected averaging matrix where workers initiate and choose.

    An iteration is worker k's with probability p_k; it averages with j with probability
    q_kj, and with none (A = I) with the rest of the row. Both are independent of
    the past, as the analysis of A(DP)2SGD takes them (A-19).

    Args:
        shares: Shares p_k, >= 0, of sum 1.
        partners: Q_kj, >= 0; rows of sum <= 1, and no worker its own partner.

    Raises:
        ValueError: The shares or the partners are no such probabilities.

    Source: A(DP)2SGD, Algorithm 1, lines 4 and 8.
    """
    p, q = np.asarray(shares, dtype=float), np.asarray(partners, dtype=float)
    if q.shape != (p.size, p.size):
        raise ValueError(
            f"partners must be of shape {(p.size, p.size)}, got {q.shape}; "
            "give a row and a column per worker"
        )
    if (p < 0).any() or abs(p.sum() - 1) > 1e-9:
        raise ValueError(
            f"shares must be >= 0 and of sum 1, got {p.tolist()}; divide by their sum"
        )
    if (q < 0).any() or (q.sum(axis=1) > 1 + 1e-9).any() or q.diagonal().any():
        raise ValueError(
            "partners must have entries >= 0, rows of sum <= 1 and a diagonal of 0, "
            f"got {q.tolist()}; leave what is not averaged out"
        )
    weights = p[:, None] * q
    weights = weights + weights.T
    return np.eye(p.size) - (np.diag(weights.sum(axis=1)) - weights) / 2


def partner_law(
    pairing: Pairing, num_workers: int, initiator: Initiator = "every"
) -> Float[np.ndarray, "K K"]:
    """Returns the chance that worker k, when it initiates, averages with worker j.

    Args:
        pairing: Choice of the partner.
        num_workers: K, >= 2; even for ring neighbours of senders.
        initiator: `sender` leaves the rows of receivers zero.

    Raises:
        ValueError: The number of workers does not fit, or a name is unknown.

    Source: A(DP)2SGD, appendix A; A-08, A-09.
    """
    _check_name("pairing", pairing, get_args(Pairing))
    _check_name("initiator", initiator, get_args(Initiator))
    if num_workers < 2:
        raise ValueError(
            f"num_workers must be >= 2, got {num_workers}; one has no other to average"
        )
    senders = initiator == "sender"
    if senders and pairing == "ring_neighbour" and num_workers % 2:
        raise ValueError(
            f"num_workers must be even for senders on a ring, got {num_workers}; "
            "add one"
        )
    law = np.zeros((num_workers, num_workers))
    for k in range(num_workers):
        if senders and k % 2:
            continue
        others = {
            "random_receiver": [j for j in range(num_workers) if (j - k) % 2],
            "ring_neighbour": [(k - 1) % num_workers, (k + 1) % num_workers],
            "any": [j for j in range(num_workers) if j != k],
        }[pairing]
        np.add.at(law[k], others, 1 / len(others))
    return law


def pairing_rho(
    pairing: Pairing,
    num_workers: int,
    initiator: Initiator = "every",
    shares: Sequence[float] | Float[np.ndarray, " K"] | None = None,
) -> float:
    """Computes rho = max(|lambda_2|, |lambda_K|) of E[A^T A] for random pairs.

    Averaging shrinks the expected squared disagreement by this factor per iteration, or
    more.

    Args:
        pairing: Choice of the partner.
        num_workers: K, >= 2; even for ring neighbours of senders.
        initiator: Workers whose gradients come with an averaging.
        shares: Shares p_k, shares of all gradients, of sum 1; by default equal.

    Returns:
        In [0, 1]; 1 where some workers never agree.

    Raises:
        ValueError: An argument is refused as by `partner_law` and
            `expected_initiated_averaging`.

    Source: A(DP)2SGD, equation 6.
    """
    law = partner_law(pairing, num_workers, initiator)
    p = np.full(num_workers, 1 / num_workers) if shares is None else shares
    expected = expected_initiated_averaging(p, law)
    return min(1.0, float(np.sort(np.abs(np.linalg.eigvalsh(expected)))[-2]))


def rho_bar(rho: float, num_workers: int) -> float:
    """Computes (K - 1) / K (1 / (1 - rho) + 2 sqrt(rho) / (1 - sqrt(rho))^2).

    Args:
        rho: Value of `pairing_rho`, in [0, 1).
        num_workers: K, >= 1.

    Raises:
        ValueError: An argument is out of its range.

    Source: A(DP)2SGD, before Theorem 1.
    """
    if not 0 <= rho < 1:
        raise ValueError(
            f"rho must be in [0, 1), got {rho}; connect all workers, who never agree"
        )
    if num_workers < 1:
        raise ValueError(f"num_workers must be >= 1, got {num_workers}; try 16")
    root = math.sqrt(rho)
    spread = 1 / (1 - rho) + 2 * root / (1 - root) ** 2
    return (num_workers - 1) / num_workers * spread


def _check_name(what: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise ValueError(
            f"{what} must be one of {', '.join(names)}, got {name!r}; try {names[0]}"
        )
