"""Asynchronous FedBCD, an extension that is not in the paper: slow, plain NumPy.

The server is where the labels are, and it keeps `store[k]` [N, 1]: for every sample
the newest H^k_i that party k uploaded, at first at the initial parameters. This holds
for the last party (with the labels) too: its entries are as old as its own last
upload, although it could compute them when they are wanted. Each party has its own
batches. What happens is a list of items, in their order:

("serve", k, batch)
    Party k uploads H^k of the batch at its present theta_k, and store[k] takes it at
    once. The server answers with H_{-k} = sum_{q != k} store[q] on the batch, and with
    the slopes of H_{-k} plus what was just uploaded. This is the read: what others
    upload or commit later does not change it. Party k now makes its Q steps, from this
    theta_k, with batch, H_{-k} and (if "frozen") slopes held; it recomputes its own
    H^k. Its own theta is never stale, as only it can change it, and it does so only by
    a commit.
("commit", k)
    The result of k's steps becomes theta_k. Nothing is uploaded: the store holds H^k
    at the theta_k before these steps until k is served again, and only on the samples
    of that batch. A party is served again only after its commit.

So an update becomes visible to others at the party's next serve, not at its commit.
Strict alternation of ("serve", k), ("commit", k) is therefore not FedBCD-s, which
uploads after the steps: here even then everyone sees the others one update old.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tests.reference.fedbcd_twin import (
    Params,
    Problem,
    add_up,
    local_steps,
    outputs,
    slopes,
    step_table,
    with_loss_of,
)


class AsyncTrace(NamedTuple):
    """What a run leaves.

    Attributes:
        params: per item, the parties' parameters after it; a serve changes none.
        reads: per serve, H_{-k} [S, 1] of the answer.
        store: per party [N, 1], at the end.
        pending: per party, the result of its steps that was not committed, or None.
    """

    params: list[list[np.ndarray]]
    reads: list[np.ndarray]
    store: list[np.ndarray]
    pending: list[np.ndarray | None]


def async_fedbcd(
    problem: Problem,
    params: Params,
    events: Sequence[tuple],
    Q: int,
    steps: float | np.ndarray,
    local_gradient: str = "recompute",
    mu: float = 0.0,
    anchor: str = "sync",
) -> AsyncTrace:
    """Applies the items in their order; see the module's docstring.

    Args:
        problem: data, models, loss and l2.
        params: initial, flat, per party.
        events: ("serve", party, ids) and ("commit", party), in order.
        Q: local steps of a serve.
        steps: one number, or [serves], or [serves, Q]; serve n takes the n-th,
            whichever party it is of, counted when it is served.
        local_gradient: as in `fedbcd_p` (F-01); the last party always recomputes.
        mu: proximal weight; the anchor "sync" is theta when served.
        anchor: "sync" or "first_step".

    Returns:
        The trace.
    """
    problem = with_loss_of(problem, local_gradient)
    params = list(params)
    num_serves = sum(event[0] == "serve" for event in events)
    if np.ndim(steps) == 0:
        steps = np.full(num_serves, steps)
    sizes = step_table(np.asarray(steps), Q)
    store = outputs(problem, params, np.arange(len(problem.y)))
    pending: list[np.ndarray | None] = [None for _ in params]
    trace = AsyncTrace([], [], store, pending)

    for kind, k, *rest in events:
        waiting = pending[k]
        if kind == "commit":
            assert waiting is not None
            params[k], pending[k] = waiting, None
        else:
            ids = rest[0]
            uploaded = problem.models[k].forward(params[k], problem.x[k][ids])
            store[k][ids] = uploaded
            read = add_up(
                [store[q][ids] for q in range(len(params)) if q != k], len(ids)
            )
            g = slopes(problem.loss, read + uploaded, problem.y[ids])
            size = sizes[len(trace.reads)]
            pending[k] = local_steps(
                problem, k, params[k], ids, read, g, size, local_gradient, mu, anchor
            )
            trace.reads.append(read)
        trace.params.append(list(params))
    return trace
