"""Update rules, one family a file: pure, vmappable `init`, `step` and `read_out`.

- `base`: the interface; `client_work`: local steps, clipping and noise of a client.
- `vafl` (with `vafl_building`, `vafl_stores`, `embedding_ages`): vertical.
- `fedbcd` (with `fedbcd_building`, `fedbcd_transfer`): vertical, with local steps.
- `edge_cloud` (with `stages`): CSGD, ASGD, AUDP and MAPA.
- `federated`: SGD, FedAvg, FedAsync and FedBuff, each a chain of stages: `chain` has
  their bases and order, `parts` the stages, `kernel` what takes rows through them.
- `optimizers`: optimisers of servers and clients.
- `decentralised`: parallel SGD, A(DP)2SGD and stochastic gradient push.
- `step_rules`: step sizes, and the constants that they need.
"""
