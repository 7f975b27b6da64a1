"""Convolutional networks: `part` (options), `network`."""
