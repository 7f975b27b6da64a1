"""PSGD, A(DP)2SGD and stochastic gradient push: options and kernels."""
