"""SGD, FedAsync and FedBuff: options, kernels, staleness weights, optimizers."""
