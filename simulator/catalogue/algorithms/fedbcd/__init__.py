"""FedSGD, FedBCD, FedPBCD: options, kernels, transfer learning, encryption's cost."""
