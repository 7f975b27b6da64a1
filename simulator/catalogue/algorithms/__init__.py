"""Update rules, one family a folder: pure, vmappable `init`, `step` and `read_out`.

The interface is `engine.kernel.Kernel`.

- `vafl`, `fedbcd`: vertical; the latter with local steps.
- `edge_cloud`: CSGD, ASGD, AUDP and MAPA, each a chain.
- `federated`: SGD, FedAvg, FedAsync and FedBuff, each a chain of stages: `chain` has
  their bases and order, `stages`, `clients` and `server` the stages, `kernel` runs them
  over the rows.
- `tables`: chains whose server keeps a vector of each client.
- `hierarchical` and others: servers with more than one model.
- `decentralised`: parallel SGD, A(DP)2SGD and stochastic gradient push: `kernel` has
  the shared code, `merging` a class for each way of merging two models.
"""
