"""Convolutional network of a part of an image: `part` (options), `network`."""
