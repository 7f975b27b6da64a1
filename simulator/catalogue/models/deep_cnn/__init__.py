"""Convolutional network of any depth: `part` (options), `network`."""
