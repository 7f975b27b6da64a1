"""CSGD, ASGD, AUDP and MAPA: options, kernels, MAPA's stages."""
