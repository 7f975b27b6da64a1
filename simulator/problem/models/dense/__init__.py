"""Fully connected layers: `part` (options), `network`."""
