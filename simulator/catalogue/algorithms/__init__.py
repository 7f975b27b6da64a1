"""Update rules, one family a folder: pure, vmappable `init`, `step` and `read_out`.

The interface is `engine.kernel.Kernel`.

- `vafl`, `fedbcd`: vertical; the latter with local steps.
- `edge_cloud`: CSGD, ASGD, AUDP and MAPA, as chains of their own.
- `federated`: SGD, FedAvg, FedAsync and FedBuff, each a chain of stages: `chain` has
  their bases and order, `stages`, `clients` and `server` the stages, `kernel` what
  takes rows through them.
- `tables`: chains whose server keeps a vector of each client.
- `hierarchical` and others: servers with more than one model.
- `decentralised`: parallel SGD, A(DP)2SGD and stochastic gradient push: `kernel` has
  what they share, `merging` a class for each way in which two models become one.
"""
