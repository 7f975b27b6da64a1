"""SGD, FedAvg, FedAsync and FedBuff: options, kernels, staleness weights."""
