"""FedSGD, FedBCD, FedPBCD: options, kernels, transfer learning."""
