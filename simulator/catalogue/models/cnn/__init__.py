"""Convolutional network of five layers: `part` (options), `network`."""
