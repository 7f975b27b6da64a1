"""FedBCD-s, parties one after the other: slow, plain NumPy.

A round: the batch S is given; then for k = 1..K in order, Q steps of party k with the
H_{-k} that it knows, and an Exchange({k, K}). That sends two messages for k < K and
none for k = K, as Exchange({K}) has nobody to talk to.

What a party knows is kept in tables over all N samples:

    store[k]  the newest H^k_i that party K was sent, with H^K_i always up to date,
              as K computes it when it is wanted;
    view[k]   H_{-k,i}, and told[k] the slopes, as of the last time that K told
              party k about sample i.

`exchange="per_batch"` (F-02, default) makes an Exchange(all) about S when S is known,
so that everybody begins with fresh values. There is then none before the loop: it
would be about no batch, and nothing of it would be read.

`exchange="as_printed"` has one Exchange(all) before the loop, and none between the
choice of S and the first party's steps. What can the first party have for the new S?

* The exchange before the loop cannot be about a batch, for none is chosen. It must be
  about all N samples, at the initial parameters; otherwise H_{-1} is undefined.
* Later, party 1 hears only in its own Exchange({1, K}) of earlier rounds, made after
  its steps. So for i of the new S it has H_{-1,i} as of the last round before this
  one in whose batch i was, and in it as of before the steps of parties 2..K; if there
  is no such round, as of the initial parameters. It never hears of K's steps of the
  round before, even if S stays the same, because Exchange({K}) sends nothing.
* It knows its own theta_1, so "recompute" puts its present H^1 on top of the old
  H_{-1}. The slope of "frozen" is old in both.

`covers="batch"` does this. `covers="all"` lets every Exchange({k, K}) be about all N
samples, which is the only other thing that gives H_{-1} on a batch not yet chosen:
party 1 then has it as of its exchange of the round before, at any sample. Neither
equals "per_batch", which needs messages after the choice of S.

The parties between. Exchange({k, K}) answers k, which has just made its steps, and
not k + 1, which is about to. Taken literally, parties 2..K-1 do not see "the updated
contribution of earlier ones" (section 4.3); only K does. `later="latest"` (default)
follows the sentence: before its steps party k < K is told again, from `store`, about
S. `later="own_exchange"` follows the procedure. For K <= 2 they are the same. The log
and the counts contain the printed messages only; "latest" needs K - 2 more a round,
K to k + 1 for k + 1 = 2..K-1, or its answers redirected there.

Source: Algorithm 3 of the paper; section 4.3 and F-02 of the specification.
"""

from collections.abc import Sequence

import numpy as np

from tests.reference.fedbcd_twin import (
    Message,
    Params,
    Problem,
    Trace,
    add_up,
    local_steps,
    record,
    slopes,
    step_table,
    with_loss_of,
)


def fedbcd_s(
    problem: Problem,
    params: Params,
    batches: Sequence[np.ndarray],
    Q: int,
    steps: np.ndarray,
    local_gradient: str = "recompute",
    exchange: str = "per_batch",
    later: str = "latest",
    covers: str = "batch",
) -> Trace:
    """Algorithm 3.

    Args:
        problem: data, models and loss.
        params: initial, flat, per party.
        batches: sample ids of each round.
        Q: local steps a round, >= 1.
        steps: [T] or [T, Q], the same at all parties: with F-05 `local` every party
            has its own count of steps, t Q + j.
        local_gradient: as in `fedbcd_p` (F-01).
        exchange: "per_batch" or "as_printed" (F-02).
        later: "latest" or "own_exchange".
        covers: "batch" or "all"; what Exchange({k, K}) is about, as printed only.

    Returns:
        The trace; `start` is the exchange before the loop.
    """
    problem = with_loss_of(problem, local_gradient)
    sizes = step_table(steps, Q)
    tables = Tables(problem, params)
    everybody, everything = range(len(params)), np.arange(len(problem.y))
    covers_all = exchange == "as_printed" and covers == "all"
    trace = Trace([], [], [], [])
    if exchange == "as_printed":
        trace.start.extend(tables.exchange(everybody, everything))
    for t, ids in enumerate(batches):
        sent = []
        if exchange == "per_batch":
            sent += tables.exchange(everybody, ids)
        for k in everybody:
            # Of the first party, nothing changed since the exchange of this batch;
            # as printed there was none, and nobody can tell it anything.
            if k == tables.last or (k > 0 and later == "latest"):
                tables.tell(k, ids)
            tables.params[k] = local_steps(
                problem,
                k,
                tables.params[k],
                ids,
                tables.view[k][ids],
                tables.told[k][ids],
                sizes[t],
                local_gradient,
            )
            about = everything if covers_all else ids
            sent += tables.exchange((k, tables.last), about)
        record(trace, tables.params, sent)
    return trace


class Tables:
    """Who knows what; see the module's docstring. NaN where nothing was told yet."""

    def __init__(self, problem: Problem, params: Params):
        self.problem = problem
        self.params = list(params)
        self.last = len(params) - 1
        shape = (len(problem.y), 1)
        self.store = [np.full(shape, np.nan) for _ in params]
        self.view = [np.full(shape, np.nan) for _ in params]
        self.told = [np.full(shape, np.nan) for _ in params]

    def own(self, k: int, ids: np.ndarray) -> np.ndarray:
        """H^k at the present parameters, [n, 1]."""
        model, x = self.problem.models[k], self.problem.x[k]
        return model.forward(self.params[k], x[ids])

    def tell(self, k: int, ids: np.ndarray) -> np.ndarray:
        """Party K computes what party k is to know of `ids`; returns the slopes."""
        self.store[self.last][ids] = self.own(self.last, ids)
        parts = [table[ids] for table in self.store]
        g = slopes(self.problem.loss, add_up(parts, len(ids)), self.problem.y[ids])
        self.view[k][ids] = add_up(parts[:k] + parts[k + 1 :], len(ids))
        self.told[k][ids] = g
        return g

    def exchange(self, parties: Sequence[int], ids: np.ndarray) -> list[Message]:
        """Exchange(parties) about the samples `ids`; the messages, in order."""
        without_labels = [k for k in parties if k != self.last]
        sent = []
        for k in without_labels:
            self.store[k][ids] = self.own(k, ids)
            sent.append(Message(k, self.last, self.own(k, ids)))
        for k in without_labels:
            sent.append(Message(self.last, k, self.tell(k, ids)))  # noqa: PERF401
        return sent
