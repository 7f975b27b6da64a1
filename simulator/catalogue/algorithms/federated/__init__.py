"""SGD, FedAvg, FedAsync and FedBuff: options, stages, staleness weights."""
