"""Privacy: noise on messages, and the account of all messages that are sent.

- `mechanisms`, `noise`: clipping and noise as JAX kernels.
- `releases`: the information on a client's data in one message; `guarantees`,
  `gossip_noise`: the releases of an algorithm's messages, and whether they are proved.
- `accountants`: the sum of a client's releases; `composition`, `numerical` and `gdp`
  compute it. `ledger` keeps one accountant per client during a run.
- `budgets`: the noise, or the number of releases, for a given epsilon.
- `adp2sgd`: the theory of A(DP)2SGD.
"""
