"""VAFL with networks at the parties and at the server: slow, plain NumPy, float64.

Written from the paper's equations (1) to (4), (10), (11) and Algorithms 1 and 2, not
from the kernel, with forward and backward passes by hand, sample by sample.

A party has two layers. For each of its views v of sample n, with ReLU `r`,

    u = r(W1 v + b1 + Z1),    h = r(W2 u + b2 + Z2)                         (10)

and it sends the h of all views. The server combines all vectors, a_p the p-th of them:
laid end to end, added up, or added up with factors c_p; then `z1 = r(A1 s + d1)` and
logits `A2 z1 + d2`, softmax cross-entropy, mean over the batch.

A commit (upload first, both gradients at theta_0^k): every contributor uploads its
batch, or all samples, with the noise of its job; the server stores them; its gradient
is the mean over the contributors' batches; each contributor gets the derivative of the
loss by its own h and pulls it back with the noise of that upload (V-17). In a
coordinated commit all parties embed one batch afresh, and all blocks move.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Noise = Callable[[int, int, int], tuple[np.ndarray, np.ndarray]]
"""Z1 `[views, H]` and Z2 `[views, D]` of (party, job, sample)."""


class Party(NamedTuple):
    W1: np.ndarray
    b1: np.ndarray
    W2: np.ndarray
    b2: np.ndarray


class Server(NamedTuple):
    """Factors are None unless they are learned; `adds` is False for end to end."""

    factors: np.ndarray | None
    A1: np.ndarray
    d1: np.ndarray
    A2: np.ndarray
    d2: np.ndarray


class Commit(NamedTuple):
    parties: tuple[int, ...]
    jobs: tuple[int, ...]
    batches: tuple[np.ndarray, ...]


class Twin:
    """A run in progress; `parties`, `server` and `table` are its state."""

    def __init__(
        self,
        features: list[np.ndarray],
        labels: np.ndarray,
        parties: list[Party],
        server: Server,
        *,
        views: int,
        adds: bool,
        noise: Noise | None,
        step_size: float,
        server_step_size: float,
        l2: float,
    ) -> None:
        self.x = [part.reshape(len(part), views, -1) for part in features]
        self.y, self.parties, self.server = labels, parties, server
        self.views, self.adds, self.noise = views, adds, noise
        self.eta, self.eta_0, self.l2 = step_size, server_step_size, l2
        M, N = len(parties), len(labels)
        self.table = np.zeros((N, M, views, len(parties[0].b2)))
        self.losses: list[float] = []
        for m in range(M):
            for n in range(N):
                self.table[n, m] = self.embed(m, -1, n)

    def layers(self, m: int, job: int, n: int) -> tuple[np.ndarray, ...]:
        """Returns pre-activations and activations of both layers, view by view."""
        own = self.parties[m]
        z1, z2 = (0.0, 0.0) if self.noise is None else self.noise(m, job, n)
        a1 = self.x[m][n] @ own.W1.T + own.b1 + z1
        u = np.maximum(a1, 0)
        a2 = u @ own.W2.T + own.b2 + z2
        return a1, u, a2, np.maximum(a2, 0)

    def embed(self, m: int, job: int, n: int) -> np.ndarray:
        return self.layers(m, job, n)[-1]

    def head(self, h: np.ndarray, label: int) -> tuple[float, np.ndarray, Server]:
        """Returns loss, its derivative by h, and the gradient of the server's block."""
        own = self.server
        vectors = h.reshape(-1, h.shape[-1])
        if not self.adds:
            s = vectors.reshape(-1)
        elif own.factors is None:
            s = vectors.sum(axis=0)
        else:
            s = own.factors @ vectors
        a1 = own.A1 @ s + own.d1
        z1 = np.maximum(a1, 0)
        logits = own.A2 @ z1 + own.d2
        p = np.exp(logits - logits.max())
        p /= p.sum()
        loss = -np.log(p[label])

        to_logits = p.copy()
        to_logits[label] -= 1
        to_a1 = (own.A2.T @ to_logits) * (a1 > 0)
        to_s = own.A1.T @ to_a1
        to_factors = None
        if not self.adds:
            to_vectors = to_s.reshape(vectors.shape)
        elif own.factors is None:
            to_vectors = np.tile(to_s, (len(vectors), 1))
        else:
            to_vectors = np.outer(own.factors, to_s)
            to_factors = vectors @ to_s
        gradient = Server(
            to_factors,
            np.outer(to_a1, s),
            to_a1,
            np.outer(to_logits, z1),
            to_logits,
        )
        return float(loss), to_vectors.reshape(h.shape), gradient

    def pull(self, m: int, job: int, n: int, to_h: np.ndarray) -> Party:
        """Returns the gradient of a party's block by one sample."""
        own = self.parties[m]
        a1, u, a2, _ = self.layers(m, job, n)
        to_a2 = to_h * (a2 > 0)
        to_a1 = (to_a2 @ own.W2) * (a1 > 0)
        return Party(
            to_a1.T @ self.x[m][n],
            to_a1.sum(axis=0),
            to_a2.T @ u,
            to_a2.sum(axis=0),
        )

    def commit(self, row: Commit, *, upload_all: bool, current: bool = False) -> None:
        """Makes one commit of the asynchronous or the t-synchronous method.

        With `current` all parties' embeddings are made anew before (no noise).
        """
        if current:
            for m, n in np.ndindex(len(self.parties), len(self.y)):
                self.table[n, m] = self.embed(m, -1, n)
        for m, job, batch in zip(*row, strict=True):
            for n in range(len(self.y)) if upload_all else batch:
                self.table[n, m] = self.embed(m, job, int(n))
        self._move(row, lambda n: self.table[n])

    def coordinated(self, job: int, batch: np.ndarray) -> None:
        """Makes one commit of the synchronous baseline."""
        M = len(self.parties)
        fresh = {
            int(n): np.stack([self.embed(m, job, int(n)) for m in range(M)])
            for n in batch
        }
        row = Commit(tuple(range(M)), (job,) * M, (batch,) * M)
        self._move(row, lambda n: fresh[n])

    def _move(self, row: Commit, stored: Callable[[int], np.ndarray]) -> None:
        to_server: Server | None = None
        moved = list(self.parties)
        losses = []
        for m, job, batch in zip(*row, strict=True):
            to_party: Party | None = None
            for sample in batch:
                n = int(sample)
                loss, to_h, of_server = self.head(stored(n), int(self.y[n]))
                losses.append(loss)
                share = 1 / len(batch)
                to_party = _added(to_party, self.pull(m, job, n, to_h[m]), share)
                to_server = _added(to_server, of_server, share / len(row.parties))
            assert to_party is not None
            moved[m] = Party(
                *(
                    w - self.eta * (slope + self.l2 * w)
                    for w, slope in zip(self.parties[m], to_party, strict=True)
                )
            )
        assert to_server is not None
        self.losses.append(float(np.mean(losses)))
        self.parties = moved
        arrays: list[Any] = [
            w if w is None or slope is None else w - self.eta_0 * slope
            for w, slope in zip(self.server, to_server, strict=True)
        ]
        self.server = Server(*arrays)


def _added(total: Any, part: Any, share: float) -> Any:
    """Returns `total + share * part`, array by array."""
    if total is None:
        return type(part)(*(p if p is None else share * p for p in part))
    return type(part)(
        *(t if t is None else t + share * p for t, p in zip(total, part, strict=True))
    )
