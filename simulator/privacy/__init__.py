"""Privacy: noise on messages, and the account of all messages that are sent.

- `mechanisms`, `noise`: clipping and noise as JAX kernels.
- `releases`: what one message tells of a client's data; `of_runs`, `of_gossip`: the
  releases that follow from a run's configuration, and whether they are proved.
- `accountants`: the sum of a client's releases; `composition`, `numerical` and `gdp`
  compute it. `ledger` keeps one accountant per client during a run.
- `budgets`, `calibration`: the noise, or the number of releases, for a given epsilon.
- `decentralised` and the modules named after it: the theory of A(DP)2SGD.
- `smoothing`: the effect of VAFL's noise on its objective.
- `encrypted`, `encryption_costs`: FedBCD on CKKS ciphertexts, and the cost of that.

The functions that are re-exported here are those of `gdp`.
"""

from simulator.privacy.gdp import (
    Accountant,
    Form,
    bound_linear,
    delta_at,
    epsilon,
    increments,
    is_formal,
    level,
    noise_multiplier,
    sensitivity,
)

__all__ = [
    "Accountant",
    "Form",
    "bound_linear",
    "delta_at",
    "epsilon",
    "increments",
    "is_formal",
    "level",
    "noise_multiplier",
    "sensitivity",
]
